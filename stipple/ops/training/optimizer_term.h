#pragma once
// The arithmetic of one number of optimizer_update, for CPU and CUDA: float32, every operation rounded.

#include <cmath>

#include "stipple/core/numeric.h"
#include "stipple/ops/optimizer_update.h"
#include "stipple/ops/update_rules.h"

namespace stipple::ops {

/// Factors of a step, rounded from float64.
struct UpdateFactors {
    float gradient, decay;
    float first, first_share;    // momentum or beta1, and what a gradient adds
    float second, second_share;  // beta2
    float value;                 // adamw: what decay leaves
    float step;                  // minus the rate, corrected
    float root, eps;             // 1 / sqrt(correction2)
    bool has_decay;              // of the gradient
};

STIPPLE_HD UpdateFactors update_factors(const UpdateOptions& options, const double* control) {
    const double rate = control[ControlSlot::rate], decay = options.weight_decay;
    const bool is_sgd = options.kind == UpdateKind::sgd, is_adamw = options.kind == UpdateKind::adamw;
    UpdateFactors f;
    f.gradient = static_cast<float>(control[ControlSlot::gradient_factor]);
    f.decay = static_cast<float>(decay);
    f.first = static_cast<float>(is_sgd ? options.momentum : options.beta1);
    f.first_share = static_cast<float>(is_sgd ? 1 : 1 - options.beta1);
    f.second = static_cast<float>(options.beta2);
    f.second_share = static_cast<float>(1 - options.beta2);
    f.value = static_cast<float>(is_adamw ? add_rounded(1.0, -multiply_rounded(rate, decay)) : 1);
    f.step = static_cast<float>(is_sgd ? -rate : -rate / control[ControlSlot::correction1]);
    f.root = static_cast<float>(1 / ::sqrt(control[ControlSlot::correction2]));
    f.eps = static_cast<float>(options.eps);
    f.has_decay = decay > 0 && !is_adamw;
    return f;
}

/// The moments after a gradient.
template <UpdateKind kKind>
STIPPLE_HD void update_moments(const UpdateFactors& f, float gradient, float value, float& first, float& second) {
    float g = multiply_rounded(gradient, f.gradient);
    if (f.has_decay) g = add_rounded(g, multiply_rounded(f.decay, value));
    const float share = kKind == UpdateKind::sgd ? g : multiply_rounded(f.first_share, g);
    first = add_rounded(multiply_rounded(f.first, first), share);
    if constexpr (kKind != UpdateKind::sgd)
        second =
            add_rounded(multiply_rounded(f.second, second), multiply_rounded(multiply_rounded(f.second_share, g), g));
}

/// The value after its moments, as they are stored.
template <UpdateKind kKind>
STIPPLE_HD float updated_value(const UpdateFactors& f, float value, float first, float second) {
    if constexpr (kKind == UpdateKind::sgd) return add_rounded(value, multiply_rounded(f.step, first));
    if constexpr (kKind == UpdateKind::adamw) value = multiply_rounded(value, f.value);
    const float divisor = add_rounded(multiply_rounded(::sqrtf(second), f.root), f.eps);
    return add_rounded(value, multiply_rounded(f.step, first) / divisor);
}

struct AverageFactors {
    float average, value;
};

STIPPLE_HD AverageFactors average_factors(const double* control) {
    const double decay = control[ControlSlot::average_decay];
    return {static_cast<float>(decay), static_cast<float>(1 - decay)};
}

STIPPLE_HD float updated_average(const AverageFactors& f, float average, float value) {
    return add_rounded(multiply_rounded(average, f.average), multiply_rounded(value, f.value));
}

}  // namespace stipple::ops
