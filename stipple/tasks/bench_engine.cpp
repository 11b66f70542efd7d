#include "stipple/tasks/bench_engine.h"

#include <algorithm>
#include <set>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/engine/program.h"

namespace stipple::tasks {
namespace {

/// Compared at a time, and synthetic ones in all.
constexpr int64_t kComparedBatch = 32, kSyntheticClouds = 64;

std::vector<engine::Precision> parse_precisions(const std::vector<std::string>& texts) {
    std::vector<engine::Precision> precisions;
    for (const std::string& text : texts) {
        const engine::Precision precision = engine::parse_precision(text);
        STIPPLE_REQUIRE(std::find(precisions.begin(), precisions.end(), precision) == precisions.end(),
                        "--precision names {} twice", text);
        precisions.push_back(precision);
    }
    return precisions;
}

void check_device(const std::vector<engine::Precision>& precisions, Device device) {
    const std::vector<engine::Precision> can = engine::precisions_of(device);
    for (const engine::Precision precision : precisions) {
        if (std::find(can.begin(), can.end(), precision) != can.end()) continue;
        std::string names;
        for (const engine::Precision known : can)
            names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(known));
        throw Error(ErrorCode::bad_argument, fmt::format("{} cannot do {}", device, name_of(precision)),
                    "it can do " + names);
    }
}

engine::TimeStatistics in_milliseconds(engine::TimeStatistics times) {
    for (double* time : {&times.min, &times.max, &times.mean, &times.median, &times.p99}) *time *= 1e3;
    return times;
}

class Bench {
public:
    Bench(const ModelOrEngine& source, Device device, const BenchEngineOptions& options)
        : source_(source), device_(device), options_(options) {
        STIPPLE_REQUIRE(!source.file || source.file->options.device.type == device.type,
                        "{} was built for another kind of device than {}", source.path, device);
    }

    EngineBench run() {
        const BenchEngineOptions usual;
        std::vector<engine::Precision> precisions = parse_precisions(options_.precisions);
        std::vector<int64_t> batches = options_.batches, points = options_.points;
        if (source_.file) {
            const engine::Options& built = source_.file->options;
            STIPPLE_REQUIRE(precisions.empty() || precisions == std::vector{built.precision},
                            "{} was built in {}: for other precisions give the model itself", source_.path,
                            name_of(built.precision));
            precisions = {built.precision};
            if (batches.empty()) batches = {built.max_batch};
            if (points.empty()) points = {built.max_points};
        }
        if (precisions.empty()) precisions = parse_precisions(usual.precisions);
        if (batches.empty()) batches = usual.batches;
        if (points.empty()) points = usual.points;
        check_device(precisions, device_);
        const auto total = static_cast<int64_t>(precisions.size() * batches.size() * points.size());
        for (const int64_t n : points) {
            const ComparedClouds compared = compared_clouds(n);
            prepare_calibration(precisions, compared.clouds);
            const Answers reference = answers_of(reference_engine(compared.clouds), compared.clouds);
            for (const engine::Precision precision : precisions) {
                const MachineLimit limit = options_.limit ? options_.limit(precision) : MachineLimit();
                std::optional<Answers> answers;
                for (const int64_t batch : batches) {
                    check_interrupted();
                    bench_.rows.push_back(measure(precision, batch, n, limit, compared, reference, answers));
                    if (options_.advance) options_.advance(static_cast<int64_t>(bench_.rows.size()), total);
                }
            }
        }
        bench_.device = device_;
        bench_.threads = threads();
        bench_.is_real = static_cast<bool>(options_.clouds);
        for (const DeviceInfo& info : list_devices())
            if (info.device == device_) bench_.device_name = info.name;
        return std::move(bench_);
    }

private:
    ComparedClouds compared_clouds(int64_t points) const {
        if (options_.clouds) return options_.clouds(points);
        return {synthetic_clouds(std::min(options_.compared, kSyntheticClouds), points, options_.seed)};
    }

