#pragma once
// Continuous steps: dx/dt = g(x, t) from time 0 to 1, or back, with gradients.

#include "stipple/learn/flows/residual_step.h"

namespace stipple::learn {

struct OdeOptions {
    int64_t steps = 8;     // of RK4
    double tolerance = 0;  // above 0: Dormand and Prince's method instead, with steps as long as this error allows
    bool inverse = false;
};

/// log_det: the integral of the exact trace. An adaptive step has the length that suits the row that needs the
/// shortest; errors are measured against tolerance * (1 + |x|), the largest of all numbers. Gradients are those of the
/// steps as made; each step keeps its input alone and is computed again in the backward pass, so memory is the states.
/// There is no second derivative. Throws Error{not_finite} where x becomes so or steps become too short.
Moved ode_step(const FlowNet& net, const torch::Tensor& x, bool with_log_det, const OdeOptions& options);

}  // namespace stipple::learn
