#pragma once
// Weights in engine files: no larger than what the CPU makes of them when it packs them. Layers in int8 are stored as
// their steps with the largest magnitude of each row, layers in bf16 as bf16, both only where packing what was read
// gives the very same factors; else, and for GPUs, which compute some of these layers in other numbers, as float32.

#include <string>
#include <vector>

#include "stipple/engine/precision.h"
#include "stipple/io/safetensors.h"

namespace stipple::engine {

/// Of a layer's weight [out, in]: the tensor that it is stored in, and for int8 a second one, [out], of the rows'
/// largest magnitudes.
struct StoredWeight {
    io::Tensor weight;
    std::vector<float> largest;  // empty unless int8
};

/// `precision` is the layer's on the CPU; fp32 stores float32.
StoredWeight store_weight(std::string name, int64_t out, int64_t in, const std::vector<float>& values,
                          Precision precision);

/// The numbers of a tensor of float32, bf16, or int8 with `largest` [out]. Throws Error{bad_file} for int8 numbers
/// below -127 and for magnitudes that are negative or not finite.
std::vector<float> restore_weight(const io::Tensor& tensor, const std::vector<float>& largest);

/// A tensor of float32.
io::Tensor tensor_of(std::string name, std::vector<int64_t> shape, const std::vector<float>& values);

}  // namespace stipple::engine