    /// int8 and fp8 of a model that was never calibrated: from the very clouds that are compared.
    void prepare_calibration(const std::vector<engine::Precision>& precisions, const CloudBatch& clouds) {
        calibrations_.clear();
        if (!source_.model || engine::has_calibration(source_.model->weights)) return;
        for (const engine::Precision precision : precisions) {
            if (precision != engine::Precision::int8 && precision != engine::Precision::fp8) continue;
            engine::CalibrationOptions how;
            how.precision = precision;
            calibrations_[precision] =
                engine::calibrate(source_.model->network, source_.model->weights, {clouds.view(), clouds.batch()}, how);
            bench_.warnings.push_back(fmt::format("{}: not calibrated for {}: done now on {} {} clouds", source_.path,
                                                  name_of(precision), clouds.clouds(),
                                                  options_.clouds ? "of the data's" : "synthetic"));
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
    engine::Engine reference_engine(const CloudBatch& clouds) const {
        engine::Options wanted;
        wanted.device = device_;
        wanted.max_batch = std::min(kComparedBatch, clouds.clouds());
        wanted.max_points = clouds.batch().largest();
        if (source_.model) return engine::compile(source_.model->network, source_.model->weights, wanted);
        engine::Program program = source_.file->program;
        for (engine::Step& step : program.steps)
            for (engine::Dense& layer : step.layers) layer.precision = engine::Precision::fp32;
        return engine::compile(std::move(program), wanted);
    }

    EngineBenchRow measure(engine::Precision precision, int64_t batch, int64_t points, const MachineLimit& limit,
                           const ComparedClouds& compared, const Answers& reference, std::optional<Answers>& answers) {
        const engine::Engine engine = compile_at(precision, batch, points);
        if (!answers)
            answers = answers_of(compile_at(precision, std::min(kComparedBatch, compared.clouds.clouds()),
                                            compared.clouds.batch().largest()),
                                 compared.clouds);
        EngineBenchRow row;
        row.precision = precision, row.batch = batch, row.points = points;
        const CloudBatch clouds = synthetic_clouds(batch, points, options_.seed);
        const ops::Batch dense = ops::Batch::dense(batch, points);
        const auto others = other_inputs(engine.program(), dense);
        std::vector<engine::HostInput> inputs = {{"points", clouds.view()}};
        for (const auto& [name, rows] : others) inputs.push_back({name, rows.view()});
        const engine::EngineTimes times =
            engine::time_engine(engine, dense, inputs, {options_.warm_up, options_.repeat, options_.seconds});
        if (options_.profile)  // runs of their own: those above are not held up by clocks
            engine::profile_engine(engine, dense, inputs, options_.repeat, *options_.profile,
                                   fmt::format("{}, {} x {} points", name_of(precision), batch, points));
        row.runs = times.runs;
        row.clouds_per_second = times.clouds_per_second;
        row.multiply_adds = engine::multiply_adds(engine.program(), points);
        row.gflop_per_second = 2e-9 * static_cast<double>(row.multiply_adds) * times.clouds_per_second;
        row.limit = limit.what;
        if (limit.operations_per_second > 0) {
            row.limit_gflop_per_second = limit.operations_per_second / 1e9;
            row.of_limit = row.gflop_per_second / *row.limit_gflop_per_second;
        }
        row.latency = in_milliseconds(times.latency), row.compute = in_milliseconds(times.compute);
        row.enqueue = in_milliseconds(times.enqueue);
        row.host_to_device = in_milliseconds(times.host_to_device);
        row.device_to_host = in_milliseconds(times.device_to_host);
        row.wall_seconds = times.wall_seconds, row.device_seconds = times.device_seconds;
        row.device_bytes = times.device_bytes;
        row.weight_bytes = engine.weight_bytes(), row.context_bytes = engine.context_bytes();
        if (precision != engine::Precision::fp32) {
            const Agreement agreement = compare(*answers, reference);
            row.error = agreement.error, row.max_error = agreement.max_error, row.winners = agreement.winners;
        }
        if (!compared.labels.empty()) row.accuracy = accuracy_of(*answers, compared.labels);
        if (times.compute.variation > EngineBenchRow::kHighVariation)
            bench_.warnings.push_back(
                fmt::format("{}, batch {}: times vary by {:.0f} % (coefficient of variance): something else is using "
                            "this machine, or --seconds is too short",
                            name_of(precision), batch, 100 * times.compute.variation));
        return row;
    }

    const ModelOrEngine& source_;
    Device device_;
    const BenchEngineOptions& options_;
    std::map<engine::Precision, engine::Calibration> calibrations_;
    EngineBench bench_;
};

const Fields& statistics_fields() {
    using Times = engine::TimeStatistics;
    static const Fields fields = {field<&Times::min>("min", "The least").unit("ms"),
                                  field<&Times::max>("max", "The largest").unit("ms"),
                                  field<&Times::mean>("mean", "The mean").unit("ms"),
                                  field<&Times::median>("median", "The median").unit("ms"),
                                  field<&Times::p99>("p99", "What 99 % do not exceed").unit("ms"),
                                  field<&Times::variation>("variation", "Standard deviation over mean")};
    return fields;
}

}  // namespace

const Fields& bench_engine_fields() {
    using Options = BenchEngineOptions;
    static const Fields fields = {
        field<&Options::precisions>("precision", "fp32,tf32,fp16,bf16,int8,fp8").shown("A,B,..."),
        field<&Options::batches>("batch", "Clouds at a time").shown("N,M,...").between(1, 1 << 20),
        field<&Options::points>("points", "Points of a cloud").shown("N,M,...").between(1, 1 << 24),
        field<&Options::compared>("compare", "How many of them, at most").shown("N").between(1, 1 << 20),
        field<&Options::warm_up>("warm_up", "Seconds before timing").unit("s").shown("S").between(0, 3600),
        field<&Options::seconds>("seconds", "Timed seconds of each case").unit("s").shown("S").between(0, 3600),
        field<&Options::repeat>("repeat", "Timed runs of each, at least").shown("N").between(1, 1 << 30)};
    return fields;
}

const Fields& engine_bench_row_fields() {
    using Row = EngineBenchRow;
    static const Fields fields = {
        field<&Row::precision>("precision", "Of products").words(engine::kPrecisionWords),
        field<&Row::batch>("batch", "Clouds at a time"),
        field<&Row::points>("points", "Points of a cloud"),
        field<&Row::runs>("runs", "Timed runs"),
        field<&Row::clouds_per_second>("clouds_per_s", "Of batches that follow each other without a wait"),
        field<&Row::gflop_per_second>("gflop_per_s", "Arithmetic as compiled").unit("GFLOP/s"),
        field<&Row::limit_gflop_per_second>("limit_gflop_per_s", "What the machine does at most; null: not known")
            .unit("GFLOP/s"),
        field<&Row::of_limit>("of_limit", "The share of that"),
        field<&Row::limit>("limit", "How that was measured"),
        field<&Row::multiply_adds>("multiply_adds", "Of a cloud, as compiled"),
        object_field<&Row::latency>("latency_ms", statistics_fields, "From the caller's memory to the caller's memory"),
        object_field<&Row::compute>("compute_ms", statistics_fields, "Of the kernels"),
        field<&Row::wall_seconds>("wall_s", "Of all timed runs").unit("s"),
        field<&Row::weight_bytes>("weight_bytes", "Memory of weights").unit("bytes"),
        field<&Row::context_bytes>("context_bytes", "Memory of a context").unit("bytes"),
        field<&Row::error>("error", "Root mean square of differences from fp32, by the spread; null: it is fp32"),
        field<&Row::max_error>("max_error", "The largest difference from fp32"),
        field<&Row::winners>("winner_agreement", "The share of rows with the same winner as in fp32"),
        field<&Row::accuracy>("accuracy", "The share of clouds whose winner is their label; null: not labelled")};
    return fields;
}

const Fields& device_times_fields() {
    using Row = EngineBenchRow;
    static const Fields fields = {
        object_field<&Row::enqueue>("enqueue_ms", statistics_fields, "Of the call that queues the work"),
        object_field<&Row::host_to_device>("host_to_device_ms", statistics_fields, "Copies to the device"),
        object_field<&Row::device_to_host>("device_to_host_ms", statistics_fields, "Copies from the device"),
        field<&Row::device_seconds>("gpu_s", "Computing of all timed runs").unit("s"),
        field<&Row::device_bytes>("device_bytes", "What the device's memory in use grew by").unit("bytes")};
    return fields;
}

EngineBench bench_engine(const ModelOrEngine& source, Device device, const BenchEngineOptions& options) {
    check_fields(bench_engine_fields(), &options);
    return Bench(source, device, options).run();
}

}  // namespace stipple::tasks
