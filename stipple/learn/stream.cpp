#include "stipple/learn/stream.h"

namespace stipple::learn {

Device ops_device(const torch::Tensor& tensor) {
    if (tensor.is_cuda()) return {DeviceType::cuda, static_cast<int>(tensor.get_device())};
    STIPPLE_REQUIRE(tensor.is_cpu(), "a tensor on {}: only CPU and CUDA are supported", tensor.device().str());
    return {};
}

Stream current_stream(const torch::Tensor& tensor) {
    const Device device = ops_device(tensor);
    Stream stream;
    if (device.type == DeviceType::cuda) STIPPLE_CUDA_CALL(stream = cuda::current_stream, device.index);
    return stream;
}

}  // namespace stipple::learn
