#pragma once
// What the tests of learn share: inputs for any network, and a network of every kind.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "stipple/learn/module.h"
#include "tests/support/reference_network.h"

namespace stipple::test {

/// Normal numbers for every input of a network, as float64 tensors [rows, channels] whose numbers are float32.
std::map<std::string, torch::Tensor> random_inputs(const network::Network& network,
                                                   const std::vector<ops::Batch>& given, uint64_t seed = 99);

/// Largest |learn - reference| of any output in evaluation mode, over the largest magnitude of that output (at least
/// 1).
double difference_from_reference(const network::Network& network, const network::Weights& weights,
                                 const std::vector<ops::Batch>& given, torch::Dtype dtype);

/// Numbers of a field in all lines of one kind of the log of a run: ("step", "loss").
std::vector<double> logged(const std::string& folder, const std::string& kind, const std::string& field);

/// Small networks, which together have every kind of layer that has gradients or passes them on.
std::vector<network::Network> networks_of_every_kind();

}  // namespace stipple::test
