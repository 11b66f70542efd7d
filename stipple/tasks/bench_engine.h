#pragma once
// How fast a network is in each precision, for each number of clouds and points, and how far its answers are from those
// in fp32.

#include <functional>

#include "stipple/core/fields.h"
#include "stipple/engine/time_engine.h"
#include "stipple/tasks/agreement.h"
#include "stipple/tasks/model_file.h"

namespace stipple::tasks {

/// What a machine does at most, as it was measured.
struct MachineLimit {
    double operations_per_second = 0;  // 0: not known
    std::string what;                  // "fmla on 2 threads"
};

/// Clouds on which precisions are compared.
struct ComparedClouds {
    CloudBatch clouds;
    std::vector<int64_t> labels = {};  // empty where not all are known
};

struct BenchEngineOptions {
    // Empty ones are those that an engine was built for; of a model, those here.
    std::vector<std::string> precisions = {"fp32"};
    std::vector<int64_t> batches = {1, 32}, points = {1024};
    int64_t compared = 256;             // clouds whose answers are compared, at most
    double warm_up = 0.2, seconds = 1;  // before timing; timed, at least
    int64_t repeat = 10;                // timed runs, at least

    uint64_t seed = 0;                                            // of synthetic clouds
    std::function<ComparedClouds(int64_t points)> clouds = {};    // real ones; without it synthetic ones are compared
    std::function<MachineLimit(engine::Precision)> limit = {};    // what the device does at most
    Profile* profile = nullptr;                                   // what steps take, in runs of their own
    std::function<void(int64_t done, int64_t all)> advance = {};  // engines
};
const Fields& bench_engine_fields();

/// One precision with one batch and one number of points. Times are in milliseconds unless their names say otherwise.
struct EngineBenchRow {
    engine::Precision precision = engine::Precision::fp32;
    int64_t batch = 0, points = 0, runs = 0;
    double clouds_per_second = 0, gflop_per_second = 0;
    std::optional<double> limit_gflop_per_second = {}, of_limit = {};
    std::string limit;
    int64_t multiply_adds = 0;  // of a cloud, as compiled
    engine::TimeStatistics latency, compute;
    engine::TimeStatistics enqueue, host_to_device, device_to_host;  // of a GPU
    double wall_seconds = 0;
    double device_seconds = 0;  // of a GPU
    int64_t device_bytes = 0;   // of a GPU
    int64_t weight_bytes = 0, context_bytes = 0;
    std::optional<double> error = {}, max_error = {}, winners = {};  // beside fp32
    std::optional<double> accuracy = {};                             // where labels are known

    /// Above this the times vary too much to be trusted.
    static constexpr double kHighVariation = 0.05;
};
const Fields& engine_bench_row_fields();
/// What rows of a GPU have beside those.
const Fields& device_times_fields();

enum class ComparedOn { synthetic, data };
inline constexpr const char* kComparedOnWords[] = {"synthetic", "data"};

struct EngineBench {
    std::vector<EngineBenchRow> rows;
    int64_t threads = 0;
    std::string device_name;
    ComparedOn compared_on = ComparedOn::synthetic;
    std::vector<std::string> warnings;
};
/// Without its rows.
const Fields& engine_bench_fields();

/// int8 and fp8 of a model that was never calibrated are calibrated on the clouds that are compared, with a warning.
/// Throws Error{bad_argument} for options out of range, precisions that are named twice or that the device cannot do,
/// and an engine that was built for another kind of device or another precision. Can be interrupted.
EngineBench bench_engine(const ModelOrEngine& source, Device device, const BenchEngineOptions& options);

}  // namespace stipple::tasks
