#include <cub/device/device_radix_sort.cuh>

#include "stipple/ops/emd_auction.h"
#include "stipple/ops/emd_order.h"

namespace stipple::ops::cuda {
namespace {

using assignment::Extent;

constexpr int kBoxThreads = 512, kRowThreads = 256;

/// Rows of a, then rows of b, of all pairs of clouds.
struct Pairs {
    const float *a, *b;
    int64_t stride_a, stride_b;
    DeviceBatch batch;

    __device__ const float* row(int side, int64_t row) const {
        return side == 0 ? a + row * stride_a : b + row * stride_b;
    }
};

/// A block for each pair. Points that are not finite may give any box: their pair is not solved.
__global__ void __launch_bounds__(kBoxThreads) emd_box_kernel(const Pairs pairs, Extent* boxes) {
    __shared__ Extent parts[kBoxThreads / 32];
    const int64_t cloud = blockIdx.x, begin = pairs.batch.begin(cloud), end = pairs.batch.end(cloud);
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
    for (int64_t row = begin + threadIdx.x; row < end; row += kBoxThreads)
        for (int side = 0; side < 2; ++side) include(pairs.row(side, row), pairs.row(side, row));
    reduce();
    if (lane == 0) parts[warp] = box;
    __syncthreads();
    if (warp > 0) return;
    if (lane < kBoxThreads / 32) include(parts[lane].low, parts[lane].high);
    reduce();
    if (lane == 0) boxes[cloud] = box;
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

/// The sort has left every cloud where it was.
__global__ void __launch_bounds__(kRowThreads) emd_gather_kernel(const Pairs pairs, const int32_t* order, float* out) {
    const int64_t at = int64_t{blockIdx.x} * kRowThreads + threadIdx.x, rows = pairs.batch.rows;
    if (at >= 2 * rows) return;
    const int side = at >= rows;
    const int64_t cloud = pairs.batch.cloud_of(at - side * rows);
    const float* row = pairs.row(side, pairs.batch.begin(cloud) + order[at]);
    for (int axis = 0; axis < 3; ++axis) out[3 * at + axis] = row[axis];
}

__global__ void __launch_bounds__(kRowThreads)
    emd_translate_kernel(const DeviceBatch batch, const int32_t* order, const int32_t* from, int32_t* to) {
    const int64_t at = int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
    if (at >= batch.rows) return;
    const int64_t begin = batch.begin(batch.cloud_of(at));
    const int32_t partner = from[at];
    to[begin + order[at]] = partner < 0 ? -1 : order[batch.rows + begin + partner];
}

}  // namespace

OrderedPairs::OrderedPairs(const Clouds& a, const Clouds& b, const DeviceBatch& batch, cudaStream_t stream)
    : batch_(batch),
      stream_(stream),
      points_(checked_mul(batch.rows, 6), stream),
      order_(2 * batch.rows, stream),
      matching_(batch.rows, stream) {
    const int64_t count = 2 * batch.rows;
    if (count == 0) return;
    const Pairs pairs = {a.rows.data(), b.rows.data(), a.rows.stride(0), b.rows.stride(0), batch};
    const Scratch<Extent> boxes(batch.clouds, stream);
    const Scratch<uint64_t> keys(2 * count, stream);
    const Scratch<int32_t> indices(count, stream);
    emd_box_kernel<<<static_cast<unsigned>(batch.clouds), kBoxThreads, 0, stream>>>(pairs, boxes.get());
    STIPPLE_CHECK_LAUNCH(emd_box_kernel);
    const unsigned blocks = blocks_for(count, kRowThreads);
    emd_key_kernel<<<blocks, kRowThreads, 0, stream>>>(pairs, boxes.get(), keys.get(), indices.get());
    STIPPLE_CHECK_LAUNCH(emd_key_kernel);
    int bits = assignment::kCurveBits;
    while (bits < 63 && (2 * batch.clouds - 1) >> (bits - assignment::kCurveBits) != 0) ++bits;
    const auto sort = [&](void* memory, size_t& bytes) {  // stable
        STIPPLE_CHECK_CUDA(cub::DeviceRadixSort::SortPairs(memory, bytes, keys.get(), keys.get() + count, indices.get(),
                                                           order_.get(), count, 0, bits, stream));
    };
    size_t bytes = 0;
    sort(nullptr, bytes);
    const Scratch<std::byte> scratch(static_cast<int64_t>(bytes), stream);
    sort(scratch.get(), bytes);
    emd_gather_kernel<<<blocks, kRowThreads, 0, stream>>>(pairs, order_.get(), points_.get());
    STIPPLE_CHECK_LAUNCH(emd_gather_kernel);
}

void OrderedPairs::translate(int32_t* matching) const {
    if (batch_.rows == 0) return;
    emd_translate_kernel<<<blocks_for(batch_.rows, kRowThreads), kRowThreads, 0, stream_>>>(batch_, order_.get(),
                                                                                            matching_.get(), matching);
    STIPPLE_CHECK_LAUNCH(emd_translate_kernel);
}

}  // namespace stipple::ops::cuda
