#include "stipple/ops/voxel_grid.h"

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/sampling/voxel_cell.h"

namespace stipple::ops {

VoxelScale voxel_scale(float size, const std::array<double, 3>& origin) {
    return {{origin[0], origin[1], origin[2]}, size, 1.0 / size};
}

std::vector<VoxelBox> voxel_boxes(std::span<const FiniteBox> bounds, const VoxelScale& scale) {
    std::vector<VoxelBox> boxes(bounds.size() + 1);
    int64_t keys = 0;
    for (size_t cloud = 0; cloud < bounds.size(); ++cloud) {
        VoxelBox& box = boxes[cloud];
        box = {{0, 0, 0}, {1, 1, 1}, keys};
        if (bounds[cloud].empty()) continue;
        int64_t cells = 1;
        bool fits = true;
        for (int axis = 0; axis < 3; ++axis) {
            const float low = bounds[cloud].low[axis], high = bounds[cloud].high[axis];
            const double first = (low - scale.origin[axis]) / scale.size;
            const double last = (high - scale.origin[axis]) / scale.size;
            STIPPLE_REQUIRE(std::abs(first) < kMaxVoxelCell && std::abs(last) < kMaxVoxelCell,
                            "voxel_grid: cells of size {} number {:.0f} to {:.0f} on axis {}, the most is +-{}",
                            scale.size, first, last, "xyz"[axis], kMaxVoxelCell);
            box.low[axis] = voxel_cell(low, scale.origin[axis], scale.size, scale.inverse);
            box.count[axis] =
                int64_t{1} + voxel_cell(high, scale.origin[axis], scale.size, scale.inverse) - box.low[axis];
            fits &= !__builtin_mul_overflow(cells, box.count[axis], &cells);
        }
        fits &= !__builtin_add_overflow(keys, cells, &keys) && keys <= int64_t{1} << 62;
        STIPPLE_REQUIRE(fits, "voxel_grid: {} x {} x {} cells of size {} are too many", box.count[0], box.count[1],
                        box.count[2], scale.size);
    }
    boxes.back() = {{0, 0, 0}, {1, 1, 1}, keys};
    return boxes;
}

VoxelGrid voxel_grid(const Clouds& points, float size, std::array<double, 3> origin, [[maybe_unused]] Stream stream) {
    require_clouds("voxel_grid", "points", points);
    STIPPLE_REQUIRE(size > 0 && std::isfinite(size) && std::isfinite(1.0 / size),
                    "voxel_grid: the size of a cell must be above 0, got {}", size);
    for (double x : origin) STIPPLE_REQUIRE(std::isfinite(x), "voxel_grid: the origin has a coordinate {}", x);
    VoxelGrid grid;
    grid.points = points.batch;
    grid.size = size;
    grid.origin = origin;
    switch (points.device().type) {
        case DeviceType::cpu: cpu::voxel_grid(points, grid); break;
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::voxel_grid, points, grid, stream); break;
    }
    return grid;
}

namespace {

void require_rows(const char* op, const VoxelGrid& grid, View<const float, 2> rows) {
    STIPPLE_REQUIRE(rows.size(0) == grid.points.rows(), "{}: {} rows for a grid of {} points", op, rows.size(0),
                    grid.points.rows());
    STIPPLE_REQUIRE(rows.size(1) <= 1 || rows.stride(1) == 1, "{}: the {} numbers of a row must be adjacent", op,
                    rows.size(1));
    require_device(op, "rows", grid.device(), rows.device());
}

}  // namespace

void voxel_centroids(const VoxelGrid& grid, View<const float, 2> rows, View<float, 2> out,
                     [[maybe_unused]] Stream stream) {
    require_rows("voxel_centroids", grid, rows);
    require_output<float, 2>("voxel_centroids", "out", out, {grid.cells.rows(), rows.size(1)}, grid.device());
    if (out.elements() == 0) return;
    switch (grid.device().type) {
        case DeviceType::cpu: return cpu::voxel_centroids(grid, rows, out);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::voxel_centroids, grid, rows, out, stream);
    }
}

namespace {

void representatives(const VoxelGrid& grid, View<const float, 2> points, const float* targets, View<int32_t, 1> out,
                     [[maybe_unused]] Stream stream) {
    require_rows("voxel_representatives", grid, points);
    STIPPLE_REQUIRE(points.size(1) == 3, "voxel_representatives: points must be [n, 3], got {}",
                    shape_text(points.shape().data(), 2));
    require_output<int32_t, 1>("voxel_representatives", "out", out, {grid.cells.rows()}, grid.device());
    if (out.elements() == 0) return;
    switch (grid.device().type) {
        case DeviceType::cpu: return cpu::voxel_representatives(grid, points, targets, out.data());
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::voxel_representatives, grid, points, targets, out.data(), stream);
    }
}

}  // namespace

