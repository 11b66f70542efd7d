#include "stipple/core/synchronize.h"

#include "stipple/core/cuda/memory.h"

namespace stipple {

void synchronize(Device device, [[maybe_unused]] Stream stream) {
    if (device.type == DeviceType::cpu) return;
    STIPPLE_CUDA_CALL(cuda::synchronize, device.index, stream);
}

}  // namespace stipple
