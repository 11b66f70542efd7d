#pragma once
// Profiler: fills a Profile (core/profile.h) with what a training step does, layer by layer, forward and backward.
//
//   Profile profile;
//   Profiler profiler(profile, device);
//   profiler.set_kept(true);
//   for (int i = 0; i < 20; ++i) {
//       const ProfileMark step(&profiler, "step");
//       const ProfileMark loss(&profiler, "loss");   // a stage; Module::run marks its layers
//       ...
//   }
//
// A layer's backward pass is found by autograd's sequence numbers: every node of the graph has one, counted up while
// the forward pass makes them, so that those made between the begin and the end of a mark belong to it. Forward and
// backward pass lie in one outermost mark, the step. What runs in the backward pass and belongs to no mark that has
// ended is the row "other"; adding gradients to those of the parameters is "accumulate".
//
// Times on a GPU lie between events on torch's current stream: the stretch from a mark's first kernel to its last, gaps
// included where the host is slower than the GPU. Memory is what torch's allocators report to this thread and to those
// of its backward passes, on the CPU and on the GPU alike, while it exists.

#include <memory>
#include <string_view>
#include <torch/types.h>

#include "stipple/core/profile.h"

namespace stipple::learn {

class Profiler {
public:
    /// `profile` must outlive it. Made and used on one thread; backward passes may run on others.
    Profiler(Profile& profile, torch::Device device);
    ~Profiler();
    Profiler(const Profiler&) = delete;
    Profiler& operator=(const Profiler&) = delete;

    /// Whether marks go into the profile; at first not, for warming up: memory is watched all the same, so that what is
    /// freed later is known. Not while a mark is open.
    void set_kept(bool is_kept);

private:
    friend class ProfileMark;
    struct Recorder;
    struct Watch;
    std::shared_ptr<Recorder> recorder_;  // torch's threads share it
    std::unique_ptr<Watch> watch_;
};

/// Marks a stretch of the thread's work. Costs one comparison where there is no profiler. The outermost mark ends with
/// a wait for the GPU.
class ProfileMark {
public:
    ProfileMark(Profiler* profiler, std::string_view name) : profiler_(profiler) {
        if (profiler_) begin(name);
    }
    ~ProfileMark() { end(); }
    ProfileMark(const ProfileMark&) = delete;
    ProfileMark& operator=(const ProfileMark&) = delete;

    /// Before its scope ends.
    void end() {
        if (profiler_) finish();
        profiler_ = nullptr;
    }

private:
    void begin(std::string_view name);
    void finish();

    Profiler* profiler_;
};

}  // namespace stipple::learn
