#pragma once
// A field as the CPU marches through it: densities and bits of all nodes, features of the stored bricks.

#include "stipple/radiance/march/skip.h"
#include "stipple/radiance/render/colour_network.h"

namespace stipple::radiance {

struct CpuField {
    explicit CpuField(const Field& field);

    FieldSettings settings;
    GridView grid;
    std::array<int32_t, 3> bricks = {};
    std::vector<int32_t> brick;
    std::vector<float> density;        // [nodes]
    std::vector<uint32_t> occupied;    // bits [nodes]
    std::vector<float> features;       // [stored bricks, kBrickNodes, kFeatures]
    std::vector<uint64_t> brick_bits;  // of stored bricks
    std::vector<uint8_t> free;         // BrickGrid::free
    ColourEvaluator colour;

    BrickGrid brick_grid() const;
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
