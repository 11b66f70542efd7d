#include "stipple/learn/optimizer.h"

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/learn/functions/tensors.h"
#include "stipple/learn/short_numbers.h"
#include "stipple/learn/stream.h"
#include "stipple/ops/gradient_norm.h"
#include "stipple/ops/optimizer_update.h"

namespace stipple::learn {

using torch::Tensor;

namespace {

std::vector<Tensor> zeros_like_all(const std::vector<Tensor>& tensors) {
    std::vector<Tensor> zeros;
    for (const Tensor& tensor : tensors) zeros.push_back(torch::zeros_like(tensor.detach()));
    return zeros;
}

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
    std::vector<Tensor> gradients;
    for (const Tensor& parameter : parameters)
        if (parameter.grad().defined()) gradients.push_back(at_least_float(parameter.grad()));
    return gradients;
}

DType dtype_of(const Tensor& tensor) {
    if (tensor.scalar_type() == torch::kHalf) return DType::f16;
    if (tensor.scalar_type() == torch::kBFloat16) return DType::bf16;
    STIPPLE_ASSERT(tensor.scalar_type() == torch::kFloat32);
    return DType::f32;
}

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, const std::map<std::string, Tensor>& parameters,
                     bool keeps_masters)
    : options_(options) {
    STIPPLE_REQUIRE(options.weight_decay >= 0, "optimizer: weight_decay must be at least 0, got {}",
                    options.weight_decay);
    for (const double share : {options.momentum, options.beta1, options.beta2})
        STIPPLE_REQUIRE(share >= 0 && share < 1, "optimizer: momentum and betas must be at least 0 and below 1, got {}",
                        share);
    STIPPLE_REQUIRE(options.eps > 0, "optimizer: eps must be above 0, got {}", options.eps);
    for (const auto& [name, tensor] : parameters) {
        if (!tensor.requires_grad()) continue;
        names_.push_back(name);
        parameters_.push_back(tensor);
        values_.push_back(keeps_masters ? at_least_float(tensor.detach()) : tensor);
    }
    first_ = zeros_like_all(values_);
    if (options.kind != OptimizerKind::sgd) second_ = zeros_like_all(values_);
}

void Optimizer::step(double rate, double gradient_scale) {
    step_values(rate, gradient_scale);
    const torch::NoGradGuard no_gradients;
    for (size_t i = 0; i < parameters_.size(); ++i)
        if (!values_[i].is_same(parameters_[i])) parameters_[i].copy_(values_[i]);
}

void Optimizer::step_values(double rate, double gradient_scale) {
    const torch::NoGradGuard no_gradients;
    ++steps_;
    std::vector<Tensor> values, gradients, first, second;
    for (size_t i = 0; i < parameters_.size(); ++i) {
        if (!parameters_[i].grad().defined()) continue;
        values.push_back(values_[i]);
        gradients.push_back(parameters_[i].grad().to(values_[i].scalar_type()));
        first.push_back(first_[i]);
        if (!second_.empty()) second.push_back(second_[i]);
    }
    if (values.empty()) return;
    if (gradient_scale != 1) at::_foreach_mul_(gradients, gradient_scale);
    const double decay = options_.weight_decay;
    if (options_.kind == OptimizerKind::adamw) {
        if (decay > 0) at::_foreach_mul_(values, 1 - rate * decay);
    } else if (decay > 0) {
        gradients = at::_foreach_add(gradients, values, decay);
    }
    if (options_.kind == OptimizerKind::sgd) {
        at::_foreach_mul_(first, options_.momentum);
        at::_foreach_add_(first, gradients, 1);
        at::_foreach_add_(values, first, -rate);
        return;
    }
    at::_foreach_mul_(first, options_.beta1);
    at::_foreach_add_(first, gradients, 1 - options_.beta1);
    at::_foreach_mul_(second, options_.beta2);
    at::_foreach_addcmul_(second, gradients, gradients, 1 - options_.beta2);
    const auto t = static_cast<double>(steps_);
    const double correction1 = 1 - std::pow(options_.beta1, t), correction2 = 1 - std::pow(options_.beta2, t);
    std::vector<Tensor> divisors = at::_foreach_sqrt(second);
    at::_foreach_mul_(divisors, 1 / std::sqrt(correction2));
    at::_foreach_add_(divisors, options_.eps);
    at::_foreach_addcdiv_(values, first, divisors, -rate / correction1);
}

