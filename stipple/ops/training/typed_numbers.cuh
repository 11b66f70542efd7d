#pragma once
// Numbers of float32, float16 or bfloat16 as floats, for the kernels of training ops. The type is known at run time
// and the same for a block, so that branches on it do not diverge.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "stipple/core/dtype.h"

namespace stipple::ops::cuda {

constexpr int kEach = 4;  // numbers that a thread takes at once: 16 bytes of float32, 8 of short ones, all coalesced

__device__ inline float to_float(uint16_t bits, DType dtype) {
    return dtype == DType::f16 ? __half2float(__ushort_as_half(bits)) : __bfloat162float(__ushort_as_bfloat16(bits));
}

__device__ inline uint16_t to_bits(float x, DType dtype) {
    return dtype == DType::f16 ? __half_as_ushort(__float2half_rn(x)) : __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

/// x as it is after having been stored.
__device__ inline float rounded(float x, DType dtype) {
    return dtype == DType::f32 ? x : to_float(to_bits(x, dtype), dtype);
}

/// Numbers at .. at + kCount of an array; kCount is 1, or kEach where at is a multiple of it and the array aligned.
template <int kCount>
__device__ inline void load_numbers(const void* data, DType dtype, int64_t at, float (&x)[kCount]) {
    static_assert(kCount == 1 || kCount == kEach);
    const float* longs = static_cast<const float*>(data) + at;
    const uint16_t* shorts = static_cast<const uint16_t*>(data) + at;
    if constexpr (kCount == 1) {
        x[0] = dtype == DType::f32 ? *longs : to_float(*shorts, dtype);
    } else if (dtype == DType::f32) {
        const float4 four = *reinterpret_cast<const float4*>(longs);
        x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
    } else {
        const uint2 pairs = *reinterpret_cast<const uint2*>(shorts);
        x[0] = to_float(static_cast<uint16_t>(pairs.x), dtype);
        x[1] = to_float(static_cast<uint16_t>(pairs.x >> 16), dtype);
        x[2] = to_float(static_cast<uint16_t>(pairs.y), dtype);
        x[3] = to_float(static_cast<uint16_t>(pairs.y >> 16), dtype);
    }
}

__device__ inline uint32_t to_pair(float low, float high, DType dtype) {
    return to_bits(low, dtype) | static_cast<uint32_t>(to_bits(high, dtype)) << 16;
}

template <int kCount>
__device__ inline void store_numbers(const float (&x)[kCount], void* data, DType dtype, int64_t at) {
    static_assert(kCount == 1 || kCount == kEach);
    float* longs = static_cast<float*>(data) + at;
    uint16_t* shorts = static_cast<uint16_t*>(data) + at;
    if constexpr (kCount == 1) {
        if (dtype == DType::f32)
            *longs = x[0];
        else
            *shorts = to_bits(x[0], dtype);
    } else if (dtype == DType::f32) {
        *reinterpret_cast<float4*>(longs) = make_float4(x[0], x[1], x[2], x[3]);
    } else {
        *reinterpret_cast<uint2*>(shorts) = make_uint2(to_pair(x[0], x[1], dtype), to_pair(x[2], x[3], dtype));
    }
}

/// Whether arrays begin at multiples of 16 bytes; nullptr does.
template <class... Pointers>
bool are_aligned(Pointers... pointers) {
    return ((reinterpret_cast<uintptr_t>(pointers) | ...) & 15) == 0;
}

}  // namespace stipple::ops::cuda
