#include "stipple/network/onnx.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/json_writer.h"
#include "stipple/network/onnx/export.h"

namespace stipple::network {

namespace {

std::string export_repeat(OnnxExport& out, const Layer& layer) {
    const TensorType& type = out.type_of_input(layer, 0);
    const std::string& x = out.input_of(layer, 0);
    if (type.level == Level::cloud) {
        const std::string rows = out.node(layer, "Unsqueeze", {x, out.integers({1})});
        const std::string one = out.integers({1});
        const std::string shape =
            out.node(layer, "Concat", {one, out.count_points(layer), one}, {{"axis", int64_t{0}}});
        return out.node(layer, "Expand", {rows, shape});
    }
    if (layer.type.width == 1) return x;
    const std::string rows = out.node(layer, "Unsqueeze", {x, out.integers({2})});
    return out.node(layer, "Expand", {rows, out.integers({1, 1, layer.type.width, 1})});
}

std::string export_transform(OnnxExport& out, const Layer& layer) {
    const TensorType& type = out.type_of_input(layer, 0);
    const int64_t k = type.channels;
    std::vector<int64_t> shape = {-1, k, k};
    if (type.width > 1) shape.insert(shape.begin() + 1, 1);
    const std::string matrix = out.node(layer, "Reshape", {out.input_of(layer, 1), out.integers(shape)});
    if (type.level == Level::point) return out.node(layer, "MatMul", {out.input_of(layer, 0), matrix});
    const std::string rows = out.node(layer, "Unsqueeze", {out.input_of(layer, 0), out.integers({1})});
    return out.node(layer, "Squeeze", {out.node(layer, "MatMul", {rows, matrix}), out.integers({1})});
}

std::string export_add_identity(OnnxExport& out, const Layer& layer) {
    const std::string& x = out.input_of(layer, 0);
    if (joins_bias(out, layer)) return x;
    int64_t k = 1;
    while (k * k < layer.type.channels) ++k;
    std::vector<float> identity(static_cast<size_t>(k * k));
    for (int64_t i = 0; i < k; ++i) identity[static_cast<size_t>(i * k + i)] = 1;
    return out.node(layer, "Add", {x, out.floats(layer.name + ".identity", {k * k}, identity)});
}

std::string export_slice(OnnxExport& out, const Layer& layer) {
    const int64_t begin = layer.options.begin, end = layer.options.end;
    return out.node(layer, "Slice",
                    {out.input_of(layer, 0), out.integers({begin}), out.integers({end}), out.integers({-1})});
}

std::string export_reverse(OnnxExport& out, const Layer& layer) {
    std::vector<int64_t> order;
    for (int64_t i = layer.type.channels; i-- > 0;) order.push_back(i);
    return out.node(layer, "Gather", {out.input_of(layer, 0), out.integers(order)},
                    {{"axis", channel_axis(layer.type)}});
}

std::string export_concat(OnnxExport& out, const Layer& layer) {
    std::vector<std::string> parts;
    bool has_twin = false;
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
        parts.push_back(out.input_of(layer, i));
        has_twin |= out.twins.contains(parts.back());
    }
    if (has_twin) {
        for (std::string& part : parts) part = channels_first(out, layer, part, layer.type);
        return channels_last(out, layer, out.node(layer, "Concat", parts, {{"axis", int64_t{1}}}), layer.type);
    }
    return out.node(layer, "Concat", parts, {{"axis", channel_axis(layer.type)}});
}

// Opset 17: ReduceSum takes its axes as an input, ReduceMax as an attribute.
std::string export_max(OnnxExport& out, const Layer& layer) {
    const std::string& x = out.input_of(layer, 0);
    const bool has_rows = out.type_of_input(layer, 0).width > 1, is_of_points = layer.kind == Kind::max_points;
    if (!is_of_points && !has_rows) return x;
    std::vector<int64_t> axes;
    if (is_of_points) axes.push_back(1);
    if (has_rows) axes.push_back(2);
    const auto twin = out.twins.find(x);
    const bool is_twin = twin != out.twins.end();
    for (int64_t& axis : axes) axis += is_twin;
    const std::string most =
        out.node(layer, "ReduceMax", {is_twin ? twin->second : x}, {{"axes", axes}, {"keepdims", int64_t{0}}});
    return is_twin && !is_of_points ? channels_last(out, layer, most, layer.type) : most;
}

std::string export_layer(OnnxExport& out, const Layer& layer) {
    const auto input = [&](size_t i) -> const std::string& { return out.input_of(layer, i); };
    switch (layer.kind) {
        case Kind::input: return layer.name;
        case Kind::linear: return {};  // export_layers
        case Kind::activation: return export_activation(out, layer, input(0));
        case Kind::dropout: return input(0);
        case Kind::transform: return export_transform(out, layer);
        case Kind::add_identity: return export_add_identity(out, layer);
        case Kind::max_points:
        case Kind::max_rows: return export_max(out, layer);
        case Kind::sum_points: {
            const bool has_rows = out.type_of_input(layer, 0).width > 1;
            const std::string axes = out.integers(has_rows ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1});
            return out.node(layer, "ReduceSum", {input(0), axes}, {{"keepdims", int64_t{0}}});
        }
        case Kind::sum_channels:
            return out.node(layer, "ReduceSum", {input(0), out.integers({-1})}, {{"keepdims", int64_t{1}}});
        case Kind::concat: return export_concat(out, layer);
        case Kind::slice: return export_slice(out, layer);
        case Kind::reverse: return export_reverse(out, layer);
        case Kind::repeat: return export_repeat(out, layer);
        case Kind::log_softmax: return out.node(layer, "LogSoftmax", {input(0)}, {{"axis", int64_t{-1}}});
        case Kind::add: return out.node(layer, "Add", {input(0), input(1)});
        case Kind::subtract: return out.node(layer, "Sub", {input(0), input(1)});
        case Kind::scale: return out.node(layer, "Mul", {input(0), out.number(layer.options.factor)});
        case Kind::knn:
        case Kind::gather:
        case Kind::edge:
        case Kind::edge_distance:
        case Kind::softmax_rows:
        case Kind::interpolate: return export_neighbours(out, layer);
        case Kind::actnorm:
        case Kind::mix:
        case Kind::couple:
        case Kind::inject:
        case Kind::flow_log_det:
        case Kind::gaussian_log_density: return export_flow(out, layer);
    }
    throw Error(ErrorCode::bad_argument,
                fmt::format("onnx: layer {}: no export of kind {}", layer.name, static_cast<int>(layer.kind)));
}

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
    // The linear layers whose bias takes in the identity that follows.
    std::vector<bool> has_identity(network.layers.size());
    for (size_t i = 0; i < network.layers.size(); ++i) {
        const Layer& layer = network.layers[i];
        if (is_needed[i] && joins_bias(out, layer)) has_identity[static_cast<size_t>(layer.inputs[0])] = true;
    }
    out.values.resize(network.layers.size());
    for (const Layer& layer : network.layers) {
        if (layer.kind != Kind::input) continue;
        out.model.inputs.push_back(value_of(layer.name, layer.type));
        out.names.insert(layer.name);
    }
    for (size_t i = 0; i < network.layers.size(); ++i) {
        if (!is_needed[i]) continue;
        const Layer& layer = network.layers[i];
        out.values[i] =
            layer.kind == Kind::linear ? export_linear(out, layer, has_identity[i]) : export_layer(out, layer);
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
        switch (network[input].kind) {
            case Kind::input:
            case Kind::linear:
            case Kind::activation:
            case Kind::max_points:
            case Kind::max_rows: kept.insert(*range); break;
            default: break;
        }
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
