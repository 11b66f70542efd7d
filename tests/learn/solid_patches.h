#pragma once
// What tests of upsamplers train on, and patches whose closest points are found by trying all faces.

#include <torch/types.h>

#include "stipple/core/vec3.h"
#include "stipple/learn/recipe.h"
#include "stipple/learn/upsampling/surface_index.h"

namespace stipple::test {

/// A run of 200 steps of a small flow upsampler.
learn::Recipe small_upsampler();

/// Trained on: a sphere and a torus. Held out: an egg and a thinner torus.
learn::SurfaceSet round_bodies(const learn::Recipe& recipe);

/// Row i of float32 [n, 3].
Vec3d row_of_tensor(const torch::Tensor& rows, int64_t i);

/// One patch each of a box, a ball and a ring, rows of one patch one after the other.
struct SolidPatches {
    static constexpr int64_t kPatches = 3, kQueries = 20, kTruth = 12;

    SolidPatches();
    /// Of a place in the coordinates of a patch, from all faces of its mesh.
    Vec3d slow_closest(int64_t patch, Vec3d place) const;

    learn::SurfaceSet set;
    std::vector<learn::PatchFrame> patch_frames;
    torch::Tensor frames, queries, truth;  // [kPatches, kFrameNumbers], [kPatches * each, 3]
};

}  // namespace stipple::test
