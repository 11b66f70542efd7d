#pragma once
// A field as the CPU marches through it: densities and bits of all nodes, features of the stored bricks.

#include "stipple/radiance/march/ray.h"
#include "stipple/radiance/render/colour_network.h"

namespace stipple::radiance {

/// The free space about a node, in cells of kSide^3 nodes.
class FreeSpace {
public:
    static constexpr int kSide = 4;

    FreeSpace(const GridShape& grid, const std::vector<uint32_t>& occupied);

    /// Every node that is at most so many nodes away on each axis is free; 0: nothing is known.
    int nodes_about(const GridView& grid, Vec3f node) const {
        const int32_t x = clamp_node(static_cast<int32_t>(node.x + 0.5f), grid.size[0] - 1) / kSide;
        const int32_t y = clamp_node(static_cast<int32_t>(node.y + 0.5f), grid.size[1] - 1) / kSide;
        const int32_t z = clamp_node(static_cast<int32_t>(node.z + 0.5f), grid.size[2] - 1) / kSide;
        return (distance_[static_cast<size_t>((int64_t{x} * size_[1] + y) * size_[2] + z)] - 1) * kSide;
    }

private:
    std::array<int32_t, 3> size_;
    std::vector<uint8_t>
        distance_;  // in cells to the nearest with an occupied node, the largest of the axes, at least 1
};

struct CpuField {
    explicit CpuField(const Field& field);

    FieldSettings settings;
    GridView grid;
    std::array<int32_t, 3> bricks = {};
    std::vector<int32_t> brick;
    std::vector<float> density;      // [nodes]
    std::vector<uint32_t> occupied;  // bits [nodes]
    std::vector<float> features;     // [stored bricks, kBrickNodes, kFeatures]
    FreeSpace free_space;
    ColourEvaluator colour;

    float density_at(const Cell& cell) const {
        float sum = 0;
        for (int c = 0; c < 8; ++c) sum += cell.weight(c) * density[static_cast<size_t>(cell.node(c))];
        return sum;
    }
    /// Of the density, by the length of the world.
    Vec3f gradient_at(const Cell& cell) const;
    /// [kFeatures]; corners in bricks that are not stored count as 0.
    void features_at(const Cell& cell, float* to) const;
    /// Opacity of a step of `voxels` voxels at a density.
    float opacity_of(float density_value, float voxels) const {
        return opacity(density_value + settings.density_shift, voxels * settings.voxel_ratio);
    }
};

}  // namespace stipple::radiance
