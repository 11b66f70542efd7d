#include <c10/cuda/CUDACachingAllocator.h>

#include "stipple/learn/loop/memory.h"

namespace stipple::learn::cuda {

void pool_use(int device, MemoryUse& use) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
    use.device_bytes = stats.allocated_bytes[0].current;  // 0: of all pools together
    use.device_peak_bytes = stats.allocated_bytes[0].peak;
    use.pool_bytes = stats.reserved_bytes[0].current;
}

}  // namespace stipple::learn::cuda
