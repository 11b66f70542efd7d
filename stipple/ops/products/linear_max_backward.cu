// Gradients of linear_max. A warp adds up the rows of k numbers that go to one sum, four numbers a lane, in an order
// that is written down below: no atomics, the same bits every time.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/common/warp.cuh"
#include "stipple/ops/linear_max.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kMostColumns = 128;  // four of each of 32 lanes

/// Four numbers of a matrix, from element `at` on, a multiple of 4.
template <DType kType>
__device__ inline float4 load_four(const void* matrix, int64_t at) {
    if constexpr (kType == DType::f32) {
        return *reinterpret_cast<const float4*>(static_cast<const float*>(matrix) + at);
    } else {
        using Pair = std::conditional_t<kType == DType::f16, __half2, __nv_bfloat162>;
        const uint2 bits = *reinterpret_cast<const uint2*>(static_cast<const uint16_t*>(matrix) + at);
        float2 low, high;
        if constexpr (kType == DType::f16) {
            low = __half22float2(reinterpret_cast<const Pair&>(bits.x));
            high = __half22float2(reinterpret_cast<const Pair&>(bits.y));
        } else {
            low = __bfloat1622float2(reinterpret_cast<const Pair&>(bits.x));
            high = __bfloat1622float2(reinterpret_cast<const Pair&>(bits.y));
        }
        return make_float4(low.x, low.y, high.x, high.y);
    }
}

template <DType kType>
__device__ inline void store_four(void* matrix, int64_t at, const float4& x) {
    if constexpr (kType == DType::f32) {
        *reinterpret_cast<float4*>(static_cast<float*>(matrix) + at) = x;
    } else {
        uint2 bits;
        if constexpr (kType == DType::f16) {
            reinterpret_cast<__half2&>(bits.x) = __floats2half2_rn(x.x, x.y);
            reinterpret_cast<__half2&>(bits.y) = __floats2half2_rn(x.z, x.w);
        } else {
            reinterpret_cast<__nv_bfloat162&>(bits.x) = __floats2bfloat162_rn(x.x, x.y);
            reinterpret_cast<__nv_bfloat162&>(bits.y) = __floats2bfloat162_rn(x.z, x.w);
        }
        *reinterpret_cast<uint2*>(static_cast<uint16_t*>(matrix) + at) = bits;
    }
}

__device__ inline void add_scaled(float4& sum, float factor, const float4& x) {
    sum.x = fmaf(factor, x.x, sum.x), sum.y = fmaf(factor, x.y, sum.y);
    sum.z = fmaf(factor, x.z, sum.z), sum.w = fmaf(factor, x.w, sum.w);
}

constexpr int kChunk = 1024;  // channels sorted at a time
constexpr int kRowThreads = 512, kRowWarps = kRowThreads / 32;
constexpr uint64_t kNoKey = ~uint64_t{0};

/// Bitonic, ascending; count is a power of two. All threads; keys may be read afterwards.
__device__ inline void sort_in_shared(uint64_t* keys, int count) {
    for (int size = 2; size <= count; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < count / 2; i += kRowThreads) {
                const int low = 2 * i - (i & (stride - 1)), high = low + stride;
                const uint64_t x = keys[low], y = keys[high];
                if ((x > y) == ((low & size) == 0)) keys[low] = y, keys[high] = x;
            }
        }
    __syncthreads();
}

struct LinearMaxBackwardRowArguments {
    DeviceBatch batch;
    const void* weight;
    const int32_t* winners;
    const float* dL_dlargest;
    void* dL_drows;
    const float *factor, *constant;  // of what dL_drows holds before; null: 1 and 0
    int k, channels;
};

