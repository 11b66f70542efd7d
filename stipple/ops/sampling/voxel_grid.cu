// Points to cells on CUDA: the same keys as on the CPU, a radix sort (CUB, stable), then cells where the key changes.
// Nothing is summed with atomics; minima and maxima are exact in any order.

#include "stipple/ops/common/prefix_sum.h"
#include "stipple/ops/common/radix_sort.h"
#include "stipple/ops/sampling/voxel_cell.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kVoxelGridThreads = 256;
constexpr int kVoxelGridRowsPerThread = 16;

/// Floats as integers that sort alike, so that integer atomics find minima.
__device__ uint32_t sortable(float value) {
    const uint32_t bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

float from_sortable(uint32_t bits) {
    bits = bits & 0x80000000u ? bits & 0x7fffffffu : ~bits;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

__device__ bool is_finite(const float* p) {
    return isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]);
}

struct SortableBox {
    uint32_t low[3], high[3];
};

__global__ void clear_boxes(SortableBox* boxes, int64_t clouds) {
    const int64_t cloud = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (cloud < clouds) boxes[cloud] = {{~0u, ~0u, ~0u}, {0, 0, 0}};
}

__device__ void widen(SortableBox* box, const SortableBox& by) {
    for (int axis = 0; axis < 3; ++axis) {
        if (by.low[axis] != ~0u) {
            atomicMin(&box->low[axis], by.low[axis]);
            atomicMax(&box->high[axis], by.high[axis]);
        }
    }
}

/// Coalesced reads; a thread's rows are kVoxelGridThreads apart. A warp that stays in one cloud does one round of
/// atomics.
__global__ void find_boxes(const float* rows, int64_t stride, DeviceBatch batch, SortableBox* boxes) {
    const int64_t first = int64_t{blockIdx.x} * kVoxelGridThreads * kVoxelGridRowsPerThread + threadIdx.x;
    int64_t cloud = -1;
    SortableBox box = {{~0u, ~0u, ~0u}, {0, 0, 0}};
    for (int k = 0; k < kVoxelGridRowsPerThread; ++k) {
        const int64_t row = first + int64_t{k} * kVoxelGridThreads;
        if (row >= batch.rows) break;
        const float* p = rows + row * stride;
        if (!is_finite(p)) continue;
        const int64_t of_row = batch.cloud_of(row);
        if (of_row != cloud) {
            if (cloud >= 0) widen(boxes + cloud, box);
            cloud = of_row;
            box = {{~0u, ~0u, ~0u}, {0, 0, 0}};
        }
        for (int axis = 0; axis < 3; ++axis) {
            const uint32_t value = sortable(p[axis]);
            box.low[axis] = min(box.low[axis], value);
            box.high[axis] = max(box.high[axis], value);
        }
    }
    const int64_t first_cloud = __shfl_sync(~0u, cloud, 0);
    if (__all_sync(~0u, cloud == first_cloud)) {
        for (int step = 16; step > 0; step /= 2) {
            for (int axis = 0; axis < 3; ++axis) {
                box.low[axis] = min(box.low[axis], __shfl_xor_sync(~0u, box.low[axis], step));
                box.high[axis] = max(box.high[axis], __shfl_xor_sync(~0u, box.high[axis], step));
            }
        }
        if (threadIdx.x % 32 == 0 && cloud >= 0) widen(boxes + cloud, box);
    } else if (cloud >= 0) {
        widen(boxes + cloud, box);
    }
}

/// Non-finite points get the key after the last, and so come last.
__global__ void make_keys(const float* rows, int64_t stride, DeviceBatch batch, const VoxelBox* boxes, VoxelScale scale,
                          uint64_t* keys, uint32_t* points) {
    const int64_t row = int64_t{blockIdx.x} * kVoxelGridThreads + threadIdx.x;
    if (row >= batch.rows) return;
    const float* p = rows + row * stride;
    uint64_t key = static_cast<uint64_t>(boxes[batch.clouds].base);
    if (is_finite(p)) {
        int32_t cell[3];
        for (int axis = 0; axis < 3; ++axis)
            cell[axis] = voxel_cell(p[axis], scale.origin[axis], scale.size, scale.inverse);
        key = static_cast<uint64_t>(voxel_key(boxes[batch.cloud_of(row)], cell[0], cell[1], cell[2]));
    }
    keys[row] = key;
    points[row] = static_cast<uint32_t>(row);
}

