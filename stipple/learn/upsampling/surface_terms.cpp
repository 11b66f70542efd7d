#include "stipple/learn/upsampling/surface_terms.h"

#include <torch/torch.h>

namespace stipple::learn {

using torch::Tensor;

namespace {

constexpr double kSmooth = 0.02;  // spacings; below it a distance counts by its square
constexpr double kLeastUncertainty = 1e-3;

}  // namespace

Tensor row_mean(const Tensor& rows) {
    return rows.to(torch::kFloat64).mean();
}

Tensor row_distances(const Tensor& a, const Tensor& b) {
    return (a - b).square().sum(1).sqrt();
}

Tensor smooth_distance(const Tensor& a, const Tensor& b) {
    return row_mean(((a - b).square().sum(1) + kSmooth * kSmooth).sqrt() - kSmooth);
}

Tensor uncertainty_term(const Tensor& errors, const Tensor& uncertainty) {
    const Tensor expected = uncertainty.flatten() + kLeastUncertainty;
    return row_mean(errors.detach() / expected + expected.log());
}

}  // namespace stipple::learn
