#pragma once

#include "stipple/core/device.h"

namespace stipple::test {

#ifdef STIPPLE_WITH_CUDA
int64_t cuda_memory_used(int index);
#endif

/// Bytes of a GPU that are not free; 0 for the CPU, whose blocks live_allocations() counts.
inline int64_t device_memory_used([[maybe_unused]] Device device) {
#ifdef STIPPLE_WITH_CUDA
    if (device.type == DeviceType::cuda) return cuda_memory_used(device.index);
#endif
    return 0;
}

}  // namespace stipple::test
