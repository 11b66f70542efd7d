#pragma once
// What the kernels of dense layers share: reading x, the arithmetic of each precision, and what follows the product.

#include "stipple/engine/cuda/chain_numbers.cuh"
#include "stipple/engine/cuda/dense.h"

namespace stipple::engine::cuda {

__device__ inline float apply(const Activation& activation, float x) {
    if (activation.kind == ActivationKind::none || !(x < 0)) return x;  // NaN stays
    return activation.kind == ActivationKind::relu ? 0.0f : x * activation.slope;
}

/// Integers in the order of the floats they come from: so atomicMax finds the largest float.
__device__ inline int order_key(float x) {
    const int bits = __float_as_int(x);
    return bits >= 0 ? bits : bits ^ 0x7fffffff;
}
__device__ inline float from_order_key(int key) {
    return __int_as_float(key >= 0 ? key : key ^ 0x7fffffff);
}

__device__ inline int part_of(const DenseArguments& a, int packed) {
    int p = 0;
    while (p + 1 < a.part_count && packed >= a.parts[p + 1].packed) ++p;
    return p;
}

/// Four packed channels of a row of x; channels that are padding are zero.
__device__ inline float4 load_x(const DenseArguments& a, int64_t row, int packed) {
    const DensePart& part = a.parts[part_of(a, packed)];
    const int channel = packed - part.packed;
    const float* at = part.data + (row - part.origin) * part.stride + channel;
    const int left = part.channels - channel;
    float4 x = make_float4(0, 0, 0, 0);
    if (left <= 0) return x;
    if (part.vectors) return *reinterpret_cast<const float4*>(at);
    x.x = at[0];
    if (left > 1) x.y = at[1];
    if (left > 2) x.z = at[2];
    if (left > 3) x.w = at[3];
    return x;
}

/// Four packed channels of a row of the cloud's own matrix.
__device__ inline float4 load_matrix(const DenseArguments& a, const float* matrix, int n, int packed) {
    const DensePart& part = a.parts[part_of(a, packed)];
    const int channel = packed - part.packed;
    const float* at = matrix + static_cast<int64_t>(n) * a.in + part.plain + channel;
    const int left = part.channels - channel;
    float4 w = make_float4(0, 0, 0, 0);
    if (left <= 0 || n >= a.out) return w;
    if (left >= 4 && (reinterpret_cast<uintptr_t>(at) & 15) == 0) return *reinterpret_cast<const float4*>(at);
    w.x = at[0];
    if (left > 1) w.y = at[1];
    if (left > 2) w.z = at[2];
    if (left > 3) w.w = at[3];
    return w;
}

__device__ inline const float* addend_row(const DenseArguments& a, const DenseAddend& addend, const Tile& tile, int r) {
    int64_t row = tile.row + r;
    if (addend.access == Access::cloud) row = tile.cloud;
    if (addend.access == Access::point) row = tile.point + (tile.row_in_cloud + r) / a.span.width;
    if (addend.access == Access::neighbour) row = tile.point + addend.indices[row];
    return addend.data + row * addend.stride;
}

__device__ inline float add_addends(const DenseArguments& a, const Tile& tile, int r, int n, float x) {
    for (int i = 0; i < a.addend_count; ++i) x += addend_row(a, a.addends[i], tile, r)[n];
    return x;
}

/// Factors of mma.sync with float32 sums. Eight channels of a row are kRegisters registers; a product of 16 x 8 takes
/// two of them from each of its rows.
template <class Half>
struct HalfFactors {
    using Element = Half;
    static constexpr bool kIsFp16 = std::is_same_v<Half, __half>;
    static constexpr int kRegisters = 4;
    __device__ static uint32_t pack(float low, float high) {
        if constexpr (kIsFp16) return pack_f16(low, high);
        return pack_bf16(low, high);
    }
    __device__ static void pack8(const float4& low, const float4& high, uint32_t* r) {
        r[0] = pack(low.x, low.y), r[1] = pack(low.z, low.w);
        r[2] = pack(high.x, high.y), r[3] = pack(high.z, high.w);
    }
    __device__ static void store4(void* at, const float4& x) {
        *static_cast<uint2*>(at) = make_uint2(pack(x.x, x.y), pack(x.z, x.w));
    }
    __device__ static void multiply(float* c, const uint32_t* a, const uint32_t* b) {
#if __CUDA_ARCH__ >= 800
#define STIPPLE_MMA(types)                                                                                           \
    asm volatile("mma.sync.aligned.m16n8k16.row.col." types " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
        if constexpr (kIsFp16)
            STIPPLE_MMA("f32.f16.f16.f32");
        else
            STIPPLE_MMA("f32.bf16.bf16.f32");
#undef STIPPLE_MMA
#else
        __trap();
#endif
    }
};
using Fp16Factors = HalfFactors<__half>;
using Bf16Factors = HalfFactors<__nv_bfloat16>;

__device__ inline uint32_t round_to_tf32(float x) {
    uint32_t bits = 0;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
#else
    __trap();
#endif
    return bits;
}
__device__ inline void multiply_tf32(float* c, const uint32_t* a, const uint32_t* b) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    __trap();
#endif
}

struct Tf32Factors {
    using Element = float;
    static constexpr int kRegisters = 8;
    __device__ static void store4(void* at, const float4& x) {
        *static_cast<uint4*>(at) =
            make_uint4(round_to_tf32(x.x), round_to_tf32(x.y), round_to_tf32(x.z), round_to_tf32(x.w));
    }
    __device__ static void multiply(float* c, const uint32_t* a, const uint32_t* b) { multiply_tf32(c, a, b); }
};

/// Each factor as the sum of two tf32 numbers; the product of the small ones is below float32's rounding.
struct Tf32PairFactors {
    using Element = float;
    static constexpr int kRegisters = 8;
    __device__ static void pack8(const float4& low, const float4& high, uint32_t* r) {
        r[0] = __float_as_uint(low.x), r[1] = __float_as_uint(low.y);
        r[2] = __float_as_uint(low.z), r[3] = __float_as_uint(low.w);
        r[4] = __float_as_uint(high.x), r[5] = __float_as_uint(high.y);
        r[6] = __float_as_uint(high.z), r[7] = __float_as_uint(high.w);
    }
    __device__ static void store4(void* at, const float4& x) { *static_cast<float4*>(at) = x; }
    __device__ static void multiply(float* c, const uint32_t* a, const uint32_t* b) {
        uint32_t a_large[4], a_small[4], b_large[2], b_small[2];
        for (int i = 0; i < 4; ++i) split(a[i], a_large[i], a_small[i]);
        for (int i = 0; i < 2; ++i) split(b[i], b_large[i], b_small[i]);
        multiply_tf32(c, a_small, b_large);
        multiply_tf32(c, a_large, b_small);
        multiply_tf32(c, a_large, b_large);
    }

private:
    __device__ static void split(uint32_t x, uint32_t& large, uint32_t& small) {
        large = round_to_tf32(__uint_as_float(x));
        small = round_to_tf32(__uint_as_float(x) - __uint_as_float(large));
    }
};

constexpr int kTileColumns = 64;
constexpr int kTilePitch = kTileColumns + 4;
constexpr int kTileThreads = 256;

/// What follows the product of a tile, which lies in shared memory: addends, bias, activation, or the maximum. All
/// kTileThreads threads; the caller has synchronised them.
__device__ inline void finish_tile(const DenseArguments& a, const Tile& tile, int column, float* product) {
    const int thread = threadIdx.x;
    if (a.reduce == Reduce::none && a.y_vectors) {
        const int n = column + thread % 16 * 4;
        if (n >= a.out) return;
        const float4 bias = *reinterpret_cast<const float4*>(a.bias + n);
        for (int r = thread / 16; r < tile.rows; r += kTileThreads / 16) {
            float4 x = *reinterpret_cast<const float4*>(product + r * kTilePitch + thread % 16 * 4);
            for (int i = 0; i < a.addend_count; ++i) {
                const float4 y = *reinterpret_cast<const float4*>(addend_row(a, a.addends[i], tile, r) + n);
                x.x += y.x, x.y += y.y, x.z += y.z, x.w += y.w;
            }
            x.x = apply(a.activation, x.x + bias.x), x.y = apply(a.activation, x.y + bias.y);
            x.z = apply(a.activation, x.z + bias.z), x.w = apply(a.activation, x.w + bias.w);
            *reinterpret_cast<float4*>(a.y + (tile.row + r - a.y_origin) * a.y_stride + n) = x;
        }
        return;
    }
    constexpr int kGroups = kTileThreads / kTileColumns;
    const int c = thread % kTileColumns, group = thread / kTileColumns, n = column + c;
    const bool is_column = n < a.out;
    if (a.reduce == Reduce::none) {
        if (!is_column) return;
        for (int r = group; r < tile.rows; r += kGroups) {
            const float x = add_addends(a, tile, r, n, product[r * kTilePitch + c]);
            a.y[(tile.row + r - a.y_origin) * a.y_stride + n] = apply(a.activation, x + a.bias[n]);
        }
    } else if (a.reduce == Reduce::max_rows && a.has_keys) {
        // Points that begin or end inside the tile: runs of adjacent rows, each raised into its point's key.
        if (!is_column) return;
        constexpr int kRun = kTileRows / kGroups;
        float best = -INFINITY;
        for (int r = group * kRun; r < min((group + 1) * kRun, tile.rows); ++r) {
            best = fmaxf(best, add_addends(a, tile, r, n, product[r * kTilePitch + c]));
            const int64_t point = (tile.row + r) / a.span.width;
            if (r + 1 < min((group + 1) * kRun, tile.rows) && (tile.row + r + 1) / a.span.width == point) continue;
            atomicMax(reinterpret_cast<int*>(a.y) + point * a.out + n, order_key(best));
            best = -INFINITY;
        }
    } else if (a.reduce == Reduce::max_rows) {
        if (!is_column) return;
        const int width = a.span.width;
        const int64_t point = tile.point + tile.row_in_cloud / width;
        for (int p = group; p < tile.rows / width; p += kGroups) {
            float best = -INFINITY;
            for (int r = p * width; r < (p + 1) * width; ++r)
                best = fmaxf(best, add_addends(a, tile, r, n, product[r * kTilePitch + c]));
            a.y[(point + p) * a.y_stride + n] = apply(a.activation, best + a.bias[n]);
        }
    } else {
        float best = -INFINITY;
        for (int r = group; is_column && r < tile.rows; r += kGroups)
            best = fmaxf(best, add_addends(a, tile, r, n, product[r * kTilePitch + c]));
        __syncthreads();
        product[thread] = best;
        __syncthreads();
        if (group != 0 || !is_column) return;
        for (int i = 1; i < kGroups; ++i) best = fmaxf(best, product[i * kTileColumns + c]);
        atomicMax(reinterpret_cast<int*>(a.y) + static_cast<int64_t>(tile.cloud) * a.out + n, order_key(best));
    }
}

}  // namespace stipple::engine::cuda
