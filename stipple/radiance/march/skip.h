#pragma once
// Samples of a ray that need no look: those outside of the grid and those in bricks without an occupied node, on CPU
// and CUDA.
//
// Along an axis the coordinate of sample i, the node nearest to it and this node's brick are made of sums, products and
// roundings none of which turns back as i grows. So what holds along every axis for two samples holds for all between
// them: an estimate says how far a ray stays among free bricks, and the sample there, computed as every sample is,
// confirms it. No margin is needed, and the samples that are left are those of a march without skipping, bit for bit.

#include "stipple/radiance/march/bricks.h"

namespace stipple::radiance {

struct SampleRange {
    int32_t begin = 0, end = 0;
};

/// The samples inside the grid. They follow each other, and few of a march are not among them: rounding decides about
/// those at the faces.
STIPPLE_HD SampleRange samples_inside(const GridView& grid, const March& march) {
    SampleRange range = {0, march.samples};
    while (range.begin < range.end && !is_inside(grid, march.at(range.begin))) ++range.begin;
    while (range.end > range.begin && !is_inside(grid, march.at(range.end - 1))) --range.end;
    return range;
}

/// Of a ray, along each axis, with the sign of its direction; infinite where it does not move.
STIPPLE_HD Vec3f samples_per_node(const GridView& grid, const March& march) {
    return {1 / (march.advance.x * grid.per_unit.x), 1 / (march.advance.y * grid.per_unit.y),
            1 / (march.advance.z * grid.per_unit.z)};
}

/// The brick of the node nearest to a position inside the grid, by the arithmetic of is_occupied.
struct BrickPlace {
    int32_t x, y, z;
};
STIPPLE_HD BrickPlace nearest_brick(const GridView& grid, Vec3f node) {
    return {clamp_node(static_cast<int32_t>(node.x + 0.5f), grid.size[0] - 1) / kBrick,
            clamp_node(static_cast<int32_t>(node.y + 0.5f), grid.size[1] - 1) / kBrick,
            clamp_node(static_cast<int32_t>(node.z + 0.5f), grid.size[2] - 1) / kBrick};
}

/// Samples from a position until a ray leaves the bricks about `brick` that are free, along one axis. Brick b holds the
/// positions whose nearest node is one of its own, from 4 b - 0.5 to 4 b + 3.5. NaN where a ray stands still on the
/// border.
STIPPLE_HD float samples_to_border(float node, float per_node, int32_t brick, int32_t free) {
    const int32_t border = kBrick * (per_node > 0 ? brick + free : brick + 1 - free);
    return (static_cast<float>(border) - (node + 0.5f)) * per_node;
}

STIPPLE_HD bool is_below(int32_t a, int32_t b, int32_t distance) {
    return a - b < distance && b - a < distance;
}

/// The first sample from k on whose brick has an occupied node; `end` where none before it has. Samples k to end - 1
/// are inside the grid. Visits one sample for each run of free bricks and another one to confirm it: a run crosses at
/// least a brick, about 5 samples at half a voxel each, and 2 * free - 1 bricks where more is free.
STIPPLE_HD int32_t next_sample(const BrickGrid& grid, const March& march, Vec3f per_node, int32_t k, int32_t end) {
    if (!grid.free) return k;
    while (k < end) {
        const Vec3f node = to_nodes(grid.view, march.at(k));
        const BrickPlace own = nearest_brick(grid.view, node);
        const int32_t free = grid.free[(own.x * grid.bricks[1] + own.y) * grid.bricks[2] + own.z];
        if (free == 0) return k;
        float ahead = static_cast<float>(end - 1 - k);
        ahead = fminf(ahead, samples_to_border(node.x, per_node.x, own.x, free));
        ahead = fminf(ahead, samples_to_border(node.y, per_node.y, own.y, free));
        ahead = fminf(ahead, samples_to_border(node.z, per_node.z, own.z, free));
        int32_t last = k + (ahead > 0 ? static_cast<int32_t>(ahead) : 0);
        while (last > k) {
            const BrickPlace there = nearest_brick(grid.view, to_nodes(grid.view, march.at(last)));
            if (is_below(there.x, own.x, free) && is_below(there.y, own.y, free) && is_below(there.z, own.z, free))
                break;
            // One sample too far, by rounding; further off only for rays that hardly move along an axis.
            last = last - k > 8 ? k + (last - k) / 2 : last - 1;
        }
        k = last + 1;
    }
    return end;
}

}  // namespace stipple::radiance
