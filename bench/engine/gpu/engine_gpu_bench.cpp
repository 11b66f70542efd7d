// Clouds per second of the engine on a GPU, and how near that is to the largest product of cuBLASLt in the same run.
//
//   engine_gpu_bench [--json] [--steps] [--weights FILE] [--points N] [--precision P[,P...]] [--batch B[,B...]] [MODEL
//   ...]
//
// PointNet with 40 classes (pointnet: both transforms; pointnet-t3: the small one alone; pointnet-t0: none) and the
// segmenter, random weights or those of FILE, which brings its own model. TFLOP/s count what the compiled program
// computes, which is a little less than the network as published. Before a precision is timed, its logits are compared
// with those of fp32 on the same clouds. Memory: what a context plans, and what the device says was taken by engine and
// context together, weights included.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "gemm_peak.h"
#include "stipple/bench/data.h"
#include "stipple/bench/timing.h"
#include "stipple/engine/calibration.h"
#include "stipple/engine/engine.h"
#include "stipple/engine/program.h"
#include "stipple/io/text.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/registry.h"

namespace {

using namespace stipple;
using engine::Precision;

constexpr Device kGpu = {DeviceType::cuda, 0};

struct BenchModel {
    std::string name;
    network::Network network;
    network::Weights weights;
};

struct Arguments {
    bool json = false, steps = false;
    std::string weights;
    int64_t points = 1024;
    std::vector<Precision> precisions = engine::precisions_of(kGpu);
    std::vector<int64_t> batches = {1, 8, 32, 128, 512, 1024, 2048, 4096};
    std::vector<std::string> models = {"pointnet", "pointnet-t3"};
};

std::vector<BenchModel> models_of(const Arguments& arguments) {
    std::vector<BenchModel> models;
    if (!arguments.weights.empty()) {
        models::Model model = models::load_model(arguments.weights);
        models.push_back({model.network.name, std::move(model.network), std::move(model.weights)});
        return models;
    }
    for (const std::string& name : arguments.models) {
        models::PointNetOptions options;
        options.feature_transform = name == "pointnet" || name == "segmenter";
        options.input_transform = name != "pointnet-t0";
        network::Network network =
            name == "segmenter" ? models::pointnet_segmenter(options) : models::pointnet_classifier(options);
        network::Weights weights = network::initial_weights(network, 1);
        models.push_back({name, std::move(network), std::move(weights)});
    }
    return models;
}

/// Clouds that differ from each other. [clouds * n, 3]
Array<float, 2> clouds_of(int64_t clouds, int64_t n) {
    const Array<float, 3> tori = bench::wavy_tori(std::min<int64_t>(clouds, 64), n, 1);
    Array<float, 2> rows({clouds * n, 3});
    for (int64_t i = 0; i < clouds; ++i) {
        const float* from = tori.data() + i % tori.size(0) * n * 3;
        const float scale = 0.3f + 0.1f * static_cast<float>(i % 7);
        for (int64_t j = 0; j < n * 3; ++j)
            rows.data()[i * n * 3 + j] = from[j] * scale * (j % 3 == i % 3 ? 0.6f : 1.0f);
    }
    return rows;
}

/// An engine, a context, and memory on the GPU for one batch.
struct Running {
    engine::Engine engine;
    engine::Context context;
    ops::Batch batch;
    Array<float, 2> points, logits;

