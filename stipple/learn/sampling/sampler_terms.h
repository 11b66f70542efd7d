#pragma once
// What a sampler's points are worth by themselves: SampleNet's losses, as plain functions of tensors.

#include <torch/types.h>

#include "stipple/learn/functions.h"
#include "stipple/learn/sampling/sampling_options.h"

namespace stipple::learn {

/// Means over the clouds of squared distances, float64 (SamplingOptions).
struct SimplificationTerms {
    torch::Tensor a, m, b;  // Q to P: mean and largest; P to Q: mean
};

/// points: the clouds P. sampled: [clouds * count, 3] of Q; the first `size` of each cloud count.
/// nearest_sq: [clouds * count] squared distances of Q to P.
SimplificationTerms simplification_terms(const Clouds& points, const torch::Tensor& sampled,
                                         const torch::Tensor& nearest_sq, int64_t count, int64_t size);

/// L_a + beta L_m + (gamma + delta size) L_b.
torch::Tensor simplification_loss(const SimplificationTerms& terms, const SamplingOptions& options, int64_t size);

/// max(t^2, least), float64; no gradient where the floor holds.
torch::Tensor sigma_of(const torch::Tensor& temperature, double least);

/// The sample that stipple::tasks makes of proposals [clouds * count, 3]: the nearest points of the cloud, each once,
/// completed by farthest point sampling. [clouds * size, 3]. No gradient.
torch::Tensor matched_points(const Clouds& points, const torch::Tensor& proposals, int64_t count, int64_t size);

}  // namespace stipple::learn
