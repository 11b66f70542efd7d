#include "stipple/network/onnx/export.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>

#include "stipple/core/error.h"

namespace stipple::network {

static_assert(std::endian::native == std::endian::little, "constants are written as they lie in memory");

namespace {

template <class T>
std::vector<std::byte> bytes_of(std::span<const T> values) {
    const auto bytes = std::as_bytes(values);
    return {bytes.begin(), bytes.end()};
}

}  // namespace

std::vector<OnnxDim> dims_of(const TensorType& type) {
    std::vector<OnnxDim> dims = {{"B"}};
    if (type.level == Level::point) {
        const std::string name = type.set == 0 ? "N" : fmt::format("N{}", type.set);
        dims.push_back(type.points > 0 ? OnnxDim{"", type.points} : OnnxDim{name});
    }
    if (type.is_index || type.width > 1) dims.push_back({"", type.width});
    if (!type.is_index) dims.push_back({"", type.channels});
    return dims;
}

std::string OnnxExport::unique(std::string name) {
    std::string candidate = name;
    for (int i = 2; !names.insert(candidate).second; ++i) candidate = fmt::format("{}_{}", name, i);
    return candidate;
}

std::string OnnxExport::node(const Layer& layer, std::string_view op, std::vector<std::string> inputs,
                             OnnxAttributes attributes, std::vector<std::string> unused) {
    // Names of layers, inputs and outputs have no slash, so a value within can have none of theirs.
    std::string operation(op);
    std::transform(operation.begin(), operation.end(), operation.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::string name = unique(layer.name + "/" + operation);
    model.nodes.push_back({std::string(op), name, std::move(inputs), name, std::move(unused), std::move(attributes)});
    return name;
}

std::string OnnxExport::constant(OnnxTensor tensor) {
    const std::string name = tensor.name;
    for (int i = 2;; ++i) {
        const auto found = std::find_if(model.constants.begin(), model.constants.end(),
                                        [&](const OnnxTensor& other) { return other.name == tensor.name; });
        if (found == model.constants.end()) break;
        if (found->type == tensor.type && found->dims == tensor.dims && found->bytes == tensor.bytes)
            return found->name;
        tensor.name = fmt::format("{}_{}", name, i);
    }
    names.insert(tensor.name);
    model.constants.push_back(std::move(tensor));
    return model.constants.back().name;
}

std::string OnnxExport::floats(std::string name, std::vector<int64_t> dims, std::span<const float> values_of) {
    return constant({"constant/" + name, OnnxType::float32, std::move(dims), bytes_of(values_of)});
}

std::string OnnxExport::bytes8(std::string name, std::vector<int64_t> dims, std::span<const int8_t> values_of) {
    return constant({"constant/" + name, OnnxType::int8, std::move(dims), bytes_of(values_of)});
}

std::string OnnxExport::integers(std::vector<int64_t> values_of) {
    const int64_t count = static_cast<int64_t>(values_of.size());
    return constant({fmt::format("constant/[{}]", fmt::join(values_of, ",")),
                     OnnxType::int64,
                     {count},
                     bytes_of(std::span<const int64_t>(values_of))});
}

std::string OnnxExport::number(float value) {
    return constant(
        {fmt::format("constant/{}", value), OnnxType::float32, {}, bytes_of(std::span<const float>(&value, 1))});
}

std::string OnnxExport::with_rows(const Layer& layer, const std::string& value, const TensorType& type) {
    return type.width > 1 ? value : node(layer, "Unsqueeze", {value, integers({2})});
}

std::string OnnxExport::without_rows(const Layer& layer, const std::string& value, const TensorType& type) {
    return type.width > 1 ? value : node(layer, "Squeeze", {value, integers({2})});
}

std::string OnnxExport::count_clouds() {
    if (clouds_count.empty()) {
        const auto is_input = [](const Layer& layer) { return layer.kind == Kind::input; };
        const auto found = std::find_if(network.layers.begin(), network.layers.end(), is_input);
        clouds_count = node(*found, "Shape", {found->name}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
    }
    return clouds_count;
}

std::string OnnxExport::count_points(const Layer& layer, const TensorType& type) {
    if (type.points > 0) return integers({type.points});
    std::string& count = points_count[type.set];
    if (count.empty()) {
        const auto has_points = [&](const Layer& other) {
            return other.kind == Kind::input && other.type.level == Level::point && other.type.set == type.set;
        };
        const auto found = std::find_if(network.layers.begin(), network.layers.end(), has_points);
        STIPPLE_REQUIRE(found != network.layers.end(),
                        "onnx: layer {}: the number of points cannot be known, no input of {} has points", layer.name,
                        network.name);
        count = node(*found, "Shape", {found->name}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
    }
    return count;
}

bool joins_bias(const OnnxExport& out, const Layer& layer) {
    if (layer.kind != Kind::add_identity) return false;
    const Layer& before = out.network[layer.inputs[0]];
    return before.kind == Kind::linear && before.options.activation.kind == ActivationKind::none &&
           out.readers[static_cast<size_t>(layer.inputs[0])] == 1;
}

}  // namespace stipple::network
