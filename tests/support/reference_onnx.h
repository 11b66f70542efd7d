#pragma once
// An exported network in onnxruntime beside the straightforward reading of the same network.

#include <string>
#include <utility>
#include <vector>

#include "stipple/network/onnx.h"
#include "tests/support/onnx_runtime.h"
#include "tests/support/reference_network.h"
#include "tests/support/reference_weights.h"

namespace stipple::test {

/// What a calibration finds: for each linear layer the largest magnitude of its input. Of a run that kept everything,
/// or of a run on the random inputs of compare_onnx.
std::map<std::string, float> input_ranges(const network::Network& network, const ReferenceRun& run);
std::map<std::string, float> input_ranges(const network::Network& network, const network::Weights& weights,
                                          int64_t clouds, int64_t points);

/// One batch through both.
struct OnnxComparison {
    std::map<std::string, std::vector<float>> onnx;        // by output
    std::map<std::string, std::vector<double>> reference;  // by output
    double largest = 0;  // magnitude of any number of any layer: what float32 rounds, differences may leave
};

/// Random inputs for each (clouds, points). The runtime must infer the shapes that the file declares and give outputs
/// of the network's types; failures of the test otherwise.
std::vector<OnnxComparison> compare_onnx(const network::Network& network, const network::Weights& weights,
                                         const network::OnnxOptions& options,
                                         const std::vector<std::pair<int64_t, int64_t>>& batches);

/// The largest difference of any number of an output is at most tolerance times the output's largest magnitude.
void expect_onnx_equal(const network::Network& network, const network::Weights& weights,
                       const network::OnnxOptions& options = {}, double tolerance = 1e-5,
                       const std::vector<std::pair<int64_t, int64_t>>& batches = {{2, 40}, {3, 24}});

}  // namespace stipple::test
