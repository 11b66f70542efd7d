#pragma once
// Training that starts from weights: their network, with another head where the classes are others.

#include "stipple/learn/recipe.h"
#include "stipple/network/weights.h"

namespace stipple::learn {

/// The recipe with the model and the options of the weights; classes and categories come from the data. Throws
/// Error{bad_config} when the weights' model does another task.
Recipe recipe_for(const Recipe& recipe, const network::Weights& weights);

struct FineTuned {
    network::Weights weights;
    int64_t taken = 0;               // tensors
    std::vector<std::string> fresh;  // names of those that start anew: absent there, or of another shape
};

/// Of a network with these weights where they fit, and initial ones elsewhere. Throws Error{bad_argument} when none
/// fits.
FineTuned start_from(const network::Weights& weights, const network::Network& network, uint64_t seed);

}  // namespace stipple::learn
