// A block takes 128 channels of one cloud, or of a part of it. Its warps keep their channels' weights in registers, as
// the first factor of the products, while the cloud's rows stream through shared memory as the second: so a lane has
// few channels and many rows, and the maximum is a comparison, a maximum and a selection for each product, without a
// word from other lanes before the end.
//
// Where the limit is, by count and not by measurement, k 128 in 16 bits, three blocks of four warps on a multiprocessor
// (64 KiB of shared memory a block, at most 168 registers a thread): a tile of 128 rows is 2^21 multiply-adds, 1024
// cycles of what wgmma could do and about 1650 of what mma does; each of the four warps reads the whole tile, 128 KiB
// or 1024 cycles of shared memory; the maximum is 3 x 2^14 operations, 770 cycles of the units that compare and select.
// These overlap among the blocks. In tf32 eight warps have 16 channels each, and two blocks fit: 128 registers a
// thread.

#include <algorithm>

#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/common/warp.cuh"
#include "stipple/ops/linear_max.h"
#include "stipple/ops/products/tensor_products.cuh"

namespace stipple::ops::cuda {
namespace {

constexpr int kBlockChannels = 128;

/// kRowBytes: room for a row's numbers.
template <DType kType, int kRowBytes>
struct Shape {
    static constexpr bool kIsTf32 = kType == DType::f32;
    static constexpr int kSlices = kIsTf32 ? 1 : 2;  // of 16 channels, a warp's
    static constexpr int kThreads = kBlockChannels / (16 * kSlices) * 32;
    static constexpr int kRows = kIsTf32 ? 64 : 128;  // of a tile
    static constexpr int kTileBytes = kRows * kRowBytes;
    static constexpr int kBytes = 2 * kTileBytes;
    static constexpr int kBlocks = kIsTf32 ? 2 : 3;  // on a multiprocessor
    static_assert(kBlockChannels * kRowBytes <= kBytes, "the weight passes through the room of the tiles");
};

struct Arguments {
    const std::byte *rows, *weight;
    DeviceBatch batch;
    int row_bytes, channels, channel_blocks;
    float* largest;    // [parts, clouds, channels]
    int32_t* winners;  // likewise
};

/// A channel's largest product so far, and its row.
struct LinearMaxBest {
    float value;
    uint32_t row;
};

/// NaN before numbers, larger before smaller, then the lower row.
__device__ inline bool is_before(const LinearMaxBest& a, const LinearMaxBest& b) {
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan) return a_is_nan;
    if (a_is_nan || a.value == b.value) return a.row < b.row;
    return a.value > b.value;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/// Rows first .. first + kCount of a matrix into shared memory; those past the last are the last again, so that nothing
/// has to be masked: a copy is never before the row itself. Behind row_bytes come zeros. All threads.
template <int kCount, int kRowBytes, int kThreads>
__device__ inline void copy_rows(uint32_t to, const std::byte* matrix, int row_bytes, uint32_t first, uint32_t last) {
    constexpr int kPieces = kRowBytes / 16, kSweep = kThreads / kPieces;
    static_assert(kThreads % kPieces == 0 && kSweep % 8 == 0 && kCount % kSweep == 0, "one permutation a thread");
    const uint32_t row = threadIdx.x / kPieces, piece = threadIdx.x % kPieces;
    const uint32_t at = to + place<kRowBytes>(row, piece);
    const bool is_there = static_cast<int>(piece * 16) < row_bytes;
    const std::byte* from = matrix + (is_there ? piece * 16 : 0);
#pragma unroll
    for (int i = 0; i < kCount; i += kSweep)
        copy_later(at + i * kRowBytes, from + static_cast<int64_t>(min(first + row + i, last)) * row_bytes, is_there);
}

/// Rounds what this very thread has copied, which needs no barrier.
template <int kCount, int kRowBytes, int kThreads>
__device__ inline void round_copied(uint32_t to) {
    constexpr int kPieces = kRowBytes / 16, kSweep = kThreads / kPieces;
    const uint32_t at = to + place<kRowBytes>(threadIdx.x / kPieces, threadIdx.x % kPieces);
#pragma unroll
    for (int i = 0; i < kCount; i += kSweep) {
        const uint4 x = load_shared(at + i * kRowBytes);
        store_shared(at + i * kRowBytes,
                     make_uint4(round_to_tf32(x.x), round_to_tf32(x.y), round_to_tf32(x.z), round_to_tf32(x.w)));
    }
}

/// Products of one channel with rows row, row + 1, row + 8, row + 9, ... that come after all before them.
template <int kColumns>
__device__ inline void take(LinearMaxBest& best, const float (&d)[kColumns][4], int half, uint32_t row) {
    const bool was_number = best.value == best.value;
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const float x = d[j][2 * half + e];
            if (x > best.value) best.row = row + 8 * j + e;
            best.value = larger_or_nan(best.value, x);
        }
    if (was_number && best.value != best.value) {  // hardly ever: which was the first?
#pragma unroll
        for (int j = kColumns - 1; j >= 0; --j)
#pragma unroll
            for (int e = 1; e >= 0; --e)
                if (d[j][2 * half + e] != d[j][2 * half + e]) best.row = row + 8 * j + e;
    }
}
#endif

template <DType kType, int kRowBytes>
__global__ void __launch_bounds__(Shape<kType, kRowBytes>::kThreads, Shape<kType, kRowBytes>::kBlocks)
    linear_max_kernel(const __grid_constant__ Arguments a) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    using S = Shape<kType, kRowBytes>;
    constexpr int kRows = S::kRows, kSteps = kRowBytes / 32;
    constexpr int kColumns = 4;  // of 8 rows each, multiplied at a time
    extern __shared__ __align__(128) std::byte shared[];
    const uint32_t room = address_in_shared(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    const int64_t cloud = blockIdx.x / a.channel_blocks;
    const int first_channel = static_cast<int>(blockIdx.x % a.channel_blocks) * kBlockChannels;
    const int64_t begin = a.batch.begin(cloud);
    const auto n = static_cast<uint32_t>(a.batch.end(cloud) - begin);
    const uint32_t tiles = (n + kRows - 1) / kRows, tiles_of_part = (tiles + gridDim.y - 1) / gridDim.y;
    const uint32_t first_tile = min(blockIdx.y * tiles_of_part, tiles);
    const uint32_t last_tile = min(first_tile + tiles_of_part, tiles);
    const int64_t result = (blockIdx.y * a.batch.clouds + cloud) * a.channels;
    if (first_tile == last_tile) {
        const int channel = first_channel + static_cast<int>(threadIdx.x);
        if (threadIdx.x < kBlockChannels && channel < a.channels) {
            a.largest[result + channel] = -INFINITY;
            a.winners[result + channel] = -1;
        }
        return;
    }

    // The weight, into registers. Of the last block's channels half may not be there: whole warps then only copy.
    const int warp_channel = first_channel + warp * (16 * S::kSlices);
    const bool is_active = warp_channel < a.channels;
    copy_rows<kBlockChannels, kRowBytes, S::kThreads>(room, a.weight, a.row_bytes, first_channel, a.channels - 1);
    wait_for_copies();
    __syncthreads();
    uint32_t weight[S::kSlices][kSteps][4];
    if (is_active) {
#pragma unroll
        for (int slice = 0; slice < S::kSlices; ++slice)
#pragma unroll
            for (int step = 0; step < kSteps; ++step) {
                const uint32_t row = (warp * S::kSlices + slice) * 16 + lane % 16;
                load_matrices(weight[slice][step], room + place<kRowBytes>(row, 2 * step + lane / 16));
                if constexpr (S::kIsTf32)
                    for (uint32_t& word : weight[slice][step]) word = round_to_tf32(word);
            }
    }
    __syncthreads();

    const std::byte* const rows = a.rows + begin * a.row_bytes;
    const auto fetch = [&](uint32_t tile) {
        copy_rows<kRows, kRowBytes, S::kThreads>(room + (tile - first_tile) % 2 * S::kTileBytes, rows, a.row_bytes,
                                                 tile * kRows, n - 1);
    };
    fetch(first_tile);

    // Where a lane's row of 64 bytes of eight rows is, in the first and in the second half of every 128.
    const uint32_t near = place<kRowBytes>(lane % 8, lane / 8), far = near ^ 64;
    const uint32_t lane_row = lane % 4 * 2;
    LinearMaxBest best[S::kSlices][2];
#pragma unroll
    for (int slice = 0; slice < S::kSlices; ++slice)
#pragma unroll
        for (int half = 0; half < 2; ++half) best[slice][half] = {-INFINITY, first_tile * kRows + lane_row};

#pragma unroll 1
    for (uint32_t tile = first_tile; tile < last_tile; ++tile) {
        const uint32_t there = room + (tile - first_tile) % 2 * S::kTileBytes;
        wait_for_copies();
        if constexpr (S::kIsTf32) round_copied<kRows, kRowBytes, S::kThreads>(there);
        __syncthreads();  // this tile has come, and all are done with the one before it, whose room the next one takes
        if (tile + 1 < last_tile) fetch(tile + 1);
        if (!is_active) continue;
        const uint32_t tile_row = tile * kRows, tile_rows = min(n - tile_row, static_cast<uint32_t>(kRows));
#pragma unroll 1
        for (uint32_t column = 0; column < tile_rows; column += 8 * kColumns) {
            float d[S::kSlices][kColumns][4] = {};
#pragma unroll
            for (int step = 0; step < kSteps; step += 2) {
                uint32_t b[kColumns][4];
#pragma unroll
                for (int j = 0; j < kColumns; ++j)
                    load_matrices(b[j],
                                  there + (column + 8 * j) * kRowBytes + (step % 4 == 0 ? near : far) + step / 4 * 128);
#pragma unroll
                for (int next = 0; next < 2; ++next)
#pragma unroll
                    for (int j = 0; j < kColumns; ++j)
#pragma unroll
                        for (int slice = 0; slice < S::kSlices; ++slice)
                            add_product<kType>(d[slice][j], weight[slice][step + next], b[j][2 * next],
                                               b[j][2 * next + 1]);
            }
#pragma unroll
            for (int slice = 0; slice < S::kSlices; ++slice)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    take(best[slice][half], d[slice], half, tile_row + column + lane_row);
        }
    }

    if (!is_active) return;
#pragma unroll
    for (int slice = 0; slice < S::kSlices; ++slice)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            LinearMaxBest one = best[slice][half];
#pragma unroll
            for (int step = 1; step <= 2; ++step) {  // the four lanes that have the same channels
                const LinearMaxBest other = {__shfl_xor_sync(kAllLanes, one.value, step),
                                             __shfl_xor_sync(kAllLanes, one.row, step)};
                if (is_before(other, one)) one = other;
            }
            if (lane % 4 != 0) continue;
            const int64_t at = result + warp_channel + slice * 16 + half * 8 + lane / 4;
            a.largest[at] = one.value;
            a.winners[at] = static_cast<int32_t>(min(one.row, n - 1));
        }
#else
    __trap();  // never launched, unless a build for older GPUs alone runs on a newer one
#endif
}

