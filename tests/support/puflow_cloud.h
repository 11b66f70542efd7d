#pragma once
// How the published PU-Flow program upsamples a whole cloud: overlapping patches through the network, farthest points
// of what comes out, less those that lie farthest from the input.

#include <functional>

#include "stipple/core/array.h"

namespace stipple::test {

inline constexpr int64_t kPatchPoints = 256, kOutliers = 24;

struct UpsampledCloud {
    Array<float, 2> candidates;  // [patches * 256 * (ratio + 1), 3]: per patch its children, then its points
    Array<float, 2> points;      // [n * ratio, 3], in the frame of the input
};

/// patches [p * 256, 3], each centred and of radius 1 -> children [p * 256 * ratio, 3].
using UpsamplePatches = std::function<Array<float, 2>(const Array<float, 2>& patches)>;

UpsampledCloud upsample_cloud(const Array<float, 2>& points, int64_t ratio, const UpsamplePatches& upsample);

/// How far the point of `a` that is farthest from all of `b` is from them.
double largest_nearest_distance(View<const float, 2> a, View<const float, 2> b);

}  // namespace stipple::test
