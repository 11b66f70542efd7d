#pragma once
// Adam with rates that decay, on CPU and CUDA [Kingma and Ba 2015]. The small number in the denominator is not
// corrected for the start, as in the published training.

#include <cmath>
#include <cstdint>

#include "stipple/core/numeric.h"

namespace stipple::radiance {

inline constexpr float kBeta1 = 0.9f, kBeta2 = 0.99f, kAdamEpsilon = 1e-8f;

/// Where a stage stands. Lives on the device, so that a recorded step needs nothing of the host.
struct StepState {
    int64_t step = 0;     // of the stage: decides what is drawn
    int64_t since = 0;    // steps since rates and moments were reset
    float rate = 1;       // what rates have decayed to
    float correction = 0; // of Adam's moments, for the next step
    double squared_error = 0;  // of pixels' channels, summed over rays since the caller cleared it
    int64_t rays = 0;
};

STIPPLE_HD float adam_correction(int64_t since) {
    const double t = static_cast<double>(since + 1);
    return static_cast<float>(::sqrt(1 - ::pow(static_cast<double>(kBeta2), t)) /
                              (1 - ::pow(static_cast<double>(kBeta1), t)));
}

STIPPLE_HD void reset_rates(StepState& state) {
    state.since = 0;
    state.rate = 1;
    state.correction = adam_correction(0);
}

/// `decay`: of the rate, by step.
STIPPLE_HD void advance(StepState& state, double decay) {
    ++state.step;
    ++state.since;
    state.rate = static_cast<float>(::pow(decay, static_cast<double>(state.since)));
    state.correction = adam_correction(state.since);
}

/// `rate` includes the correction.
STIPPLE_HD void adam(float& value, float& mean, float& square, float gradient, float rate) {
    mean = kBeta1 * mean + (1 - kBeta1) * gradient;
    square = kBeta2 * square + (1 - kBeta2) * gradient * gradient;
    value -= rate * mean / (sqrtf(square) + kAdamEpsilon);
}

}  // namespace stipple::radiance
