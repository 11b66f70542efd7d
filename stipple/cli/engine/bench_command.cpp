#include <algorithm>

#include "stipple/bench/multiply_peak.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/profile_report.h"
#include "stipple/cli/engine/bench_report.h"
#include "stipple/cli/engine/commands.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/engine/time_engine.h"
#include "stipple/tasks/model_file.h"

namespace stipple::cli {
namespace {

struct EngineBenchOptions {
    std::string model, profile;
    std::vector<std::string> precisions = {"fp32"}, data;
    std::vector<int64_t> batches = {1, 32}, points = {1024};
    int64_t repeat = 10, compare = 256;
    double seconds = 1, warm_up = 0.2;
    CloudArguments clouds;
    Option precision_option, batch_option, points_option;
};

/// "fp32,bf16" -> both. Throws Error{bad_argument}.
std::vector<engine::Precision> parse_precisions(const std::vector<std::string>& texts) {
    std::vector<engine::Precision> precisions;
    for (const std::string& text : texts) {
        const engine::Precision precision = engine::parse_precision(text);
        for (const engine::Precision known : precisions)
            STIPPLE_REQUIRE(known != precision, "--precision names {} twice", text);
        precisions.push_back(precision);
    }
    return precisions;
}

bool is_scaled(engine::Precision precision) {
    return precision == engine::Precision::int8 || precision == engine::Precision::fp8;
}

MachineLimit measure_limit(Device device, engine::Precision precision) {
    if (device.type == DeviceType::cuda)
        return {engine::gemm_peak(device, precision),
                fmt::format("a large product by cuBLASLt in {}", name_of(precision))};
    // Of whatever precision: the instructions of the others have no peak that can be measured as simply.
    const bench::MultiplyPeak peak = bench::multiply_peak();
    return {peak.operations_per_second, fmt::format("float32 {} on {} threads", peak.instruction, threads())};
}

/// The clouds on which precisions are compared, with labels where all are known.
struct Sample {
    tasks::CloudBatch clouds;
    std::vector<int64_t> labels;
    bool is_real = false;
};

Sample load_sample(const EngineBenchOptions& options, const Common& common, int64_t points, io::Warnings& warnings) {
    Sample sample;
    if (options.data.empty()) {
        sample.clouds = tasks::synthetic_clouds(std::min<int64_t>(options.compare, 64), points, common.seed);
        return sample;
    }
    const std::vector<data::CloudEntry> entries = data::list_clouds(options.data);
    tasks::CloudOptions how = cloud_options(options.clouds, common);
    how.points = points;
    tasks::LoadedBatch loaded = load_clouds(entries, options.compare, how, options.clouds, common, warnings);
    sample.clouds = std::move(loaded.clouds);
    sample.is_real = true;
    for (const int64_t chosen : loaded.chosen)
        if (const auto label = entries[static_cast<size_t>(chosen)].label()) sample.labels.push_back(*label);
    if (sample.labels.size() != loaded.chosen.size()) sample.labels.clear();
    return sample;
}

class Bench {
public:
    Bench(const EngineBenchOptions& options, const Common& common)
        : options_(options), common_(common), source_(tasks::load_model_or_engine(options.model)) {
        device_ = tasks::device_for(source_, common.device);
        STIPPLE_REQUIRE(!source_.file || source_.file->options.device.type == device_.type,
                        "{} was built for another kind of device than {}", options.model, device_);
    }

    Result run() {
        std::vector<engine::Precision> precisions = parse_precisions(options_.precisions);
        std::vector<int64_t> batches = options_.batches, points = options_.points;
        if (source_.file) {
            const engine::Options& built = source_.file->options;
            STIPPLE_REQUIRE(!options_.precision_option.given() || precisions == std::vector{built.precision},
                            "{} was built in {}: for other precisions give the model itself", options_.model,
                            name_of(built.precision));
            precisions = {built.precision};
            if (!options_.batch_option.given()) batches = {built.max_batch};
            if (!options_.points_option.given()) points = {built.max_points};
        }
        check_device(precisions);
        result_.fields["inputs"] = Json::array({options_.model});
        result_.fields["model"] = source_.name();
        const auto total = static_cast<int64_t>(precisions.size() * batches.size() * points.size());
        Progress progress("bench", total, progress_mode(common_), "engines");
        for (const int64_t n : points) {
            const Sample sample = load_sample(options_, common_, n, result_.warnings);
            is_real_ = sample.is_real;
            prepare_calibration(precisions, sample);
            const tasks::Answers reference = tasks::answers_of(reference_engine(sample.clouds), sample.clouds);
            for (const engine::Precision precision : precisions) {
                const MachineLimit limit = measure_limit(device_, precision);
                std::optional<tasks::Answers> answers;
                for (const int64_t batch : batches) {
                    check_interrupted();
                    rows_.push_back(measure(precision, batch, n, limit, sample, reference, answers));
                    progress.add();
                }
            }
        }
        progress.finish();
        report();
        return std::move(result_);
    }

private:
    void check_device(const std::vector<engine::Precision>& precisions) const {
        const std::vector<engine::Precision> can = engine::precisions_of(device_);
        for (const engine::Precision precision : precisions) {
            if (std::find(can.begin(), can.end(), precision) != can.end()) continue;
            std::string names;
            for (const engine::Precision known : can)
                names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(known));
            throw Error(ErrorCode::bad_argument, fmt::format("{} cannot do {}", device_, name_of(precision)),
                        "it can do " + names);
        }
    }

