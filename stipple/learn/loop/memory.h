#pragma once
// Memory that a training process holds, for its log: a leak shows in the first epochs.

#include <cstdint>
#include <torch/types.h>

namespace stipple::learn {

struct MemoryUse {
    int64_t host_bytes = 0, host_peak_bytes = 0;      // resident; 0 where the system does not tell
    int64_t device_bytes = 0, device_peak_bytes = 0;  // of torch's pool: in use. 0 for the CPU
    int64_t pool_bytes = 0;                           // that the pool holds, in use or not
};

MemoryUse memory_use(torch::Device device);

/// Memory that is freed stays with the process for the next step, which wants the same sizes: to get it anew from the
/// system, page by page, takes a tenth of a step on the CPU. For programs that train.
void keep_freed_memory();

namespace cuda {
void pool_use(int device, MemoryUse& use);
}  // namespace cuda

}  // namespace stipple::learn