/// The first of the sorted keys that name a row of at least this number, or count.
__device__ inline int first_key(const uint64_t* keys, int count, uint64_t row) {
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (keys[middle] < row << 32)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/// One block a cloud. Its channels are sorted by the rows that they name, 1024 at a time, ascending for each row; each
/// named row is one warp's, which adds the sum of these to the gradient once. More channels than 1024 are added in
/// turns. Where the rows are to be scaled or moved before, the first turn takes all of them.
template <DType kType, DType kRowType>
__global__ void __launch_bounds__(kRowThreads) backward_rows(const __grid_constant__ LinearMaxBackwardRowArguments a) {
    __shared__ uint64_t keys[kChunk];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t cloud = blockIdx.x, begin = a.batch.begin(cloud), n = a.batch.end(cloud) - begin;
    if (n == 0) return;
    const int32_t* const winners = a.winners + cloud * a.channels;
    const float* const gradient = a.dL_dlargest + cloud * a.channels;
    const bool is_column = 4 * lane < a.k, takes_all = a.factor || a.constant;
    const float factor_before = a.factor ? *a.factor : 1;
    const float4 constant =
        a.constant && is_column ? load_four<DType::f32>(a.constant, 4 * lane) : make_float4(0, 0, 0, 0);
#pragma unroll 1
    for (int first = 0; first < a.channels; first += kChunk) {
        const int count = min(a.channels - first, kChunk);
        const int sorted = count <= 1 ? 2 : 1 << (32 - __clz(count - 1));
        __syncthreads();  // the keys before have been read, and the gradients they led to are written
        for (int i = threadIdx.x; i < sorted; i += kRowThreads) {
            const int32_t winner = i < count ? winners[first + i] : -1;
            const bool is_row = winner >= 0 && winner < n;
            keys[i] = is_row ? static_cast<uint64_t>(winner) << 32 | static_cast<uint32_t>(first + i) : kNoKey;
        }
        sort_in_shared(keys, sorted);
        // What keys[i] and the ones after it add to their row, all of them of this one.
        const auto sum_from = [&](int i, uint32_t row) {
            float4 sum = make_float4(0, 0, 0, 0);
            for (int from = i, found = 32; found == 32; from += 32) {
                const uint64_t key = from + lane < count ? keys[from + lane] : kNoKey;
                const bool is_same = static_cast<uint32_t>(key >> 32) == row;
                found = __popc(__ballot_sync(kAllLanes, is_same));  // they come first
                const auto channel = static_cast<uint32_t>(key);
                const float factor = is_same ? gradient[channel] : 0;
#pragma unroll 4
                for (int next = 0; next < found; ++next) {
                    const int64_t at = static_cast<int64_t>(__shfl_sync(kAllLanes, channel, next)) * a.k + 4 * lane;
                    const float4 x = is_column ? load_four<kType>(a.weight, at) : make_float4(0, 0, 0, 0);
                    add_scaled(sum, __shfl_sync(kAllLanes, factor, next), x);
                }
            }
            return sum;
        };
        if (takes_all && first == 0) {
            for (int64_t row = warp; row < n; row += kRowWarps) {
                const int64_t at = (begin + row) * a.k + 4 * lane;
                float4 x = is_column ? load_four<kRowType>(a.dL_drows, at) : make_float4(0, 0, 0, 0);
                const float4 sum = sum_from(first_key(keys, count, row), static_cast<uint32_t>(row));
                x = make_float4(
                    fmaf(factor_before, x.x, constant.x) + sum.x, fmaf(factor_before, x.y, constant.y) + sum.y,
                    fmaf(factor_before, x.z, constant.z) + sum.z, fmaf(factor_before, x.w, constant.w) + sum.w);
                if (is_column) store_four<kRowType>(a.dL_drows, at, x);
            }
            continue;
        }
        for (int i = warp; i < count && keys[i] != kNoKey; i += kRowWarps) {
            const auto row = static_cast<uint32_t>(keys[i] >> 32);
            if (i > 0 && static_cast<uint32_t>(keys[i - 1] >> 32) == row) continue;  // another warp's, or done
            const float4 sum = sum_from(i, row);
            if (!is_column) continue;
            const int64_t at = (begin + row) * a.k + 4 * lane;
            const float4 x = load_four<kRowType>(a.dL_drows, at);
            store_four<kRowType>(a.dL_drows, at, make_float4(x.x + sum.x, x.y + sum.y, x.z + sum.z, x.w + sum.w));
        }
    }
}

template <DType kType>
void launch_rows(const LinearMaxBackwardRowArguments& a, DType row_type, unsigned blocks, cudaStream_t stream) {
    switch (row_type) {
        case DType::f16: backward_rows<kType, DType::f16><<<blocks, kRowThreads, 0, stream>>>(a); break;
        case DType::bf16: backward_rows<kType, DType::bf16><<<blocks, kRowThreads, 0, stream>>>(a); break;
        default: backward_rows<kType, DType::f32><<<blocks, kRowThreads, 0, stream>>>(a); break;
    }
    STIPPLE_CHECK_LAUNCH(backward_rows);
}

constexpr int kWeightThreads = 256, kWeightWarps = kWeightThreads / 32;

struct WeightArguments {
    DeviceBatch batch;
    const void* rows;
    const int32_t* winners;
    const float* dL_dlargest;
    float* dL_dweight;
    int k, channels;
};

/// One block a channel. Warp w adds up the clouds 32 w .. 32 w + 31, those 256 later, and so on; then the warps' sums
/// are added in the warps' order. Blocks go through the clouds at the same time, so that rows that several channels
/// name are found in the L2 cache.
template <DType kType>
__global__ void __launch_bounds__(kWeightThreads) backward_weight(const __grid_constant__ WeightArguments a) {
    __shared__ __align__(16) float sums[kWeightWarps][kMostColumns];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t channel = blockIdx.x;
    const bool is_column = 4 * lane < a.k;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 1
    for (int64_t first = warp * 32; first < a.batch.clouds; first += kWeightWarps * 32) {
        const int64_t cloud = first + lane;
        int64_t row = -1;
        float factor = 0;
        if (cloud < a.batch.clouds) {
            const int64_t begin = a.batch.begin(cloud), n = a.batch.end(cloud) - begin;
            const int32_t winner = a.winners[cloud * a.channels + channel];
            if (winner >= 0 && winner < n) {
                row = begin + winner;
                factor = a.dL_dlargest[cloud * a.channels + channel];
            }
        }
        const int count = static_cast<int>(min(a.batch.clouds - first, int64_t{32}));
#pragma unroll 8
        for (int next = 0; next < count; ++next) {
            const int64_t at = __shfl_sync(kAllLanes, row, next);
            const bool is_there = is_column && at >= 0;
            const float4 x = is_there ? load_four<kType>(a.rows, at * a.k + 4 * lane) : make_float4(0, 0, 0, 0);
            add_scaled(sum, __shfl_sync(kAllLanes, factor, next), x);  // 0 times 0 where there is no row
        }
    }
    *reinterpret_cast<float4*>(&sums[warp][4 * lane]) = sum;
    __syncthreads();
    const int column = threadIdx.x;
    if (column >= a.k) return;
    float total = sums[0][column];
    for (int i = 1; i < kWeightWarps; ++i) total += sums[i][column];
    a.dL_dweight[channel * a.k + column] = total;
}

}  // namespace

