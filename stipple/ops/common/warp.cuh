#pragma once
// Reductions over a warp.

#include <cstdint>

namespace stipple::ops::cuda {

constexpr unsigned kAllLanes = 0xffffffffu;

__device__ inline uint32_t warp_min(uint32_t value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(kAllLanes, value);
#else
    for (int step = 16; step > 0; step /= 2) value = min(value, __shfl_xor_sync(kAllLanes, value, step));
    return value;
#endif
}

__device__ inline uint32_t warp_max(uint32_t value) {
    return ~warp_min(~value);
}

/// Floats in the order of unsigned integers; no NaN.
__device__ inline uint32_t ordered_bits(float value) {
    const uint32_t bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ inline float from_ordered_bits(uint32_t bits) {
    return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

__device__ inline float warp_min(float value) {
    return from_ordered_bits(warp_min(ordered_bits(value)));
}

__device__ inline float warp_max(float value) {
    return from_ordered_bits(warp_max(ordered_bits(value)));
}

}  // namespace stipple::ops::cuda
