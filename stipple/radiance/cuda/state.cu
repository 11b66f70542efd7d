// What training on a GPU hands to the host: fields.

#include "stipple/radiance/cuda/backend.cuh"

namespace stipple::radiance::cuda {

void CudaBackend::pack(Field& field) {
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    const std::vector<uint64_t> bits = structure_.occupied.download();
    const BrickTable seen = number_bricks(bricks_near(structure_.shape, structure_.numbers, bits));
    std::vector<int32_t> chosen;
    field.brick = seen.table;
    field.occupied.clear();
    for (const int32_t place : seen.place) {
        // Occupied nodes only become fewer: what is near them is stored.
        const int32_t brick = structure_.numbers.table[static_cast<size_t>(place)];
        chosen.push_back(brick);
        field.occupied.push_back(bits[static_cast<size_t>(brick)]);
    }
    const int64_t nodes = static_cast<int64_t>(chosen.size()) * kBrickNodes;
    if (nodes > 0) {
        const DeviceArray<int32_t> device_chosen(meter_, chosen);
        const DeviceArray<float> density(meter_, nodes);
        const DeviceArray<__half> features(meter_, nodes * kFeatures);
        launch_pack(device_chosen.get(), static_cast<int32_t>(chosen.size()), density_.get(), features_.get(),
                    density.get(), features.get(), stream_);
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
        field.density = density.download();
        field.features.resize(static_cast<size_t>(nodes * kFeatures));
        STIPPLE_CHECK_CUDA(
            cudaMemcpy(field.features.data(), features.get(), field.features.size() * 2, cudaMemcpyDeviceToHost));
    }
    unpack_network(network_value_.download(), field.network);
}

}  // namespace stipple::radiance::cuda