/// The parts of a cloud, in their order. One thread for each result.
__global__ void combine_parts(const float* values, const int32_t* rows, int parts, int64_t results, float* largest,
                              int32_t* winners) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= results) return;
    LinearMaxBest best = {values[i], static_cast<uint32_t>(rows[i])};
    for (int part = 1; part < parts; ++part) {
        const int64_t at = part * results + i;
        const LinearMaxBest one = {values[at],
                                   static_cast<uint32_t>(rows[at])};  // that of an empty part is before none
        if (is_before(one, best)) best = one;
    }
    largest[i] = best.value;
    winners[i] = static_cast<int32_t>(best.row);
}

template <DType kType, int kRowBytes>
void launch(Arguments a, int64_t largest_cloud, cudaStream_t stream) {
    using S = Shape<kType, kRowBytes>;
    int device = 0, units = 0;
    STIPPLE_CHECK_CUDA(cudaGetDevice(&device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device));
    STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(linear_max_kernel<kType, kRowBytes>,
                                            cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes));
    STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(linear_max_kernel<kType, kRowBytes>,
                                            cudaFuncAttributePreferredSharedMemoryCarveout,
                                            cudaSharedmemCarveoutMaxShared));
    const int64_t blocks = a.batch.clouds * a.channel_blocks, tiles = (largest_cloud + S::kRows - 1) / S::kRows;
    const int64_t parts = std::clamp<int64_t>(S::kBlocks * units / blocks, 1, std::max<int64_t>(tiles, 1));
    const int64_t results = a.batch.clouds * a.channels;
    Scratch<float> values;
    Scratch<int32_t> rows;
    float* const largest = a.largest;
    int32_t* const winners = a.winners;
    if (parts > 1) {
        values = Scratch<float>(parts * results, stream);
        rows = Scratch<int32_t>(parts * results, stream);
        a.largest = values.get(), a.winners = rows.get();
    }
    linear_max_kernel<kType, kRowBytes>
        <<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(parts)), S::kThreads, S::kBytes, stream>>>(a);
    STIPPLE_CHECK_LAUNCH(linear_max_kernel);
    if (parts == 1) return;
    combine_parts<<<blocks_for(results, 256), 256, 0, stream>>>(a.largest, a.winners, static_cast<int>(parts), results,
                                                                largest, winners);
    STIPPLE_CHECK_LAUNCH(combine_parts);
}

}  // namespace

