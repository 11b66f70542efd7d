#pragma once
// Gumbel subset sampling [Yang et al. 2019]: a network scores every point for every place of the sample, and the point
// with the highest score takes the place. While training, the choice is a softmax over scores with Gumbel noise.

#include <map>
#include <string>

#include "stipple/core/fields.h"
#include "stipple/network/network.h"

namespace stipple::models {

struct GumbelSubsetOptions {
    int64_t count = 32;        // places, m
    int64_t points = 1024;     // of a cloud while training: what a larger cloud is thinned to
    bool progressive = false;  // trained so that the first j places alone serve too, for any j
};
const Fields& gumbel_subset_fields();

/// Of a configuration, as weights carry it. Throws Error{bad_config} for an unknown key and a value that does not
/// parse.
GumbelSubsetOptions gumbel_subset_options(const std::map<std::string, std::string>& config);

/// points [B, N, 3] -> scores [B, N, m].
///
/// Layers conv1 .. conv5 64-64-64-128-128 with batch norm and ReLU; [their max, conv2] through `mix` 128, batch norm,
/// ReLU; `scores`, a product without bias: the matrix W of the paper. Throws Error{bad_argument} for options out of
/// range.
network::Network gumbel_subset(const GumbelSubsetOptions& options);

}  // namespace stipple::models
