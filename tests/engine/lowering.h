#pragma once
// A program in few words, and whether it computes what its network says.

#include <string>

#include "stipple/core/array.h"
#include "stipple/engine/program.h"
#include "tests/support/reference_program.h"
#include "tests/support/reference_weights.h"

namespace stipple::test {

/// One line a step: "chain 3 -> 64 -> 128 max_points", "cloud chain 1024 -> 512", "fold_matrix 3 x 3 -> 64 x 3". A
/// layer with the cloud's own weights has a star before its outputs, parts are joined by +, addends follow in brackets.
std::string outline(const engine::Program& program);

/// Weights that lower() can fold without rounding: small multiples of 1/16; batch norm as initial_weights gives it.
network::Weights round_weights(const network::Network& network, uint64_t seed);

/// Random rows for every input of a network.
struct RandomInputs {
    RandomInputs(const network::Network& network, const ops::Batch& batch);
    RandomInputs(const network::Network& network, const std::vector<ops::Batch>& given);
    std::vector<Array<float, 2>> arrays;
    std::vector<ReferenceInput> inputs;
};

/// Largest |program - network| of any output, over the largest magnitude of that output (at least 1). Inputs are
/// random.
double difference(const network::Network& network, const network::Weights& weights, const ops::Batch& batch);

}  // namespace stipple::test