bool has_linear_max() {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) {
        cudaGetLastError();  // no device, no driver: asked, and answered
        return false;
    }
    return compute_major(device) >= 8;
}

void linear_max(const MatrixView& rows, const Batch& batch, const MatrixView& weight, View<float, 2> largest,
                View<int32_t, 2> winners, Stream stream) {
    const CurrentDevice current(rows.device);
    STIPPLE_REQUIRE(compute_major(rows.device.index) >= 8, "linear_max: {} is older than sm_80", rows.device);
    const UploadedBatch uploaded(batch, raw(stream));
    Arguments a = {};
    a.rows = static_cast<const std::byte*>(rows.data);
    a.weight = static_cast<const std::byte*>(weight.data);
    a.batch = uploaded.view();
    a.row_bytes = static_cast<int>(rows.columns * size_of(rows.dtype));
    a.channels = static_cast<int>(weight.rows);
    a.channel_blocks = (a.channels + kBlockChannels - 1) / kBlockChannels;
    a.largest = largest.data();
    a.winners = winners.data();
    const bool is_narrow = rows.columns <= 64;
    switch (rows.dtype) {
        case DType::f16:
            return is_narrow ? launch<DType::f16, 128>(a, batch.largest(), raw(stream))
                             : launch<DType::f16, 256>(a, batch.largest(), raw(stream));
        case DType::bf16:
            return is_narrow ? launch<DType::bf16, 128>(a, batch.largest(), raw(stream))
                             : launch<DType::bf16, 256>(a, batch.largest(), raw(stream));
        default:
            return is_narrow ? launch<DType::f32, 256>(a, batch.largest(), raw(stream))
                             : launch<DType::f32, 512>(a, batch.largest(), raw(stream));
    }
}

}  // namespace stipple::ops::cuda
