#pragma once
// What core needs of the CUDA runtime, on raw pointers. Implemented in cuda/memory.cu; a CPU build never links it.

#include <cstdint>
#include <vector>

#include "stipple/core/device.h"

namespace stipple::cuda {

std::vector<DeviceInfo> list_devices();           // empty without a driver or a GPU
void* allocate(int64_t bytes, int device_index);  // Error{out_of_memory} names wanted and free bytes
void release(void* memory, int device_index);     // never throws
void copy(void* to, const void* from, int64_t bytes);
void synchronize(int device_index, Stream stream);

}  // namespace stipple::cuda
