#include "tests/learn/gradients.h"

#include <cmath>

#include "stipple/core/rng.h"

namespace stipple::test {

torch::Tensor normal_tensor(torch::IntArrayRef shape, uint64_t seed) {
    torch::Tensor tensor = torch::empty(shape, torch::kFloat32);
    const Rng rng(seed, 0);
    for (int64_t i = 0; i < tensor.numel(); ++i)
        tensor.data_ptr<float>()[i] = static_cast<float>(rng.normal(static_cast<uint64_t>(i)));
    return tensor;
}

double relative_difference(const torch::Tensor& a, const torch::Tensor& b) {
    if (a.sizes() != b.sizes()) return INFINITY;
    if (a.numel() == 0) return 0;
    const torch::Tensor x = a.detach().to(torch::kCPU, torch::kFloat64),
                        y = b.detach().to(torch::kCPU, torch::kFloat64);
    // Equal infinities and NaN on both sides are no difference.
    const torch::Tensor is_same = (x == y).logical_or(x.isnan().logical_and(y.isnan()));
    const torch::Tensor error = (x - y).abs().masked_fill(is_same, 0);
    const double worst = error.max().item<double>();
    if (std::isnan(worst)) return INFINITY;
    return worst / std::max(1e-3, y.masked_fill(y.isfinite().logical_not(), 0).abs().max().item<double>());
}

namespace {

/// The sum of all floating outputs, each number with a weight of its own, in double.
torch::Tensor weighted_outputs(const Tensors& outputs) {
    torch::Tensor sum = torch::zeros({}, outputs[0].options().dtype(torch::kFloat64));
    for (const torch::Tensor& output : outputs) {
        if (!output.is_floating_point()) continue;
        const torch::Tensor weights =
            torch::sin(torch::arange(output.numel(), sum.options()) * 1.7 + 0.3).to(output.scalar_type());
        sum = sum + (output.reshape({-1}) * weights).to(torch::kFloat64).sum();
    }
    return sum;
}

Tensors leaves(const Tensors& inputs, torch::Device device, torch::Dtype dtype) {
    Tensors found;
    for (const torch::Tensor& input : inputs) found.push_back(input.detach().to(device, dtype).clone());
    for (torch::Tensor& input : found) input.set_requires_grad(true);
    return found;
}

/// The same numbers in another order of memory.
torch::Tensor scattered(const torch::Tensor& tensor) {
    return torch::stack({tensor, tensor}, -1).select(-1, 1);
}

void check_differences(const GradientCase& tested, torch::Device device, const Tensors& gradients) {
    const torch::NoGradGuard no_gradients;
    for (size_t i = 0; i < tested.inputs.size(); ++i) {
        const int64_t numbers = tested.inputs[i].numel();
        double worst = 0, largest = 1e-3;
        for (int64_t at = 0; at < numbers; at += std::max<int64_t>(1, numbers / 12)) {
            const auto value_at = [&](double step) {
                Tensors moved;
                for (const torch::Tensor& input : tested.inputs) moved.push_back(input.clone());
                moved[i].view({-1})[at] += step;
                for (torch::Tensor& input : moved) input = input.to(device);
                return weighted_outputs(tested.function(moved)).item<double>();
            };
            const double slope = (value_at(tested.step) - value_at(-tested.step)) / (2 * tested.step);
            largest = std::max(largest, std::abs(slope));
            worst = std::max(worst, std::abs(slope - gradients[i].view({-1})[at].item<double>()));
        }
        EXPECT_LE(worst / largest, 1e-2) << "central differences of input " << i;
    }
}

}  // namespace

void check_gradients(const GradientCase& tested, torch::Device device) {
    SCOPED_TRACE(tested.name);
    const Tensors exact_inputs = leaves(tested.inputs, torch::kCPU, torch::kFloat64);
    const Tensors exact = tested.oracle(exact_inputs);
    weighted_outputs(exact).backward();

    const Tensors inputs = leaves(tested.inputs, device, torch::kFloat32);
    const Tensors outputs = tested.function(inputs);
    weighted_outputs(outputs).backward();
    ASSERT_EQ(outputs.size(), exact.size());
    for (size_t i = 0; i < outputs.size(); ++i)
        EXPECT_LE(relative_difference(outputs[i], exact[i]), tested.tolerance) << "output " << i;
    Tensors gradients;
    for (size_t i = 0; i < inputs.size(); ++i) {
        ASSERT_TRUE(inputs[i].grad().defined()) << "input " << i;
        gradients.push_back(inputs[i].grad());
        EXPECT_LE(relative_difference(gradients[i], exact_inputs[i].grad()), tested.tolerance) << "gradient " << i;
        EXPECT_GT(exact_inputs[i].grad().abs().max().item<double>(), 0) << "nothing depends on input " << i;
    }
    if (tested.step > 0) check_differences(tested, device, gradients);

    const Tensors others = leaves(tested.inputs, device, torch::kFloat32);
    Tensors not_contiguous;
    for (const torch::Tensor& input : others) not_contiguous.push_back(scattered(input));
    EXPECT_FALSE(not_contiguous[0].numel() > 1 && not_contiguous[0].is_contiguous());
    weighted_outputs(tested.function(not_contiguous)).backward();
    for (size_t i = 0; i < others.size(); ++i)
        EXPECT_TRUE(torch::equal(others[i].grad(), gradients[i])) << "input " << i << ", not contiguous";

    for (size_t one = 0; one < inputs.size(); ++one) {
        const Tensors alone = leaves(tested.inputs, device, torch::kFloat32);
        for (size_t i = 0; i < alone.size(); ++i) alone[i].set_requires_grad(i == one);
        weighted_outputs(tested.function(alone)).backward();
        EXPECT_TRUE(torch::equal(alone[one].grad(), gradients[one])) << "input " << one << " alone";
    }

    {
        const torch::NoGradGuard no_gradients;
        const Tensors constants = leaves(tested.inputs, device, torch::kFloat32);
        const Tensors found = tested.function(constants);
        for (const torch::Tensor& output : found) EXPECT_FALSE(output.requires_grad());
        for (const torch::Tensor& input : constants) EXPECT_EQ(input.use_count(), 1u) << "an input was kept";
    }

    const Tensors again = leaves(tested.inputs, device, torch::kFloat32);
    const Tensors first = torch::autograd::grad({weighted_outputs(tested.function(again))}, again, {},
                                                /*retain_graph=*/true, /*create_graph=*/true);
    EXPECT_TRUE(torch::equal(first[0], gradients[0]));
    std::string message;
    try {
        first[0].sum().backward();
    } catch (const std::exception& error) {
        message = error.what();
    }
    EXPECT_NE(message.find("has no second derivative"), std::string::npos) << message;
}

}  // namespace stipple::test
