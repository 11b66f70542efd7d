#pragma once
// What a sampler's points are worth by themselves: SampleNet's losses, as plain functions of tensors.

#include <span>
#include <torch/types.h>

#include "stipple/learn/functions.h"
#include "stipple/learn/sampling/sampling_options.h"

namespace stipple::learn {

/// Of the terms of simplification(), [sizes, 3] float64: 1, beta and gamma + delta size, over the number of sizes where
/// options.mean.
torch::Tensor simplification_weights(const SamplingOptions& options, std::span<const int64_t> sizes,
                                     torch::Device device);

/// Sum over the sizes of L_a + beta L_m + (gamma + delta size) L_b, means over the clouds of terms [clouds, sizes, 3].
torch::Tensor simplification_loss(const torch::Tensor& terms, const torch::Tensor& weights);

/// max(t^2, least), float64; no gradient where the floor holds.
torch::Tensor sigma_of(const torch::Tensor& temperature, double least);

/// The sample that stipple::tasks makes of proposals [clouds * count, 3]: the nearest points of the cloud, each once,
/// completed by farthest point sampling. [clouds * size, 3]. No gradient.
torch::Tensor matched_points(const Clouds& points, const torch::Tensor& proposals, int64_t count, int64_t size);

}  // namespace stipple::learn
