#pragma once
// Activations, for the layers that end in one.

#include "stipple/network/kinds/kind.h"

namespace stipple::network {

/// Fails unless its numbers are in range.
void check_activation(const Rules& rules, const Activation& activation);
std::string activation_text(const Activation& activation);  // "leaky_relu 0.05"; none: empty
/// The nodes of layer.options.activation after `x`.
std::string activation_onnx(OnnxExport& out, const Layer& layer, const std::string& x);

}  // namespace stipple::network
