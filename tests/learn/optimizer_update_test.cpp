// The ops that step on the device against the optimiser, the average and the norm that are written on torch.

#include "stipple/ops/optimizer_update.h"

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "stipple/learn/optimizer.h"
#include "stipple/ops/gradient_norm.h"
#include "stipple/ops/update_rules.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

DType dtype_of_tensor(const Tensor& tensor) {
    return tensor.scalar_type() == torch::kBFloat16 ? DType::bf16 : DType::f32;
}

/// Gradients of all sizes, of the parameter's type.
void set_gradients(const std::map<std::string, Tensor>& parameters, int step) {
    double phase = step;
    for (const auto& [name, tensor] : parameters) {
        const Tensor slope = torch::sin(torch::arange(tensor.numel(), torch::kFloat64) * 0.7 + phase) * (1 + phase);
        tensor.mutable_grad() = slope.reshape(tensor.sizes()).to(tensor.scalar_type());
        phase += 3;
    }
}

std::map<std::string, Tensor> parameters_of(torch::Dtype type) {
    return {{"a", torch::linspace(-1, 2, 1200).reshape({30, 40}).to(type).set_requires_grad(true)},
            {"b", torch::linspace(0.5, -3, 5).to(type).set_requires_grad(true)}};
}

void expect_close(const Tensor& a, const Tensor& b, double limit, const std::string& what) {
    EXPECT_LT((a.detach().to(torch::kFloat64) - b.detach().to(torch::kFloat64)).abs().max().item<double>(), limit)
        << what;
}

/// A run of both: norm, clipping, step and average, 30 times.
void expect_same_runs(OptimizerKind kind, torch::Dtype type, double limit) {
    SCOPED_TRACE(static_cast<int>(kind));
    const bool has_masters = type != torch::kFloat32;
    OptimizerOptions options;
    options.kind = kind;
    options.weight_decay = 0.05;
    ops::UpdateOptions of_op;
    of_op.kind = kind;
    of_op.weight_decay = options.weight_decay;
    ops::UpdateRules rules;
    rules.clip = 60;
    rules.average_decay = 0.9;

    std::map<std::string, Tensor> theirs = parameters_of(type), own = parameters_of(type);
    Optimizer optimizer(options, theirs, has_masters);
    Average average(rules.average_decay, has_masters ? optimizer.masters() : theirs);
    std::map<std::string, Tensor> stepped, first, second, averages;
    for (const auto& [name, tensor] : own) {
        stepped[name] = has_masters ? tensor.detach().to(torch::kFloat32) : tensor.detach();
        first[name] = torch::zeros_like(stepped[name]);
        second[name] = torch::zeros_like(stepped[name]);
        averages[name] = stepped[name].clone();
    }
    constexpr int kSteps = 30;
    std::vector<double> rates(kSteps, 0.01), state(ops::StepSlot::count), control(ops::ControlSlot::count);
    double first_step = 0, loss = 1;
    float norm = 0;
    int clipped = 0;
    for (int step = 0; step < kSteps; ++step) {
        set_gradients(theirs, step);
        set_gradients(own, step);
        const double gradient = gradient_norm({theirs.at("a"), theirs.at("b")}).item<double>();
        const bool is_clipped = gradient > rules.clip;
        clipped += is_clipped;
        optimizer.step(rates[step], is_clipped ? rules.clip / gradient : 1);
        average.update();

        std::vector<ops::GradientTensor> gradients;
        std::vector<ops::UpdatedTensor> tensors;
        std::vector<ops::AveragedTensor> averaged;
        for (const auto& [name, tensor] : own) {
            gradients.push_back({tensor.grad().data_ptr(), dtype_of_tensor(tensor), tensor.numel()});
            tensors.push_back({.value = tensor.data_ptr(),
                               .value_type = dtype_of_tensor(tensor),
                               .gradient = tensor.grad().data_ptr(),
                               .gradient_type = dtype_of_tensor(tensor),
                               .first = first[name].data_ptr(),
                               .second = second[name].data_ptr(),
                               .master = has_masters ? stepped[name].data_ptr<float>() : nullptr,
                               .count = tensor.numel()});
            averaged.push_back(
                {stepped[name].data_ptr(), DType::f32, averages[name].data_ptr<float>(), tensor.numel()});
        }
        ops::gradient_norm(gradients, View<float, 1>(&norm, {1}));
        EXPECT_NEAR(norm, gradient, 1e-5 * gradient);
        ops::update_rules(rules, View<const double, 1>(rates.data(), {kSteps}), View<const double, 1>(&first_step, {1}),
                          View<const float, 1>(&norm, {1}), View<const double, 1>(&loss, {1}),
                          View<double, 1>(state.data(), {ops::StepSlot::count}),
                          View<double, 1>(control.data(), {ops::ControlSlot::count}),
                          View<double, 2>(nullptr, {0, ops::LogSlot::count}));
        const View<const double, 1> told(control.data(), {ops::ControlSlot::count});
        ops::optimizer_update(tensors, of_op, told);
        ops::average_update(averaged, told);
    }
    EXPECT_GT(clipped, 5);
    EXPECT_LT(clipped, kSteps);
    const std::map<std::string, Tensor> state_of_theirs = optimizer.state();
    for (const auto& [name, tensor] : own) {
        expect_close(tensor, theirs.at(name), has_masters ? 0.02 : limit, name);
        if (has_masters) expect_close(stepped[name], state_of_theirs.at("master." + name), limit, "master " + name);
        expect_close(first[name], state_of_theirs.at("first." + name), 10 * limit, "first " + name);
        expect_close(averages[name], average.values().at(name), limit, "average " + name);
    }
}

TEST(LearnOptimizerUpdate, TheOpsStepAsTheOptimizer) {
    for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw}) {
        expect_same_runs(kind, torch::kFloat32, 5e-6);
        expect_same_runs(kind, torch::kBFloat16, 5e-6);
    }
}

}  // namespace
}  // namespace stipple::learn