struct Sorted {
    const uint64_t* keys;
    const uint32_t* points;
    int64_t n;
    uint64_t none;  // the key of non-finite points

    __device__ bool starts(int64_t i) const { return keys[i] != none && (i == 0 || keys[i] != keys[i - 1]); }
};

__global__ void mark_starts(Sorted sorted, uint32_t* starts) {
    const int64_t i = int64_t{blockIdx.x} * kVoxelGridThreads + threadIdx.x;
    if (i < sorted.n) starts[i] = sorted.starts(i) ? 1 : 0;
}

__device__ int64_t cloud_of_key(const VoxelBox* boxes, int64_t clouds, uint64_t key) {
    int64_t low = 0, high = clouds;  // the last box that begins at or before the key
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        (static_cast<uint64_t>(boxes[middle].base) <= key ? low : high) = middle;
    }
    return low;
}

/// summary: [0] finite points, [1] cells, then the first cell of every cloud that has one. Written by one thread each.
__global__ void summarize(Sorted sorted, const uint32_t* cells_up_to, const VoxelBox* boxes, int64_t clouds,
                          int64_t* summary) {
    const int64_t i = int64_t{blockIdx.x} * kVoxelGridThreads + threadIdx.x;
    if (i >= sorted.n) return;
    if (i == sorted.n - 1) summary[1] = cells_up_to[i];
    if (sorted.keys[i] == sorted.none) return;
    if (i == sorted.n - 1 || sorted.keys[i + 1] == sorted.none) summary[0] = i + 1;
    if (!sorted.starts(i)) return;
    const int64_t cloud = cloud_of_key(boxes, clouds, sorted.keys[i]);
    if (i == 0 || cloud_of_key(boxes, clouds, sorted.keys[i - 1]) != cloud)
        summary[2 + cloud] = int64_t{cells_up_to[i]} - 1;
}

__global__ void fill_grid(Sorted sorted, const uint32_t* cells_up_to, const VoxelBox* boxes, DeviceBatch batch,
                          const int64_t* summary, int32_t* cell_of_point, int32_t* order, int64_t* offsets,
                          int32_t* coordinates) {
    const int64_t i = int64_t{blockIdx.x} * kVoxelGridThreads + threadIdx.x;
    if (i >= sorted.n) return;
    const int64_t row = sorted.points[i];
    const uint64_t key = sorted.keys[i];
    if (key == sorted.none) {
        cell_of_point[row] = -1;
        return;
    }
    const int64_t cell = int64_t{cells_up_to[i]} - 1, cloud = cloud_of_key(boxes, batch.clouds, key);
    cell_of_point[row] = static_cast<int32_t>(cell - summary[2 + cloud]);
    order[i] = static_cast<int32_t>(row - batch.begin(cloud));
    if (sorted.starts(i)) {
        offsets[cell] = i;
        voxel_coordinates(boxes[cloud], static_cast<int64_t>(key), coordinates + 3 * cell);
    }
    if (i + 1 == summary[0]) offsets[cell + 1] = i + 1;
}

/// What the kernels over cells need of a grid.
struct DeviceGrid {
    DeviceBatch points, cells;
    const int32_t* order;
    const int64_t* offsets;
    const int32_t* coordinates;
};

constexpr int kCellThreads = 128;
constexpr int64_t kLargeCell = 4 * kVoxelSegment;  // cells beyond this are worked on by the whole block

__device__ double segment_sum(const float* column, int64_t stride, const int32_t* order, int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += column[int64_t{order[i]} * stride];
    return sum;
}

