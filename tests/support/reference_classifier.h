#pragma once
// A classifier that can tell shapes apart, made without a trainer: random features, and a last layer fitted to them.

#include <vector>

#include "stipple/core/array.h"
#include "stipple/network/weights.h"
#include "stipple/ops/clouds.h"

namespace stipple::test {

inline constexpr int64_t kShapes = 10;

struct ShapeClouds {
    Array<float, 2> points;  // [count * n, 3], centred, of radius 1
    ops::Batch batch;
    std::vector<int> labels;  // 0 .. kShapes - 1
};

/// Spheres, boxes, tori and the like, stretched, turned about y and noisy.
ShapeClouds shape_clouds(int64_t count, int64_t n, uint64_t seed);

/// Replaces the layer "head.fc3" of a PointNet classifier of kShapes classes by the least squares fit of its inputs to
/// the labels. Logits are about 5 for the class and 0 for the others.
void fit_head(const network::Network& network, network::Weights& weights, const ShapeClouds& clouds);

}  // namespace stipple::test
