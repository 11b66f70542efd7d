#include "stipple/engine/cpu/context.h"

namespace stipple::engine::cpu {

void Context::time_step(size_t s, const Task& task) {
    Profile& to = profile->profile;
    const int32_t track = to.track(fmt::format("thread {}", task.worker.slot + 1));
    const int64_t begin = to.now();
    run_step(s, task);
    to.add({.row = profile->steps[s],
            .track = track,
            .begin = begin,
            .duration = to.now() - begin,
            .bytes = profile->bytes(s, batches_, task.begin, task.end),
            .side_by_side = task.worker.alone ? static_cast<int32_t>(std::min(workers_, clouds_)) : 1});
}

}  // namespace stipple::engine::cpu
