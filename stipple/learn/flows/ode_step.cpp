#include "stipple/learn/flows/ode_step.h"

#include <algorithm>
#include <cmath>
#include <torch/torch.h>

#include "stipple/core/error.h"
#include "stipple/learn/functions/tensors.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

/// An explicit Runge-Kutta method: stage i is at c[i], with a[i][j] times the slopes before it; b makes the step, and
/// error is b less that of the method of one order less.
struct Method {
    int stages;
    double c[7], a[7][6], b[7], error[7];
};

constexpr Method kRungeKutta = {
    4, {0, 0.5, 0.5, 1}, {{}, {0.5}, {0, 0.5}, {0, 0, 1}}, {1 / 6.0, 1 / 3.0, 1 / 3.0, 1 / 6.0}, {}};

constexpr Method kDormandPrince = {
    7,
    {0, 1 / 5.0, 3 / 10.0, 4 / 5.0, 8 / 9.0, 1, 1},
    {{},
     {1 / 5.0},
     {3 / 40.0, 9 / 40.0},
     {44 / 45.0, -56 / 15.0, 32 / 9.0},
     {19372 / 6561.0, -25360 / 2187.0, 64448 / 6561.0, -212 / 729.0},
     {9017 / 3168.0, -355 / 33.0, 46732 / 5247.0, 49 / 176.0, -5103 / 18656.0},
     {35 / 384.0, 0, 500 / 1113.0, 125 / 192.0, -2187 / 6784.0, 11 / 84.0}},
    {35 / 384.0, 0, 500 / 1113.0, 125 / 192.0, -2187 / 6784.0, 11 / 84.0, 0},
    {71 / 57600.0, 0, -71 / 16695.0, 71 / 1920.0, -17253 / 339200.0, 22 / 525.0, -1 / 40.0}};

struct StepArguments {
    bool is_adaptive;
    bool with_log_det;
    double t, h;
    network::ActivationKind activation;
};

struct Stepped {
    Tensor state;  // [n, c], or [n, c + 1] with the integral of the trace
    Tensor error;  // of the state; of an adaptive method
};

Stepped step(const FlowNet& net, const Tensor& state, const StepArguments& arguments) {
    const Method& method = arguments.is_adaptive ? kDormandPrince : kRungeKutta;
    const int64_t c = net.weights[0].size(1);
    std::vector<Tensor> slopes;
    const auto sum_of = [&](const double* factors, int count) {
        Tensor sum;
        for (int i = 0; i < count; ++i)
            if (factors[i] != 0) {
                const Tensor part = (factors[i] * arguments.h) * slopes[static_cast<size_t>(i)];
                sum = sum.defined() ? sum + part : part;
            }
        return sum;
    };
    for (int i = 0; i < method.stages; ++i) {
        const Tensor ahead = i == 0 ? state : state + sum_of(method.a[i], i);
        const FlowValue value =
            evaluate(net, ahead.narrow(1, 0, c), arguments.t + method.c[i] * arguments.h, arguments.with_log_det);
        slopes.push_back(
            arguments.with_log_det ? torch::cat({value.g, value.jacobian.diagonal(0, 1, 2).sum(1, true)}, 1) : value.g);
    }
    return {state + sum_of(method.b, method.stages),
            arguments.is_adaptive ? sum_of(method.error, method.stages) : Tensor()};
}

