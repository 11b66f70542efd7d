#pragma once
// Weights in another storage, and what that changed.

#include <cstddef>
#include <string>
#include <vector>

#include "stipple/core/fields.h"
#include "stipple/network/weights.h"

namespace stipple::tasks {

struct ConvertWeightsOptions {
    network::WeightStorage storage = network::WeightStorage::f32;
    std::map<std::string, double> scores = {};  // for the card: "test_accuracy"
    std::string data = {};                      // for the card: what it was trained on; "": as it is there
};
/// All but the scores.
const Fields& convert_weights_fields();

struct TensorChange {
    std::string name;
    DType dtype = DType::f32;  // stored as
    int64_t bytes = 0;         // with the scales of int8 rows
    double largest_value = 0;  // of all magnitudes
    double largest_error = 0;  // of all values, as they are read back
    double relative_error() const { return largest_value > 0 ? largest_error / largest_value : 0; }
};

struct ConvertedWeights {
    std::vector<std::byte> file;        // the whole .safetensors
    std::vector<TensorChange> tensors;  // by name
    network::WeightStorage storage = network::WeightStorage::f32;

    int64_t bytes() const { return static_cast<int64_t>(file.size()); }
    /// The tensors whose values changed most come first.
    void sort_by_error();
};
const Fields& converted_weights_fields();

/// Puts scores and data into the card of the weights, where there are any.
void complete_card(network::Weights& weights, const ConvertWeightsOptions& options);

/// Writes into memory, reads that back and compares. Throws what network::write_weights throws.
ConvertedWeights convert_weights(const network::Weights& weights, network::WeightStorage storage);

}  // namespace stipple::tasks