    Running(const BenchModel& model, const engine::Options& options, const Array<float, 2>& host)
        : engine(engine::compile(model.network, model.weights, options)),
          context(engine),
          batch(ops::Batch::dense(options.max_batch, options.max_points)),
          points(host.to(kGpu)) {
        for (const engine::Binding& binding : engine.program().outputs) {
            if (binding.name != "logits") continue;
            const network::TensorType& type = engine.program().values[static_cast<size_t>(binding.value)].type;
            const int64_t rows = type.level == network::Level::cloud ? batch.clouds() : batch.rows();
            logits = Array<float, 2>({rows, type.channels}, kGpu);
        }
    }
    void run() { context.run(batch, {{"points", points.view()}}, {{"logits", logits.view()}}); }
};

struct Agreement {
    double difference = 0;  // largest, of logits
    double winners = 1;     // share of rows whose largest logit is the same
};

Agreement agreement_of(const Array<float, 2>& found, const Array<float, 2>& expected) {
    Agreement agreement;
    int64_t same = 0;
    const int64_t c = expected.size(1);
    for (int64_t i = 0; i < expected.size(0); ++i) {
        const float *a = found.data() + i * c, *b = expected.data() + i * c;
        for (int64_t j = 0; j < c; ++j)
            agreement.difference = std::max<double>(agreement.difference, std::abs(a[j] - b[j]));
        same += std::max_element(a, a + c) - a == std::max_element(b, b + c) - b;
    }
    agreement.winners = static_cast<double>(same) / static_cast<double>(expected.size(0));
    return agreement;
}

void measure_model(const BenchModel& model, Precision precision, double peak, const Arguments& arguments) {
    engine::Options options;
    options.device = kGpu;
    options.precision = precision;
    options.max_points = arguments.points;
    if (precision == Precision::int8 || precision == Precision::fp8) {
        engine::CalibrationOptions calibration;
        calibration.precision = precision;
        // Random weights are here for their speed: all of it in eight bits, whatever that does to their logits.
        if (arguments.weights.empty()) calibration.max_logit_error = 1e9;
        const Array<float, 2> host = clouds_of(16, arguments.points);
        options.calibration = engine::calibrate(model.network, model.weights,
                                                {host.view(), ops::Batch::dense(16, arguments.points)}, calibration);
    }
    Agreement agreement;
    {
        options.max_batch = 128;
        const Array<float, 2> host = clouds_of(128, arguments.points);
        engine::Options plain = options;
        plain.precision = Precision::fp32;
        Running low(model, options, host), full(model, plain, host);
        for (int i = 0; i < 3; ++i) low.run();
        full.run();
        agreement = agreement_of(low.logits.to(Device{}), full.logits.to(Device{}));
        if (arguments.steps)
            for (const std::string& line : low.engine.describe()) fmt::print("  {}\n", line);
    }
    for (const int64_t batch : arguments.batches) {
        options.max_batch = batch;
        const Array<float, 2> host = clouds_of(batch, arguments.points);
        const Array<float, 2> resident = host.to(kGpu);
        const int64_t before = bench::used_bytes(kGpu) + host.elements() * 4;
        Running running(model, options, host);
        for (int i = 0; i < 3; ++i) running.run();
        const int64_t taken = bench::used_bytes(kGpu) - before;
        const bench::Timing timing = bench::measure([&] { running.run(); }, kGpu, {.repeat = 10, .seconds = 0.5});
        const double macs = static_cast<double>(engine::multiply_adds(running.engine.program(), arguments.points));
        const double rate = static_cast<double>(batch) / timing.best, tflops = 2e-12 * macs * rate;
        const double share = peak > 0 ? 1e12 * tflops / peak : 0;
        if (arguments.json) {
            const nlohmann::json row = {{"who", "stipple"},
                                        {"model", model.name},
                                        {"precision", std::string(name_of(precision))},
                                        {"batch", batch},
                                        {"points", arguments.points},
                                        {"ms", 1e3 * timing.best},
                                        {"ms_median", 1e3 * timing.median},
                                        {"clouds_per_s", rate},
                                        {"tflops", tflops},
                                        {"gemm_peak_tflops", 1e-12 * peak},
                                        {"fraction_of_peak", share},
                                        {"context_bytes", running.engine.context_bytes()},
                                        {"weight_bytes", running.engine.weight_bytes()},
                                        {"device_bytes", taken},
                                        {"logit_difference", agreement.difference},
                                        {"winner_agreement", agreement.winners}};
            fmt::print("{}\n", row.dump());
        } else {
            fmt::print(
                "| {} | {} | {} | {} | {:.3f} | {:.0f} | {:.1f} | {:.0f} % | {:.1f} | {:.1f} | {:.1e} | {:.1f} % |\n",
                model.name, name_of(precision), batch, arguments.points, 1e3 * timing.best, rate, tflops, 100 * share,
                1e-6 * static_cast<double>(running.engine.context_bytes()), 1e-6 * static_cast<double>(taken),
                agreement.difference, 100 * agreement.winners);
        }
        std::fflush(stdout);
    }
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts(1);
    for (const char c : text)
        if (c == ',')
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

Arguments parse(int argc, char** argv) {
    Arguments arguments;
    std::vector<std::string> models;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        const auto value = [&]() -> std::string {
            STIPPLE_REQUIRE(i + 1 < argc, "{} needs a value", argument);
            return argv[++i];
        };
        const auto number = [](const std::string& text) {
            int64_t n = 0;
            STIPPLE_REQUIRE(io::parse_number(text, n) && n >= 1, "'{}' is no number of at least 1", text);
            return n;
        };
        if (argument == "--json") {
            arguments.json = true;
        } else if (argument == "--steps") {
            arguments.steps = true;
        } else if (argument == "--weights") {
            arguments.weights = value();
        } else if (argument == "--points") {
            arguments.points = number(value());
        } else if (argument == "--precision") {
            arguments.precisions.clear();
            for (const std::string& part : split(value()))
                arguments.precisions.push_back(engine::parse_precision(part));
        } else if (argument == "--batch") {
            arguments.batches.clear();
            for (const std::string& part : split(value())) arguments.batches.push_back(number(part));
        } else {
            STIPPLE_REQUIRE(argument[0] != '-',
                            "usage: engine_gpu_bench [--json] [--steps] [--weights FILE] [--points N] "
                            "[--precision P,...] [--batch B,...] [MODEL ...]");
            models.push_back(argument);
        }
    }
    if (!models.empty()) arguments.models = models;
    return arguments;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const Arguments arguments = parse(argc, argv);
        std::map<Precision, double> peaks;
        for (const Precision precision : arguments.precisions) {
            peaks[precision] = bench::gemm_peak(precision, kGpu);
            if (!arguments.json)
                fmt::print("cuBLASLt 8192^3 {}: {:.1f} TFLOP/s\n", name_of(precision), 1e-12 * peaks[precision]);
        }
        if (!arguments.json)
            fmt::print(
                "\n| model | precision | clouds | points | ms | clouds/s | TFLOP/s | of the product | context MB | "
                "engine and context MB | logit difference | same winner |\n"
                "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
        for (const BenchModel& model : models_of(arguments))
            for (const Precision precision : arguments.precisions)
                measure_model(model, precision, peaks[precision], arguments);
    } catch (const Error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    return 0;
}
