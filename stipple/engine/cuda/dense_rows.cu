// Dense layers of few rows, the heads of a network on a small batch: 32 rows x 8 or 16 channels a block, its eight
// warps share the inputs among them and add their sums in a fixed order. Nothing is staged: a thread reads what it
// multiplies, eight adjacent channels at a time, so the hardware's order of channels is not ours, for x and for w
// alike.

#include "stipple/engine/cuda/dense.cuh"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

constexpr int kDenseRowsWarps = 8;
constexpr int kRows = 32;
constexpr int kUnit = 32;  // channels that a warp takes at a time

/// Adds the warps' sums and finishes the block's outputs.
template <int Columns>
__device__ void finish_rows(const DenseArguments& a, int64_t rows, int64_t row, int column,
                            const float (&sums)[kDenseRowsWarps][kRows][Columns + 1]) {
    __syncthreads();
    for (int i = threadIdx.x; i < kRows * Columns; i += kDenseRowsWarps * 32) {
        const int r = i / Columns, c = i % Columns, n = column + c;
        if (row + r >= rows || n >= a.out) continue;
        float x = 0;
#pragma unroll
        for (int w = 0; w < kDenseRowsWarps; ++w) x += sums[w][r][c];
        for (int j = 0; j < a.addend_count; ++j) x += a.addends[j].data[(row + r) * a.addends[j].stride + n];
        a.y[(row + r - a.y_origin) * a.y_stride + n] = apply(a.activation, x + a.bias[n]);
    }
}

template <class Factors, int Columns>
__global__ void __launch_bounds__(kDenseRowsWarps * 32)
    dense_rows_mma(const __grid_constant__ DenseArguments a, int64_t rows, int column_tiles) {
    using Element = typename Factors::Element;
    constexpr int kTiles = Columns / 8, kRegisters = Factors::kRegisters;
    __shared__ float sums[kDenseRowsWarps][kRows][Columns + 1];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t row = static_cast<int64_t>(blockIdx.x / column_tiles) * kRows;
    const int column = blockIdx.x % column_tiles * Columns;
    float sum[2][kTiles][4] = {};
#pragma unroll 2
    for (int k = warp * kUnit; k < a.packed_in; k += kDenseRowsWarps * kUnit) {
        const int channel = k + lane % 4 * 8;
        uint32_t x[4][kRegisters], w[kTiles][kRegisters];  // x: rows lane / 4 and 8, 16, 24 more
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
            const auto* at = static_cast<const Element*>(a.weight) +
                             static_cast<int64_t>(column + j * 8 + lane / 4) * a.weight_pitch + channel;
#pragma unroll
            for (int i = 0; i < kRegisters / 4; ++i) {
                const uint4 four = reinterpret_cast<const uint4*>(at)[i];
                w[j][4 * i] = four.x, w[j][4 * i + 1] = four.y, w[j][4 * i + 2] = four.z, w[j][4 * i + 3] = four.w;
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int64_t r = row + lane / 4 + 8 * i;
            float4 low = make_float4(0, 0, 0, 0), high = low;
            if (r < rows) {
                low = load_x(a, r, channel);
                high = load_x(a, r, channel + 4);
            }
            Factors::pack8(low, high, x[i]);
        }
#pragma unroll
        for (int step = 0; step < kRegisters / 2; ++step)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const uint32_t factors[4] = {x[2 * i][2 * step], x[2 * i + 1][2 * step], x[2 * i][2 * step + 1],
                                             x[2 * i + 1][2 * step + 1]};
#pragma unroll
                for (int j = 0; j < kTiles; ++j) Factors::multiply(sum[i][j], factors, w[j] + 2 * step);
            }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
            const int r = i * 16 + lane / 4, c = j * 8 + lane % 4 * 2;
            sums[warp][r][c] = sum[i][j][0], sums[warp][r][c + 1] = sum[i][j][1];
            sums[warp][r + 8][c] = sum[i][j][2], sums[warp][r + 8][c + 1] = sum[i][j][3];
        }
    finish_rows<Columns>(a, rows, row, column, sums);
}

/// A lane has one row and all columns: the factors of w are the same for all lanes.
template <int Columns>
__global__ void __launch_bounds__(kDenseRowsWarps * 32)
    dense_rows_fp32(const __grid_constant__ DenseArguments a, int64_t rows, int column_tiles) {
    __shared__ float sums[kDenseRowsWarps][kRows][Columns + 1];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t row = static_cast<int64_t>(blockIdx.x / column_tiles) * kRows;
    const int column = blockIdx.x % column_tiles * Columns;
    const auto* weight = static_cast<const float*>(a.weight) + static_cast<int64_t>(column) * a.weight_pitch;
    float sum[Columns] = {};
    for (int k = warp * kUnit; k < a.packed_in; k += kDenseRowsWarps * kUnit)
#pragma unroll 4
        for (int channel = k; channel < k + kUnit; channel += 4) {
            const float4 x = row + lane < rows ? load_x(a, row + lane, channel) : make_float4(0, 0, 0, 0);
#pragma unroll
            for (int j = 0; j < Columns; ++j) {
                const float4 w =
                    *reinterpret_cast<const float4*>(weight + static_cast<int64_t>(j) * a.weight_pitch + channel);
                sum[j] = fmaf(x.w, w.w, fmaf(x.z, w.z, fmaf(x.y, w.y, fmaf(x.x, w.x, sum[j]))));
            }
        }
#pragma unroll
    for (int j = 0; j < Columns; ++j) sums[warp][lane][j] = sum[j];
    finish_rows<Columns>(a, rows, row, column, sums);
}

template <int Columns>
void launch(const DenseArguments& a, int64_t rows, Precision precision, cudaStream_t stream) {
    const int column_tiles = (a.out + Columns - 1) / Columns;
    const auto blocks = static_cast<unsigned>((rows + kRows - 1) / kRows * column_tiles);
    if (precision == Precision::fp32)
        dense_rows_fp32<Columns><<<blocks, kDenseRowsWarps * 32, 0, stream>>>(a, rows, column_tiles);
    else if (precision == Precision::tf32)
        dense_rows_mma<Tf32PairFactors, Columns><<<blocks, kDenseRowsWarps * 32, 0, stream>>>(a, rows, column_tiles);
    else if (precision == Precision::bf16)
        dense_rows_mma<Bf16Factors, Columns><<<blocks, kDenseRowsWarps * 32, 0, stream>>>(a, rows, column_tiles);
    else
        dense_rows_mma<Fp16Factors, Columns><<<blocks, kDenseRowsWarps * 32, 0, stream>>>(a, rows, column_tiles);
    STIPPLE_CHECK_LAUNCH(dense_rows);
}

}  // namespace

void launch_dense_rows(const DenseArguments& arguments, int64_t rows, Precision precision, cudaStream_t stream) {
    // Half as many columns a block when whole blocks would leave most multiprocessors idle.
    const int64_t blocks = (rows + kRows - 1) / kRows * ((arguments.out + 15) / 16);
    if (blocks < 128)
        launch<8>(arguments, rows, precision, stream);
    else
        launch<16>(arguments, rows, precision, stream);
}

}  // namespace stipple::engine::cuda