/// A thread for each number of the output. Segments of large cells are summed by the threads of the block and added by
/// one of them, in order: the sum is the CPU's.
__global__ void average_cells(DeviceGrid grid, const float* rows, int64_t stride, int64_t columns, float* out) {
    __shared__ int64_t large[kCellThreads];
    __shared__ double sums[kCellThreads];
    const int64_t items = grid.cells.rows * columns, block_item = int64_t{blockIdx.x} * kCellThreads;
    const int64_t mine = block_item + threadIdx.x;
    bool is_large = false;
    if (mine < items) {
        const int64_t cell = mine / columns, begin = grid.offsets[cell], end = grid.offsets[cell + 1];
        is_large = end - begin > kLargeCell;
        if (!is_large) {
            const float* column = rows + grid.points.begin(grid.cells.cloud_of(cell)) * stride + mine % columns;
            double total = 0;
            for (int64_t at = begin; at < end; at += kVoxelSegment)
                total += segment_sum(column, stride, grid.order, at, min(end, at + kVoxelSegment));
            out[mine] = static_cast<float>(total / static_cast<double>(end - begin));
        }
    }
    large[threadIdx.x] = is_large;
    if (__syncthreads_or(is_large) == 0) return;
    for (int k = 0; k < kCellThreads; ++k) {
        if (!large[k]) continue;
        const int64_t item = block_item + k, cell = item / columns;
        const int64_t begin = grid.offsets[cell], end = grid.offsets[cell + 1];
        const float* column = rows + grid.points.begin(grid.cells.cloud_of(cell)) * stride + item % columns;
        double total = 0;
        for (int64_t round = begin; round < end; round += kCellThreads * kVoxelSegment) {
            const int64_t at = round + threadIdx.x * kVoxelSegment;
            sums[threadIdx.x] =
                at < end ? segment_sum(column, stride, grid.order, at, min(end, at + kVoxelSegment)) : 0;
            __syncthreads();
            if (threadIdx.x == 0)
                for (int t = 0; t < kCellThreads && round + t * kVoxelSegment < end; ++t) total += sums[t];
            __syncthreads();
        }
        if (threadIdx.x == 0) out[item] = static_cast<float>(total / static_cast<double>(end - begin));
    }
}

struct Nearest {
    double sq;
    int32_t index;
    __device__ void take(double other_sq, int32_t other) {
        if (index < 0 || other_sq < sq || (other_sq == sq && other < index)) sq = other_sq, index = other;
    }
};

/// A thread for each cell, the block for large ones. A minimum by (distance, index) is the same in any order.
__global__ void represent_cells(DeviceGrid grid, const float* points, int64_t stride, const float* targets,
                                VoxelScale scale, int32_t* out) {
    __shared__ bool large[kCellThreads];
    __shared__ Nearest best[kCellThreads];
    const int64_t block_cell = int64_t{blockIdx.x} * kCellThreads;
    const auto search = [&](int64_t cell, int first, int step) {
        double target[3];
        voxel_target(targets, grid.coordinates, cell, scale, target);
        const float* cloud = points + grid.points.begin(grid.cells.cloud_of(cell)) * stride;
        Nearest nearest = {0, -1};
        for (int64_t i = grid.offsets[cell] + first; i < grid.offsets[cell + 1]; i += step)
            nearest.take(voxel_distance_sq(cloud + int64_t{grid.order[i]} * stride, target), grid.order[i]);
        return nearest;
    };
    const int64_t mine = block_cell + threadIdx.x;
    bool is_large = false;
    if (mine < grid.cells.rows) {
        is_large = grid.offsets[mine + 1] - grid.offsets[mine] > kLargeCell;
        if (!is_large) out[mine] = search(mine, 0, 1).index;
    }
    large[threadIdx.x] = is_large;
    if (__syncthreads_or(is_large) == 0) return;
    for (int k = 0; k < kCellThreads; ++k) {
        if (!large[k]) continue;
        best[threadIdx.x] = search(block_cell + k, static_cast<int>(threadIdx.x), kCellThreads);
        __syncthreads();
        for (int half = kCellThreads / 2; half > 0; half /= 2) {
            if (static_cast<int>(threadIdx.x) < half) {
                const Nearest other = best[threadIdx.x + half];
                if (other.index >= 0) best[threadIdx.x].take(other.sq, other.index);
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) out[block_cell + k] = best[0].index;
        __syncthreads();
    }
}

int bits_of(uint64_t value) {
    int bits = 0;
    for (; value != 0; value >>= 1) ++bits;
    return bits;
}

}  // namespace

