#pragma once
// The export while it runs, for onnx.cpp and the kinds of layers: the model as written so far, and how nodes and
// constants join it.

#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/network/onnx.h"
#include "stipple/network/onnx/graph.h"

namespace stipple::network {

struct OnnxExport {
    const Network& network;
    const Weights& weights;
    const OnnxOptions& options;
    OnnxModel model = {};
    std::vector<std::string> values = {};   // by layer: the name of its output; empty when it is not needed
    std::vector<int> readers = {};          // by layer: how many layers and outputs read it
    std::vector<bool> takes_identity = {};  // by layer: a linear one whose bias takes in the identity that follows
    std::set<std::string> names = {};       // of all values so far
    std::string clouds_count = {};          // the value that holds B, once asked for
    std::map<int32_t, std::string> points_count = {};  // by point set: the value that holds N, once asked for
    /// By value: the same with its channels in dimension 1, [B, C, N] or [B, C, N, w] (onnx/layout.cpp).
    std::map<std::string, std::string> twins = {};

    const TensorType& type_of_input(const Layer& layer, size_t i) const { return network[layer.inputs[i]].type; }
    const std::string& input_of(const Layer& layer, size_t i) const {
        return values[static_cast<size_t>(layer.inputs[i])];
    }
    /// A parameter by its full name.
    std::span<const float> parameter(const std::string& name) const { return weights.tensors.at(name).values; }

    /// Adds a node and returns the name of its output, made of the layer's name and the operator's.
    std::string node(const Layer& layer, std::string_view op, std::vector<std::string> inputs,
                     OnnxAttributes attributes = {}, std::vector<std::string> unused = {});

    /// Constants. The same values under the same name are written once; other values get a name beside it.
    std::string floats(std::string name, std::vector<int64_t> dims, std::span<const float> values_of);
    std::string bytes8(std::string name, std::vector<int64_t> dims, std::span<const int8_t> values_of);
    std::string integers(std::vector<int64_t> values_of);  // a vector, named by its values
    std::string number(float value);                       // one number without dimensions, named by its value

    /// The value with w rows of a point in a dimension of their own even where w is 1, and back.
    std::string with_rows(const Layer& layer, const std::string& value, const TensorType& type);
    std::string without_rows(const Layer& layer, const std::string& value, const TensorType& type);

    /// [B] as int64.
    std::string count_clouds();
    /// [N] of the set of `type`, as int64. Throws Error{bad_argument} that names the layer when no input of the network
    /// has points of that set.
    std::string count_points(const Layer& layer, const TensorType& type);

    std::string unique(std::string name);

private:
    std::string constant(OnnxTensor tensor);
};

/// Dimensions of a tensor of the network: indices have one number a row and no dimension for it.
std::vector<OnnxDim> dims_of(const TensorType& type);

/// The dimension of its channels.
inline int64_t channel_axis(const TensorType& type) {
    return static_cast<int64_t>(dims_of(type).size()) - 1;
}

/// The twin of a value of points with its channels in dimension 1; a Transpose where there is none yet.
std::string channels_first(OnnxExport& out, const Layer& layer, const std::string& value, const TensorType& type);
/// The value whose twin is given. Its Transpose is removed in the end when nobody reads it.
std::string channels_last(OnnxExport& out, const Layer& layer, const std::string& twin, const TensorType& type);
/// Takes out nodes and constants that no output needs.
void remove_unread(OnnxModel& model);

/// True for an add_identity that joins the bias of the linear layer before it.
bool joins_bias(const OnnxExport& out, const Layer& layer);

}  // namespace stipple::network
