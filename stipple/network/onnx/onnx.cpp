#include "stipple/network/onnx.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/json_writer.h"
#include "stipple/network/kinds/kind.h"
#include "stipple/network/onnx/export.h"

namespace stipple::network {

namespace {

OnnxValue value_of(const std::string& name, const TensorType& type) {
    return {name, type.is_index ? OnnxType::int32 : OnnxType::float32, dims_of(type)};
}

/// Layers that an output needs, and who reads them.
std::vector<bool> find_needed(OnnxExport& out) {
    const Network& network = out.network;
    std::vector<bool> is_needed(network.layers.size());
    out.readers.assign(network.layers.size(), 0);
    for (const Output& output : network.outputs) {
        is_needed[static_cast<size_t>(output.tensor)] = true;
        ++out.readers[static_cast<size_t>(output.tensor)];
    }
    for (size_t i = network.layers.size(); i-- > 0;) {
        if (!is_needed[i]) continue;
        for (const Tensor input : network.layers[i].inputs) {
            is_needed[static_cast<size_t>(input)] = true;
            ++out.readers[static_cast<size_t>(input)];
        }
    }
    return is_needed;
}

void check_ranges(const Network& network, const OnnxOptions& options) {
    for (const auto& [name, range] : options.ranges) {
        const auto is_named = [&name = name](const Layer& layer) { return layer.name == name; };
        const auto found = std::find_if(network.layers.begin(), network.layers.end(), is_named);
        STIPPLE_REQUIRE(found != network.layers.end(), "onnx: a range is given for layer {}, which {} does not have",
                        name, network.name);
        STIPPLE_REQUIRE(found->kind == Kind::linear,
                        "onnx: a range is given for layer {}, which is {}; only linear layers take one", name,
                        name_of(found->kind));
        STIPPLE_REQUIRE(range > 0 && std::isfinite(range),
                        "onnx: the range of layer {} is {}; it must be positive and finite", name, range);
    }
}

void export_layers(OnnxExport& out) {
    const Network& network = out.network;
    const std::vector<bool> is_needed = find_needed(out);
    out.takes_identity.assign(network.layers.size(), false);
    for (size_t i = 0; i < network.layers.size(); ++i) {
        const Layer& layer = network.layers[i];
        if (is_needed[i] && joins_bias(out, layer)) out.takes_identity[static_cast<size_t>(layer.inputs[0])] = true;
    }
    out.values.resize(network.layers.size());
    for (const Layer& layer : network.layers) {
        if (layer.kind != Kind::input) continue;
        out.model.inputs.push_back(value_of(layer.name, layer.type));
        out.names.insert(layer.name);
    }
    for (size_t i = 0; i < network.layers.size(); ++i) {
        if (!is_needed[i]) continue;
        out.values[i] = kind_of(network.layers[i]).onnx(out, network.layers[i]);
    }
}

/// Gives the outputs their names: the value takes it where it can, a node copies it where it cannot.
void export_outputs(OnnxExport& out) {
    std::map<std::string, std::string> renamed;  // from a value to the output that it is
    std::vector<OnnxNode> copies;
    for (const Output& output : out.network.outputs) {
        const Layer& layer = out.network[output.tensor];
        const std::string& value = out.values[static_cast<size_t>(output.tensor)];
        const auto is_same = [&](const OnnxValue& input) { return input.name == output.name; };
        STIPPLE_REQUIRE(std::none_of(out.model.inputs.begin(), out.model.inputs.end(), is_same),
                        "onnx: layer {}: the output {} has the name of an input", layer.name, output.name);
        out.model.outputs.push_back(value_of(output.name, layer.type));
        const bool is_input = std::any_of(out.model.inputs.begin(), out.model.inputs.end(),
                                          [&](const OnnxValue& input) { return input.name == value; });
        if (layer.type.is_index && !is_input) {  // positions are int64 within, int32 to the outside
            const int64_t to = static_cast<int64_t>(OnnxType::int32);
            copies.push_back({"Cast", output.name + "/cast", {value}, output.name, {}, {{"to", to}}});
        } else if (is_input || !renamed.emplace(value, output.name).second) {
            copies.push_back({"Identity", output.name + "/identity", {value}, output.name, {}, {}});
        }
    }
    for (OnnxNode& copy : copies) out.model.nodes.push_back(std::move(copy));
    const auto rename = [&](std::string& name) {
        const auto found = renamed.find(name);
        if (found != renamed.end()) name = found->second;
    };
    for (OnnxNode& node : out.model.nodes) {
        for (std::string& input : node.inputs) rename(input);
        rename(node.output);
    }
    for (std::string& value : out.values) rename(value);
}

/// Shapes of the layers' values: runtimes check them against what they infer.
void export_shapes(OnnxExport& out) {
    std::set<std::string> said;
    for (const OnnxValue& value : out.model.inputs) said.insert(value.name);
    for (const OnnxValue& value : out.model.outputs) said.insert(value.name);
    for (size_t i = 0; i < out.values.size(); ++i) {
        if (out.values[i].empty() || !said.insert(out.values[i]).second) continue;
        OnnxValue value = value_of(out.values[i], out.network.layers[i].type);
        if (value.type == OnnxType::int32) value.type = OnnxType::int64;
        out.model.values.push_back(std::move(value));
    }
}

}  // namespace

std::map<std::string, float> ranges_for_onnx(const Network& network, const std::map<std::string, float>& ranges) {
    std::map<std::string, float> kept;
    for (const Layer& layer : network.layers) {
        const auto range = ranges.find(layer.name);
        if (layer.kind != Kind::linear || range == ranges.end()) continue;
        Tensor input = layer.inputs[0];
        while (network[input].kind == Kind::dropout) input = network[input].inputs[0];
        if (kind_of(network[input]).is_stored) kept.insert(*range);
    }
    return kept;
}

std::vector<std::byte> to_onnx(const Network& network, const Weights& weights, const OnnxOptions& options) {
    validate(network);
    check_weights(network, weights);
    check_ranges(network, options);

    OnnxExport out{network, weights, options};
    out.model.name = network.name;
    out.model.doc = fmt::format("{} written by stipple. B clouds of N points{}.", network.name,
                                options.ranges.empty() ? "" : ", int8 where the calibration says so");
    out.model.metadata = weights.metadata;
    out.model.metadata.erase("format");  // of safetensors
    out.model.metadata["stipple.model"] = network.name;
    JsonWriter config;
    config.begin_object();
    for (const auto& [key, value] : network.config) config.field(key, value);
    out.model.metadata["stipple.config"] = config.end_object().text();
    export_layers(out);
    export_outputs(out);
    export_shapes(out);
    remove_unread(out.model);
    return serialise(out.model);
}

void save_onnx(const std::string& path, const Network& network, const Weights& weights, const OnnxOptions& options,
               Overwrite overwrite) {
    require_writable(path, overwrite);
    const std::vector<std::byte> bytes = to_onnx(network, weights, options);
    AtomicFile file(path, overwrite);
    file.write(bytes.data(), static_cast<int64_t>(bytes.size()));
    file.commit();
}

}  // namespace stipple::network
