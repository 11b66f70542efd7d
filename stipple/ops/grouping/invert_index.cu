#include <bit>
#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/invert_index.h"

namespace stipple::ops::cuda {
namespace {

/// Where the first `count` ascending keys reach `wanted`.
__device__ int lower_bound(const uint32_t* keys, int count, uint32_t wanted) {
    int low = 0;
    while (count > 0) {
        const int half = count / 2;
        if (keys[low + half] < wanted) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

constexpr int kPositionBits = 13;  // of a packed key: row number above, entry number below
constexpr int kSmallEntries = 1 << kPositionBits;
constexpr int64_t kSmallRows = (int64_t{1} << (32 - kPositionBits)) - 2;

/// One block a cloud: packs (row, entry) into one word, sorts the block's words by row in shared memory and finds the
/// rows' ranges by bisection. Reads the indices once, writes every output once.
template <int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads)
    invert_small(const int32_t* __restrict__ indices, int64_t k, DeviceBatch entries, DeviceBatch rows,
                 int32_t* __restrict__ ranges, int32_t* __restrict__ positions) {
    using Sort = cub::BlockRadixSort<uint32_t, kThreads, kItems>;
    union Shared {
        typename Sort::TempStorage sort;
        uint32_t keys[kThreads * kItems];
    };
    __shared__ Shared shared;

    const int64_t cloud = blockIdx.x;
    const int first = static_cast<int>(entries.begin(cloud) * k);
    const int count = static_cast<int>(entries.end(cloud) * k) - first;
    const int64_t first_row = rows.begin(cloud);
    const int n = static_cast<int>(rows.end(cloud) - first_row);

    uint32_t keys[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
        const int e = static_cast<int>(threadIdx.x) * kItems + i;
        keys[i] = ~0u;  // padding: after the entries that name no row
        if (e < count) {
            const int32_t index = indices[first + e];
            keys[i] = static_cast<uint32_t>(names_row(index, n) ? index : n) << kPositionBits | e;
        }
    }
    // Stable, so only the bits of the row are sorted; as many as tell n (missing) from n + 1 (padding).
    const int bits = 32 - __clz(n + 1);
    Sort(shared.sort).SortBlockedToStriped(keys, kPositionBits, kPositionBits + bits);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
        const int at = i * kThreads + static_cast<int>(threadIdx.x);
        shared.keys[at] = keys[i];
        if (at < count) positions[first + at] = first + static_cast<int>(keys[i] & (kSmallEntries - 1));
    }
    __syncthreads();
    for (int row = static_cast<int>(threadIdx.x); row <= n; row += kThreads) {
        const int begin = first + lower_bound(shared.keys, count, static_cast<uint32_t>(row) << kPositionBits);
        if (row < n) ranges[2 * (first_row + row)] = begin;
        if (row > 0) ranges[2 * (first_row + row) - 1] = begin;
    }
}

/// Keys that ascend by cloud, then row, one more than its rows for each cloud: the entries that name none.
__global__ void make_keys(const int32_t* __restrict__ indices, int64_t k, int count, DeviceBatch entries,
                          DeviceBatch rows, uint32_t* __restrict__ keys, int32_t* __restrict__ values) {
    const int64_t e = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (e >= count) return;
    const int64_t cloud = entries.cloud_of(e / k), first = rows.begin(cloud), n = rows.end(cloud) - first;
    const int32_t index = indices[e];
    keys[e] = static_cast<uint32_t>(first + cloud + (names_row(index, n) ? index : n));
    values[e] = static_cast<int32_t>(e);
}

/// A thread for each row: bisection for the begin, strides that double for the end, which is near.
__global__ void find_ranges(const uint32_t* __restrict__ keys, int count, DeviceBatch rows,
                            int32_t* __restrict__ ranges) {
    const int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (row >= rows.rows) return;
    const uint32_t key = static_cast<uint32_t>(row + rows.cloud_of(row));
    const int begin = lower_bound(keys, count, key);
    int low = begin;
    int64_t stride = 1;
    while (low + stride <= count && keys[low + stride - 1] <= key) {
        low += static_cast<int>(stride);
        stride *= 2;
    }
    const int64_t rest = count - low < stride ? count - low : stride;
    ranges[2 * row] = begin;
    ranges[2 * row + 1] = low + lower_bound(keys + low, static_cast<int>(rest), key + 1);
}

template <int kThreads, int kItems>
void launch_small(const Neighbours& neighbours, const DeviceBatch& entries, const DeviceBatch& rows,
                  View<int32_t, 2> ranges, View<int32_t, 1> positions, cudaStream_t stream) {
    invert_small<kThreads, kItems><<<static_cast<unsigned>(rows.clouds), kThreads, 0, stream>>>(
        neighbours.indices.data(), neighbours.k(), entries, rows, ranges.data(), positions.data());
    STIPPLE_CHECK_LAUNCH(invert_small);
}

}  // namespace

void invert_index(const Neighbours& neighbours, const Batch& rows, View<int32_t, 2> ranges, View<int32_t, 1> positions,
                  Stream stream_of_call) {
    const CurrentDevice current(neighbours.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedBatch entry_batch(neighbours.batch, stream), row_batch(rows, stream);
    const DeviceBatch &entries = entry_batch.view(), &targets = row_batch.view();

    const int64_t largest = neighbours.batch.largest() * neighbours.k();
    if (largest <= kSmallEntries && rows.largest() <= kSmallRows) {
        if (largest <= 1024) return launch_small<256, 4>(neighbours, entries, targets, ranges, positions, stream);
        if (largest <= 2048) return launch_small<512, 4>(neighbours, entries, targets, ranges, positions, stream);
        if (largest <= 4096) return launch_small<512, 8>(neighbours, entries, targets, ranges, positions, stream);
        return launch_small<1024, 8>(neighbours, entries, targets, ranges, positions, stream);
    }

    constexpr int kThreads = 256;
    const int count = static_cast<int>(neighbours.entries());
    const Scratch<uint32_t> keys(count, stream), sorted(count, stream);
    const Scratch<int32_t> values(count, stream);
    if (count > 0) {
        make_keys<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(
            neighbours.indices.data(), neighbours.k(), count, entries, targets, keys.get(), values.get());
        STIPPLE_CHECK_LAUNCH(make_keys);
    }

    const int bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(rows.rows() + rows.clouds())));
    size_t bytes = 0;
    STIPPLE_CHECK_CUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys.get(), sorted.get(), values.get(),
                                                       positions.data(), count, 0, bits, stream));
    const Scratch<char> temporary(static_cast<int64_t>(bytes), stream);
    STIPPLE_CHECK_CUDA(cub::DeviceRadixSort::SortPairs(temporary.get(), bytes, keys.get(), sorted.get(), values.get(),
                                                       positions.data(), count, 0, bits, stream));
    if (rows.rows() == 0) return;
    find_ranges<<<blocks_for(rows.rows(), kThreads), kThreads, 0, stream>>>(sorted.get(), count, targets,
                                                                            ranges.data());
    STIPPLE_CHECK_LAUNCH(find_ranges);
}

}  // namespace stipple::ops::cuda
