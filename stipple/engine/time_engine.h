#pragma once
// How long an engine takes: latency of one batch with its parts, and throughput of one after the other.

#include <cstdint>
#include <string>
#include <vector>

#include "stipple/engine/engine.h"

namespace stipple::engine {

/// Of a number of measured times, in seconds.
struct TimeStatistics {
    double min = 0, max = 0, mean = 0, median = 0, p99 = 0;
    double variation = 0;  // coefficient of variance: standard deviation / mean
};
/// `times` is not empty; it is sorted. p99: the smallest time that 99 % do not exceed.
TimeStatistics statistics_of(std::vector<double> times);

struct TimeBudget {
    double warm_up_seconds = 0.2;  // and at least 3 runs
    int64_t repeat = 10;           // timed runs, at least ...
    double seconds = 1;            // ... and until this much time has passed
};

struct EngineTimes {
    int64_t runs = 0;
    /// From the caller's memory to the caller's memory; on the CPU the same as compute.
    TimeStatistics latency;
    TimeStatistics compute;  // on CUDA between events around the kernels
    /// CUDA only; all 0 on the CPU. enqueue: host time of the call that queues the work.
    TimeStatistics enqueue, host_to_device, device_to_host;
    double wall_seconds = 0;    // of all timed runs
    double device_seconds = 0;  // computing of all timed runs, on the GPU
    /// Clouds of batches that follow each other without a wait, inputs and outputs on the device.
    double clouds_per_second = 0;
    int64_t device_bytes = 0;  // CUDA: what the device's memory in use grew by, context and buffers
};

/// Host memory of a named input, contiguous rows.
struct HostInput {
    std::string name;
    View<const float, 2> rows;
};

/// All outputs are fetched. Throws Error{interrupted} between runs, and what Context throws.
EngineTimes time_engine(const Engine& engine, const ops::Batch& batch, const std::vector<HostInput>& inputs,
                        const TimeBudget& budget);

/// Runs of one batch, after one that warms up, whose steps go into a row `name` of the profile.
void profile_engine(const Engine& engine, const ops::Batch& batch, const std::vector<HostInput>& inputs, int64_t runs,
                    Profile& profile, std::string_view name);

/// The most that a GPU's products do: operations per second, two for each multiply-add, of a product of 8192 x 8192 x
/// 8192 with random factors by cuBLASLt, the best of several runs; 0 when cuBLASLt is not installed or has none in this
/// precision on this GPU. Takes some tenths of a second. Throws Error{no_device} for a device that is no GPU, and
/// without CUDA in the build.
double gemm_peak(Device device, Precision precision);

}  // namespace stipple::engine
