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

namespace cuda {
void pool_use(int device, MemoryUse& use);
}  // namespace cuda

}  // namespace stipple::learn
