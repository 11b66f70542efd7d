#pragma once
// How much of each sample is seen: from opacities to weights along each ray, and back.

#include "stipple/radiance/cuda/reference/density.h"

namespace stipple::radiance::reference {

/// A thread takes a ray. Behind the sample that leaves less than kLeastTransmittance, weights are 0.
struct WeightsOfRay {
    const int32_t *begin, *end;  // [rays] of its samples
    const float* alpha;
    float *weight, *before;  // [samples]; before: what is seen at the sample, in front of it
    float* left;             // [rays] behind the last sample
    int32_t* seen_end;       // [rays] the sample after the last that is seen

    STIPPLE_HD void operator()(int64_t r) const {
        float remaining = 1;
        int32_t i = begin[r];
        while (i < end[r]) {
            before[i] = remaining;
            weight[i] = remaining * alpha[i];
            remaining *= 1 - alpha[i];
            ++i;
            if (remaining < kLeastTransmittance) break;
        }
        seen_end[r] = i;
        left[r] = remaining;
        for (; i < end[r]; ++i) before[i] = weight[i] = 0;
    }
};

/// The way back, first part: a thread takes a sample and adds what it gives to all samples before it on its ray, which
/// would take it away by becoming more opaque. Threads of one ray add to the same places: atomics.
struct AddBehind {
    const int32_t *ray, *begin;
    const float *to_weight, *weight;
    Sums behind;  // [samples], cleared before

    STIPPLE_HD void operator()(int64_t i) const {
        const float given = to_weight[i] * weight[i];
        if (given == 0) return;
        for (int64_t j = begin[ray[i]]; j < i; ++j) add_to(behind, j, given);
    }
};

/// d loss / d alpha of a sample from what lies behind it.
STIPPLE_HD float to_opacity(float to_weight, float before, float behind, float alpha) {
    return to_weight * before - behind / (1 - alpha + 1e-10f);
}

/// Second part, a thread takes a sample.
struct WeightsBack {
    const int32_t *ray, *seen_end;
    const float *alpha, *before, *to_weight, *behind;
    const float *left, *to_left;  // [rays]
    float* to_alpha;

    STIPPLE_HD void operator()(int64_t i) const {
        const int32_t r = ray[i];
        to_alpha[i] =
            i < seen_end[r] ? to_opacity(to_weight[i], before[i], behind[i] + to_left[r] * left[r], alpha[i]) : 0.0f;
    }
};

}  // namespace stipple::radiance::reference
