#pragma once
// A function of tensors against an oracle in double: values, gradients, and what every function promises.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "stipple/core/device.h"
#include "tests/support/devices.h"

namespace stipple::test {

/// The CPU, and the first GPU where this build and torch have one.
inline std::vector<Device> torch_devices() {
    return torch::cuda::is_available() ? test_devices() : std::vector<Device>{Device{}};
}
inline torch::Device torch_device(Device device) {
    return device.type == DeviceType::cpu ? torch::Device(torch::kCPU)
                                          : torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(device.index));
}
#define STIPPLE_ON_EVERY_TORCH_DEVICE(suite) \
    INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(::stipple::test::torch_devices()), ::stipple::test::device_name)

using Tensors = std::vector<torch::Tensor>;
using TensorFunction = std::function<Tensors(const Tensors&)>;

struct GradientCase {
    std::string name;
    Tensors inputs;                   // float32 on the CPU, all of them differentiable
    TensorFunction function, oracle;  // of float32 on the device; of float64 on the CPU, by torch's own operations
    double tolerance = 1e-5;          // of the largest number of a tensor, at least 1e-3
    double step = 1e-3;               // of central differences in float32; 0: where there are kinks, none
};

/// Normal numbers, the same everywhere.
torch::Tensor normal_tensor(torch::IntArrayRef shape, uint64_t seed);

/// Largest |a - b| over the largest |b| (at least 1e-3). Infinite where one has NaN and the other does not.
double relative_difference(const torch::Tensor& a, const torch::Tensor& b);

/// Values and gradients are the oracle's and slopes of central differences; tensors that are not contiguous and
/// gradients of one input alone give the same; without gradients nothing is kept; a second derivative throws.
void check_gradients(const GradientCase& tested, torch::Device device);

}  // namespace stipple::test
