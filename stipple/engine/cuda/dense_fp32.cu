// Dense layers in float32 proper: a block makes 128 rows x 64 channels, a thread 8 x 4 of them, 16 inputs at a time.
// Products of a row are added in the order of the channels.

#include "stipple/engine/cuda/dense.cuh"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

constexpr int kDenseFp32Depth = 16;
constexpr int kRowPitch = kTileRows + 4;

template <bool HasMatrix>
__global__ void __launch_bounds__(kTileThreads, 2)
    dense_tiles_fp32(const __grid_constant__ DenseArguments a, int column_tiles) {
    constexpr int kStaging = kDenseFp32Depth * (kRowPitch + kTilePitch), kProduct = kTileRows * kTilePitch;
    __shared__ __align__(16) float shared[kStaging > kProduct ? kStaging : kProduct];
    float* const xs = shared;                                // [kDenseFp32Depth][kRowPitch]
    float* const ws = shared + kDenseFp32Depth * kRowPitch;  // [kDenseFp32Depth][kTilePitch]

    const int thread = threadIdx.x;
    const Tile tile = tile_of(a.span, blockIdx.x / column_tiles);
    const int column = blockIdx.x % column_tiles * kTileColumns;
    const int64_t x_first = a.shares_rows ? tile.row_in_cloud : tile.row;
    const float* const matrix = HasMatrix ? a.matrix + static_cast<int64_t>(tile.cloud) * a.out * a.in : nullptr;

    const int load_row = thread / 4, load_channel = thread % 4 * 4;
    float4 x[2], w;
    const auto fetch = [&](int k) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int r = load_row + 64 * i;
            x[i] = r < tile.rows ? load_x(a, x_first + r, k + load_channel) : make_float4(0, 0, 0, 0);
        }
        if constexpr (HasMatrix) {
            w = load_matrix(a, matrix, column + load_row, k + load_channel);
        } else {
            const float* row =
                static_cast<const float*>(a.weight) + static_cast<int64_t>(column + load_row) * a.weight_pitch;
            w = *reinterpret_cast<const float4*>(row + k + load_channel);
        }
    };
    const auto store = [&] {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float* at = xs + load_channel * kRowPitch + load_row + 64 * i;
            at[0] = x[i].x, at[kRowPitch] = x[i].y, at[2 * kRowPitch] = x[i].z, at[3 * kRowPitch] = x[i].w;
        }
        float* at = ws + load_channel * kTilePitch + load_row;
        at[0] = w.x, at[kTilePitch] = w.y, at[2 * kTilePitch] = w.z, at[3 * kTilePitch] = w.w;
    };

    // Rows 4 i .. and 64 + 4 i .., so that the lanes of a warp read adjacent words.
    const int row = thread / 16 * 4, first = thread % 16 * 4;
    float sum[8][4] = {};
    if (a.packed_in > 0) fetch(0);
    for (int k = 0; k < a.packed_in; k += kDenseFp32Depth) {
        store();
        __syncthreads();
        if (k + kDenseFp32Depth < a.packed_in) fetch(k + kDenseFp32Depth);
        const int depth = min(kDenseFp32Depth, a.packed_in - k);  // a multiple of 4
#pragma unroll 4
        for (int kk = 0; kk < depth; ++kk) {
            const float4 low = *reinterpret_cast<const float4*>(xs + kk * kRowPitch + row);
            const float4 high = *reinterpret_cast<const float4*>(xs + kk * kRowPitch + row + 64);
            const float4 factor = *reinterpret_cast<const float4*>(ws + kk * kTilePitch + first);
            const float xr[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            const float wr[4] = {factor.x, factor.y, factor.z, factor.w};
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(xr[i], wr[j], sum[i][j]);
        }
        __syncthreads();
    }

    float* const product = shared;
#pragma unroll
    for (int i = 0; i < 8; ++i)
        *reinterpret_cast<float4*>(product + (row + i % 4 + i / 4 * 64) * kTilePitch + first) =
            make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
    __syncthreads();
    finish_tile(a, tile, column, product);
}

}  // namespace

void launch_dense_tiles_fp32(const DenseArguments& arguments, cudaStream_t stream) {
    const int column_tiles = (arguments.out + kTileColumns - 1) / kTileColumns;
    const auto blocks = static_cast<unsigned>(arguments.span.tiles * column_tiles);
    if (arguments.matrix != nullptr)
        dense_tiles_fp32<true><<<blocks, kTileThreads, 0, stream>>>(arguments, column_tiles);
    else
        dense_tiles_fp32<false><<<blocks, kTileThreads, 0, stream>>>(arguments, column_tiles);
    STIPPLE_CHECK_LAUNCH(dense_tiles_fp32);
}

}  // namespace stipple::engine::cuda
