#include <cub/block/block_scan.cuh>

#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/sampling/farthest_cuda.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kFarthestPointSampleThreads = 256;

__device__ bool is_finite(const float* p) {
    return isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]);
}

/// first[point] becomes its first row among the chosen ones of its cloud. Integer minima: any order gives the same.
__global__ void note_first_rows(FarthestTask task, DeviceBatch chosen_batch, const int32_t* chosen, uint32_t* first) {
    const int64_t step = int64_t{gridDim.x} * kFarthestPointSampleThreads;
    for (int64_t row = int64_t{blockIdx.x} * kFarthestPointSampleThreads + threadIdx.x; row < chosen_batch.rows;
         row += step) {
        const int64_t cloud = chosen_batch.cloud_of(row), begin = task.points.begin(cloud);
        const int32_t index = chosen[row];
        if (index >= 0 && index < task.points.end(cloud) - begin)
            atomicMin(first + begin + index, static_cast<uint32_t>(row - chosen_batch.begin(cloud)));
    }
}

/// One block for each cloud: the samples that are given, in front of its output, and their count.
__global__ void __launch_bounds__(kFarthestPointSampleThreads)
    write_given(FarthestTask task, DeviceBatch chosen_batch, const int32_t* chosen, const uint32_t* first,
                int32_t start, int32_t* given_counts) {
    using Scan = cub::BlockScan<int, kFarthestPointSampleThreads>;
    __shared__ typename Scan::TempStorage scratch;
    const int64_t cloud = blockIdx.x, begin = task.points.begin(cloud);
    const int64_t wanted = task.samples.end(cloud) - task.samples.begin(cloud);
    int32_t* out = task.indices + task.samples.begin(cloud);
    int64_t count = 0;
    if (chosen) {
        const int64_t chosen_begin = chosen_batch.begin(cloud), n_chosen = chosen_batch.end(cloud) - chosen_begin;
        for (int64_t base = 0; base < n_chosen && count < wanted; base += kFarthestPointSampleThreads) {
            const int64_t row = base + threadIdx.x;
            const int32_t index = row < n_chosen ? chosen[chosen_begin + row] : -1;
            const bool keep = index >= 0 && index < task.points.end(cloud) - begin && first[begin + index] == row &&
                              is_finite(task.rows + (begin + index) * task.row_stride);
            int before = 0, total = 0;
            Scan(scratch).ExclusiveSum(keep ? 1 : 0, before, total);
            if (keep && count + before < wanted) out[count + before] = index;
            count += total;
            __syncthreads();
        }
    }
    if (threadIdx.x != 0) return;
    count = min(count, wanted);
    if (count == 0 && wanted > 0 && is_finite(task.rows + (begin + start) * task.row_stride)) {
        out[0] = start;
        count = 1;
    }
    given_counts[cloud] = static_cast<int32_t>(count);
}

/// One block for each cloud, thread t with the points 8t to 8t+7 in registers, so the lowest thread with the largest
/// distance has the lowest index. One barrier a sample: a slot that a warp writes for sample s+2 has been read by all
/// before the barrier of s+1.
template <bool kShared>
__global__ void __launch_bounds__(1024) sample_by_block(FarthestTask task) {
    extern __shared__ float shared_points[];  // [n, 3] when kShared
    __shared__ int32_t keys[2][32], indices[2][32];
    const int64_t cloud = blockIdx.x, begin = task.points.begin(cloud);
    const int n = static_cast<int>(task.points.end(cloud) - begin);
    const int64_t sample_begin = task.samples.begin(cloud);
    const int m = static_cast<int>(task.samples.end(cloud) - sample_begin);
    if (m == 0 || task.points.end(cloud) - begin > kBlockPoints) return;
    const int given = task.given_counts[cloud];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int warps = static_cast<int>(blockDim.x) / 32;
    const float* rows = task.rows + begin * task.row_stride;

    if (kShared) {
        for (int i = thread; i < n; i += static_cast<int>(blockDim.x)) {
            for (int axis = 0; axis < 3; ++axis) shared_points[3 * i + axis] = rows[i * task.row_stride + axis];
        }
        __syncthreads();
    }
    Points own;
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
        const int index = thread * kSlots + i;
        const float* p = kShared ? shared_points + 3 * index : rows + index * task.row_stride;
        const bool there = index < n && is_finite(p);
        own.x[i] = there ? p[0] : 0.0f, own.y[i] = there ? p[1] : 0.0f, own.z[i] = there ? p[2] : 0.0f;
        own.key[i] = there ? __float_as_int(INFINITY) : kChosen;
    }
    int32_t largest = own.largest();
    int buffer = 0;
    for (int sample = 0; sample < m; ++sample) {
        int choice;
        if (sample < given) {
            choice = task.indices[sample_begin + sample];
        } else {
            const int32_t warp_largest = warp_max(largest);
            const int slot = own.slot_of(largest);
            if (lane == lowest_lane(largest == warp_largest)) {
                keys[buffer][warp] = warp_largest;
                indices[buffer][warp] = thread * kSlots + slot;
            }
            __syncthreads();
            const int32_t key = lane < warps ? keys[buffer][lane] : kChosen;
            const int32_t block_largest = warp_max(key);
            if (block_largest < 0) {  // nothing is left
                for (int64_t i = sample + thread; i < m; i += blockDim.x) {
                    task.indices[sample_begin + i] = -1;
                    if (task.distances_sq) task.distances_sq[sample_begin + i] = 0.0f;
                }
                return;
            }
            choice = indices[buffer][lowest_lane(key == block_largest)];
            buffer ^= 1;
        }
        if (choice / kSlots == thread) {
            const int32_t key = own.choose(choice % kSlots);
            task.indices[sample_begin + sample] = choice;
            if (task.distances_sq) task.distances_sq[sample_begin + sample] = __int_as_float(key);
        }
        const float* p = kShared ? shared_points + 3 * choice : rows + choice * task.row_stride;
        largest = own.update(p[0], p[1], p[2]);
    }
}

}  // namespace

