#pragma once
// How kernels go over all numbers of a matrix when what they do depends on the column: a thread keeps its columns, some
// adjacent ones, and what it knows of them is in its registers while it goes down the rows.
//
// A block takes a part of the rows, and up to 32 vectors (or 128 single numbers) of columns. Its threads are lanes of
// rows times groups of columns, so that they read 512 adjacent bytes, or whole rows where these are shorter. Four rows
// are on their way while four others are computed with.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/matrix_view.h"

namespace stipple::ops::cuda {

constexpr int kAccessThreads = 256;
constexpr int kBatch = 4;  // rows on their way

/// A matrix in vectors of 8 or 16 bytes.
template <DType kType, int kNumbers>
struct Vectors {
    static constexpr int kWidth = kNumbers, kSize = kType == DType::f32 ? 4 : 2, kWords = kWidth * kSize / 4;
    static_assert(kWords == 2 || kWords == 4);
    using Raw = std::conditional_t<kWords == 4, uint4, uint2>;

    std::byte* data;

    /// From element `at` on, a multiple of kWidth. Not through the cache for constants: the result may go to the same
    /// memory.
    __device__ Raw load(int64_t at) const { return __ldcg(reinterpret_cast<const Raw*>(data + at * kSize)); }

    static __device__ float number(const Raw& raw, int i) {
        uint32_t words[kWords];
        memcpy(words, &raw, sizeof raw);
        if constexpr (kType == DType::f32) return __uint_as_float(words[i]);
        const uint32_t word = words[i / 2];
        if constexpr (kType == DType::bf16) return __uint_as_float(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
        __half2 pair;
        memcpy(&pair, &word, sizeof pair);
        return i % 2 == 0 ? __low2float(pair) : __high2float(pair);
    }

    __device__ void store(int64_t at, const float (&x)[kWidth]) const {
        uint32_t words[kWords];
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
            if constexpr (kType == DType::f32) {
                words[i] = __float_as_uint(x[i]);
            } else if constexpr (kType == DType::f16) {
                const __half2 pair = __floats2half2_rn(x[2 * i], x[2 * i + 1]);
                memcpy(&words[i], &pair, sizeof pair);
            } else {
                const __nv_bfloat162 pair = __floats2bfloat162_rn(x[2 * i], x[2 * i + 1]);
                memcpy(&words[i], &pair, sizeof pair);
            }
        }
        Raw raw;
        memcpy(&raw, words, sizeof raw);
        *reinterpret_cast<Raw*>(data + at * kSize) = raw;
    }
};

/// A matrix number by number, of any width, type and alignment.
struct Numbers {
    static constexpr int kWidth = 1;
    using Raw = float;

    std::byte* data;
    DType dtype;

    __device__ Raw load(int64_t at) const {
        if (dtype == DType::f32) return reinterpret_cast<const float*>(data)[at];
        const uint16_t bits = reinterpret_cast<const uint16_t*>(data)[at];
        if (dtype == DType::bf16) return __uint_as_float(static_cast<uint32_t>(bits) << 16);
        __half half;
        memcpy(&half, &bits, sizeof half);
        return __half2float(half);
    }
    static __device__ float number(const Raw& raw, int) { return raw; }
    __device__ void store(int64_t at, const float (&x)[1]) const {
        if (dtype == DType::f32)
            reinterpret_cast<float*>(data)[at] = x[0];
        else if (dtype == DType::f16)
            reinterpret_cast<__half*>(data)[at] = __float2half_rn(x[0]);
        else
            reinterpret_cast<__nv_bfloat16*>(data)[at] = __float2bfloat16_rn(x[0]);
    }
};

/// Two matrices of the same shape, side by side.
template <class A, class B>
struct Both {
    static_assert(A::kWidth == B::kWidth);
    static constexpr int kWidth = A::kWidth;
    struct Raw {
        typename A::Raw a;
        typename B::Raw b;
    };
    A a;
    B b;
    __device__ Raw load(int64_t at) const { return {a.load(at), b.load(at)}; }
};

/// How a matrix is shared out.
struct Sharing {
    int64_t rows, columns;
    int64_t rows_of_part, parts;
    int groups, column_blocks;  // of kWidth columns in a block; blocks that share a part
    int lanes;                  // rows that a block reads at a time

