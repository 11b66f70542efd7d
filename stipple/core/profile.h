#pragma once
// Profile: where time and memory go, by name. Training and inference fill the same one (learn/profiler.h,
// engine::Context::profile_into), and the command line prints it (cli/common/profile_report.h).
//
//   Profile profile;
//   const int32_t step = profile.row(Profile::kRoot, "step"), forward = profile.row(step, "forward");
//   const int64_t begin = profile.now();
//   ... the work ...
//   profile.add({.row = forward, .track = profile.track("thread 1"), .begin = begin, .duration = profile.now() -
//   begin}); save_trace(profile, "trace.json", Overwrite::refuse);
//
// Rows are a tree: "conv1" in the forward pass and "conv1" in the backward pass are two. Sums of all spans are kept for
// each row; the spans themselves, of which a trace is made, only up to a number. So memory does not grow with the time
// that is profiled.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/atomic_file.h"

namespace stipple {

enum class ProfileDevice : uint8_t { cpu, gpu };

/// A stretch of time in which one thread, or one GPU, did what its row names. Times in nanoseconds of Profile::now().
struct ProfileSpan {
    int32_t row = 0, track = 0;
    int64_t begin = 0, duration = 0;
    int64_t bytes = 0;       // of memory: what was allocated, or what the result takes
    int64_t peak_bytes = 0;  // the most that was in use meanwhile; 0: not known
    /// How many threads do the same side by side, each on its own data: the row counts the time once, not for each.
    int32_t side_by_side = 1;
};

/// Sums of the spans of one name in one place.
struct ProfileRow {
    std::string name;
    int32_t parent = -1;                                              // row
    int32_t depth = 0;                                                // 0 of those without a parent
    int64_t calls = 0;                                                // on the CPU; on the GPU where there are none
    double cpu_total = 0, cpu_self = 0, gpu_total = 0, gpu_self = 0;  // seconds; self: without the rows below
    double cpu_share = 0, gpu_share = 0;                              // of all time of the device, by self
    int64_t bytes = 0, peak_bytes = 0;                                // sum of all spans, and the largest
};

/// Functions may be called from several threads at the same time.
class Profile {
public:
    static constexpr int32_t kRoot = -1;
    static constexpr int64_t kMostSpans = 200'000;

    explicit Profile(int64_t most_spans = kMostSpans);
    Profile(const Profile&) = delete;
    Profile& operator=(const Profile&) = delete;

    /// Nanoseconds since the profile was made.
    int64_t now() const;

    /// The row of this name below another, a new one where there is none. Throws Error{bad_argument} for an unknown
    /// parent.
    int32_t row(int32_t parent, std::string_view name);
    /// A line of the trace: "thread 1", "cuda:0".
    int32_t track(std::string_view name, ProfileDevice device = ProfileDevice::cpu);
    /// Throws Error{bad_argument} for an unknown row or track, or a duration below 0.
    void add(const ProfileSpan& span);

    /// A row before those below it, siblings in the order in which they were first asked for. Without those that have
    /// no time, in themselves or below.
    std::vector<ProfileRow> rows() const;
    bool has_gpu() const;

    /// The first ones, as many as are kept, in the order in which they were added.
    std::vector<ProfileSpan> spans() const;
    int64_t left_out() const;  // spans that were not kept; rows count them
    struct Track {
        std::string name;
        ProfileDevice device = ProfileDevice::cpu;
    };
    std::vector<Track> tracks() const;
    /// Names from the outermost down to the row: "step/forward/conv1".
    std::string path(int32_t row) const;
    std::string name(int32_t row) const;

    int64_t memory_bytes() const;  // of the profile itself, about

private:
    struct Sums {
        std::string name;
        int32_t parent = -1;
        std::vector<int32_t> below = {};
        int64_t cpu_calls = 0, gpu_calls = 0, cpu_ns = 0, gpu_ns = 0, bytes = 0, peak_bytes = 0;
    };
    const Sums& sums(int32_t row) const;

    const int64_t start_;
    const size_t most_spans_;
    mutable std::mutex mutex_;
    std::vector<Sums> sums_;
    std::map<std::pair<int32_t, std::string>, int32_t, std::less<>> row_of_;
    std::vector<Track> tracks_;
    std::vector<ProfileSpan> spans_;
    int64_t left_out_ = 0;
};

/// Trace Event Format (JSON), for chrome://tracing and ui.perfetto.dev: a process for each kind of device, a thread for
/// each track, microseconds.
void write_trace(const Profile& profile, ByteSink& sink);
/// Appears complete or not at all. Throws as AtomicFile.
void save_trace(const Profile& profile, const std::string& path, Overwrite overwrite);

}  // namespace stipple
