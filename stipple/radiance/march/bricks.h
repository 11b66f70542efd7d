#pragma once
// Grids of which only the bricks near something visible are stored, on CPU and CUDA.

#include "stipple/radiance/march/ray.h"

namespace stipple::radiance {

inline constexpr int kMostFree = 15;  // bricks that BrickGrid::free counts to

/// Numbers of stored nodes: those of brick b are b * kBrickNodes and the next, z fastest.
struct BrickGrid {
    GridView view;
    int32_t bricks[3] = {};
    const int32_t* table = nullptr;      // [bricks], z fastest; -1: not stored
    const uint64_t* occupied = nullptr;  // [stored bricks] a bit for each node
    // [bricks] to the nearest brick with an occupied node, along the axis where that is farthest, at most kMostFree; 0:
    // the brick has one itself. Null: not known, and nothing is skipped (march/skip.h).
    const uint8_t* free = nullptr;

    STIPPLE_HD int32_t brick_of(int32_t x, int32_t y, int32_t z) const {
        return table[((x / kBrick) * bricks[1] + y / kBrick) * bricks[2] + z / kBrick];
    }
    /// Of a node within its brick.
    STIPPLE_HD static int32_t place(int32_t x, int32_t y, int32_t z) {
        return ((x % kBrick) * kBrick + y % kBrick) * kBrick + z % kBrick;
    }
};

/// Whether the node nearest to a position inside the grid may be visible.
STIPPLE_HD bool is_occupied(const BrickGrid& grid, Vec3f node) {
    const int32_t x = clamp_node(static_cast<int32_t>(node.x + 0.5f), grid.view.size[0] - 1);
    const int32_t y = clamp_node(static_cast<int32_t>(node.y + 0.5f), grid.view.size[1] - 1);
    const int32_t z = clamp_node(static_cast<int32_t>(node.z + 0.5f), grid.view.size[2] - 1);
    const int32_t brick = grid.brick_of(x, y, z);
    return brick >= 0 && (grid.occupied[brick] >> BrickGrid::place(x, y, z) & 1);
}

/// The eight nodes about a position and their weights: corner c is x + (c >> 2), y + (c >> 1 & 1), z + (c & 1). All of
/// them are stored where the nearest node is occupied. -1: not stored.
struct Corners {
    int32_t node[8];
    float weight[8];
};

STIPPLE_HD Corners corners_of(const BrickGrid& grid, Vec3f node) {
    const int32_t x = clamp_node(static_cast<int32_t>(node.x), grid.view.size[0] - 2);
    const int32_t y = clamp_node(static_cast<int32_t>(node.y), grid.view.size[1] - 2);
    const int32_t z = clamp_node(static_cast<int32_t>(node.z), grid.view.size[2] - 2);
    const float fx = node.x - static_cast<float>(x), fy = node.y - static_cast<float>(y),
                fz = node.z - static_cast<float>(z);
    Corners corners;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int c = 0; c < 8; ++c) {
        const int32_t cx = x + (c >> 2), cy = y + (c >> 1 & 1), cz = z + (c & 1);
        const int32_t brick = grid.brick_of(cx, cy, cz);
        corners.node[c] = brick < 0 ? -1 : brick * kBrickNodes + BrickGrid::place(cx, cy, cz);
        corners.weight[c] = (c >> 2 ? fx : 1 - fx) * (c >> 1 & 1 ? fy : 1 - fy) * (c & 1 ? fz : 1 - fz);
    }
    return corners;
}

/// The largest of the densities of the 27 nodes about a stored node, itself among them; `stride` numbers apart. Nodes
/// that are not stored have none.
STIPPLE_HD float densest_about(const BrickGrid& grid, int32_t x, int32_t y, int32_t z, const float* density,
                               int stride) {
    float most = density[(int64_t{grid.brick_of(x, y, z)} * kBrickNodes + BrickGrid::place(x, y, z)) * stride];
    for (int k = 0; k < 27; ++k) {
        const int32_t nx = x + k / 9 - 1, ny = y + k / 3 % 3 - 1, nz = z + k % 3 - 1;
        const int32_t* size = grid.view.size;
        if (nx < 0 || ny < 0 || nz < 0 || nx >= size[0] || ny >= size[1] || nz >= size[2]) continue;
        const int32_t brick = grid.brick_of(nx, ny, nz);
        if (brick < 0) continue;
        most = fmaxf(most, density[(int64_t{brick} * kBrickNodes + BrickGrid::place(nx, ny, nz)) * stride]);
    }
    return most;
}

/// Trilinear value of stored nodes; those that are not stored count as 0.
STIPPLE_HD float interpolate(const Corners& corners, const float* values) {
    float sum = 0;
    for (int c = 0; c < 8; ++c) {
        if (corners.node[c] >= 0) sum += corners.weight[c] * values[corners.node[c]];
    }
    return sum;
}

}  // namespace stipple::radiance
