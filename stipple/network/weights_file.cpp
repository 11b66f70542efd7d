#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "stipple/core/checked.h"
#include "stipple/core/error.h"
#include "stipple/core/half.h"
#include "stipple/core/json_walk.h"
#include "stipple/network/weights.h"

namespace stipple::network {
namespace {

constexpr const char* kModel = "stipple.model";
constexpr const char* kConfig = "stipple.config";
constexpr std::string_view kStorages[] = {"f32", "f16", "bf16"};  // in the order of the enum

template <class T, class Convert>
void read_as(const Buffer& data, std::vector<float>& values, Convert convert) {
    const auto* elements = reinterpret_cast<const T*>(data.data());
    for (size_t i = 0; i < values.size(); ++i) values[i] = convert(elements[i]);
}

WeightTensor to_weights(const io::Tensor& tensor) {
    WeightTensor result{tensor.shape, {}};
    result.values.resize(static_cast<size_t>(tensor.data.bytes() / size_of(tensor.dtype)));
    switch (tensor.dtype) {
        case DType::f16: read_as<uint16_t>(tensor.data, result.values, half_to_float); break;
        case DType::bf16: read_as<uint16_t>(tensor.data, result.values, bfloat16_to_float); break;
        case DType::f64:
            read_as<double>(tensor.data, result.values, [](double value) { return static_cast<float>(value); });
            break;
        default:
            if (!result.values.empty())
                std::memcpy(result.values.data(), tensor.data.data(), result.values.size() * sizeof(float));
    }
    return result;
}

Weights to_weights(io::TensorFile file) {
    Weights weights;
    weights.metadata = std::move(file.metadata);
    for (io::Tensor& tensor : file.tensors) {
        if (!is_float(tensor.dtype)) continue;
        weights.tensors[tensor.name] = to_weights(tensor);
        tensor.data = {};  // both copies of one tensor at a time
    }
    return weights;
}

io::Tensor to_file(const std::string& name, const WeightTensor& tensor, DType dtype) {
    int64_t count = 1;
    for (int64_t extent : tensor.shape) {
        STIPPLE_REQUIRE(extent >= 0, "tensor '{}': negative shape", name);
        count = checked_mul(count, extent);
    }
    STIPPLE_REQUIRE(count == static_cast<int64_t>(tensor.values.size()), "tensor '{}': {} values for a shape of {}",
                    name, tensor.values.size(), count);
    io::Tensor result{name, dtype, tensor.shape, Buffer(checked_mul(count, size_of(dtype)))};
    auto* bits = reinterpret_cast<uint16_t*>(result.data.data());
    for (size_t i = 0; i < tensor.values.size(); ++i) {
        const float value = tensor.values[i];
        float written = value;
        if (dtype == DType::f16) written = half_to_float(bits[i] = float_to_half(value));
        if (dtype == DType::bf16) written = bfloat16_to_float(bits[i] = float_to_bfloat16(value));
        if (!std::isfinite(written))
            throw Error(ErrorCode::not_finite,
                        fmt::format("tensor '{}': {} at {} is no number of {}", name, value, i, name_of(dtype)));
    }
    if (dtype == DType::f32 && count > 0)
        std::memcpy(result.data.data(), tensor.values.data(), tensor.values.size() * sizeof(float));
    return result;
}

}  // namespace

Weights parse_weights(io::ByteReader& reader) {
    return to_weights(io::parse_safetensors(reader));
}

Weights load_weights(const std::string& path) {
    return to_weights(io::load_safetensors(path));
}

std::string_view name_of(WeightStorage storage) {
    return kStorages[static_cast<size_t>(storage)];
}

WeightStorage parse_weight_storage(std::string_view name) {
    for (size_t i = 0; i < std::size(kStorages); ++i)
        if (kStorages[i] == name) return static_cast<WeightStorage>(i);
    throw Error(ErrorCode::bad_argument,
                fmt::format("weights are stored as {}, not {}", fmt::join(kStorages, ", "), io::quoted(name)));
}

void save_weights(const std::string& path, const Weights& weights, WeightStorage storage, Overwrite overwrite) {
    const DType dtype = storage == WeightStorage::f16    ? DType::f16
                        : storage == WeightStorage::bf16 ? DType::bf16
                                                         : DType::f32;
    io::TensorFile file;
    file.metadata = weights.metadata;
    for (const auto& [name, tensor] : weights.tensors) file.tensors.push_back(to_file(name, tensor, dtype));
    io::save_safetensors(path, file, overwrite);
}

std::map<std::string, std::string> config_of(const Weights& weights) {
    const auto text = weights.metadata.find(kConfig);
    if (text == weights.metadata.end())
        throw Error(ErrorCode::bad_file, fmt::format("no '{}' in the metadata", kConfig));
    std::map<std::string, std::string> config;
    bool is_of_texts = true;  // no name twice
    const auto visit = [&](std::string_view key, const JsonValue& value) {
        is_of_texts &= value.kind == JsonValue::Kind::string && config.emplace(key, value.text).second;
    };
    if (!walk_json(text->second, visit, 1) || !is_of_texts)
        throw Error(ErrorCode::bad_file, fmt::format("'{}' in the metadata is no JSON object of texts: {}", kConfig,
                                                     io::quoted(text->second)));
    return config;
}

void set_config(Weights& weights, const Network& network) {
    std::string text = "{";
    for (const auto& [key, value] : network.config)
        text += fmt::format("{}{}: {}", text.size() == 1 ? "" : ", ", json_string(key), json_string(value));
    weights.metadata[kModel] = network.name;
    weights.metadata[kConfig] = text + "}";
}

}  // namespace stipple::network