std::vector<FiniteBox> finite_boxes(const Clouds& points, Stream stream) {
    const CurrentDevice current(points.device());
    const cudaStream_t on = raw(stream);
    const int64_t clouds = points.batch.clouds();
    std::vector<FiniteBox> boxes(static_cast<size_t>(clouds));
    if (clouds == 0) return boxes;
    const UploadedBatch batch(points.batch, on);
    const Scratch<SortableBox> found(clouds, on);
    clear_boxes<<<blocks_for(clouds, kVoxelGridThreads), kVoxelGridThreads, 0, on>>>(found.get(), clouds);
    STIPPLE_CHECK_LAUNCH(clear_boxes);
    if (points.batch.rows() > 0) {
        find_boxes<<<blocks_for(points.batch.rows(), kVoxelGridThreads * kVoxelGridRowsPerThread), kVoxelGridThreads, 0,
                     on>>>(points.rows.data(), points.rows.stride(0), batch.view(), found.get());
        STIPPLE_CHECK_LAUNCH(find_boxes);
    }
    std::vector<SortableBox> host(static_cast<size_t>(clouds));
    STIPPLE_CHECK_CUDA(
        cudaMemcpyAsync(host.data(), found.get(), clouds * sizeof(SortableBox), cudaMemcpyDeviceToHost, on));
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(on));
    for (int64_t cloud = 0; cloud < clouds; ++cloud) {
        for (int axis = 0; axis < 3; ++axis) {
            const bool empty = host[cloud].low[0] == ~0u;
            boxes[cloud].low[axis] = empty ? 1 : from_sortable(host[cloud].low[axis]);
            boxes[cloud].high[axis] = empty ? 0 : from_sortable(host[cloud].high[axis]);
        }
    }
    return boxes;
}

