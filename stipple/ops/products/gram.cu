// Rows stream through shared memory, 64 at a time, and are both factors of the product there: ldmatrix turns columns
// into the rows of 16 x 16 fragments, of which each is a first and a second factor as it is. Blocks of multiprocessors
// take turns with the tiles.
//
// A warp has all the fragments of 16 rows, and of the blocks of 16 x 16 products every fourth: with kFragments columns
// of fragments warp w counts them from column w on, round the end. Its first, number 0, is multiplied with itself and
// with those up to half way round; where it has a second, half way round, that with itself and with those up to the
// first. So every pair is there, and of the numbers of registers all are known to the compiler.
//
// Where the limit is, by count and not by measurement, k 128: 1M rows are 256 MB, 56 us of an H200's memory. 16 rows
// are 72 products of m16n8k16, about 115 cycles of a multiprocessor, and 16 KB of reads of shared memory, 128 cycles;
// 500 times on each of 132, that is 31 and 36 us.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>

#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/common/warp.cuh"
#include "stipple/ops/gram.h"
#include "stipple/ops/products/tensor_products.cuh"

namespace stipple::ops::cuda {
namespace {

constexpr int kGramWarps = 4, kThreads = 32 * kGramWarps;
constexpr int kTileRows = 64, kTiles = 4;  // in shared memory: three on their way while one is computed with
constexpr int kMostTiles = 2048;           // of a block: 131,072 rows, 256 sums that are added in float32

/// kFragments: columns / 16, rounded up to 4 or 8; columns that are not there are 0.
template <int kFragments>
struct GramShape {
    static constexpr int kRowBytes = kFragments * 32, kTileBytes = kTileRows * kRowBytes;
    static constexpr int kBytes = kTiles * kTileBytes;
    static constexpr int kBlocks = kFragments == 8 ? 2 : 4;  // on a multiprocessor: 255 or 128 registers a thread
    static constexpr int kOwn = kFragments / kGramWarps;     // fragments that only this warp sums
    static constexpr int kPairs = kFragments / 2 + 1 + (kOwn - 1) * kFragments / 2;  // blocks of products
    static constexpr int kProducts = kPairs * 8 * kThreads;                          // of a block, then come the sums
    static constexpr int kNumbers = kProducts + kFragments * 16;
    // Tensor cores cut sums off, by up to 2^-23 of them every 16 rows: no more than 512 rows are added by them alone.
    static constexpr int kFlushTiles = 8;
    static_assert((kFragments == 4 || kFragments == 8) && kMostTiles % kFlushTiles == 0);

