#include "stipple/core/cuda/check.h"
#include "stipple/core/cuda/memory.h"

namespace stipple::cuda {

std::vector<DeviceInfo> list_devices() {
    std::vector<DeviceInfo> devices;
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        cudaGetLastError();  // no driver, or one that is too old: there is no GPU to use
        return devices;
    }
    for (int index = 0; index < count; ++index) {
        cudaDeviceProp properties{};
        STIPPLE_CHECK_CUDA(cudaGetDeviceProperties(&properties, index));
        DeviceInfo info;
        info.device = {DeviceType::cuda, index};
        info.name = properties.name;
        info.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
        info.units = properties.multiProcessorCount;
        info.compute_capability = 10 * properties.major + properties.minor;
        devices.push_back(std::move(info));
    }
    return devices;
}

void* allocate(int64_t bytes, int device_index) {
    STIPPLE_CHECK_CUDA(cudaSetDevice(device_index));
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();  // the device stays usable
        size_t free_bytes = 0, total_bytes = 0;
        cudaMemGetInfo(&free_bytes, &total_bytes);
        throw Error(ErrorCode::out_of_memory,
                    fmt::format("out of memory on cuda:{}: {} bytes wanted, {} free", device_index, bytes, free_bytes));
    }
    STIPPLE_CHECK_CUDA(status);
    return memory;
}

void release(void* memory, int device_index) {
    // A destructor's call: an error here has been reported by whatever caused it.
    if (cudaSetDevice(device_index) == cudaSuccess) cudaFree(memory);
}

void copy(void* to, const void* from, int64_t bytes) {
    STIPPLE_CHECK_CUDA(cudaMemcpy(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault));
}

void synchronize(int device_index, Stream stream) {
    STIPPLE_CHECK_CUDA(cudaSetDevice(device_index));
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(static_cast<cudaStream_t>(stream.handle)));
}

}  // namespace stipple::cuda