    unsigned blocks() const { return static_cast<unsigned>(parts * column_blocks); }
};

/// blocks: as many as there should be; least, most: rows of a thread, before that.
inline Sharing share(int64_t rows, int64_t columns, int width, int64_t blocks, int64_t least, int64_t most) {
    const auto quotient = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
    const int64_t groups = columns / width, largest = width == 1 ? 128 : 32;
    Sharing s = {};
    s.rows = rows, s.columns = columns;
    s.groups = static_cast<int>(quotient(groups, quotient(groups, largest)));
    s.column_blocks = static_cast<int>(quotient(groups, s.groups));
    s.lanes = kAccessThreads / s.groups;
    const int64_t parts = std::max<int64_t>(blocks / s.column_blocks, 1);
    const int64_t rows_of_lane = std::clamp<int64_t>(quotient(quotient(rows, parts), s.lanes), least, most);
    s.rows_of_part = rows_of_lane * s.lanes;
    s.parts = std::max<int64_t>(quotient(rows, s.rows_of_part), 1);
    return s;
}

/// A thread's share.
struct Share {
    int64_t part, first, last;  // rows of the block
    int64_t column;             // the first of the thread's
    int lane;
    bool is_there;  // some threads of a block have no row, or no columns
};

template <int kWidth>
__device__ inline Share own_share(const Sharing& s) {
    Share own;
    own.part = blockIdx.x / s.column_blocks;
    own.first = own.part * s.rows_of_part;
    own.last = min(own.first + s.rows_of_part, s.rows);
    own.lane = threadIdx.x / s.groups;
    const int group = blockIdx.x % s.column_blocks * s.groups + threadIdx.x % s.groups;
    own.column = static_cast<int64_t>(group) * kWidth;
    own.is_there = own.lane < s.lanes && own.column < s.columns;
    return own;
}

/// Calls each(raw, count, at) for the thread's rows in their order, four at a time: raw[i] begins at element
/// at + i * s.lanes * s.columns. count is 4 but for the last ones; written so that the compiler sees it.
template <class Matrix, class Each>
__device__ inline void for_each_batch(const Matrix& matrix, const Sharing& s, const Share& own, Each each) {
    using Raw = typename Matrix::Raw;
    if (!own.is_there) return;
    const int64_t step = s.lanes * s.columns;
    int64_t at = (own.first + own.lane) * s.columns + own.column;
    int left = static_cast<int>((own.last - own.first - own.lane + s.lanes - 1) / s.lanes);  // 0 or more
    Raw now[kBatch] = {}, next[kBatch] = {};
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
        if (i < left) now[i] = matrix.load(at + i * step);
#pragma unroll 1
    while (left >= kBatch) {
        left -= kBatch;
        const int64_t after = at + kBatch * step;
#pragma unroll
        for (int i = 0; i < kBatch; ++i)
            if (i < left) next[i] = matrix.load(after + i * step);
        each(now, kBatch, at);
#pragma unroll
        for (int i = 0; i < kBatch; ++i) now[i] = next[i];
        at = after;
    }
    if (left > 0) each(now, left, at);
}

inline int multiprocessors(Device device) {
    int units = 0;
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device.index));
    return units;
}

inline bool is_aligned(const void* data) {
    return reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

/// Calls call(std::integral_constant<DType, dtype>).
template <class Call>
void with_type(DType dtype, Call call) {
    switch (dtype) {
        case DType::f16: return call(std::integral_constant<DType, DType::f16>{});
        case DType::bf16: return call(std::integral_constant<DType, DType::bf16>{});
        default: return call(std::integral_constant<DType, DType::f32>{});
    }
}

template <class Matrix>
Matrix access(const MatrixView& view) {
    // One kind of access for what is read and what is written.
    auto* const data = static_cast<std::byte*>(const_cast<void*>(view.data));
    if constexpr (std::is_same_v<Matrix, Numbers>)
        return {data, view.dtype};
    else
        return {data};
}

/// Calls call(a, b) with two matrices of one shape as the widest vectors that both allow.
template <class Call>
void with_access(const MatrixView& a, const MatrixView& b, Call call) {
    const bool has_f32 = a.dtype == DType::f32 || b.dtype == DType::f32;
    if (a.columns % (has_f32 ? 4 : 8) != 0 || !is_aligned(a.data) || !is_aligned(b.data))
        return call(access<Numbers>(a), access<Numbers>(b));
    with_type(a.dtype, [&](auto type_a) {
        with_type(b.dtype, [&](auto type_b) {
            constexpr DType kA = decltype(type_a)::value, kB = decltype(type_b)::value;
            constexpr int kWidth = kA == DType::f32 || kB == DType::f32 ? 4 : 8;
            call(access<Vectors<kA, kWidth>>(a), access<Vectors<kB, kWidth>>(b));
        });
    });
}

}  // namespace stipple::ops::cuda
