#pragma once
// Numbers of the fused chain's precisions, as both of its kernels round and pack them.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "stipple/engine/precision.h"

namespace stipple::engine::cuda {

template <Precision P>
struct Factor {
    static constexpr int kBytes = P == Precision::tf32 ? 4 : P == Precision::fp16 || P == Precision::bf16 ? 2 : 1;
    using Sum = std::conditional_t<P == Precision::int8, int32_t, float>;
};
/// What the middle layers are computed in: 8 bits are for the last layer, where all the work is.
template <Precision P>
constexpr Precision kMiddlePrecision = P == Precision::int8 || P == Precision::fp8 ? Precision::fp16 : P;

__device__ inline uint32_t pack_f16(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return reinterpret_cast<const uint32_t&>(pair);
}
__device__ inline uint32_t pack_bf16(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const uint32_t&>(pair);
}
template <Precision P>
__device__ inline uint32_t pack_half(float low, float high) {
    if constexpr (P == Precision::fp16) return pack_f16(low, high);
    return pack_bf16(low, high);
}
__device__ inline float round_tf32(float x) {
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}
/// Two 8-bit numbers of two channels of one point.
template <Precision P>
__device__ inline uint32_t pack_byte_pair(float low, float high) {
    if constexpr (P == Precision::fp8) {
        uint16_t pair = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
#endif
        return pair;
    } else {
        uint32_t a, b;  // rounds to nearest even, saturates at -128 and 127
        asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(a) : "f"(low));
        asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(b) : "f"(high));
        return (a & 0xff) | (b & 0xff) << 8;
    }
}

__device__ inline int32_t larger(int32_t a, int32_t b) {
    return max(a, b);
}
__device__ inline float larger(float a, float b) {
    return fmaxf(a, b);
}

}  // namespace stipple::engine::cuda