/// One step that keeps its inputs alone: the backward pass computes it again.
class StepFunction : public torch::autograd::Function<StepFunction> {
public:
    static variable_list forward(AutogradContext* context, const Tensor& state, const Tensor& condition,
                                 const Tensor& first, const Tensor& second, const Tensor& third, const Tensor& time,
                                 const StepArguments& arguments) {
        keep(context, arguments);
        context->save_for_backward({state, condition, first, second, third, time});
        const Stepped made = step({condition, {first, second, third}, time, arguments.activation}, state, arguments);
        if (!arguments.is_adaptive) return {made.state};
        context->mark_non_differentiable({made.error});
        return {made.state, made.error};
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("ode_step", [&]() -> variable_list {
            variable_list all(7);
            if (!gradients[0].defined()) return all;
            variable_list inputs;
            for (const Tensor& saved : context->get_saved_variables())
                inputs.push_back(saved.detach().requires_grad_(true));
            const torch::AutoGradMode with_graph(true);
            const Stepped made =
                step({inputs[1], {inputs[2], inputs[3], inputs[4]}, inputs[5], kept<StepArguments>(context).activation},
                     inputs[0], kept<StepArguments>(context));
            const variable_list made_of = torch::autograd::grad({made.state}, inputs, {gradients[0]},
                                                                /*retain_graph=*/false, /*create_graph=*/false,
                                                                /*allow_unused=*/true);
            std::copy(made_of.begin(), made_of.end(), all.begin());
            return all;
        });
    }
};

Stepped make_step(const FlowNet& net, const Tensor& state, const StepArguments& arguments) {
    if (!torch::GradMode::is_enabled()) return step(net, state, arguments);
    const variable_list made =
        StepFunction::apply(state, net.condition, net.weights[0], net.weights[1], net.weights[2], net.time, arguments);
    return {made[0], made.size() > 1 ? made[1] : Tensor()};
}

/// The largest error over what is allowed.
double error_of(const Stepped& made, const Tensor& before, double tolerance) {
    const torch::NoGradGuard no_gradients;
    const Tensor size = torch::max(torch::abs(before), torch::abs(made.state));
    return (torch::abs(made.error) / (tolerance * (1 + size))).max().item<double>();
}

Tensor adaptive(const FlowNet& net, Tensor state, const OdeOptions& options, StepArguments arguments) {
    constexpr double kShortest = 1e-7, kMost = 5, kLeast = 0.2, kSafety = 0.9;
    double done = 0, length = 0.1;
    while (done < 1) {
        const double now = std::min(length, 1 - done);
        arguments.t = options.inverse ? 1 - done : done;
        arguments.h = options.inverse ? -now : now;
        const Stepped made = make_step(net, state, arguments);
        const double error = error_of(made, state, options.tolerance);
        if (!std::isfinite(error) || (error > 1 && now < kShortest))
            throw Error(ErrorCode::not_finite,
                        fmt::format("a continuous flow step cannot be followed beyond time {:.4g} at a tolerance of {}",
                                    arguments.t, options.tolerance),
                        "a larger tolerance, or a fixed number of steps");
        if (error <= 1) {
            state = made.state;
            done = now < length || now >= 1 - done ? 1 : done + now;
        }
        length = now * std::clamp(kSafety * std::pow(std::max(error, 1e-10), -0.2), kLeast, kMost);
    }
    return state;
}

}  // namespace

Moved ode_step(const FlowNet& net, const Tensor& x, bool with_log_det, const OdeOptions& options) {
    STIPPLE_REQUIRE(options.tolerance >= 0 && std::isfinite(options.tolerance), "a tolerance of {}, must be 0 or more",
                    options.tolerance);
    Tensor state = with_log_det ? torch::constant_pad_nd(x, {0, 1}) : x;
    StepArguments arguments{options.tolerance > 0, with_log_det, 0, 0, net.activation};
    if (arguments.is_adaptive) {
        state = adaptive(net, state, options, arguments);
    } else {
        STIPPLE_REQUIRE(options.steps >= 1, "{} steps, must be 1 or more", options.steps);
        arguments.h = (options.inverse ? -1.0 : 1.0) / static_cast<double>(options.steps);
        for (int64_t i = 0; i < options.steps; ++i) {
            arguments.t = (options.inverse ? 1 : 0) + static_cast<double>(i) * arguments.h;
            state = make_step(net, state, arguments).state;
        }
    }
    const int64_t c = x.size(1);
    return with_log_det ? Moved{state.narrow(1, 0, c), state.narrow(1, c, 1)} : Moved{state, {}};
}

}  // namespace stipple::learn