    /// int8 and fp8 of a model that was never calibrated: from the very clouds that are compared.
    void prepare_calibration(const std::vector<engine::Precision>& precisions, const Sample& sample) {
        calibrations_.clear();
        if (!source_.model || engine::has_calibration(source_.model->weights)) return;
        for (const engine::Precision precision : precisions) {
            if (!is_scaled(precision)) continue;
            engine::CalibrationOptions how;
            how.precision = precision;
            calibrations_[precision] = engine::calibrate(source_.model->network, source_.model->weights,
                                                         {sample.clouds.view(), sample.clouds.batch()}, how);
            result_.warnings.push_back(fmt::format("{}: not calibrated for {}: done now on {} {} clouds",
                                                   options_.model, name_of(precision), sample.clouds.clouds(),
                                                   sample.is_real ? "of the data's" : "synthetic"));
        }
    }

    engine::Engine compile_at(engine::Precision precision, int64_t batch, int64_t points) const {
        engine::Options wanted;
        wanted.device = device_;
        wanted.precision = precision;
        wanted.max_batch = batch;
        wanted.max_points = points;
        if (const auto found = calibrations_.find(precision); found != calibrations_.end())
            wanted.calibration = found->second;
        if (source_.model) return engine::compile(source_.model->network, source_.model->weights, wanted);
        engine::EngineFile file = *source_.file;
        file.options.max_batch = batch;
        file.options.max_points = points;
        return engine::compile(std::move(file), device_.index);
    }

    /// The same network in fp32.
    engine::Engine reference_engine(const tasks::CloudBatch& clouds) const {
        engine::Options wanted;
        wanted.device = device_;
        wanted.max_batch = std::min<int64_t>(32, clouds.clouds());
        wanted.max_points = clouds.batch().largest();
        if (source_.model) return engine::compile(source_.model->network, source_.model->weights, wanted);
        engine::Program program = source_.file->program;
        for (engine::Step& step : program.steps)
            for (engine::Dense& layer : step.layers) layer.precision = engine::Precision::fp32;
        return engine::compile(std::move(program), wanted);
    }

    BenchRow measure(engine::Precision precision, int64_t batch, int64_t points, const MachineLimit& limit,
                     const Sample& sample, const tasks::Answers& reference, std::optional<tasks::Answers>& answers) {
        const engine::Engine engine = compile_at(precision, batch, points);
        if (!answers) {
            const engine::Engine other =
                compile_at(precision, std::min<int64_t>(32, sample.clouds.clouds()), sample.clouds.batch().largest());
            answers = tasks::answers_of(other, sample.clouds);
        }
        BenchRow row;
        row.precision = precision;
        row.device = device_;
        row.batch = batch;
        row.points = points;
        row.multiply_adds = engine::multiply_adds(engine.program(), points);
        row.weight_bytes = engine.weight_bytes();
        row.context_bytes = engine.context_bytes();
        row.limit = limit;
        if (precision != engine::Precision::fp32) row.agreement = tasks::compare(*answers, reference);
        if (!sample.labels.empty()) row.accuracy = tasks::accuracy_of(*answers, sample.labels);
        const tasks::CloudBatch clouds = tasks::synthetic_clouds(batch, points, common_.seed);
        const ops::Batch dense = ops::Batch::dense(batch, points);
        const auto others = tasks::other_inputs(engine.program(), dense);
        std::vector<engine::HostInput> inputs = {{"points", clouds.view()}};
        for (const auto& [name, rows] : others) inputs.push_back({name, rows.view()});
        row.times = engine::time_engine(engine, dense, inputs, {options_.warm_up, options_.repeat, options_.seconds});
        if (!options_.profile.empty())  // runs of their own: those above are not held up by clocks
            engine::profile_engine(engine, dense, inputs, options_.repeat, profile_,
                                   fmt::format("{}, {} x {} points", name_of(precision), batch, points));
        return row;
    }

