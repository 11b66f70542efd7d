#pragma once
// A warp marches along a ray, 32 samples at a time.

#include "stipple/radiance/cuda/step.cuh"
#include "stipple/radiance/march/opacity.h"

namespace stipple::radiance::cuda {

struct MarchRule {
    float shift, opacity_length, threshold;
};

/// What a lane found at its sample.
struct LaneSample {
    int index;  // of the sample on the ray
    float opacity;
    float before, after;  // what is seen before and behind it
    bool opaque;          // above the threshold, and not behind the last sample that is seen
    bool kept;            // its weight too
    unsigned opaque_lanes, kept_lanes;
};

struct MarchCounts {
    float left = 1;  // what is seen behind the last sample
    int in_box = 0, in_mask = 0;
};

/// density(corners) is called by lanes at occupied places, visit(sample) by all lanes of every group of samples of
/// which one is occupied.
template <class Density, class Visit>
__device__ MarchCounts march_warp(const BrickGrid& bricks, const March& march, const MarchRule& rule, int lane,
                                  const Density& density, const Visit& visit) {
    MarchCounts counts;
    const GridView& view = bricks.view;
    for (int first = 0; first < march.samples; first += kWarp) {
        LaneSample s;
        s.index = first + lane;
        const Vec3f p = march.at(s.index);
        const bool inside = s.index < march.samples && is_inside(view, p);
        const Vec3f node = to_nodes(view, p);
        const bool occupied = inside && is_occupied(bricks, node);
        counts.in_box += __popc(__ballot_sync(kAll, inside));
        const unsigned any = __ballot_sync(kAll, occupied);
        if (any == 0) continue;
        counts.in_mask += __popc(any);
        s.opacity = occupied ? opacity(density(corners_of(bricks, node)) + rule.shift, rule.opacity_length) : 0.0f;
        s.opaque = s.opacity > rule.threshold;
        const float product = inclusive_product(s.opaque ? 1 - s.opacity : 1.0f, lane);
        const float before = __shfl_up_sync(kAll, product, 1);
        s.after = counts.left * product;
        s.before = lane == 0 ? counts.left : counts.left * before;
        const unsigned stops = __ballot_sync(kAll, s.opaque && s.after < kLeastTransmittance);
        const int last = stops ? __ffs(static_cast<int>(stops)) - 1 : kWarp - 1;
        s.opaque = s.opaque && lane <= last;
        s.kept = s.opaque && s.before * s.opacity > rule.threshold;
        s.opaque_lanes = __ballot_sync(kAll, s.opaque);
        s.kept_lanes = __ballot_sync(kAll, s.kept);
        visit(s);
        counts.left = __shfl_sync(kAll, s.after, last);
        if (stops) break;
    }
    return counts;
}

__device__ inline float density_of(const Corners& corners, const float* density) {
    float raw = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) raw += corners.weight[k] * __ldg(density + corners.node[k]);
    return raw;
}

/// Four features, from `group` times four.
__device__ inline float4 features_of(const Corners& corners, const float* features, int group) {
    float4 sum = {0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        const float4 f =
            __ldg(reinterpret_cast<const float4*>(features + int64_t{corners.node[k]} * kFeatures) + group);
        const float w = corners.weight[k];
        sum.x += w * f.x, sum.y += w * f.y, sum.z += w * f.z, sum.w += w * f.w;
    }
    return sum;
}

/// Number i of a direction's code, with the 1 for the bias.
__device__ inline float view_code(Vec3f unit, int i) {
    if (i < 3) return unit[i];
    if (i >= kViewInputs) return 1;
    const int j = (i - 3) % (3 * kFrequencies);
    const float angle = unit[j / kFrequencies] * static_cast<float>(1 << (j % kFrequencies));
    return i - 3 < 3 * kFrequencies ? sinf(angle) : cosf(angle);
}

/// Lanes before this one among `lanes`.
__device__ inline int rank_of(unsigned lanes, int lane) {
    return __popc(lanes & ((1u << lane) - 1));
}

}  // namespace stipple::radiance::cuda