void sample_by_blocks(const FarthestTask& task, int64_t largest, cudaStream_t stream) {
    const int warps = static_cast<int>((largest + 32 * kSlots - 1) / (32 * kSlots));
    const auto blocks = static_cast<unsigned>(task.points.clouds);
    const int64_t bytes = largest * 3 * static_cast<int64_t>(sizeof(float));
    int device = 0, most = 0;
    STIPPLE_CHECK_CUDA(cudaGetDevice(&device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    if (bytes + 1024 <= most) {  // 512 bytes of its own, and what the system takes
        STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(sample_by_block<true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                static_cast<int>(bytes)));
        sample_by_block<true><<<blocks, 32 * warps, static_cast<size_t>(bytes), stream>>>(task);
    } else {
        sample_by_block<false><<<blocks, 32 * warps, 0, stream>>>(task);
    }
    STIPPLE_CHECK_LAUNCH(sample_by_block);
}

void farthest_point_sample(const Clouds& points, const Batch& samples, View<int32_t, 1> indices,
                           View<float, 1> distances_sq, const FarthestPointOptions& options, Stream stream_handle) {
    const CurrentDevice current(points.device());
    const cudaStream_t stream = raw(stream_handle);
    const UploadedBatch points_batch(points.batch, stream), samples_batch(samples, stream);
    const auto clouds = static_cast<unsigned>(samples.clouds());
    const Scratch<int32_t> given_counts(samples.clouds(), stream);
    const FarthestTask task{points.rows.data(), points.rows.stride(0), points_batch.view(), samples_batch.view(),
                            given_counts.get(), indices.data(),        distances_sq.data()};

    if (options.chosen_batch.rows() > 0) {
        const UploadedBatch chosen_batch(options.chosen_batch, stream);
        const Scratch<uint32_t> first(points.batch.rows(), stream);
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(first.get(), 0xFF, first.count() * sizeof(uint32_t), stream));
        const unsigned blocks =
            blocks_for(std::min<int64_t>(options.chosen_batch.rows(), 1 << 20), kFarthestPointSampleThreads);
        note_first_rows<<<blocks, kFarthestPointSampleThreads, 0, stream>>>(task, chosen_batch.view(),
                                                                            options.chosen.data(), first.get());
        STIPPLE_CHECK_LAUNCH(note_first_rows);
        write_given<<<clouds, kFarthestPointSampleThreads, 0, stream>>>(
            task, chosen_batch.view(), options.chosen.data(), first.get(), options.start, given_counts.get());
        STIPPLE_CHECK_LAUNCH(write_given);
    } else {
        write_given<<<clouds, kFarthestPointSampleThreads, 0, stream>>>(task, {}, nullptr, nullptr, options.start,
                                                                        given_counts.get());
        STIPPLE_CHECK_LAUNCH(write_given);
    }
    int64_t largest_small = 0;
    for (int64_t cloud = 0; cloud < samples.clouds(); ++cloud) {
        if (points.batch.size(cloud) <= kBlockPoints) largest_small = std::max(largest_small, points.batch.size(cloud));
        if (points.batch.is_dense()) break;  // all alike
    }
    if (largest_small > 0) sample_by_blocks(task, largest_small, stream);
    if (points.batch.largest() > kBlockPoints) sample_by_groups(task, points.batch, stream);
}

}  // namespace stipple::ops::cuda