void voxel_representatives(const VoxelGrid& grid, View<const float, 2> points, View<int32_t, 1> out,
                           [[maybe_unused]] Stream stream) {
    representatives(grid, points, nullptr, out, stream);
}

void voxel_representatives(const VoxelGrid& grid, View<const float, 2> points, View<const float, 2> targets,
                           View<int32_t, 1> out, [[maybe_unused]] Stream stream) {
    require_output<const float, 2>("voxel_representatives", "targets", targets, {grid.cells.rows(), 3}, grid.device());
    representatives(grid, points, targets.data(), out, stream);
}

}  // namespace stipple::ops

namespace stipple::ops::cpu {
namespace {

constexpr int64_t kCellGrain = 512;
constexpr int64_t kAhead = 32;  // rows that are fetched before they are summed

/// Calls body(cell, first row of the cell's cloud) for every cell of the grid.
template <class Body>
void for_each_cell(const VoxelGrid& grid, const Body& body) {
    parallel_for(grid.cells.rows(), kCellGrain, [&](int64_t begin, int64_t end) {
        int64_t low = 0, high = grid.cells.clouds();  // the cloud of the first cell
        while (high - low > 1) {
            const int64_t middle = (low + high) / 2;
            (grid.cells.begin(middle) <= begin ? low : high) = middle;
        }
        for (int64_t cell = begin, cloud = low; cell < end; ++cell) {
            while (grid.cells.end(cloud) <= cell) ++cloud;
            body(cell, grid.points.begin(cloud));
        }
    });
}

/// C columns of the means; columns are few where speed matters.
template <int C>
void centroids_of_columns(const VoxelGrid& grid, const float* rows, int64_t stride, float* out, int64_t out_stride) {
    const int32_t* order = grid.order.data();
    const int64_t* offsets = grid.offsets.data();
    const int64_t points = grid.order.size(0);
    for_each_cell(grid, [&](int64_t cell, int64_t first_row) {
        const float* cloud = rows + first_row * stride;
        const int64_t begin = offsets[cell], end = offsets[cell + 1];
        double total[C] = {};
        for (int64_t segment = begin; segment < end; segment += kVoxelSegment) {
            double sum[C] = {};
            for (int64_t i = segment; i < std::min(end, segment + kVoxelSegment); ++i) {
                // The rows of a cell lie anywhere. Those ahead may be another cloud's: a wrong guess costs nothing.
                if (i + kAhead < points) __builtin_prefetch(cloud + order[i + kAhead] * stride);
                for (int c = 0; c < C; ++c) sum[c] += cloud[order[i] * stride + c];
            }
            for (int c = 0; c < C; ++c) total[c] += sum[c];
        }
        for (int c = 0; c < C; ++c)
            out[cell * out_stride + c] = static_cast<float>(total[c] / static_cast<double>(end - begin));
    });
}

}  // namespace

void voxel_centroids(const VoxelGrid& grid, View<const float, 2> rows, View<float, 2> out) {
    const int64_t columns = rows.size(1), stride = rows.stride(0);
    int64_t column = 0;
    for (; column + 3 <= columns; column += 3)
        centroids_of_columns<3>(grid, rows.data() + column, stride, out.data() + column, columns);
    for (; column < columns; ++column)
        centroids_of_columns<1>(grid, rows.data() + column, stride, out.data() + column, columns);
}

void voxel_representatives(const VoxelGrid& grid, View<const float, 2> points, const float* targets, int32_t* out) {
    const VoxelScale scale = voxel_scale(grid.size, grid.origin);
    for_each_cell(grid, [&](int64_t cell, int64_t first_row) {
        double target[3];
        voxel_target(targets, grid.coordinates.data(), cell, scale, target);
        const float* cloud = points.data() + first_row * points.stride(0);
        const int32_t* begin = grid.order.data() + grid.offsets.data()[cell];
        const int32_t* end = grid.order.data() + grid.offsets.data()[cell + 1];
        int32_t best = *begin;
        double best_sq = voxel_distance_sq(cloud + best * points.stride(0), target);
        for (const int32_t* i = begin + 1; i < end; ++i) {
            const double sq = voxel_distance_sq(cloud + *i * points.stride(0), target);
            if (sq < best_sq) best = *i, best_sq = sq;
        }
        out[cell] = best;
    });
}

}  // namespace stipple::ops::cpu
