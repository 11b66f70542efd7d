#pragma once
// Rigid motions that are drawn, and how far others are from them.

#include <torch/types.h>

#include "stipple/learn/sampling/sampling_options.h"

namespace stipple::learn {

/// Numbers in [0, 1) as a function of seed and number alone, the same on every device and under a CUDA graph.
/// numbers int64 [count] -> float32 [count, columns].
torch::Tensor uniform_of(const torch::Tensor& numbers, int64_t columns, uint64_t seed);

/// A motion for each cloud.
struct PoseTensors {
    torch::Tensor rotation;     // [clouds, 3, 3]
    torch::Tensor translation;  // [clouds, 3]
};

/// Rz Ry Rx of three angles within +- options.angle, and a shift.
PoseTensors draw_poses(const torch::Tensor& numbers, const PoseOptions& options, uint64_t seed);

/// points [clouds * n, 3] moved: R p + t.
torch::Tensor moved_by(const PoseTensors& poses, const torch::Tensor& points);

/// [clouds] in degrees: the geodesic angle between two rotations. Without gradient.
torch::Tensor rotation_angles(const torch::Tensor& a, const torch::Tensor& b);

/// Means over the clouds, float64.
struct PoseTerms {
    torch::Tensor rotation, translation;  // |R_found R^T - I|_F^2, |t_found - t|^2
};
PoseTerms pose_terms(const PoseTensors& found, const PoseTensors& truth);

}  // namespace stipple::learn
