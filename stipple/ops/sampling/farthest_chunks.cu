// The chunks of farthest_chunks.h, in the order of a space-filling curve.

#include "stipple/ops/common/radix_sort.h"
#include "stipple/ops/sampling/farthest_chunks.h"
#include "stipple/ops/space_curve.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kAxisBits = 16;  // of the curve, fewer in batches of more than 2^16 clouds

__device__ bool is_finite(float x, float y, float z) {
    return isfinite(x) && isfinite(y) && isfinite(z);
}

/// Floats as unsigned integers of the same order; 0 is below all of them.
__device__ uint32_t ordered(float value) {
    const uint32_t bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ float from_ordered(uint32_t value) {
    return __uint_as_float(value & 0x80000000u ? value & 0x7FFFFFFFu : ~value);
}

/// bounds[cloud]: ordered -low and high of each axis, maxima (0 at first), so atomics give the same in any order.
/// `slices` blocks for each cloud.
__global__ void find_bounds(FarthestTask task, int slices, uint32_t* bounds) {
    __shared__ uint32_t block_bounds[6];
    const int64_t cloud = blockIdx.x / slices, begin = task.points.begin(cloud), end = task.points.end(cloud);
    if (threadIdx.x < 6) block_bounds[threadIdx.x] = 0;
    __syncthreads();
    uint32_t own[6] = {};
    for (int64_t row = begin + int64_t{blockIdx.x % slices} * blockDim.x + threadIdx.x; row < end;
         row += int64_t{slices} * blockDim.x) {
        const float* p = task.rows + row * task.row_stride;
        if (!is_finite(p[0], p[1], p[2])) continue;
        for (int axis = 0; axis < 3; ++axis) {
            own[axis] = max(own[axis], ordered(-p[axis]));
            own[3 + axis] = max(own[3 + axis], ordered(p[axis]));
        }
    }
    for (int i = 0; i < 6; ++i) atomicMax(block_bounds + i, own[i]);
    __syncthreads();
    if (threadIdx.x < 6) atomicMax(bounds + 6 * cloud + threadIdx.x, block_bounds[threadIdx.x]);
}

/// The cloud, then the place on the curve. A coarse place costs time, never a wrong sample.
__global__ void find_keys(FarthestTask task, const uint32_t* bounds, int axis_bits, uint64_t* keys, int32_t* indices) {
    const int64_t step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < task.points.rows; row += step) {
        const int64_t cloud = task.points.cloud_of(row);
        const float* p = task.rows + row * task.row_stride;
        const uint64_t last = (uint64_t{1} << axis_bits) - 1;
        uint64_t place = (uint64_t{1} << 3 * axis_bits) - 1;  // non-finite points come last
        if (is_finite(p[0], p[1], p[2])) {
            double low[3], extent = 0;
            for (int axis = 0; axis < 3; ++axis) {
                low[axis] = -static_cast<double>(from_ordered(bounds[6 * cloud + axis]));
                extent = fmax(extent, from_ordered(bounds[6 * cloud + 3 + axis]) - low[axis]);
            }
            place = 0;
            for (int axis = 0; axis < 3 && extent > 0; ++axis) {
                const auto cell = static_cast<uint64_t>((p[axis] - low[axis]) / extent * static_cast<double>(last + 1));
                place |= spread_bits(static_cast<uint32_t>(min(cell, last))) << axis;
            }
        }
        keys[row] = static_cast<uint64_t>(cloud) << 3 * axis_bits | place;
        indices[row] = static_cast<int32_t>(row - task.points.begin(cloud));
    }
}

