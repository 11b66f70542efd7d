#pragma once
// Clouds with fewer points, as sampled ones have.

#include "stipple/learn/functions.h"
#include "stipple/learn/sampling/sampling_options.h"

namespace stipple::learn {

/// Of some clouds a random subset, its points again and again so that all clouds keep their size, which changes nothing
/// behind a maximum over points. A function of seed and number alone. points: dense; numbers int64 [clouds].
/// [rows, 3]. Gradients for the points.
torch::Tensor thinned(const Clouds& points, const torch::Tensor& numbers, const ThinOptions& options, uint64_t seed);

}  // namespace stipple::learn
