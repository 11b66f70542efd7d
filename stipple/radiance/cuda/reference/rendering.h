#pragma once
// Rows "fused rendering" and "per-ray weights": a thread takes a ray, from its first sample to its weights in one
// kernel, and back in one kernel. Rays have `capacity` places each for their opaque samples.

#include "stipple/radiance/cuda/reference/weights.h"
#include "stipple/radiance/train/constants.h"

namespace stipple::radiance::reference {

/// [rays, capacity], and of each ray.
struct RaySamples {
    int32_t capacity = 0;
    uint16_t* index = nullptr;                    // of the sample on its ray
    float *alpha = nullptr, *weight = nullptr;    // weight 0: too little is seen of it for a colour
    int32_t *samples = nullptr, *kept = nullptr;  // [rays] opaque ones; those with a weight
    int32_t *in_box = nullptr, *in_mask = nullptr;
    float* left = nullptr;
};

struct RenderRay {
    DenseGrid grid;
    const float* density;
    float shift, length, threshold;
    const March* march;
    RaySamples to;

    STIPPLE_HD void operator()(int64_t r) const {
        const March path = march[r];
        const int64_t base = r * to.capacity;
        int32_t samples = 0, kept = 0, in_box = 0, in_mask = 0;
        float remaining = 1;
        for (int32_t i = 0; i < path.samples; ++i) {
            const Vec3f p = path.at(i);
            if (!is_inside(grid.view, p)) continue;
            ++in_box;
            const Vec3f node = to_nodes(grid.view, p);
            if (!is_occupied(grid, node)) continue;
            ++in_mask;
            const Cell cell = cell_of(grid.view, node);
            float raw = 0;
            for (int k = 0; k < 8; ++k) raw += cell.weight(k) * density[cell.node(k)];
            const float alpha = opacity(raw + shift, length);
            if (!(alpha > threshold)) continue;
            const float weight = remaining * alpha;
            const bool is_kept = weight > threshold;
            to.index[base + samples] = static_cast<uint16_t>(i);
            to.alpha[base + samples] = alpha;
            to.weight[base + samples] = is_kept ? weight : 0;
            ++samples;
            kept += is_kept ? 1 : 0;
            remaining *= 1 - alpha;
            if (remaining < kLeastTransmittance) break;
        }
        to.samples[r] = samples;
        to.kept[r] = kept;
        to.in_box[r] = in_box;
        to.in_mask[r] = in_mask;
        to.left[r] = remaining;
    }
};

/// The samples that get a colour, in one list.
struct ListKept {
    const March* march;
    RaySamples from;
    const int32_t* first;  // [rays] in the list
    SampleList to;
    float* weight;
    int32_t* place_of;  // [kept] among the opaque samples of its ray
    int32_t* end;       // [rays]

    STIPPLE_HD void operator()(int64_t r) const {
        int32_t k = first[r];
        for (int32_t i = 0; i < from.samples[r]; ++i) {
            const int64_t place = r * from.capacity + i;
            if (!(from.weight[place] > 0)) continue;
            to.ray[k] = static_cast<int32_t>(r);
            to.position[k] = march[r].at(from.index[place]);
            weight[k] = from.weight[place];
            place_of[k] = i;
            ++k;
        }
        end[r] = k;
    }
};

/// Row "fused rendering": as AddBehind, a thread takes a kept sample. behind [rays, capacity] is cleared before.
struct AddBehindPlaces {
    const int32_t *ray, *place;  // [kept]
    const float *to_weight, *weight;
    int32_t capacity;
    Sums behind;

    STIPPLE_HD void operator()(int64_t k) const {
        const int64_t base = int64_t{ray[k]} * capacity;
        for (int32_t j = 0; j < place[k]; ++j) add_to(behind, base + j, to_weight[k] * weight[k]);
    }
};

/// From the gradients of weights to those of densities. behind: [rays, capacity], or null: summed along the ray from
/// its end, without atomics.
struct RenderRayBack {
    GridView grid;
    float length;
    const March* march;
    RaySamples samples;
    const int32_t* end;      // [rays] in the list of kept samples
    const float* to_weight;  // [kept]
    const float* to_left;
    const float* behind;
    Sums gradient;

    STIPPLE_HD void operator()(int64_t r) const {
        const int64_t base = r * samples.capacity;
        int32_t k = end[r];
        const float at_end = to_left[r] * samples.left[r];
        float sum = at_end;
        for (int32_t i = samples.samples[r]; i-- > 0;) {
            const float alpha = samples.alpha[base + i], weight = samples.weight[base + i];
            const float by_weight = weight > 0 ? to_weight[--k] : 0;
            const float to_alpha =
                to_opacity(by_weight, weight / alpha, behind ? behind[base + i] + at_end : sum, alpha);
            sum += by_weight * weight;
            const float to_raw = to_alpha * slope_of_opacity(alpha, length);
            if (to_raw == 0) continue;
            const Cell cell = cell_of(grid, to_nodes(grid, march[r].at(samples.index[base + i])));
            for (int c = 0; c < 8; ++c) add_to(gradient, cell.node(c), cell.weight(c) * to_raw);
        }
    }
};

}  // namespace stipple::radiance::reference
