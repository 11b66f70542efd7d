#pragma once
// parallel_for: the only way this library uses threads, but for data/batch_loader.h, whose threads run beside its
// caller.
//
// Work is cut into chunks of `grain` items that do not depend on the number of threads, so an algorithm that combines
// its chunks in order gives the same bits on one thread and on many. The first exception (lowest chunk) is rethrown.
// Backed by OpenMP, or by std::thread in builds for ThreadSanitizer and fuzzing.

#include <cstdint>
#include <functional>

namespace stipple {

/// Threads that parallel_for uses. 0 in set_threads means all cores. Global by design: one program, one pool.
int threads();
void set_threads(int count);

/// Calls body(begin, end) for consecutive chunks that cover [0, n). Nested calls run on the calling thread.
void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

}  // namespace stipple