/// One block for each chunk: its points by index (the rank is counted, 256 comparisons a point), its box.
__global__ void __launch_bounds__(kChunk) fill_chunks(FarthestTask task, const int32_t* sorted_indices, Chunks chunks) {
    __shared__ int32_t all[kChunk];
    __shared__ uint32_t box[6];
    __shared__ int32_t best_slot, best_index;
    const int thread = static_cast<int>(threadIdx.x);
    for (int64_t chunk = blockIdx.x; chunk < chunks.count; chunk += gridDim.x) {
        const int64_t cloud = chunks.batch.cloud_of(chunk), begin = task.points.begin(cloud);
        const int64_t first = (chunk - chunks.batch.begin(cloud)) * kChunk;  // position in the cloud
        const int count = static_cast<int>(min(int64_t{kChunk}, task.points.end(cloud) - begin - first));
        const int32_t index = thread < count ? sorted_indices[begin + first + thread] : kNoIndex;
        all[thread] = index;
        if (thread < 6) box[thread] = 0;
        if (thread == 0) best_slot = kChunk, best_index = kNoIndex;
        __syncthreads();
        int rank = thread;  // places beyond the points stay where they are
        if (thread < count) {
            rank = 0;
            for (int i = 0; i < count; ++i) rank += all[i] < index;
        }
        float p[3] = {};
        bool there = thread < count;
        if (there) {
            for (int axis = 0; axis < 3; ++axis) p[axis] = task.rows[(begin + index) * task.row_stride + axis];
            there = is_finite(p[0], p[1], p[2]);
            chunks.position[begin + index] = static_cast<int32_t>(first) + rank;
        }
        if (there) {
            for (int axis = 0; axis < 3; ++axis) {
                atomicMax(box + axis, ordered(-p[axis]));
                atomicMax(box + 3 + axis, ordered(p[axis]));
            }
            atomicMin(&best_slot, rank);
            atomicMin(&best_index, index);
        }
        const int64_t at = chunk * kChunk + rank;
        chunks.x[at] = there ? p[0] : 0.0f;
        chunks.y[at] = there ? p[1] : 0.0f;
        chunks.z[at] = there ? p[2] : 0.0f;
        chunks.key[at] = there ? __float_as_int(INFINITY) : kChosen;
        chunks.index[at] = index;
        __syncthreads();
        const bool any = best_slot < kChunk;
        if (thread < 6) {
            const float side = any ? from_ordered(box[thread]) : 0.0f;
            chunks.box[thread * chunks.count + chunk] = thread < 3 ? -side : side;
        }
        if (thread == 0) {
            chunks.best_key[chunk] = any ? __float_as_int(INFINITY) : kChosen;
            chunks.best_index[chunk] = best_index;
            chunks.best_slot[chunk] = any ? best_slot : 0;
        }
        __syncthreads();
    }
}

Batch chunks_of(const Batch& points) {
    if (points.is_dense()) return Batch::dense(points.clouds(), (points.largest() + kChunk - 1) / kChunk);
    std::vector<int64_t> offsets = {0};
    offsets.reserve(points.offsets().size());
    for (int64_t cloud = 0; cloud < points.clouds(); ++cloud)
        offsets.push_back(offsets.back() + (points.size(cloud) + kChunk - 1) / kChunk);
    return Batch::ragged(std::move(offsets));
}

}  // namespace

ChunkMemory::ChunkMemory(const FarthestTask& task, const Batch& points, cudaStream_t stream)
    : batch_(chunks_of(points)),
      uploaded_(batch_, stream),
      coordinates_(checked_mul(batch_.rows(), 3 * kChunk + 6), stream),
      integers_(checked_mul(batch_.rows(), 2 * kChunk + 3), stream),
      position_(points.rows(), stream) {
    const int64_t rows = points.rows(), n_chunks = batch_.rows();
    chunks_.batch = uploaded_.view();
    chunks_.count = n_chunks;
    chunks_.x = coordinates_.get();
    chunks_.y = chunks_.x + n_chunks * kChunk;
    chunks_.z = chunks_.y + n_chunks * kChunk;
    chunks_.box = chunks_.z + n_chunks * kChunk;
    chunks_.key = integers_.get();
    chunks_.index = chunks_.key + n_chunks * kChunk;
    chunks_.best_key = chunks_.index + n_chunks * kChunk;
    chunks_.best_index = chunks_.best_key + n_chunks;
    chunks_.best_slot = chunks_.best_index + n_chunks;
    chunks_.position = position_.get();

    constexpr int kThreads = 256;
    const Scratch<uint32_t> bounds(6 * points.clouds(), stream);
    STIPPLE_CHECK_CUDA(cudaMemsetAsync(bounds.get(), 0, bounds.count() * sizeof(uint32_t), stream));
    const int slices = static_cast<int>(std::clamp<int64_t>(512 / points.clouds(), 1, 256));
    find_bounds<<<static_cast<unsigned>(points.clouds() * slices), kThreads, 0, stream>>>(task, slices, bounds.get());
    STIPPLE_CHECK_LAUNCH(find_bounds);

    int cloud_bits = 0;
    while ((points.clouds() - 1) >> cloud_bits != 0) ++cloud_bits;
    const int axis_bits = std::min(kAxisBits, (64 - cloud_bits) / 3);
    const Scratch<uint64_t> keys(rows, stream), sorted_keys(rows, stream);
    const Scratch<int32_t> indices(rows, stream), sorted_indices(rows, stream);
    find_keys<<<blocks_for(std::min<int64_t>(rows, 1 << 22), kThreads), kThreads, 0, stream>>>(
        task, bounds.get(), axis_bits, keys.get(), indices.get());
    STIPPLE_CHECK_LAUNCH(find_keys);
    sort_pairs(keys.get(), sorted_keys.get(), indices.get(), sorted_indices.get(), rows, cloud_bits + 3 * axis_bits,
               stream);
    fill_chunks<<<static_cast<unsigned>(std::min<int64_t>(n_chunks, 1 << 20)), kChunk, 0, stream>>>(
        task, sorted_indices.get(), chunks_);
    STIPPLE_CHECK_LAUNCH(fill_chunks);
}

}  // namespace stipple::ops::cuda