    void report() {
        Json list = Json::array();
        for (const BenchRow& row : rows_) {
            list.push_back(bench_json(row));
            if (row.times.compute.variation > BenchRow::kHighVariation)
                result_.warnings.push_back(
                    fmt::format("{}, batch {}: times vary by {:.0f} % (coefficient of variance): something else is "
                                "using this machine, or --seconds is too short",
                                name_of(row.precision), row.batch, 100 * row.times.compute.variation));
        }
        std::string name;
        for (const DeviceInfo& info : list_devices())
            if (info.device == device_) name = info.name;
        result_.fields["rows"] = std::move(list);
        result_.fields["threads"] = threads();
        result_.fields["device_name"] = name;
        result_.fields["compared_on"] = is_real_ ? "data" : "synthetic";
        if (common_.table.empty() && rows_.size() == 1)
            result_.text = bench_summary(rows_[0]);
        else
            result_.text = bench_table(rows_, common_.table);
        if (common_.table.empty())
            result_.text += fmt::format("\n{} on {} ({}), {} threads; compared with fp32 on {} clouds\n",
                                        source_.name(), device_, name, threads(), is_real_ ? "real" : "synthetic");
        report_profile(profile_, options_.profile, common_.overwrite_mode(), common_, result_);
    }

    const EngineBenchOptions& options_;
    const Common& common_;
    tasks::ModelOrEngine source_;
    Device device_;
    bool is_real_ = false;
    std::map<engine::Precision, engine::Calibration> calibrations_;
    std::vector<BenchRow> rows_;
    Profile profile_;
    Result result_;
};

Result run_engine_bench(const EngineBenchOptions& options, const Common& common) {
    for (const int64_t batch : options.batches)
        STIPPLE_REQUIRE(batch >= 1 && batch <= 1 << 20, "--batch must be 1 to {}, got {}", 1 << 20, batch);
    for (const int64_t points : options.points)
        STIPPLE_REQUIRE(points >= 1 && points <= 1 << 24, "--points must be 1 to {}, got {}", 1 << 24, points);
    STIPPLE_REQUIRE(options.seconds >= 0 && options.seconds <= 3600, "--seconds must be 0 to 3600, got {}",
                    options.seconds);
    STIPPLE_REQUIRE(options.warm_up >= 0 && options.warm_up <= 3600, "--warm-up must be 0 to 3600, got {}",
                    options.warm_up);
    require_profile(options.profile, common);
    return Bench(options, common).run();
}

}  // namespace

Command add_engine_bench(Arguments& group, Common& common) {
    auto options = std::make_shared<EngineBenchOptions>();
    Arguments& app = group.command("bench", "Time a network: throughput, latency, memory, what precisions cost");
    Option model = app.option("MODEL", options->model, "Weights (.safetensors) or a built engine");
    options->precision_option = app.option("--precision", options->precisions, "fp32,tf32,fp16,bf16,int8,fp8")
                                    .separated_by(',')
                                    .text("A,B,...");
    options->batch_option =
        app.option("--batch", options->batches, "Clouds at a time").separated_by(',').text("N,M,...");
    options->points_option =
        app.option("--points", options->points, "Points of a cloud").separated_by(',').text("N,M,...");
    app.option("--data", options->data, "Real clouds for the comparison with fp32; accuracy if labelled")
        .text("PATH...");
    app.option("--compare", options->compare, "How many of them, at most").between(1, 1 << 20).text("N");
    app.option("--warm-up", options->warm_up, "Seconds before timing").text("S");
    app.option("--seconds", options->seconds, "Timed seconds of each case").text("S");
    app.option("--repeat", options->repeat, "Timed runs of each, at least").between(1, 1 << 30).text("N");
    add_profile(app, options->profile);
    app.footer(
        "Example:\n  stipple engine bench pointnet.safetensors --precision fp32,bf16,int8 --batch 1,32,1024\n"
        "  stipple engine bench pointnet.engine --table md");
    return {&app, [options, &common] { return run_engine_bench(*options, common); }, {model}};
}

}  // namespace stipple::cli
