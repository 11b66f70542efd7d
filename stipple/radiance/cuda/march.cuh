#pragma once
// A warp marches along a ray, 32 samples at a time.

#include "stipple/radiance/cuda/step.cuh"
#include "stipple/radiance/march/opacity.h"
#include "stipple/radiance/march/skip.h"

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
/// which one is occupied. Groups begin at multiples of 32 samples whether others are skipped or not, so that products
/// over lanes round in the same way.
///
/// Before groups are visited, each lane looks ahead over a part of the ray: 8 samples of rays of up to 256, 16 of up to
/// 512, else 32. A ray of 400 samples has 13 groups; without looking ahead each costs a warp two dependent loads and
/// some 50 operations. A part of 16 samples takes a lane 1 load and some 90 operations where all about is free,
/// 3 or 4 loads among bricks near the surface; lanes do it at the same time, once for the ray, after which the two or
/// three groups of the surface are visited. One lane that walks all 400 samples for the warp would wait for 15 to 60
/// loads, one after the other.
template <class Density, class Visit>
__device__ MarchCounts march_warp(const BrickGrid& bricks, const March& march, const MarchRule& rule, int lane,
                                  const Density& density, const Visit& visit) {
    MarchCounts counts;
    const GridView& view = bricks.view;
    const SampleRange inside = samples_inside(view, march);
    counts.in_box = inside.end - inside.begin;
    const Vec3f per_node = samples_per_node(view, march);
    const int part = march.samples <= 8 * kWarp ? 8 : march.samples <= 16 * kWarp ? 16 : kWarp;
    unsigned parts = 0;  // that may be occupied, of the next kWarp ones
    int round = 0;       // the first sample behind those
    while (true) {
        if (parts == 0) {
            if (round >= inside.end) break;
            const int begin = max(round + lane * part, inside.begin), end = min(round + (lane + 1) * part, inside.end);
            parts = __ballot_sync(kAll, begin < end && next_sample(bricks, march, per_node, begin, end) < end);
            round += kWarp * part;
            continue;
        }
        // The group of the first of them, with the others in it.
        const int of_group = kWarp / part, chosen = (__ffs(static_cast<int>(parts)) - 1) / of_group;
        const int first = round - kWarp * part + chosen * kWarp;
        parts &= ~(((1u << of_group) - 1) << (chosen * of_group));
        LaneSample s;
        s.index = first + lane;
        const Vec3f node = to_nodes(view, march.at(s.index));
        const bool occupied = s.index >= inside.begin && s.index < inside.end && is_occupied(bricks, node);
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
