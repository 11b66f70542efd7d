#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/random_sample.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kRandomSampleThreads = 256;

unsigned grid_for(int64_t items) {
    return blocks_for(std::min<int64_t>(items, int64_t{1} << 24), kRandomSampleThreads);
}

__device__ int64_t first_item() {
    return int64_t{blockIdx.x} * kRandomSampleThreads + threadIdx.x;
}
__device__ int64_t item_step() {
    return int64_t{gridDim.x} * kRandomSampleThreads;
}

__global__ void draw_with_replacement(DeviceBatch points, DeviceBatch samples, uint64_t seed, int32_t* indices) {
    for (int64_t row = first_item(); row < samples.rows; row += item_step()) {
        const int64_t cloud = samples.cloud_of(row);
        const auto n = static_cast<uint64_t>(points.end(cloud) - points.begin(cloud));
        indices[row] = random_sample_below(random_sample_bits(seed, cloud, row - samples.begin(cloud)), n);
    }
}

__global__ void draw_bits(DeviceBatch points, uint64_t seed, uint64_t* bits, int64_t* rows) {
    for (int64_t row = first_item(); row < points.rows; row += item_step()) {
        const int64_t cloud = points.cloud_of(row);
        bits[row] = random_sample_bits(seed, cloud, row - points.begin(cloud));
        rows[row] = row;
    }
}

__global__ void find_clouds(DeviceBatch points, const int64_t* rows, uint32_t* clouds) {
    for (int64_t i = first_item(); i < points.rows; i += item_step())
        clouds[i] = static_cast<uint32_t>(points.cloud_of(rows[i]));
}

/// sorted_rows has the rows of a cloud where they were before, smallest bits first.
__global__ void take_random_order(DeviceBatch points, DeviceBatch samples, const int64_t* sorted_rows,
                                  int32_t* indices) {
    for (int64_t row = first_item(); row < samples.rows; row += item_step()) {
        const int64_t cloud = samples.cloud_of(row), begin = points.begin(cloud);
        indices[row] = static_cast<int32_t>(sorted_rows[begin + row - samples.begin(cloud)] - begin);
    }
}

__global__ void mark_taken(DeviceBatch points, DeviceBatch samples, const int64_t* sorted_rows, uint8_t* taken,
                           int32_t* local) {
    for (int64_t i = first_item(); i < points.rows; i += item_step()) {
        const int64_t cloud = points.cloud_of(i), begin = points.begin(cloud);
        taken[sorted_rows[i]] = i - begin < samples.end(cloud) - samples.begin(cloud);
        local[i] = static_cast<int32_t>(i - begin);
    }
}

template <class Key>
void sort_pairs(const Scratch<Key>& keys, const Scratch<Key>& sorted_keys, const Scratch<int64_t>& rows,
                const Scratch<int64_t>& sorted_rows, int bits, cudaStream_t stream) {
    size_t bytes = 0;
    const auto sort = [&](void* scratch) {
        STIPPLE_CHECK_CUDA(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.get(), sorted_keys.get(), rows.get(),
                                                           sorted_rows.get(), rows.count(), 0, bits, stream));
    };
    sort(nullptr);
    const Scratch<char> scratch(static_cast<int64_t>(bytes), stream);
    sort(scratch.get());
}

}  // namespace

void random_sample(const Batch& points, const Batch& samples, uint64_t seed, View<int32_t, 1> indices,
                   const RandomSampleOptions& options, Stream stream_handle) {
    const CurrentDevice current(indices.device());
    const cudaStream_t stream = raw(stream_handle);
    const UploadedBatch points_batch(points, stream), samples_batch(samples, stream);
    const DeviceBatch from = points_batch.view(), to = samples_batch.view();
    if (options.with_replacement) {
        draw_with_replacement<<<grid_for(samples.rows()), kRandomSampleThreads, 0, stream>>>(from, to, seed,
                                                                                             indices.data());
        STIPPLE_CHECK_LAUNCH(draw_with_replacement);
        return;
    }

    // By bits, then by cloud: both sorts are stable, and the rows begin in order, so ties go to the lowest index.
    const int64_t n = points.rows();
    Scratch<int64_t> rows(n, stream), sorted_rows(n, stream);
    {
        const Scratch<uint64_t> bits(n, stream), sorted_bits(n, stream);
        draw_bits<<<grid_for(n), kRandomSampleThreads, 0, stream>>>(from, seed, bits.get(), rows.get());
        STIPPLE_CHECK_LAUNCH(draw_bits);
        sort_pairs(bits, sorted_bits, rows, sorted_rows, 64, stream);
    }
    if (points.clouds() > 1) {
        int cloud_bits = 1;
        while (points.clouds() - 1 >= int64_t{1} << cloud_bits) ++cloud_bits;
        const Scratch<uint32_t> clouds(n, stream), sorted_clouds(n, stream);
        find_clouds<<<grid_for(n), kRandomSampleThreads, 0, stream>>>(from, sorted_rows.get(), clouds.get());
        STIPPLE_CHECK_LAUNCH(find_clouds);
        sort_pairs(clouds, sorted_clouds, sorted_rows, rows, cloud_bits, stream);
        rows.swap(sorted_rows);
    }

    if (options.order == SampleOrder::random) {
        take_random_order<<<grid_for(samples.rows()), kRandomSampleThreads, 0, stream>>>(from, to, sorted_rows.get(),
                                                                                         indices.data());
        STIPPLE_CHECK_LAUNCH(take_random_order);
        return;
    }
    // Every cloud has as many marks as samples, so the marked points of the batch are its samples in their places.
    const Scratch<uint8_t> taken(n, stream);
    const Scratch<int32_t> local(n, stream);
    mark_taken<<<grid_for(n), kRandomSampleThreads, 0, stream>>>(from, to, sorted_rows.get(), taken.get(), local.get());
    STIPPLE_CHECK_LAUNCH(mark_taken);
    const Scratch<int64_t> count(1, stream);
    size_t bytes = 0;
    const auto select = [&](void* scratch) {
        STIPPLE_CHECK_CUDA(cub::DeviceSelect::Flagged(scratch, bytes, local.get(), taken.get(), indices.data(),
                                                      count.get(), n, stream));
    };
    select(nullptr);
    const Scratch<char> scratch(static_cast<int64_t>(bytes), stream);
    select(scratch.get());
}

}  // namespace stipple::ops::cuda
