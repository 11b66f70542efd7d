#pragma once
// Adam as separate operations over whole arrays, and as one.

#include "stipple/radiance/train/adam.h"

namespace stipple::radiance::reference {

/// Elements without a gradient stay as they are.
struct HasGradient {
    const float* gradient;
    uint8_t* mask;

    STIPPLE_HD void operator()(int64_t i) const { mask[i] = gradient[i] != 0; }
};

/// mask null: every element, here and below.
struct FirstMoment {
    const uint8_t* mask;
    const float* gradient;
    float* mean;

    STIPPLE_HD void operator()(int64_t i) const {
        if (!mask || mask[i]) mean[i] = kBeta1 * mean[i] + (1 - kBeta1) * gradient[i];
    }
};

struct SecondMoment {
    const uint8_t* mask;
    const float* gradient;
    float* square;

    STIPPLE_HD void operator()(int64_t i) const {
        if (!mask || mask[i]) square[i] = kBeta2 * square[i] + (1 - kBeta2) * gradient[i] * gradient[i];
    }
};

struct UpdateValue {
    const uint8_t* mask;
    const float *mean, *square;
    float rate;
    float* value;

    STIPPLE_HD void operator()(int64_t i) const {
        if (!mask || mask[i]) value[i] -= rate * mean[i] / (sqrtf(square[i]) + kAdamEpsilon);
    }
};

/// All of it in one.
struct FusedAdam {
    bool masked;
    const float* gradient;
    float *mean, *square, *value;
    float rate;

    STIPPLE_HD void operator()(int64_t i) const {
        if (masked && gradient[i] == 0) return;
        adam(value[i], mean[i], square[i], gradient[i], rate);
    }
};

}  // namespace stipple::radiance::reference
