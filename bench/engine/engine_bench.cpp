// Clouds per second of the engine on the CPU, and how near that is to the peak of its multiply-add units.
//
//   engine_bench [--json] [--repeat N] [--threads N] [--steps] [MODEL ...]
//
// PointNet (both transforms, 40 classes, 1024 points) and PU-Flow (x4, patches of 256 points) with random weights,
// at every precision, one cloud and 32 at a time; best of N runs (5). GFLOP/s count what the compiled program computes,
// which is less than the network as it is published. --json prints one object a line; --steps says which kernel runs
// each step.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "fma_peak.h"
#include "stipple/bench/data.h"
#include "stipple/bench/timing.h"
#include "stipple/core/parallel.h"
#include "stipple/engine/engine.h"
#include "stipple/engine/program.h"
#include "stipple/io/text.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/puflow.h"

namespace {

using namespace stipple;

struct Model {
    std::string name;
    network::Network network;
    int64_t points;
};

std::vector<Model> models_of(const std::vector<std::string>& names) {
    std::vector<Model> all;
    all.push_back({"pointnet", models::pointnet_classifier({}), 1024});
    models::PointNetOptions plain;
    plain.feature_transform = false;
    all.push_back({"pointnet-t3", models::pointnet_classifier(plain), 1024});
    all.push_back({"segmenter", models::pointnet_segmenter({}), 2048});
    all.push_back({"puflow", models::puflow({}), 256});
    std::vector<Model> chosen;
    for (Model& model : all)
        if (names.empty() || std::find(names.begin(), names.end(), model.name) != names.end())
            chosen.push_back(std::move(model));
    return chosen;
}

struct Arguments {
    bool json = false, steps = false;
    int repeat = 5;
    std::vector<std::string> models;
};

/// One range for all layers: times do not depend on it.
std::optional<engine::Calibration> ranges_for_timing(const network::Network& network, engine::Precision precision) {
    if (precision != engine::Precision::int8) return {};
    engine::Calibration calibration;
    calibration.precision = precision;
    calibration.clouds = 1;
    for (const network::Layer& layer : network.layers)
        if (layer.kind == network::Kind::linear) calibration.layers[layer.name] = {.range = 4, .largest = 4};
    return calibration;
}

void measure_model(const Model& model, engine::Precision precision, int64_t batch, double peak,
                   const Arguments& arguments) {
    const network::Weights weights = network::initial_weights(model.network, 1);
    const engine::Engine engine = engine::compile(model.network, weights,
                                                  {.precision = precision,
                                                   .max_batch = batch,
                                                   .max_points = model.points,
                                                   .calibration = ranges_for_timing(model.network, precision)});
    if (arguments.steps)
        for (const std::string& line : engine.describe()) fmt::print("  {}\n", line);
    engine::Context context(engine);
    const Array<float, 2> points = bench::wavy_torus(batch * model.points, 1);
    std::vector<Array<float, 2>> arrays;
    std::vector<engine::Output> outputs;
    for (const engine::Binding& binding : engine.program().outputs) {
        if (binding.name == "feature_transform") continue;  // wanted while training
        const network::TensorType& type = engine.program().values[static_cast<size_t>(binding.value)].type;
        const int64_t rows = type.level == network::Level::cloud ? batch : batch * model.points * type.width;
        arrays.emplace_back(std::array<int64_t, 2>{rows, type.channels});
        outputs.push_back({binding.name, arrays.back().view()});
    }
    const ops::Batch clouds = ops::Batch::dense(batch, model.points);
    const std::vector<engine::Input> inputs = {{"points", points.view()}};
    const bench::Timing timing = bench::measure([&] { context.run(clouds, inputs, outputs); }, Device{},
                                                {.repeat = arguments.repeat, .seconds = 0.5});
    const double macs = static_cast<double>(engine::multiply_adds(engine.program(), model.points));
    const double gflops = 2e-9 * macs * static_cast<double>(batch) / timing.best;
    const double rate = static_cast<double>(batch) / timing.best;
    if (arguments.json) {
        nlohmann::json row = {{"who", "stipple"},
                              {"model", model.name},
                              {"precision", std::string(name_of(precision))},
                              {"batch", batch},
                              {"points", model.points},
                              {"threads", threads()},
                              {"ms", 1e3 * timing.best},
                              {"ms_median", 1e3 * timing.median},
                              {"clouds_per_s", rate},
                              {"gflops", gflops},
                              {"fma_peak_gflops", peak},
                              {"fraction_of_peak", gflops / peak}};
        fmt::print("{}\n", row.dump());
    } else {
        fmt::print("| {} | {} | {} | {} | {:.3f} | {:.1f} | {:.1f} | {:.0f} % |\n", model.name, name_of(precision),
                   batch, model.points, 1e3 * timing.best, rate, gflops, 100 * gflops / peak);
    }
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        int64_t number = 0;
        if (argument == "--json") {
            arguments.json = true;
        } else if (argument == "--steps") {
            arguments.steps = true;
        } else if ((argument == "--repeat" || argument == "--threads") && i + 1 < argc &&
                   io::parse_number(argv[++i], number) && number >= 1) {
            if (argument == "--repeat")
                arguments.repeat = static_cast<int>(number);
            else
                set_threads(static_cast<int>(number));
        } else if (argument[0] != '-') {
            arguments.models.push_back(argument);
        } else {
            std::fputs("usage: engine_bench [--json] [--repeat N] [--threads N] [--steps] [MODEL ...]\n", stderr);
            return 2;
        }
    }
    const double peak = bench::fma_peak(threads());
    if (!arguments.json)
        fmt::print(
            "{} threads, {:.1f} GFLOP/s of float32 multiply-adds at most\n\n"
            "| model | precision | clouds | points | ms | clouds/s | GFLOP/s | of the fp32 peak |\n"
            "|---|---|---|---|---|---|---|---|\n",
            threads(), peak);
    for (const Model& model : models_of(arguments.models))
        for (const engine::Precision precision : engine::precisions_of(Device{}))
            for (const int64_t batch : {1, 32}) measure_model(model, precision, batch, peak, arguments);
    return 0;
}
