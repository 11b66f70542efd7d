#pragma once
// What the published PU-Flow program computes with its published weights: no part of the sources, as the data sets.

#include <string>
#include <vector>

#include "stipple/network/weights.h"

namespace stipple::test {

/// For STIPPLE_NEEDS_DATA and data_file: beside the data sets.
inline constexpr const char* kPuFlowReference = "../reference/puflow";

/// Tensors of a published checkpoint under the names that models/puflow.h gives them.
network::Weights puflow_weights(const network::Weights& checkpoint);

/// The weights of kPuFlowReference, renamed.
network::Weights load_puflow_weights();

/// An array of kPuFlowReference, of any type: its numbers in C order.
struct PuFlowArray {
    std::vector<int64_t> shape;
    std::vector<double> values;
    std::vector<float> floats() const { return {values.begin(), values.end()}; }
};
PuFlowArray load_puflow_array(const std::string& name);

}  // namespace stipple::test