void Optimizer::step_on_device(const Tensor& control) {
    std::vector<ops::UpdatedTensor> tensors;
    for (size_t i = 0; i < parameters_.size(); ++i) {
        const Tensor& gradient = parameters_[i].grad();
        if (!gradient.defined()) continue;
        STIPPLE_ASSERT(gradient.is_contiguous() && parameters_[i].is_contiguous());
        const bool has_master = !values_[i].is_same(parameters_[i]);
        tensors.push_back({parameters_[i].data_ptr(), dtype_of(parameters_[i]), gradient.data_ptr(), dtype_of(gradient),
                           first_[i].data_ptr(), second_.empty() ? nullptr : second_[i].data_ptr(),
                           has_master ? values_[i].data_ptr<float>() : nullptr, parameters_[i].numel()});
    }
    ops::optimizer_update(tensors, options_, view_of<const double, 1>(control), current_stream(control));
}

Tensor Optimizer::gradient_norm() const {
    std::vector<ops::GradientTensor> tensors;
    for (const Tensor& parameter : parameters_)
        if (parameter.grad().defined())
            tensors.push_back({parameter.grad().data_ptr(), dtype_of(parameter.grad()), parameter.grad().numel()});
    STIPPLE_REQUIRE(!tensors.empty(), "no parameter has a gradient");
    Tensor norm = torch::empty({1}, first_[0].options().dtype(torch::kFloat32));
    ops::gradient_norm(tensors, view_of<float, 1>(norm), current_stream(norm));
    return norm;
}

void Optimizer::zero_gradients() {
    for (Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

std::map<std::string, Tensor> Optimizer::state() const {
    std::map<std::string, Tensor> state;
    for (size_t i = 0; i < names_.size(); ++i) {
        state.emplace("first." + names_[i], first_[i]);
        if (!second_.empty()) state.emplace("second." + names_[i], second_[i]);
        if (!values_[i].is_same(parameters_[i])) state.emplace("master." + names_[i], values_[i]);
    }
    return state;
}

std::map<std::string, Tensor> Optimizer::masters() const {
    std::map<std::string, Tensor> masters;
    for (size_t i = 0; i < names_.size(); ++i)
        if (!values_[i].is_same(parameters_[i])) masters.emplace(names_[i], values_[i]);
    return masters;
}

Tensor gradient_norm(const std::vector<Tensor>& parameters) {
    const torch::NoGradGuard no_gradients;
    const std::vector<Tensor> gradients = gradients_of(parameters);
    STIPPLE_REQUIRE(!gradients.empty(), "no parameter has a gradient");
    return torch::stack(at::_foreach_norm(gradients, 2)).norm();
}

Average::Average(double decay, const std::map<std::string, Tensor>& values) : decay_(decay), values_(values) {
    STIPPLE_REQUIRE(decay >= 0 && decay < 1, "average: decay must be at least 0 and below 1, got {}", decay);
    for (const auto& [name, tensor] : values) {
        averages_.emplace(name, is_short(tensor) ? at_least_float(tensor.detach()) : tensor.detach().clone());
        from_.push_back(values_.at(name).detach());
        to_.push_back(averages_.at(name));
    }
}

void Average::update() {
    const torch::NoGradGuard no_gradients;
    const auto n = static_cast<double>(updates_++);
    const double decay = std::min(decay_, (1 + n) / (10 + n));
    at::_foreach_mul_(to_, decay);
    std::vector<Tensor> from;
    for (const Tensor& tensor : from_) from.push_back(at_least_float(tensor));
    at::_foreach_add_(to_, from, 1 - decay);
}

void Average::update_on_device(const Tensor& control) {
    std::vector<ops::AveragedTensor> tensors;
    for (size_t i = 0; i < from_.size(); ++i)
        tensors.push_back({from_[i].data_ptr(), dtype_of(from_[i]), to_[i].data_ptr<float>(), from_[i].numel()});
    ops::average_update(tensors, view_of<const double, 1>(control), current_stream(control));
}

}  // namespace stipple::learn
