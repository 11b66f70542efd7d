#include "stipple/bench/prepare.h"
#include "stipple/core/half.h"
#include "stipple/ops/linear_max.h"

namespace stipple::bench {
namespace {

using ops::Batch;

/// Numbers in [-1, 1) as float32 or float16.
std::shared_ptr<Array<uint16_t, 1>> numbers(int64_t rows, int64_t columns, DType dtype, uint64_t seed, Device device) {
    const Array<float, 2> floats = uniform_rows(rows, columns, seed);
    const int64_t words = size_of(dtype) / 2;
    Array<uint16_t, 1> bits({floats.elements() * words});
    for (int64_t i = 0; i < floats.elements(); ++i) {
        const float x = 2 * floats.data()[i] - 1;
        if (dtype == DType::f16)
            bits.data()[i] = float_to_half(x);
        else
            reinterpret_cast<float*>(bits.data())[i] = x;
    }
    return keep(bits.to(device));
}

std::string shape_text_of(int64_t clouds, int64_t n, int64_t k, int64_t channels, DType dtype) {
    return fmt::format("{}, k {}, {} channels, {}", shape_of(clouds, n), k, channels, name_of(dtype));
}

Case forward_case(int64_t clouds, int64_t n, int64_t k, int64_t channels, DType dtype, bool on_cpu) {
    return {.op = "linear_max",
            .shape = shape_text_of(clouds, n, k, channels, dtype),
            .points = clouds * n,
            .bytes = (clouds * n + channels) * k * size_of(dtype) + clouds * channels * 8,
            .on_cpu = on_cpu,
            .prepare = [=](Device device) {
                const auto rows = numbers(clouds * n, k, dtype, 1, device);
                const auto weight = numbers(channels, k, dtype, 2, device);
                const auto largest = room_for_rows(clouds, channels, device);
                const auto winners = room<int32_t, 2>({clouds, channels}, device);
                return [=] {
                    ops::linear_max({rows->data(), dtype, clouds * n, k, device}, Batch::dense(clouds, n),
                                    {weight->data(), dtype, channels, k, device}, largest->view(), winners->view());
                };
            }};
}

/// Both gradients, of winners that are spread over the cloud.
Case backward_case(int64_t clouds, int64_t n, int64_t k, int64_t channels, DType dtype, bool on_cpu) {
    return {.op = "linear_max",
            .shape = "gradients, " + shape_text_of(clouds, n, k, channels, dtype),
            .points = clouds * n,
            .bytes = clouds * channels * (16 + 2 * k * size_of(dtype)) + channels * k * 4,
            .on_cpu = on_cpu,
            .prepare = [=](Device device) {
                const auto rows = numbers(clouds * n, k, dtype, 1, device);
                const auto weight = numbers(channels, k, dtype, 2, device);
                const auto winners = random_neighbours(clouds, n, 1, channels, device);
                const auto gradient = keep(uniform_rows(clouds, channels, 3).to(device));
                const auto dL_drows = keep(uniform_rows(clouds * n, k, 4).to(device));
                const auto dL_dweight = room_for_rows(channels, k, device);
                return [=] {
                    const Batch batch = Batch::dense(clouds, n);
                    ops::linear_max_backward_rows(batch, {weight->data(), dtype, channels, k, device},
                                                  std::as_const(*winners).view(), std::as_const(*gradient).view(),
                                                  dL_drows->view());
                    ops::linear_max_backward_weight({rows->data(), dtype, clouds * n, k, device}, batch,
                                                    std::as_const(*winners).view(), std::as_const(*gradient).view(),
                                                    dL_dweight->view());
                };
            }};
}

}  // namespace

std::vector<Case> product_cases(Size size) {
    if (size == Size::tiny)
        return {forward_case(2, 20, 16, 64, DType::f16, true), backward_case(2, 20, 16, 64, DType::f16, true)};
    return {forward_case(16, 1024, 128, 1024, DType::f32, true), backward_case(16, 1024, 128, 1024, DType::f32, true),
            forward_case(1024, 1024, 128, 1024, DType::f16, false),
            backward_case(1024, 1024, 128, 1024, DType::f16, false)};
}

}  // namespace stipple::bench
