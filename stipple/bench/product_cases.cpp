#include <iterator>

#include "stipple/bench/prepare.h"
#include "stipple/core/half.h"
#include "stipple/ops/gram.h"
#include "stipple/ops/linear_max.h"
#include "stipple/ops/row_norm.h"

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

/// Matrices and numbers of columns for batch norm.
struct NormData {
    std::shared_ptr<Array<uint16_t, 1>> rows, gradient, out;
    std::shared_ptr<Array<float, 2>> of_columns;  // mean, inverse, scale, shift, two sums
    int64_t n, c;
    DType dtype;

    NormData(int64_t n_, int64_t c_, DType dtype_, Device device)
        : rows(numbers(n_, c_, dtype_, 1, device)),
          gradient(numbers(n_, c_, dtype_, 2, device)),
          out(room<uint16_t, 1>({n_ * c_ * size_of(dtype_) / 2}, device)),
          of_columns(keep(uniform_rows(6, c_, 3).to(device))),
          n(n_),
          c(c_),
          dtype(dtype_) {}
    ops::MatrixView view(const std::shared_ptr<Array<uint16_t, 1>>& numbers) const {
        return {numbers->data(), dtype, n, c, numbers->device()};
    }
    ops::MutableMatrixView result() const { return {out->data(), dtype, n, c, out->device()}; }
    View<float, 1> column(int64_t i) const { return {of_columns->data() + i * c, {c}, of_columns->device()}; }
    ops::NormColumns columns() const { return {column(0), column(1), column(2), column(3)}; }
};

/// passes: times that all numbers are read or written.
Case norm_case(const std::string& what, int64_t n, int64_t c, DType dtype, bool on_cpu, int passes,
               void (*call)(const NormData&)) {
    return {.op = "row_norm",
            .shape = fmt::format("{}, {} x {}, {}", what, shape_of(1, n), c, name_of(dtype)),
            .points = n,
            .bytes = passes * n * c * size_of(dtype),
            .on_cpu = on_cpu,
            .prepare = [=](Device device) {
                const auto data = keep(NormData(n, c, dtype, device));
                return [=] { call(*data); };
            }};
}

std::vector<Case> norm_cases(int64_t n, int64_t c, DType dtype, bool on_cpu) {
    return {norm_case("statistics", n, c, dtype, on_cpu, 1,
                      [](const NormData& d) { ops::column_statistics(d.view(d.rows), d.column(4), d.column(5)); }),
            norm_case("rows", n, c, dtype, on_cpu, 2,
                      [](const NormData& d) {
                          ops::normalise_rows(d.view(d.rows), d.column(2), d.column(3), true, d.result());
                      }),
            norm_case("sums of gradients", n, c, dtype, on_cpu, 2,
                      [](const NormData& d) {
                          ops::norm_backward_sums(d.view(d.gradient), d.view(d.rows), d.columns(), true, d.column(4),
                                                  d.column(5));
                      }),
            norm_case("gradients", n, c, dtype, on_cpu, 3, [](const NormData& d) {
                ops::norm_backward_rows(d.view(d.gradient), d.view(d.rows), d.columns(), d.column(4), d.column(5),
                                        static_cast<double>(d.n), true, d.result());
            })};
}

Case gram_case(int64_t n, int64_t k, DType dtype, bool on_cpu, bool on_cuda) {
    return {.op = "gram",
            .shape = fmt::format("{}, k {}, {}", shape_of(1, n), k, name_of(dtype)),
            .points = n,
            .bytes = n * k * size_of(dtype) + 8 * (k * k + k),
            .on_cpu = on_cpu,
            .on_cuda = on_cuda,
            .prepare = [=](Device device) {
                const auto rows = numbers(n, k, dtype, 1, device);
                const auto sum = room<double, 1>({k}, device);
                const auto products = room<double, 2>({k, k}, device);
                return [=] { ops::gram({rows->data(), dtype, n, k, device}, sum->view(), products->view()); };
            }};
}

}  // namespace

std::vector<Case> product_cases(Size size) {
    const bool is_tiny = size == Size::tiny;
    std::vector<Case> cases;
    const auto add = [&](std::vector<Case> some) {
        cases.insert(cases.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    };
    if (is_tiny) {
        add({forward_case(2, 20, 16, 64, DType::f16, true), backward_case(2, 20, 16, 64, DType::f16, true)});
        add(norm_cases(20, 16, DType::f16, true));
        add({gram_case(20, 16, DType::f16, true, true)});
        return cases;
    }
    add({forward_case(16, 1024, 128, 1024, DType::f32, true), backward_case(16, 1024, 128, 1024, DType::f32, true),
         forward_case(1024, 1024, 128, 1024, DType::f16, false),
         backward_case(1024, 1024, 128, 1024, DType::f16, false)});
    add(norm_cases(16384, 128, DType::f32, true));
    add(norm_cases(64, 512, DType::f16, false));
    add(norm_cases(1 << 20, 64, DType::f16, false));
    add(norm_cases(1 << 20, 128, DType::f16, false));
    add({gram_case(16384, 128, DType::f32, true, false), gram_case(1 << 20, 64, DType::f16, false, true),
         gram_case(1 << 20, 128, DType::f16, false, true)});
    return cases;
}

}  // namespace stipple::bench
