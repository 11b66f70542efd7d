#pragma once
// The arithmetic of voxel grids that CPU and CUDA share, and their launchers. Not for users: voxel_grid.h is.

#include <cstdint>
#include <span>
#include <vector>

#include "stipple/core/numeric.h"
#include "stipple/ops/voxel_grid.h"

namespace stipple::ops {

/// Cells beyond this are refused: below it, cell * size is exact in double (29 bits times 24).
inline constexpr int64_t kMaxVoxelCell = int64_t{1} << 28;
/// Points that are summed one after another; more are summed by sums.
inline constexpr int64_t kVoxelSegment = 256;

struct VoxelScale {
    double origin[3];
    double size, inverse;
};

/// floor((p - origin) / size) for a quotient within kMaxVoxelCell. The product with the inverse is wrong by one at
/// most; the two comparisons are exact.
STIPPLE_HD int32_t voxel_cell(float p, double origin, double size, double inverse) {
    const double distance = static_cast<double>(p) - origin;
    int32_t cell = static_cast<int32_t>(distance * inverse);
    cell -= static_cast<double>(cell) * size > distance ? 1 : 0;
    cell += static_cast<double>(cell + 1) * size <= distance ? 1 : 0;
    return cell;
}

/// The middle of a cell on one axis.
STIPPLE_HD double voxel_middle(int32_t cell, double origin, double size) {
#ifdef __CUDA_ARCH__
    return __dadd_rn(origin, __dmul_rn(cell + 0.5, size));
#else
    return origin + (cell + 0.5) * size;
#endif
}

/// Squared distance in double without contraction: decides which point represents a cell.
STIPPLE_HD double voxel_distance_sq(const float* point, const double* target) {
    const double dx = point[0] - target[0], dy = point[1] - target[1], dz = point[2] - target[2];
#ifdef __CUDA_ARCH__
    return __dadd_rn(__dadd_rn(__dmul_rn(dx, dx), __dmul_rn(dy, dy)), __dmul_rn(dz, dz));
#else
    return (dx * dx + dy * dy) + dz * dz;
#endif
}

/// Bounds of the finite points of a cloud; low above high when it has none.
struct FiniteBox {
    float low[3], high[3];
    bool empty() const { return !(low[0] <= high[0]); }
};

/// The cells around one cloud, numbered from `base` by z, then y, then x.
struct VoxelBox {
    int32_t low[3];
    int64_t count[3];
    int64_t base;  // cells of the clouds before
};

STIPPLE_HD int64_t voxel_key(const VoxelBox& box, int32_t x, int32_t y, int32_t z) {
    return box.base + ((int64_t{z} - box.low[2]) * box.count[1] + (int64_t{y} - box.low[1])) * box.count[0] +
           (int64_t{x} - box.low[0]);
}

STIPPLE_HD void voxel_coordinates(const VoxelBox& box, int64_t key, int32_t* xyz) {
    int64_t rest = key - box.base;
    xyz[0] = static_cast<int32_t>(box.low[0] + rest % box.count[0]);
    rest /= box.count[0];
    xyz[1] = static_cast<int32_t>(box.low[1] + rest % box.count[1]);
    xyz[2] = static_cast<int32_t>(box.low[2] + rest / box.count[1]);
}

VoxelScale voxel_scale(float size, const std::array<double, 3>& origin);

/// A box for each cloud and one more, whose base is the number of all keys. Throws as voxel_grid does.
std::vector<VoxelBox> voxel_boxes(std::span<const FiniteBox> bounds, const VoxelScale& scale);

/// Where the representative of a cell should be: targets[cell], or the middle of the cell when targets is null.
STIPPLE_HD void voxel_target(const float* targets, const int32_t* coordinates, int64_t cell, const VoxelScale& scale,
                             double* target) {
    for (int axis = 0; axis < 3; ++axis) {
        target[axis] = targets ? static_cast<double>(targets[3 * cell + axis])
                               : voxel_middle(coordinates[3 * cell + axis], scale.origin[axis], scale.size);
    }
}

namespace cpu {
std::vector<FiniteBox> finite_boxes(const Clouds& points);
void voxel_grid(const Clouds& points, VoxelGrid& grid);
void voxel_centroids(const VoxelGrid& grid, View<const float, 2> rows, View<float, 2> out);
void voxel_representatives(const VoxelGrid& grid, View<const float, 2> points, const float* targets, int32_t* out);
}  // namespace cpu

namespace cuda {
std::vector<FiniteBox> finite_boxes(const Clouds& points, Stream stream);  // waits for the stream
void voxel_grid(const Clouds& points, VoxelGrid& grid, Stream stream);
void voxel_centroids(const VoxelGrid& grid, View<const float, 2> rows, View<float, 2> out, Stream stream);
void voxel_representatives(const VoxelGrid& grid, View<const float, 2> points, const float* targets, int32_t* out,
                           Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
