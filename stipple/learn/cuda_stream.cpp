// The one source that sees torch's CUDA headers: Debian's do not compile, so that it is built with STIPPLE_WITH_CUDA
// alone.

#include <c10/cuda/CUDAStream.h>

#include "stipple/learn/stream.h"

namespace stipple::learn::cuda {

Stream current_stream(int device) {
    return {c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)).stream()};
}

}  // namespace stipple::learn::cuda
