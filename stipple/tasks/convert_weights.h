#pragma once
// Weights in another storage, and what that changed.

#include <cstddef>
#include <string>
#include <vector>

#include "stipple/network/weights.h"

namespace stipple::tasks {

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
};

/// Writes into memory, reads that back and compares. Throws what network::write_weights throws.
ConvertedWeights convert_weights(const network::Weights& weights, network::WeightStorage storage);

}  // namespace stipple::tasks
