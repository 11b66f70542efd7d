#pragma once
// Field: a trained voxel radiance field [Sun et al. 2022, direct voxel grid optimisation], packed for disk and
// exchange.
//
// Space is a box with a grid of nodes. A node has a density and kFeatures colour features; between nodes both are
// trilinear. Bricks of kBrick^3 nodes of which no ray can see anything are left out.
//
//   opacity of a step  a = 1 - exp(-s softplus(density + density_shift)),  s = step * voxel_ratio
//   colour             sigmoid(network(features, view direction encoded)), or sigmoid(features) without a network
//   pixel              sum of T_i a_i c_i + T_end background, front to back

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stipple/core/atomic_file.h"
#include "stipple/core/box.h"
#include "stipple/radiance/scene.h"

namespace stipple::radiance {

inline constexpr int kBrick = 4, kBrickNodes = kBrick * kBrick * kBrick;
inline constexpr int kFeatures = 12;
inline constexpr int kFrequencies = 4;                        // of the view direction: 1, 2, 4, 8
inline constexpr int kViewInputs = 3 + 2 * 3 * kFrequencies;  // direction, then sines, then cosines (view_encoding.h)
inline constexpr int kHidden = 128;

/// Node (x, y, z) lies at low + (x, y, z) * (high - low) / (size - 1): the nodes span the box. z is fastest.
struct GridShape {
    std::array<int32_t, 3> size = {};
    Box<float> box = {};
    float voxel = 0;  // cube root of the box's volume by the voxels that were asked for; rays advance in parts of it

    int64_t nodes() const { return int64_t{size[0]} * size[1] * size[2]; }
    int64_t index(int x, int y, int z) const { return (int64_t{x} * size[1] + y) * size[2] + z; }
    float spacing(int axis) const { return box.extent(axis) / static_cast<float>(size[static_cast<size_t>(axis)] - 1); }
    std::array<int32_t, 3> bricks() const {
        return {(size[0] + kBrick - 1) / kBrick, (size[1] + kBrick - 1) / kBrick, (size[2] + kBrick - 1) / kBrick};
    }
};

/// Two hidden layers with rectifiers; weights [outputs, inputs], row by row. Inputs: features, then the encoded view.
struct ColourNetwork {
    std::vector<float> weight1, bias1;  // [kHidden, kFeatures + kViewInputs]
    std::vector<float> weight2, bias2;  // [kHidden, kHidden]
    std::vector<float> weight3, bias3;  // [3, kHidden]
};

struct Field {
    GridShape grid;
    float density_shift = 0;
    float voxel_ratio = 1;       // voxel / the voxel that opacities are counted in
    float step = 0.5f;           // of a voxel
    float least_weight = 1e-4f;  // opacities and weights up to it are skipped
    float near = 0;              // depth at which rays begin
    Background background = Background::white;
    std::array<double, 3> origin = {};

    std::vector<int32_t> brick;      // [bricks x, y, z], z fastest: the number of its bricks, -1 where there is none
    std::vector<uint64_t> occupied;  // [stored bricks] a bit per node: rays skip the rest
    std::vector<float> density;      // [stored bricks, kBrickNodes], z fastest within a brick
    std::vector<uint16_t> features;  // [stored bricks, kBrickNodes, kFeatures] half precision
    ColourNetwork network;

    std::map<std::string, std::string> notes;  // how it was trained: scene, steps, seconds, seed, PSNR

    int64_t stored_bricks() const { return static_cast<int64_t>(density.size()) / kBrickNodes; }
};

/// One safetensors file. Loading checks every size, brick number and that values are finite; Error{bad_file} with the
/// tensor's name otherwise.
void save_field(const std::string& path, const Field& field, Overwrite overwrite);
Field load_field(const std::string& path);

}  // namespace stipple::radiance