    /// The fragments of a pair, counted from the warp's first.
    static constexpr __device__ int left(int pair) { return pair <= kFragments / 2 ? 0 : kFragments / 2; }
    static constexpr __device__ int right(int pair) { return pair <= kFragments / 2 ? pair : pair - 1; }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/// The two numbers of a register.
template <DType kType>
__device__ inline float sum_of_two(uint32_t word) {
    if constexpr (kType == DType::bf16) {
        return __uint_as_float(word << 16) + __uint_as_float(word & 0xffff0000u);
    } else {
        __half2 pair;
        memcpy(&pair, &word, sizeof pair);
        return __low2float(pair) + __high2float(pair);
    }
}

/// Rows of a tile into shared memory; zeros for rows and columns that are not there. All threads.
template <int kRowBytes>
__device__ inline void copy_tile(uint32_t to, const std::byte* matrix, int row_bytes, int64_t first, int64_t rows) {
    constexpr int kPieces = kRowBytes / 16, kSweep = kThreads / kPieces;
    static_assert(kSweep % 8 == 0 && kTileRows % kSweep == 0, "one permutation a thread");
    const int row = threadIdx.x / kPieces, piece = threadIdx.x % kPieces;
    const uint32_t at = to + place<kRowBytes>(row, piece);
    const bool is_column = piece * 16 < row_bytes;
#pragma unroll
    for (int i = 0; i < kTileRows; i += kSweep) {
        const bool is_there = is_column && first + row + i < rows;
        const int64_t from = is_there ? (first + row + i) * row_bytes + piece * 16 : 0;
        copy_later(at + i * kRowBytes, matrix + from, is_there);
    }
}
#endif

/// partial [blocks, kNumbers]: the products as the lanes have them, then the sums of the columns.
template <DType kType, int kFragments>
__global__ void __launch_bounds__(kThreads, GramShape<kFragments>::kBlocks)
    gram_of_tiles(const std::byte* rows, int row_bytes, int64_t n, float* partial) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    using S = GramShape<kFragments>;
    extern __shared__ __align__(256) std::byte shared[];
    const uint32_t room = address_in_shared(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t tiles = (n + kTileRows - 1) / kTileRows;
    const int64_t own_tiles = tiles > blockIdx.x ? (tiles - blockIdx.x - 1) / gridDim.x + 1 : 0;
    const auto fetch = [&](int64_t i) {
        if (i < own_tiles)
            copy_tile<S::kRowBytes>(room + i % kTiles * S::kTileBytes, rows, row_bytes,
                                    (blockIdx.x + i * gridDim.x) * kTileRows, n);
        close_group_of_copies();
    };
    for (int i = 0; i < kTiles - 1; ++i) fetch(i);

    // Of a fragment's four matrices lanes 8 q .. 8 q + 7 have the rows: q / 2 is the half of the rows, q % 2 that of
    // the columns, as the first factor's registers are. Fragments differ in the bits above those that place() permutes.
    const uint32_t lane_row = place<S::kRowBytes>(lane / 16 * 8 + lane % 8, lane / 8 % 2);

    float d[S::kPairs][2][4] = {}, products[S::kPairs][2][4] = {};
    float column[S::kOwn][2] = {}, sums[S::kOwn][2] = {};
    const auto flush = [&] {
#pragma unroll
        for (int p = 0; p < S::kPairs; ++p)
#pragma unroll
            for (int e = 0; e < 8; ++e) products[p][e / 4][e % 4] += d[p][e / 4][e % 4], d[p][e / 4][e % 4] = 0;
#pragma unroll
        for (int o = 0; o < S::kOwn; ++o)
#pragma unroll
            for (int half = 0; half < 2; ++half) sums[o][half] += column[o][half], column[o][half] = 0;
    };

#pragma unroll 1
    for (int64_t i = 0; i < own_tiles; ++i) {
        wait_for_groups_but<kTiles - 2>();
        __syncthreads();  // this tile has come, and all are done with the one before it, whose room the next one takes
        fetch(i + kTiles - 1);
        const uint32_t there = room + static_cast<uint32_t>(i % kTiles) * S::kTileBytes;
#pragma unroll
        for (int step = 0; step < kTileRows / 16; ++step) {
            uint32_t x[kFragments][4];
#pragma unroll
            for (int f = 0; f < kFragments; ++f) {
                const uint32_t fragment = (warp + f) % kFragments;
                load_transposes(x[f], there + step * 16 * S::kRowBytes + (lane_row ^ (fragment << 5)));
            }
#pragma unroll
            for (int p = 0; p < S::kPairs; ++p)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    add_product<kType>(d[p][half], x[S::left(p)], x[S::right(p)][half], x[S::right(p)][half + 2]);
#pragma unroll
            for (int o = 0; o < S::kOwn; ++o)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    column[o][half] +=
                        sum_of_two<kType>(x[o * kGramWarps][half]) + sum_of_two<kType>(x[o * kGramWarps][half + 2]);
        }
        if (i % S::kFlushTiles == S::kFlushTiles - 1) flush();
    }
    flush();

    float* const own = partial + static_cast<int64_t>(blockIdx.x) * S::kNumbers;
#pragma unroll
    for (int p = 0; p < S::kPairs; ++p)
#pragma unroll
        for (int e = 0; e < 8; ++e) own[(p * 8 + e) * kThreads + threadIdx.x] = products[p][e / 4][e % 4];
#pragma unroll
    for (int o = 0; o < S::kOwn; ++o)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float all = sums[o][half];
#pragma unroll
            for (int step = 1; step <= 2; ++step) all += __shfl_xor_sync(kAllLanes, all, step);
            if (lane % 4 == 0) own[S::kProducts + (warp + o * kGramWarps) * 16 + half * 8 + lane / 4] = all;
        }
#else
    __trap();  // never launched, unless a build for older GPUs alone runs on a newer one
#endif
}

constexpr int kCombineNumbers = 32, kGramCombineLanes = 8;

/// Number i of all blocks, in double: a thread has every eighth block, then their sums are added in their order.
template <int kFragments>
__global__ void __launch_bounds__(kCombineNumbers* kGramCombineLanes)
    combine_blocks(const float* partial, int blocks, int k, double* sum, double* products) {
    using S = GramShape<kFragments>;
    static_assert(S::kNumbers % kCombineNumbers == 0);
    __shared__ double of_lane[kGramCombineLanes][kCombineNumbers];
    const int lane = threadIdx.x / kCombineNumbers, number = threadIdx.x % kCombineNumbers;
    const int i = blockIdx.x * kCombineNumbers + number;
    double all = 0;
#pragma unroll 8
    for (int block = lane; block < blocks; block += kGramCombineLanes)
        all += partial[static_cast<int64_t>(block) * S::kNumbers + i];
    of_lane[lane][number] = all;
    __syncthreads();
    if (lane != 0) return;
    for (int other = 1; other < kGramCombineLanes; ++other) all += of_lane[other][number];
    if (i >= S::kProducts) {
        if (i - S::kProducts < k) sum[i - S::kProducts] = all;
        return;
    }
    // Whose it is: number e of lane 4 g + t of the pair's products, whose half h has columns 8 h .. 8 h + 7.
    const int thread = i % kThreads, pair = i / kThreads / 8, e = i / kThreads % 4, half = i / kThreads / 4 % 2;
    const int warp = thread / 32, g = thread % 32 / 4, t = thread % 4;
    if (pair == kFragments / 2 && warp >= kFragments / 2) return;  // half way round from there is the same pair
    const int left = (warp + S::left(pair)) % kFragments, right = (warp + S::right(pair)) % kFragments;
    const int row = left * 16 + g + e / 2 * 8, column = right * 16 + half * 8 + 2 * t + e % 2;
    if (row >= k || column >= k || (left == right && row > column)) return;
    products[row * k + column] = all;
    products[column * k + row] = all;
}

template <DType kType, int kFragments>
void launch(const MatrixView& rows, double* sum, double* products, cudaStream_t stream) {
    using S = GramShape<kFragments>;
    int units = 0;
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, rows.device.index));
    STIPPLE_CHECK_CUDA(
        cudaFuncSetAttribute(gram_of_tiles<kType, kFragments>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes));
    STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(gram_of_tiles<kType, kFragments>,
                                            cudaFuncAttributePreferredSharedMemoryCarveout,
                                            cudaSharedmemCarveoutMaxShared));
    const int64_t tiles = (rows.rows + kTileRows - 1) / kTileRows;
    const int64_t most = std::max<int64_t>(static_cast<int64_t>(S::kBlocks) * units, tiles / kMostTiles + 1);
    const auto blocks = static_cast<int>(std::clamp<int64_t>(tiles, 1, most));
    const Scratch<float> partial(static_cast<int64_t>(blocks) * S::kNumbers, stream);
    gram_of_tiles<kType, kFragments><<<blocks, kThreads, S::kBytes, stream>>>(
        static_cast<const std::byte*>(rows.data), static_cast<int>(rows.columns) * 2, rows.rows, partial.get());
    STIPPLE_CHECK_LAUNCH(gram_of_tiles);
    combine_blocks<kFragments><<<S::kNumbers / kCombineNumbers, kCombineNumbers * kGramCombineLanes, 0, stream>>>(
        partial.get(), blocks, static_cast<int>(rows.columns), sum, products);
    STIPPLE_CHECK_LAUNCH(combine_blocks);
}

}  // namespace

bool has_gram() {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) {
        cudaGetLastError();  // no device, no driver: asked, and answered
        return false;
    }
    return compute_major(device) >= 8;
}

void gram(const MatrixView& rows, View<double, 1> sum, View<double, 2> products, Stream stream) {
    const CurrentDevice current(rows.device);
    STIPPLE_REQUIRE(compute_major(rows.device.index) >= 8, "gram: {} is older than sm_80", rows.device);
    const bool is_narrow = rows.columns <= 64;
    if (rows.dtype == DType::f16)
        return is_narrow ? launch<DType::f16, 4>(rows, sum.data(), products.data(), raw(stream))
                         : launch<DType::f16, 8>(rows, sum.data(), products.data(), raw(stream));
    return is_narrow ? launch<DType::bf16, 4>(rows, sum.data(), products.data(), raw(stream))
                     : launch<DType::bf16, 8>(rows, sum.data(), products.data(), raw(stream));
}

}  // namespace stipple::ops::cuda
