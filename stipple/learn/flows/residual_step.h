#pragma once
// Residual steps y = x + g(x) and their inverses, with gradients.

#include <functional>

#include "stipple/learn/flows/flow_net.h"
#include "stipple/learn/flows/log_det.h"

namespace stipple::learn {

struct Moved {
    torch::Tensor x;        // [n, c]
    torch::Tensor log_det;  // [n, 1]; undefined where it was not asked for
};

/// ln |det (1 + J)| exact, or by the estimator of `options` with what it draws from rng.
Moved residual_step(const FlowNet& net, const torch::Tensor& x, bool with_log_det, const LogDetOptions& options,
                    const Rng& rng);

/// x of x + g(x) = y, for Lip(g) < 1: Newton's method row by row, the fixed point y - g(x) where it does not bring a
/// row's residual down, until no number moves by 1e-6 (float64: 1e-12) or rounding hides whether it helps.
///
/// The gradient is that of the implicit function, dL/dy = (1 + J)^-T dL/dx: memory is that of one evaluation however
/// many iterations there were. It holds once: a second derivative would lack terms. log_det: of the inverse, exact.
Moved residual_step_inverse(const FlowNet& net, const torch::Tensor& y, bool with_log_det);

}  // namespace stipple::learn
