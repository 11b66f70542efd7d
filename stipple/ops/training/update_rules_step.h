#pragma once
// One decision of update_rules, for CPU and CUDA.

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "stipple/core/numeric.h"
#include "stipple/ops/update_rules.h"

namespace stipple::ops {

/// update_rules() on plain pointers.
struct StepNumbers {
    const double* rates;
    int64_t rate_count;
    const double* first_step;
    const float* gradient_norm;
    const double* loss;
    double* state;
    double* control;
    double* log;
    int64_t log_rows;
};

STIPPLE_HD bool is_finite_number(double x) {
    return ::fabs(x) <= DBL_MAX;  // not of NaN
}

/// The scale's share of a step: whether the scale alone is why gradients are not finite.
STIPPLE_HD bool observe_gradients(const UpdateRules& rules, bool is_finite, double* state) {
    double& scale = state[StepSlot::loss_scale];
    double& good_steps = state[StepSlot::good_steps];
    if (is_finite) {
        good_steps += 1;
        if (good_steps >= static_cast<double>(rules.scale_good_steps) && scale < rules.most_scale) {
            scale *= 2;
            good_steps = 0;
        }
        return false;
    }
    const bool is_blamed = scale > rules.least_scale;
    if (is_blamed) scale /= 2;
    good_steps = 0;
    return is_blamed;
}

STIPPLE_HD void make_step(const UpdateRules& rules, double rate, double gradient, double scale, double* state,
                          double* control) {
    const bool is_clipped = rules.clip > 0 && gradient > rules.clip;
    const double t = state[StepSlot::updates] += 1;
    control[ControlSlot::is_made] = 1;
    control[ControlSlot::rate] = rate;
    control[ControlSlot::gradient_factor] = (is_clipped ? rules.clip / gradient : 1) / scale;
    control[ControlSlot::correction1] = 1 - ::pow(rules.beta1, t);
    control[ControlSlot::correction2] = 1 - ::pow(rules.beta2, t);
    if (!(rules.average_decay > 0)) return;
    const double n = state[StepSlot::average_updates];
    state[StepSlot::average_updates] = n + 1;
    const double most = (1 + n) / (10 + n);
    control[ControlSlot::average_decay] = rules.average_decay < most ? rules.average_decay : most;
}

STIPPLE_HD void decide_step(const UpdateRules& rules, const StepNumbers& numbers) {
    double *const state = numbers.state, *const control = numbers.control;
    for (int i = 0; i < ControlSlot::count; ++i) control[i] = 0;
    const double row = state[StepSlot::steps] - *numbers.first_step;
    if (!(row >= 0 && row < static_cast<double>(numbers.rate_count))) return;
    const auto at = static_cast<int64_t>(row);
    const double scale = rules.has_loss_scale ? state[StepSlot::loss_scale] : 1;
    const double gradient = *numbers.gradient_norm / scale, loss = *numbers.loss;
    state[StepSlot::steps] += 1;
    if (is_finite_number(gradient) && is_finite_number(loss)) {
        if (rules.has_loss_scale) observe_gradients(rules, true, state);
        state[StepSlot::skipped_in_a_row] = 0;
        make_step(rules, numbers.rates[at], gradient, scale, state, control);
    } else if (!rules.has_loss_scale || !is_finite_number(loss) || !observe_gradients(rules, false, state)) {
        state[StepSlot::skipped] += 1;
        state[StepSlot::skipped_in_a_row] += 1;
    }
    if (at >= numbers.log_rows) return;
    double* const to = numbers.log + at * LogSlot::count;
    to[LogSlot::loss] = loss;
    to[LogSlot::gradient_norm] = gradient;
    to[LogSlot::is_made] = control[ControlSlot::is_made];
    to[LogSlot::loss_scale] = scale;
}

}  // namespace stipple::ops