void voxel_grid(const Clouds& points, VoxelGrid& grid, Stream stream) {
    const CurrentDevice current(points.device());
    const cudaStream_t on = raw(stream);
    const int64_t n = points.batch.rows(), clouds = points.batch.clouds();
    const Device device = points.device();
    STIPPLE_REQUIRE(n <= int64_t{0xffffffff}, "voxel_grid: {} rows, the most on CUDA is {}", n, 0xffffffffu);
    const VoxelScale scale = voxel_scale(grid.size, grid.origin);
    const std::vector<VoxelBox> host_boxes = voxel_boxes(finite_boxes(points, stream), scale);
    std::vector<int64_t> summary(static_cast<size_t>(clouds) + 2, -1);
    summary[0] = summary[1] = 0;
    grid.cell_of_point = Array<int32_t, 1>({n}, device);
    const unsigned blocks = blocks_for(n, kVoxelGridThreads);
    const UploadedBatch batch(points.batch, on);
    const Scratch<VoxelBox> boxes(clouds + 1, on);
    STIPPLE_CHECK_CUDA(
        cudaMemcpyAsync(boxes.get(), host_boxes.data(), boxes.count() * sizeof(VoxelBox), cudaMemcpyHostToDevice, on));
    const Scratch<int64_t> device_summary(clouds + 2, on);
    STIPPLE_CHECK_CUDA(cudaMemcpyAsync(device_summary.get(), summary.data(), summary.size() * sizeof(int64_t),
                                       cudaMemcpyHostToDevice, on));
    const Scratch<uint64_t> keys(2 * n, on);
    const Scratch<uint32_t> rows(2 * n, on), starts(n, on);
    const Sorted sorted = {keys.get() + n, rows.get() + n, n, static_cast<uint64_t>(host_boxes.back().base)};
    if (n > 0) {
        make_keys<<<blocks, kVoxelGridThreads, 0, on>>>(points.rows.data(), points.rows.stride(0), batch.view(),
                                                        boxes.get(), scale, keys.get(), rows.get());
        STIPPLE_CHECK_LAUNCH(make_keys);
        const int bits = bits_of(sorted.none);
        auto* const values = reinterpret_cast<int32_t*>(rows.get());  // moved as they are
        sort_pairs(keys.get(), keys.get() + n, values, values + n, n, bits, on);
        mark_starts<<<blocks, kVoxelGridThreads, 0, on>>>(sorted, starts.get());
        STIPPLE_CHECK_LAUNCH(mark_starts);
        inclusive_sum(starts.get(), n, on);
        summarize<<<blocks, kVoxelGridThreads, 0, on>>>(sorted, starts.get(), boxes.get(), clouds,
                                                        device_summary.get());
        STIPPLE_CHECK_LAUNCH(summarize);
        STIPPLE_CHECK_CUDA(cudaMemcpyAsync(summary.data(), device_summary.get(), summary.size() * sizeof(int64_t),
                                           cudaMemcpyDeviceToHost, on));
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(on));
    }
    const int64_t finite = summary[0], cells = summary[1];
    grid.order = Array<int32_t, 1>({finite}, device);
    grid.offsets = Array<int64_t, 1>({cells + 1}, device);
    grid.coordinates = Array<int32_t, 2>({cells, 3}, device);
    if (cells == 0) STIPPLE_CHECK_CUDA(cudaMemsetAsync(grid.offsets.data(), 0, sizeof(int64_t), on));
    if (n > 0) {
        fill_grid<<<blocks, kVoxelGridThreads, 0, on>>>(
            sorted, starts.get(), boxes.get(), batch.view(), device_summary.get(), grid.cell_of_point.data(),
            grid.order.data(), grid.offsets.data(), grid.coordinates.data());
        STIPPLE_CHECK_LAUNCH(fill_grid);
    }
    if (clouds == 1) {
        grid.cells = Batch::single(cells);
        return;
    }
    std::vector<int64_t> first_cell(summary.begin() + 2, summary.end());
    first_cell.push_back(cells);
    for (int64_t cloud = clouds - 1; cloud >= 0; --cloud)  // a cloud without cells begins where the next one does
        if (first_cell[cloud] < 0) first_cell[cloud] = first_cell[cloud + 1];
    grid.cells = Batch::ragged(std::move(first_cell));
}

void voxel_centroids(const VoxelGrid& grid, View<const float, 2> rows, View<float, 2> out, Stream stream) {
    const CurrentDevice current(grid.device());
    const UploadedBatch points(grid.points, raw(stream)), cells(grid.cells, raw(stream));
    const DeviceGrid device_grid = {points.view(), cells.view(), grid.order.data(), grid.offsets.data(),
                                    grid.coordinates.data()};
    average_cells<<<blocks_for(out.elements(), kCellThreads), kCellThreads, 0, raw(stream)>>>(
        device_grid, rows.data(), rows.stride(0), rows.size(1), out.data());
    STIPPLE_CHECK_LAUNCH(average_cells);
}

void voxel_representatives(const VoxelGrid& grid, View<const float, 2> points, const float* targets, int32_t* out,
                           Stream stream) {
    const CurrentDevice current(grid.device());
    const UploadedBatch batch(grid.points, raw(stream)), cells(grid.cells, raw(stream));
    const DeviceGrid device_grid = {batch.view(), cells.view(), grid.order.data(), grid.offsets.data(),
                                    grid.coordinates.data()};
    represent_cells<<<blocks_for(grid.cells.rows(), kCellThreads), kCellThreads, 0, raw(stream)>>>(
        device_grid, points.data(), points.stride(0), targets, voxel_scale(grid.size, grid.origin), out);
    STIPPLE_CHECK_LAUNCH(represent_cells);
}

}  // namespace stipple::ops::cuda
