#include "stipple/ops/gradient_norm.h"

#include <cmath>

#include "stipple/ops/common/require.h"
#include "stipple/ops/training/tensor_list.h"

namespace stipple::ops {
namespace cpu {
namespace {

constexpr int64_t kPiece = 4096;
constexpr int64_t kConverted = 1024;  // numbers of a piece at a time

/// Four sums side by side, which are then added: as fast as vectors of doubles, and in an order that is written down.
double sum_of_squares(const float* x, int64_t count) {
    double sums[4] = {};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int j = 0; j < 4; ++j) sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(x[i + j]);
    for (; i < count; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void gradient_norm(std::span<const GradientTensor> gradients, float* norm) {
    std::vector<double> sums(static_cast<size_t>(piece_count(gradients, kPiece)));
    for_pieces(gradients, kPiece, [&](const GradientTensor& tensor, int64_t begin, int64_t end, int64_t piece) {
        float numbers[kConverted];
        double sum = 0;
        for (; begin < end; begin += kConverted) {
            const int64_t count = std::min(kConverted, end - begin);
            to_floats(tensor.data, tensor.dtype, begin, count, numbers);
            sum += sum_of_squares(numbers, count);
        }
        sums[static_cast<size_t>(piece)] = sum;
    });
    double sum = 0;
    for (const double one : sums) sum += one;
    *norm = static_cast<float>(std::sqrt(sum));
}

}  // namespace
}  // namespace cpu

void gradient_norm(std::span<const GradientTensor> gradients, View<float, 1> norm, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "gradient_norm";
    require_output<float, 1>(kOp, "norm", norm, {1}, norm.device());
    for (size_t i = 0; i < gradients.size(); ++i) {
        require_number_type(kOp, "a gradient", gradients[i].dtype);
        require_tensor(kOp, "gradient", i, gradients[i].data != nullptr, gradients[i].count);
    }
    switch (norm.device().type) {
        case DeviceType::cpu: return cpu::gradient_norm(gradients, norm.data());
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::gradient_norm, gradients, norm, stream);
    }
}

}  // namespace stipple::ops
