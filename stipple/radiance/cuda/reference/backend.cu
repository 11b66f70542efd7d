#include "stipple/radiance/cuda/reference/backend.h"
#include "stipple/radiance/cuda/reference/executor.cuh"

namespace stipple::radiance::cuda {

void make_reference_backend(const Scene& scene, const TrainOptions& options, Device device,
                            std::unique_ptr<Backend>& to) {
    std::unique_ptr<Backend> coarse;
    make_backend(scene, options, device, coarse);
    to = std::make_unique<reference::ReferenceBackend<reference::CudaExecutor>>(
        std::make_unique<reference::CudaExecutor>(device.index), scene, options, std::move(coarse));
}

}  // namespace stipple::radiance::cuda
