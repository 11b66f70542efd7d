#pragma once
// ONNX: a network and its weights as one file for everybody else's runtimes (docs/onnx.md).
//
//   save_onnx("pointnet.onnx", model.network, model.weights, {}, Overwrite::refuse);
//
// Opset 17, IR version 8, float32. Inputs and outputs have the network's names and the shapes of its text form: [B, C]
// for clouds, [B, N, C] for points, [B, N, w, C] for several rows of a point; B and N are free, and all clouds of a run
// have N points. Only what the outputs need is written: dropout vanishes, batch norm is folded into the product before
// it, the identity of a transform into the bias before it, inverse flows into constants.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "stipple/core/atomic_file.h"
#include "stipple/network/network.h"
#include "stipple/network/weights.h"

namespace stipple::network {

struct OnnxOptions {
    /// false: batch norm stays a BatchNormalization node of its own.
    bool fold_norm = true;
    /// true: layers over points are convolutions of one tap on [B, C, N], instead of MatMul and Add on [B, N, C]. The
    /// same results; faster where a runtime's convolutions are (docs/onnx.md). Inputs and outputs keep their shapes.
    bool convolutions = false;
    /// For int8: by layer name, the largest magnitude of its input that is represented (calibration). Such a layer gets
    /// QuantizeLinear and DequantizeLinear before its product: symmetric int8, one scale for the input, one for each
    /// output channel of the weights. Its batch norm is folded whatever `fold_norm` says. Layers that are not named
    /// stay in float32.
    std::map<std::string, float> ranges = {};
};

/// Of the ranges that an engine's calibration found, those that hold for the exported graph. The engine folds a
/// transform into the layer that reads it and cuts layers that read edges or concatenations, and then measures
/// something else than this layer's input: such layers are left out, and so are names that no linear layer of the
/// network has.
std::map<std::string, float> ranges_for_onnx(const Network& network, const std::map<std::string, float>& ranges);

/// Throws what validate() and check_weights() throw; Error{bad_argument} that names the layer for a mix that cannot be
/// inverted, a repeat of clouds in a network without points as input, a range for a layer that is not linear or that is
/// not positive and finite, an output that has an input's name; and for weights beyond the 2 GiB of the format.
std::vector<std::byte> to_onnx(const Network& network, const Weights& weights, const OnnxOptions& options = {});

/// The same into a file. Throws also Error{cannot_write}.
void save_onnx(const std::string& path, const Network& network, const Weights& weights, const OnnxOptions& options,
               Overwrite overwrite);

}  // namespace stipple::network
