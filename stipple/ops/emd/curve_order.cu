#include <cub/block/block_radix_sort.cuh>

#include "stipple/ops/common/radix_sort.h"
#include "stipple/ops/emd/auction.h"
#include "stipple/ops/emd/curve_order.h"

namespace stipple::ops::cuda {
namespace {

using assignment::Extent;

constexpr int kBoxThreads = 512, kRowThreads = 256, kSortThreads = 1024;

/// Rows of a, then rows of b, of all pairs of clouds.
struct Pairs {
    const float *a, *b;
    int64_t stride_a, stride_b;
    DeviceBatch batch;

    __device__ const float* row(int side, int64_t row) const {
        return side == 0 ? a + row * stride_a : b + row * stride_b;
    }
};

/// Of a, then of b: the sorted points, their keys, and the index that each had in its cloud.
struct Ordered {
    float* points;
    uint32_t* keys;
    int32_t* order;
};

/// The common box of a pair of clouds, by a whole block. Non-finite points may give any box: their pair is not solved.
template <int kThreads>
__device__ Extent box_of(const Pairs& pairs, int64_t cloud) {
    __shared__ Extent parts[kThreads / 32];
    const int64_t begin = pairs.batch.begin(cloud), end = pairs.batch.end(cloud);
    const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    Extent box;
    for (int axis = 0; axis < 3; ++axis) box.low[axis] = INFINITY, box.high[axis] = -INFINITY;
    const auto include = [&](const float* low, const float* high) {
        for (int axis = 0; axis < 3; ++axis) {
            box.low[axis] = fminf(box.low[axis], low[axis]);
            box.high[axis] = fmaxf(box.high[axis], high[axis]);
        }
    };
    const auto reduce = [&] {
        for (int step = 16; step > 0; step /= 2) {
            for (int axis = 0; axis < 3; ++axis) {
                box.low[axis] = fminf(box.low[axis], __shfl_xor_sync(0xffffffffu, box.low[axis], step));
                box.high[axis] = fmaxf(box.high[axis], __shfl_xor_sync(0xffffffffu, box.high[axis], step));
            }
        }
    };
    for (int64_t row = begin + threadIdx.x; row < end; row += kThreads)
        for (int side = 0; side < 2; ++side) include(pairs.row(side, row), pairs.row(side, row));
    reduce();
    if (lane == 0) parts[warp] = box;
    __syncthreads();
    if (lane < kThreads / 32) include(parts[lane].low, parts[lane].high);
    reduce();
    return box;
}

/// A block for each cloud of no more than kSortThreads * kItems points, of a and b in turn.
template <int kItems>
__global__ void __launch_bounds__(kSortThreads) emd_sort_kernel(const Pairs pairs, const Ordered ordered) {
    using Sort = cub::BlockRadixSort<uint32_t, kSortThreads, kItems, int32_t>;
    __shared__ typename Sort::TempStorage memory;
    constexpr uint32_t kAfterAll = 1u << assignment::kCurveBits;
    const int side = static_cast<int>(blockIdx.x % 2);
    const int64_t cloud = blockIdx.x / 2, begin = pairs.batch.begin(cloud), n = pairs.batch.end(cloud) - begin;
    const Extent box = box_of<kSortThreads>(pairs, cloud);
    const float scale = ldexpf(1.0f, assignment::scale_shift(box));
    uint32_t keys[kItems];
    int32_t rows[kItems];
    const int first = static_cast<int>(threadIdx.x) * kItems;
    for (int k = 0; k < kItems; ++k) {
        rows[k] = first + k;
        keys[k] = rows[k] < n ? assignment::curve_key(pairs.row(side, begin + rows[k]), box, scale) : kAfterAll;
    }
    Sort(memory).Sort(keys, rows, 0, assignment::kCurveBits + 1);  // stable
    for (int k = 0; k < kItems; ++k) {
        if (first + k >= n) continue;
        const int64_t at = side * pairs.batch.rows + begin + first + k;
        const float* row = pairs.row(side, begin + rows[k]);
        ordered.order[at] = rows[k];
        ordered.keys[at] = keys[k];
        for (int axis = 0; axis < 3; ++axis) ordered.points[3 * at + axis] = row[axis];
    }
}

/// A block for each pair.
__global__ void __launch_bounds__(kBoxThreads) emd_box_kernel(const Pairs pairs, Extent* boxes) {
    const Extent box = box_of<kBoxThreads>(pairs, blockIdx.x);
    if (threadIdx.x == 0) boxes[blockIdx.x] = box;
}

__global__ void __launch_bounds__(kRowThreads)
    emd_key_kernel(const Pairs pairs, const Extent* boxes, uint64_t* keys, int32_t* indices) {
    const int64_t at = int64_t{blockIdx.x} * kRowThreads + threadIdx.x, rows = pairs.batch.rows;
    if (at >= 2 * rows) return;
    const int side = at >= rows;
    const int64_t row = at - side * rows, cloud = pairs.batch.cloud_of(row);
    const Extent box = boxes[cloud];
    const float scale = ldexpf(1.0f, assignment::scale_shift(box));
    keys[at] = static_cast<uint64_t>(side * pairs.batch.clouds + cloud) << assignment::kCurveBits |
               assignment::curve_key(pairs.row(side, row), box, scale);
    indices[at] = static_cast<int32_t>(row - pairs.batch.begin(cloud));
}

/// The cloud number is in the high bits of the key, so every cloud is still where it was.
__global__ void __launch_bounds__(kRowThreads)
    emd_gather_kernel(const Pairs pairs, const uint64_t* keys, const Ordered ordered) {
    const int64_t at = int64_t{blockIdx.x} * kRowThreads + threadIdx.x, rows = pairs.batch.rows;
    if (at >= 2 * rows) return;
    const int side = at >= rows;
    const int64_t cloud = pairs.batch.cloud_of(at - side * rows);
    const float* row = pairs.row(side, pairs.batch.begin(cloud) + ordered.order[at]);
    ordered.keys[at] = static_cast<uint32_t>(keys[at] & ((1u << assignment::kCurveBits) - 1));
    for (int axis = 0; axis < 3; ++axis) ordered.points[3 * at + axis] = row[axis];
}

__global__ void __launch_bounds__(kRowThreads)
    emd_translate_kernel(const DeviceBatch batch, const int32_t* order, const int32_t* from, int32_t* to) {
    const int64_t at = int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
    if (at >= batch.rows) return;
    const int64_t begin = batch.begin(batch.cloud_of(at));
    const int32_t partner = from[at];
    to[begin + order[at]] = partner < 0 ? -1 : order[batch.rows + begin + partner];
}

/// One device-wide sort of all clouds, for clouds too large for a block.
void sort_all(const Pairs& pairs, const Ordered& ordered, cudaStream_t stream) {
    const int64_t clouds = pairs.batch.clouds, count = 2 * pairs.batch.rows;
    const Scratch<Extent> boxes(clouds, stream);
    const Scratch<uint64_t> keys(2 * count, stream);
    const Scratch<int32_t> indices(count, stream);
    emd_box_kernel<<<static_cast<unsigned>(clouds), kBoxThreads, 0, stream>>>(pairs, boxes.get());
    STIPPLE_CHECK_LAUNCH(emd_box_kernel);
    const unsigned blocks = blocks_for(count, kRowThreads);
    emd_key_kernel<<<blocks, kRowThreads, 0, stream>>>(pairs, boxes.get(), keys.get(), indices.get());
    STIPPLE_CHECK_LAUNCH(emd_key_kernel);
    int bits = assignment::kCurveBits;
    while (bits < 63 && (2 * clouds - 1) >> (bits - assignment::kCurveBits) != 0) ++bits;
    sort_pairs(keys.get(), keys.get() + count, indices.get(), ordered.order, count, bits, stream);
    emd_gather_kernel<<<blocks, kRowThreads, 0, stream>>>(pairs, keys.get() + count, ordered);
    STIPPLE_CHECK_LAUNCH(emd_gather_kernel);
}

template <int kItems>
void sort_each(const Pairs& pairs, const Ordered& ordered, cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>(2 * pairs.batch.clouds);
    emd_sort_kernel<kItems><<<blocks, kSortThreads, 0, stream>>>(pairs, ordered);
    STIPPLE_CHECK_LAUNCH(emd_sort_kernel);
}

}  // namespace

OrderedPairs::OrderedPairs(const Clouds& a, const Clouds& b, const DeviceBatch& batch, cudaStream_t stream)
    : batch_(batch),
      stream_(stream),
      points_(checked_mul(batch.rows, 6), stream),
      keys_(2 * batch.rows, stream),
      order_(2 * batch.rows, stream),
      matching_(batch.rows, stream) {
    if (batch.rows == 0) return;
    const Pairs pairs = {a.rows.data(), b.rows.data(), a.rows.stride(0), b.rows.stride(0), batch};
    const int64_t largest = a.batch.largest();
    const auto sort = largest <= 2 * kSortThreads   ? sort_each<2>
                      : largest <= 8 * kSortThreads ? sort_each<8>
                                                    : sort_all;
    sort(pairs, {points_.get(), keys_.get(), order_.get()}, stream);
}

void OrderedPairs::translate(int32_t* matching) const {
    if (batch_.rows == 0) return;
    emd_translate_kernel<<<blocks_for(batch_.rows, kRowThreads), kRowThreads, 0, stream_>>>(batch_, order_.get(),
                                                                                            matching_.get(), matching);
    STIPPLE_CHECK_LAUNCH(emd_translate_kernel);
}

}  // namespace stipple::ops::cuda