void linear_max_backward_rows(const Batch& batch, const MatrixView& weight, View<const int32_t, 2> winners,
                              View<const float, 2> dL_dlargest, const MutableMatrixView& dL_drows,
                              const RowsBefore& before, Stream stream) {
    const CurrentDevice current(weight.device);
    const UploadedBatch uploaded(batch, raw(stream));
    const LinearMaxBackwardRowArguments a = {uploaded.view(),
                                             weight.data,
                                             winners.data(),
                                             dL_dlargest.data(),
                                             dL_drows.data,
                                             before.factor.data(),
                                             before.constant.data(),
                                             static_cast<int>(weight.columns),
                                             static_cast<int>(weight.rows)};
    const auto blocks = static_cast<unsigned>(batch.clouds());
    switch (weight.dtype) {
        case DType::f16: return launch_rows<DType::f16>(a, dL_drows.dtype, blocks, raw(stream));
        case DType::bf16: return launch_rows<DType::bf16>(a, dL_drows.dtype, blocks, raw(stream));
        default: return launch_rows<DType::f32>(a, dL_drows.dtype, blocks, raw(stream));
    }
}

void linear_max_backward_weight(const MatrixView& rows, const Batch& batch, View<const int32_t, 2> winners,
                                View<const float, 2> dL_dlargest, View<float, 2> dL_dweight, Stream stream) {
    const CurrentDevice current(rows.device);
    const UploadedBatch uploaded(batch, raw(stream));
    const WeightArguments a = {uploaded.view(),
                               rows.data,
                               winners.data(),
                               dL_dlargest.data(),
                               dL_dweight.data(),
                               static_cast<int>(rows.columns),
                               static_cast<int>(dL_dweight.size(0))};
    const auto blocks = static_cast<unsigned>(dL_dweight.size(0));
    switch (rows.dtype) {
        case DType::f16: backward_weight<DType::f16><<<blocks, kWeightThreads, 0, raw(stream)>>>(a); break;
        case DType::bf16: backward_weight<DType::bf16><<<blocks, kWeightThreads, 0, raw(stream)>>>(a); break;
        default: backward_weight<DType::f32><<<blocks, kWeightThreads, 0, raw(stream)>>>(a); break;
    }
    STIPPLE_CHECK_LAUNCH(backward_weight);
}

}  // namespace stipple::ops::cuda
