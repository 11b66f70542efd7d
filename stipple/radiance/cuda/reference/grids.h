#pragma once
// Between steps: grids on other nodes, which nodes are occupied, which pixels see them.

#include "stipple/radiance/cuda/reference/samples.h"
#include "stipple/radiance/march/opacity.h"
#include "stipple/radiance/train/visibility.h"

namespace stipple::radiance::reference {

struct DenseNode {
    int32_t x, y, z;
};

STIPPLE_HD DenseNode node_at(const GridView& view, int64_t i) {
    return {static_cast<int32_t>(i / view.size[2] / view.size[1]),
            static_cast<int32_t>(i / view.size[2] % view.size[1]), static_cast<int32_t>(i % view.size[2])};
}

/// Of the node with the largest density of the 27 about node i.
STIPPLE_HD float most_opacity(const GridView& view, const float* density, int64_t i, float shift, float length) {
    const DenseNode n = node_at(view, i);
    float most = density[i];
    for (int k = 0; k < 27; ++k) {
        const int32_t x = n.x + k / 9 - 1, y = n.y + k / 3 % 3 - 1, z = n.z + k % 3 - 1;
        if (x < 0 || y < 0 || z < 0 || x >= view.size[0] || y >= view.size[1] || z >= view.size[2]) continue;
        most = fmaxf(most, density[(int64_t{x} * view.size[1] + y) * view.size[2] + z]);
    }
    return opacity(most + shift, length);
}

/// Planes of values [channels, nodes] at the nodes of another grid, and whether the nearest old node is occupied.
struct Resample {
    DenseGrid old;
    GridView grid;
    int channels;
    const float* from;
    float* to;
    uint8_t* candidate;  // may be null

    STIPPLE_HD void operator()(int64_t i) const {
        const DenseNode n = node_at(grid, i);
        const Vec3f p = {grid.low.x + static_cast<float>(n.x) / grid.per_unit.x,
                         grid.low.y + static_cast<float>(n.y) / grid.per_unit.y,
                         grid.low.z + static_cast<float>(n.z) / grid.per_unit.z};
        const Vec3f node = to_nodes(old.view, p);
        const Cell cell = cell_of(old.view, node);
        const int64_t old_nodes = int64_t{old.view.size[0]} * old.view.size[1] * old.view.size[2],
                      nodes = int64_t{grid.size[0]} * grid.size[1] * grid.size[2];
        for (int channel = 0; channel < channels; ++channel) {
            float sum = 0;
            for (int k = 0; k < 8; ++k) sum += cell.weight(k) * from[channel * old_nodes + cell.node(k)];
            to[channel * nodes + i] = sum;
        }
        if (candidate) candidate[i] = is_occupied(old, node);
    }
};

/// Nodes that are occupied and beside an opaque one stay occupied.
struct Prune {
    GridView grid;
    const float* density;
    float shift, length, threshold;
    uint8_t* occupied;

    STIPPLE_HD void operator()(int64_t i) const {
        if (occupied[i]) occupied[i] = most_opacity(grid, density, i, shift, length) > threshold;
    }
};

STIPPLE_HD bool meets_occupied(const DenseGrid& grid, const Ray& ray, float near, float step) {
    const March march = march_through(ray, grid.view.low, grid.view.high, near, step);
    for (int i = 0; i < march.samples; ++i) {
        const Vec3f p = march.at(i);
        if (is_inside(grid.view, p) && is_occupied(grid, to_nodes(grid.view, p))) return true;
    }
    return false;
}

struct SeesOccupied {
    Photos photos;
    DenseGrid grid;
    bool only_opaque;
    float near, step;
    uint8_t* flag;  // [pixels]

    STIPPLE_HD void operator()(int64_t i) const {
        const auto pixel = static_cast<uint32_t>(i);
        const int32_t photo = photo_of(photos, pixel);
        const CameraView& camera = photos.cameras[photo];
        const int place = static_cast<int>(pixel - photos.first[photo]);
        const bool known = !only_opaque || photos.pixels[4 * i + 3] > 0;
        flag[i] =
            known && meets_occupied(grid, camera_ray(camera, place % camera.width, place / camera.width), near, step);
    }
};

/// Bricks of nodes as a Field stores them; a thread takes a node of a chosen brick.
struct TakeBricks {
    GridView grid;
    int32_t bricks_y, bricks_z;
    const int32_t* chosen;  // places among all bricks
    const float *density, *features;
    float *to_density, *to_features;

    STIPPLE_HD void operator()(int64_t i) const {
        const int32_t at = chosen[i / kBrickNodes], place = static_cast<int32_t>(i % kBrickNodes);
        const int32_t x = at / (bricks_y * bricks_z) * kBrick + place / (kBrick * kBrick),
                      y = at / bricks_z % bricks_y * kBrick + place / kBrick % kBrick,
                      z = at % bricks_z * kBrick + place % kBrick;
        const bool within = x < grid.size[0] && y < grid.size[1] && z < grid.size[2];
        const int64_t node = (int64_t{x} * grid.size[1] + y) * grid.size[2] + z;
        const int64_t nodes = int64_t{grid.size[0]} * grid.size[1] * grid.size[2];
        to_density[i] = within ? density[node] : 0;
        for (int k = 0; k < kFeatures; ++k) to_features[i * kFeatures + k] = within ? features[k * nodes + node] : 0;
    }
};

}  // namespace stipple::radiance::reference
