#pragma once
// Parts of the losses of networks that upsample: of rows [n, 3] in spacings.

#include <torch/types.h>

namespace stipple::learn {

/// In float64.
torch::Tensor row_mean(const torch::Tensor& rows);

/// The distance of each row to that of the other: [n].
torch::Tensor row_distances(const torch::Tensor& a, const torch::Tensor& b);

/// Their mean, where a distance d counts as sqrt(d^2 + 0.02^2) - 0.02, which is d but for a fiftieth of a spacing, with
/// gradient 0 at 0.
torch::Tensor smooth_distance(const torch::Tensor& a, const torch::Tensor& b);

/// The mean of e / b + log b, where e are errors [n], constants, and b the uncertainty [n, 1] + 1e-3: the negative
/// log-likelihood of an exponential law.
torch::Tensor uncertainty_term(const torch::Tensor& errors, const torch::Tensor& uncertainty);

}  // namespace stipple::learn
