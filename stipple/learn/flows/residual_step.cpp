#include "stipple/learn/flows/residual_step.h"

#include <torch/torch.h>

namespace stipple::learn {
namespace {

using torch::Tensor;

constexpr int kMostIterations = 200;

struct Residuals {
    Tensor r;         // x + g(x) - y
    Tensor square;    // [n, 1] |r|^2
    Tensor jacobian;  // of g
};

Residuals residuals(const FlowNet& net, const Tensor& x, const Tensor& y) {
    const FlowValue value = evaluate(net, x, 0, true);
    const Tensor r = x + value.g - y;
    return {r, (r * r).sum(1, true), value.jacobian};
}

void take(Residuals& to, const Residuals& from, const Tensor& which) {
    to.r = torch::where(which, from.r, to.r);
    to.square = torch::where(which, from.square, to.square);
    to.jacobian = torch::where(which.unsqueeze(2), from.jacobian, to.jacobian);
}

/// Without gradients.
Tensor solve(const FlowNet& net, const Tensor& y) {
    const bool is_double = y.scalar_type() == torch::kFloat64;
    const double tolerance = is_double ? 1e-12 : 1e-6, rounding = is_double ? 1e-10 : 1e-5;
    Tensor x = y.clone();
    Residuals now = residuals(net, x, y);
    Tensor is_open = torch::ones({y.size(0), 1}, y.options().dtype(torch::kBool));
    for (int i = 0; i < kMostIterations; ++i) {
        const Tensor d = torch::matmul(inverse_beside_one(now.jacobian), now.r.unsqueeze(2)).squeeze(2);
        const Tensor largest = std::get<0>(torch::max(torch::abs(d), 1, true));
        const Tensor next = torch::where(is_open, x - d, x);
        const Tensor is_last = largest < tolerance;
        x = torch::where(is_open.logical_and(is_last), next, x);
        is_open = is_open.logical_and(is_last.logical_not());
        if (!is_open.any().item<bool>()) break;
        const Residuals trial = residuals(net, next, y);
        const Tensor is_better = is_open.logical_and(trial.square < now.square);
        Tensor is_worse = is_open.logical_and(is_better.logical_not());
        x = torch::where(is_better, next, x);
        // So short that rounding hides whether it helps.
        const Tensor is_short =
            largest < rounding * torch::clamp_min(std::get<0>(torch::max(torch::abs(x), 1, true)), 1);
        is_open = is_open.logical_and(is_worse.logical_and(is_short).logical_not());
        is_worse = is_worse.logical_and(is_open);
        const Tensor plain = x - now.r;
        take(now, trial, is_better);
        if (!is_worse.any().item<bool>()) continue;
        const Residuals fixed = residuals(net, torch::where(is_worse, plain, x), y);
        const Tensor is_nearer = is_worse.logical_and(fixed.square < now.square);
        x = torch::where(is_nearer, plain, x);
        take(now, fixed, is_nearer);
        is_open = is_open.logical_and(is_worse.logical_and(is_nearer.logical_not()).logical_not());
    }
    return x;
}

Tensor exact_log_det(const Tensor& jacobian) {
    return torch::log(torch::abs(determinant_beside_one(jacobian))).unsqueeze(1);
}

}  // namespace

Moved residual_step(const FlowNet& net, const Tensor& x, bool with_log_det, const LogDetOptions& options,
                    const Rng& rng) {
    const bool is_exact = options.method == LogDetMethod::exact;
    const FlowValue value = evaluate(net, x, 0, with_log_det && is_exact);
    Moved moved{x + value.g, {}};
    if (with_log_det)
        moved.log_det = is_exact ? exact_log_det(value.jacobian)
                                 : estimate_log_det([&](const Tensor& at) { return evaluate(net, at, 0, false).g; }, x,
                                                    options, rng);
    return moved;
}

Moved residual_step_inverse(const FlowNet& net, const Tensor& y, bool with_log_det) {
    Tensor x, inverse;
    {
        const torch::NoGradGuard no_gradients;
        x = solve(net, y.detach());
        if (y.requires_grad() || net.condition.requires_grad() || net.weights[0].requires_grad())
            inverse = inverse_beside_one(evaluate(net, x, 0, true).jacobian);
    }
    // One more step of Newton's method, whose derivative at the solution is that of the implicit function.
    if (inverse.defined() && torch::GradMode::is_enabled()) {
        const Tensor r = x + evaluate(net, x, 0, false).g - y;
        x = x - torch::matmul(inverse, r.unsqueeze(2)).squeeze(2);
    }
    Moved moved{x, {}};
    if (with_log_det) moved.log_det = -exact_log_det(evaluate(net, x, 0, true).jacobian);
    return moved;
}

}  // namespace stipple::learn
