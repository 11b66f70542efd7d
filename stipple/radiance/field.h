#pragma once
// Field: a trained voxel radiance field [Sun et al. 2022, direct voxel grid optimisation], packed for disk and
// exchange.
//
// Space is a box with a grid of nodes. A node has a density and kFeatures colour features; between nodes both are
// trilinear. Bricks of kBrick^3 nodes of which no ray can see anything are left out.
//
//   opacity of a step  a = 1 - exp(-s softplus(density + density_shift)),  s = step * voxel_ratio
//   colour             sigmoid(network(features, view direction encoded)), or sigmoid(features) without a network
//   pixel              sum of T_i a_i c_i + T_end background, front to back; the background is a colour, or one by
//                      direction (Environment)

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

/// What is seen behind the box, as if it were far away: an octahedral map of directions (march/environment.h). A colour
/// is the sigmoid of what is interpolated between four texels. Nothing is known of directions that no photograph had.
struct Environment {
    int32_t side = 0;           // texels of an edge; 0: there is none
    std::vector<float> texels;  // [side, side, 3]
};
inline constexpr int kLeastEnvironment = 2, kMostEnvironment = 1024;  // texels of an edge

/// All of a field but its grids: packed (Field) and dense (field/dense_field.h) ones have it in common.
struct FieldSettings {
    GridShape grid;
    float density_shift = 0;
    float voxel_ratio = 1;       // voxel / the voxel that opacities are counted in
    float step = 0.5f;           // of a voxel
    float least_weight = 1e-4f;  // opacities and weights up to it are skipped
    float near = 0;              // depth at which rays begin
    Background background = Background::white;
    Environment environment;  // there where the background is learned
    std::array<double, 3> origin = {};
    ColourNetwork network;  // all of it empty: colour is sigmoid(the first three features)

    std::vector<Camera> cameras;               // of the photographs it was trained on: they know what has been seen
    std::map<std::string, std::string> notes;  // how it was trained: scene, steps, seconds, seed, PSNR
};

struct Field : FieldSettings {
    std::vector<int32_t> brick;  // [bricks x, y, z], z fastest: the number of its bricks, -1 where there is none
    std::vector<uint64_t>
        occupied;                // a bit per node of the bricks [stored bricks, kBrickNodes / 64]: rays skip the rest
    std::vector<float> density;  // [stored bricks, kBrickNodes], z fastest within a brick
    std::vector<uint16_t> features;  // [stored bricks, kBrickNodes, kFeatures] half precision

    int64_t stored_bricks() const { return static_cast<int64_t>(density.size()) / kBrickNodes; }
};

inline constexpr int kMostNodes = 2048;                      // of a grid along an axis
inline constexpr int64_t kMostGridNodes = int64_t{1} << 29;  // of a grid

/// What is wrong with a field, in words that name the tensor or the number; empty where nothing is. Sizes, brick
/// numbers (each exactly once), that every value is finite, and an environment where the background is learned and
/// nowhere else.
std::string fault_of(const Field& field);

/// One safetensors file: tensors by the names above, `network.weight1` and so on, `environment` [side, side, 3] where
/// there is one, `cameras` [n, 18] (width, height, fx, fy, cx, cy, to_world); everything else is text in the metadata.
/// Loading checks all that fault_of does; Error{bad_file} with the tensor's or the number's name otherwise. Saving
/// throws Error{bad_argument} for a field with a fault.
void save_field(const std::string& path, const Field& field, Overwrite overwrite);
Field load_field(const std::string& path);

/// The file begins as one that save_field wrote. Reads the header alone; false for anything else, also for
/// pipes and what is missing.
bool is_field_file(const std::string& path);

}  // namespace stipple::radiance
