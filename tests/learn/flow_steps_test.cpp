// Flow steps that hold a small network, under autograd: exact Jacobians, log-determinants, inverses and their
// gradients, against what autograd finds by brute force in double.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/learn/flows/lipschitz.h"
#include "stipple/learn/flows/ode_step.h"
#include "tests/learn/gradients.h"
#include "tests/support/expect_error.h"

namespace stipple::learn {
namespace {

using network::ActivationKind;
using test::normal_tensor;
using torch::Tensor;

Tensor double_tensor(torch::IntArrayRef shape, uint64_t seed) {
    return normal_tensor(shape, seed).to(torch::kFloat64);
}

struct FlowCase {
    int64_t channels = 3, hidden = 10;
    ActivationKind activation = ActivationKind::swish;
    bool has_time = false;
};

/// Norms of the weights multiply to `size`; everything requires gradients.
FlowNet random_net(const FlowCase& one, int64_t rows, double size, torch::Dtype type = torch::kFloat64) {
    const int64_t c = one.channels, h = one.hidden, parts = network::flow_condition_channels(c, h);
    FlowNet net;
    net.activation = one.activation;
    net.condition = double_tensor({rows, parts}, 5).to(type).requires_grad_(true);
    const int64_t shapes[3][2] = {{h, c}, {h, h}, {c, h}};
    for (size_t i = 0; i < 3; ++i) {
        const Tensor weight = double_tensor({shapes[i][0], shapes[i][1]}, 10 + i);
        net.weights[i] = (weight / spectral_norm_bound(weight) * std::cbrt(size)).to(type).requires_grad_(true);
    }
    if (one.has_time) net.time = (0.5 * double_tensor({parts}, 20)).to(type).requires_grad_(true);
    return net;
}

/// d out_i / d x_j [n, c, c] of a function that works on rows one by one.
Tensor brute_force_jacobian(const Tensor& out, const Tensor& x) {
    std::vector<Tensor> rows;
    for (int64_t i = 0; i < out.size(1); ++i)
        rows.push_back(torch::autograd::grad({out.select(1, i).sum()}, {x}, {}, /*retain_graph=*/true)[0]);
    return torch::stack(rows, 1);
}

double largest_of(const Tensor& x) {
    return torch::abs(x).max().item<double>();
}

const FlowCase kCases[] = {{3, 10, ActivationKind::swish},
                           {3, 10, ActivationKind::tanh},
                           {2, 4, ActivationKind::swish},
                           {1, 5, ActivationKind::tanh, true},
                           {3, 8, ActivationKind::tanh, true}};

TEST(FlowSteps, JacobiansAreThoseOfAutograd) {
    for (const FlowCase& one : kCases) {
        const FlowNet net = random_net(one, 17, 2);
        const Tensor x = double_tensor({17, one.channels}, 1).requires_grad_(true);
        const FlowValue value = evaluate(net, x, 0.3, true);
        EXPECT_LE(largest_of(value.jacobian - brute_force_jacobian(value.g, x)), 1e-14);
        const Tensor sum = value.jacobian + torch::eye(one.channels, torch::kFloat64);
        EXPECT_LE(largest_of(determinant_beside_one(value.jacobian) - torch::det(sum)), 1e-13);
        EXPECT_LE(largest_of(inverse_beside_one(value.jacobian) - torch::inverse(sum)), 1e-11);
    }
}

TEST(FlowSteps, ResidualLogDeterminantsAreThoseOfAutograd) {
    for (const FlowCase& one : kCases) {
        if (one.has_time) continue;
        const FlowNet net = random_net(one, 23, 0.7);
        const Tensor x = double_tensor({23, one.channels}, 2).requires_grad_(true);
        const Moved moved = residual_step(net, x, true, {}, Rng(1));
        const Tensor expected = std::get<1>(torch::slogdet(brute_force_jacobian(moved.x, x))).unsqueeze(1);
        EXPECT_LE(largest_of(moved.log_det - expected), 1e-13);
        // And of the inverse.
        const Tensor y = moved.x.detach().requires_grad_(true);
        const Moved back = residual_step_inverse(net, y, true);
        EXPECT_LE(largest_of(back.x - x), 1e-11);
        EXPECT_LE(largest_of(back.log_det + expected), 1e-11);
        EXPECT_LE(largest_of(brute_force_jacobian(back.x, y) - torch::inverse(brute_force_jacobian(moved.x, x))), 1e-9);
    }
}

TEST(FlowSteps, ResidualInverseIsThatOfFloatsToo) {
    const FlowNet net = random_net({3, 64, ActivationKind::swish}, 2048, 0.74, torch::kFloat32);
    const torch::NoGradGuard no_gradients;
    const Tensor x = 2 * normal_tensor({2048, 3}, 3);
    const Tensor y = residual_step(net, x, false, {}, Rng(1)).x;
    EXPECT_LE(largest_of(residual_step_inverse(net, y, false).x - x), 1e-5);
}

// Against the fixed-point iteration with its whole graph.
TEST(FlowSteps, GradientsOfTheInverseAreThoseOfTheUnrolledIteration) {
    const FlowNet net = random_net({3, 6, ActivationKind::swish}, 11, 0.5);
    const Tensor y = double_tensor({11, 3}, 4).requires_grad_(true), factor = double_tensor({11, 3}, 6);
    Tensor unrolled = y;
    for (int i = 0; i < 80; ++i) unrolled = y - evaluate(net, unrolled, 0, false).g;
    const std::vector<Tensor> inputs = {y, net.condition, net.weights[0], net.weights[1], net.weights[2]};
    const auto expected = torch::autograd::grad({(unrolled * factor).sum()}, inputs);
    const auto got = torch::autograd::grad({(residual_step_inverse(net, y, false).x * factor).sum()}, inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
        EXPECT_LE(largest_of(got[i] - expected[i]), 1e-9 * largest_of(expected[i])) << i;
}

TEST(FlowSteps, ContinuousStepsGoThereAndBack) {
    for (const FlowCase& one : kCases) {
        if (!one.has_time) continue;
        const FlowNet net = random_net(one, 19, 8);
        const torch::NoGradGuard no_gradients;
        const Tensor x = double_tensor({19, one.channels}, 7);
        const Moved there = ode_step(net, x, true, {.tolerance = 1e-7});
        const Moved back = ode_step(net, there.x, true, {.tolerance = 1e-7, .inverse = true});
        EXPECT_LE(largest_of(back.x - x), 1e-5);
        EXPECT_LE(largest_of(back.log_det + there.log_det), 1e-5);
        // Fixed steps tend to the same, their error by the fourth power.
        const auto error = [&](int64_t steps) {
            const Moved moved = ode_step(net, x, true, {.steps = steps});
            const Moved exact = ode_step(net, x, true, {.tolerance = 1e-12});
            return std::max(largest_of(moved.x - exact.x), largest_of(moved.log_det - exact.log_det));
        };
        EXPECT_NEAR(std::log2(error(16) / error(32)), 4, 0.7);
    }
}

TEST(FlowSteps, ContinuousLogDeterminantsAreThoseOfAutograd) {
    for (const FlowCase& one : kCases) {
        if (!one.has_time) continue;
        const FlowNet net = random_net(one, 13, 4);
        const Tensor x = double_tensor({13, one.channels}, 8).requires_grad_(true);
        for (const bool inverse : {false, true}) {
            const Moved moved = ode_step(net, x, true, {.tolerance = 1e-10, .inverse = inverse});
            const Tensor expected = std::get<1>(torch::slogdet(brute_force_jacobian(moved.x, x))).unsqueeze(1);
            EXPECT_LE(largest_of(moved.log_det - expected), 1e-8);
        }
    }
}

// A step keeps its input alone: the numbers are those of a graph that keeps everything.
TEST(FlowSteps, GradientsOfContinuousStepsAreFiniteDifferences) {
    FlowNet net = random_net({3, 5, ActivationKind::tanh, true}, 6, 4);
    const Tensor x = double_tensor({6, 3}, 9).requires_grad_(true), factor = double_tensor({6, 4}, 10);
    const auto loss = [&](const OdeOptions& options) {
        const Moved moved = ode_step(net, x, true, options);
        return (torch::cat({moved.x, moved.log_det}, 1) * factor).sum();
    };
    for (const OdeOptions& options :
         {OdeOptions{.steps = 4}, OdeOptions{.steps = 3, .inverse = true}, OdeOptions{.tolerance = 1e-9}}) {
        const std::vector<Tensor> inputs = {x, net.condition, net.weights[0], net.weights[1], net.weights[2], net.time};
        const auto gradients = torch::autograd::grad({loss(options)}, inputs);
        const torch::NoGradGuard no_gradients;
        for (size_t i = 0; i < inputs.size(); ++i) {
            double* values = inputs[i].data_ptr<double>();
            const Tensor gradient = gradients[i].contiguous();
            for (int64_t k = 0; k < inputs[i].numel(); k += 1 + inputs[i].numel() / 7) {
                const double kept = values[k], step = 1e-4;
                values[k] = kept + step;
                const double above = loss(options).item<double>();
                values[k] = kept - step;
                const double below = loss(options).item<double>();
                values[k] = kept;
                EXPECT_NEAR((above - below) / (2 * step), gradient.data_ptr<double>()[k], 1e-5) << i << " " << k;
            }
        }
    }
}

TEST(FlowSteps, AdaptiveStepsThatCannotGoOnSaySo) {
    FlowNet net = random_net({3, 5, ActivationKind::tanh, true}, 2, 4);
    const torch::NoGradGuard no_gradients;
    const Tensor x = torch::full({2, 3}, NAN, torch::kFloat64);
    const OdeOptions options{.tolerance = 1e-6};
    EXPECT_ERROR(ode_step(net, x, false, options), not_finite, "tolerance");
}

TEST(FlowSteps, NormsAreBoundedFromAboveAndWeightsKeptBelow) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{64, 64}, {64, 3}, {3, 64}, {1, 5}, {7, 1}}) {
        const Tensor w = double_tensor({rows, columns}, 11);
        const double exact = std::get<1>(torch::svd(w)).max().item<double>();
        const double bound = spectral_norm_bound(w).item<double>();
        EXPECT_GE(bound, exact * (1 - 1e-12));
        EXPECT_LE(bound, exact * 1.01);
    }
    EXPECT_LE(spectral_norm_bound(torch::zeros({3, 4})).item<double>(), 1e-200);
}

}  // namespace
}  // namespace stipple::learn
