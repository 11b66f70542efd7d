// Dense layers on tensor cores: a block makes 128 rows x 64 channels, 32 inputs at a time. The next 32 are on their way
// from memory while these are multiplied.

#include "stipple/engine/cuda/dense.cuh"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

constexpr int kDepth = 32;

/// Four 8 x 16-byte matrices from shared memory, one address a lane.
__device__ inline void load_matrices(uint32_t* r, const std::byte* at) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

template <class Factors, bool HasMatrix>
__global__ void __launch_bounds__(kTileThreads, 2)
    dense_tiles_mma(const __grid_constant__ DenseArguments a, int column_tiles) {
    using Element = typename Factors::Element;
    constexpr int kBytes = sizeof(Element);
    // 16 bytes more than a row: eight rows then lie in different banks.
    constexpr int kPitch = kDepth * kBytes + 16;
    constexpr int kStaging = (kTileRows + kTileColumns) * kPitch, kProduct = kTileRows * kTilePitch * 4;
    __shared__ __align__(16) std::byte shared[kStaging > kProduct ? kStaging : kProduct];
    std::byte* const xs = shared;
    std::byte* const ws = shared + kTileRows * kPitch;

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const Tile tile = tile_of(a.span, blockIdx.x / column_tiles);
    const int column = blockIdx.x % column_tiles * kTileColumns;
    const int64_t x_first = a.shares_rows ? tile.row_in_cloud : tile.row;
    const float* const matrix = HasMatrix ? a.matrix + static_cast<int64_t>(tile.cloud) * a.out * a.in : nullptr;

    // x: a thread has four rows, 32 apart, and four channels. w: one row and eight channels.
    const int x_row = thread / 8, x_channel = thread % 8 * 4;
    const int w_row = thread / 4, w_channel = thread % 4 * 8;
    float4 x[4], w_float[2];
    uint4 w_packed[kBytes / 2];
    const auto fetch = [&](int k) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int r = x_row + 32 * i;
            x[i] = r < tile.rows ? load_x(a, x_first + r, k + x_channel) : make_float4(0, 0, 0, 0);
        }
        if constexpr (HasMatrix) {
            w_float[0] = load_matrix(a, matrix, column + w_row, k + w_channel);
            w_float[1] = load_matrix(a, matrix, column + w_row, k + w_channel + 4);
        } else {
            const auto* row =
                static_cast<const Element*>(a.weight) + static_cast<int64_t>(column + w_row) * a.weight_pitch;
#pragma unroll
            for (int i = 0; i < kBytes / 2; ++i) w_packed[i] = reinterpret_cast<const uint4*>(row + k + w_channel)[i];
        }
    };
    const auto store = [&] {
#pragma unroll
        for (int i = 0; i < 4; ++i) Factors::store4(xs + (x_row + 32 * i) * kPitch + x_channel * kBytes, x[i]);
        std::byte* at = ws + w_row * kPitch + w_channel * kBytes;
        if constexpr (HasMatrix) {
            Factors::store4(at, w_float[0]);
            Factors::store4(at + 4 * kBytes, w_float[1]);
        } else {
#pragma unroll
            for (int i = 0; i < kBytes / 2; ++i) reinterpret_cast<uint4*>(at)[i] = w_packed[i];
        }
    };

    // A warp makes 32 x 32: two tiles of 16 rows, four of 8 columns.
    const int warp_row = warp % 4 * 32, warp_column = warp / 4 * 32;
    const std::byte* const x_at = xs + (warp_row + lane % 16) * kPitch + lane / 16 * 16;
    const std::byte* const w_at = ws + (warp_column + lane % 8 + lane / 16 * 8) * kPitch + lane / 8 % 2 * 16;
    float sum[2][4][4] = {};
    fetch(0);
    for (int k = 0; k < a.packed_in; k += kDepth) {
        store();
        __syncthreads();
        if (k + kDepth < a.packed_in) fetch(k + kDepth);
#pragma unroll
        for (int step = 0; step < kDepth * kBytes / 32; ++step) {
            uint32_t xr[2][4], wr[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                load_matrices(xr[i], x_at + i * 16 * kPitch + step * 32);
                load_matrices(wr[i], w_at + i * 16 * kPitch + step * 32);
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) Factors::multiply(sum[i][j], xr[i], wr[j / 2] + j % 2 * 2);
        }
        __syncthreads();
    }

    float* const product = reinterpret_cast<float*>(shared);
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float* at = product + (warp_row + i * 16 + lane / 4) * kTilePitch + warp_column + j * 8 + lane % 4 * 2;
            *reinterpret_cast<float2*>(at) = make_float2(sum[i][j][0], sum[i][j][1]);
            *reinterpret_cast<float2*>(at + 8 * kTilePitch) = make_float2(sum[i][j][2], sum[i][j][3]);
        }
    __syncthreads();
    finish_tile(a, tile, column, product);
}

template <class Factors>
void launch(const DenseArguments& a, cudaStream_t stream) {
    const int column_tiles = (a.out + kTileColumns - 1) / kTileColumns;
    const auto blocks = static_cast<unsigned>(a.span.tiles * column_tiles);
    if (a.matrix != nullptr)
        dense_tiles_mma<Factors, true><<<blocks, kTileThreads, 0, stream>>>(a, column_tiles);
    else
        dense_tiles_mma<Factors, false><<<blocks, kTileThreads, 0, stream>>>(a, column_tiles);
    STIPPLE_CHECK_LAUNCH(dense_tiles_mma);
}

}  // namespace

void launch_dense_tiles_mma(const DenseArguments& arguments, Precision precision, cudaStream_t stream) {
    if (precision == Precision::tf32) return launch<Tf32PairFactors>(arguments, stream);
    if (precision == Precision::bf16) return launch<Bf16Factors>(arguments, stream);
    launch<Fp16Factors>(arguments, stream);
}

void launch_fold_tiles_mma(const DenseArguments& arguments, bool exactly, cudaStream_t stream) {
    if (exactly) return launch<Tf32PairFactors>(arguments, stream);
    launch<Tf32Factors>(arguments, stream);
}

}  // namespace stipple::engine::cuda
