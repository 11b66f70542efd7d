#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "stipple/core/checked.h"
#include "stipple/core/error.h"
#include "stipple/core/half.h"
#include "stipple/core/json_walk.h"
#include "stipple/core/view.h"
#include "stipple/network/weights.h"

namespace stipple::network {
namespace {

constexpr const char* kModel = "stipple.model";
constexpr const char* kConfig = "stipple.config";
constexpr const char* kStorage = "stipple.storage";
constexpr std::string_view kScale = ".scale";

[[noreturn]] void refuse_tensor(std::string_view name, const std::string& reason) {
    throw Error(ErrorCode::bad_file, fmt::format("tensor {}: {}", io::in_quotes(name), reason));
}

std::string shape_in_words(const std::vector<int64_t>& shape) {
    return shape_text(shape.data(), static_cast<int>(shape.size()));
}

// === Reading

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

void check_scales(const io::Tensor& rows, const io::Tensor& scales) {
    if (scales.dtype != DType::f32)
        refuse_tensor(scales.name, fmt::format("scales of int8 rows are float32, found {}", name_of(scales.dtype)));
    const std::vector<int64_t> expected = {rows.shape[0]};
    if (scales.shape != expected)
        refuse_tensor(scales.name,
                      fmt::format("should be {}, a scale for each row of {}, found {}", shape_in_words(expected),
                                  io::in_quotes(rows.name), shape_in_words(scales.shape)));
    const auto* values = reinterpret_cast<const float*>(scales.data.data());
    for (int64_t row = 0; row < rows.shape[0]; ++row)
        if (!(values[row] >= 0 && std::isfinite(values[row])))
            refuse_tensor(scales.name, fmt::format("{} of row {} is no scale", values[row], row));
}

WeightTensor from_rows(const io::Tensor& rows, const io::Tensor* scales) {
    if (!scales)
        refuse_tensor(rows.name,
                      fmt::format("int8 rows need their scales, {} of float32", io::in_quotes(rows.name + ".scale")));
    if (rows.shape.empty()) refuse_tensor(rows.name, "int8 rows have a shape, found a single number");
    check_scales(rows, *scales);
    const auto* stored = reinterpret_cast<const int8_t*>(rows.data.data());
    const auto* scale = reinterpret_cast<const float*>(scales->data.data());
    WeightTensor result{rows.shape, std::vector<float>(static_cast<size_t>(rows.data.bytes()))};
    const size_t length = result.values.empty() ? 1 : result.values.size() / static_cast<size_t>(rows.shape[0]);
    for (size_t i = 0; i < result.values.size(); ++i) {
        if (stored[i] == -128) refuse_tensor(rows.name, fmt::format("-128 at {}, int8 rows go from -127 to 127", i));
        result.values[i] = scale[i / length] * static_cast<float>(stored[i]);
    }
    return result;
}

using TensorsByName = std::map<std::string_view, const io::Tensor*>;

const io::Tensor* find_tensor(const TensorsByName& tensors, std::string_view name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : found->second;
}

// Whether a tensor has the scales of rows that are there. must_have: the rest of the file is f16, so that what looks
// like scales is.
bool has_int8_rows(const TensorsByName& tensors, const io::Tensor& tensor, bool must_have) {
    const std::string_view name = tensor.name;
    if (name.size() < kScale.size() || name.substr(name.size() - kScale.size()) != kScale) return false;
    const std::string_view owner = name.substr(0, name.size() - kScale.size());
    const io::Tensor* rows = find_tensor(tensors, owner);
    if (rows && rows->dtype == DType::i8) return true;
    if (must_have && tensor.dtype == DType::f32)
        refuse_tensor(name, fmt::format("scales of int8 rows {}, which are not there", io::in_quotes(owner)));
    return false;
}

Weights to_weights(io::TensorFile file) {
    Weights weights;
    weights.metadata = std::move(file.metadata);
    const auto storage = weights.metadata.find(kStorage);
    const bool is_rows = storage != weights.metadata.end() && storage->second == name_of(WeightStorage::int8_rows);
    TensorsByName tensors;
    for (const io::Tensor& tensor : file.tensors) tensors.emplace(tensor.name, &tensor);
    for (io::Tensor& tensor : file.tensors) {
        if (tensor.dtype == DType::i8)
            weights.tensors[tensor.name] = from_rows(tensor, find_tensor(tensors, tensor.name + ".scale"));
        else if (is_float(tensor.dtype) && !has_int8_rows(tensors, tensor, is_rows))
            weights.tensors[tensor.name] = to_weights(tensor);
        else
            continue;      // scales stay until their rows are read
        tensor.data = {};  // both copies of one tensor at a time
    }
    return weights;
}

// === Writing

int64_t count_of(const std::string& name, const WeightTensor& tensor) {
    int64_t count = 1;
    for (int64_t extent : tensor.shape) {
        STIPPLE_REQUIRE(extent >= 0, "tensor '{}': negative shape", name);
        count = checked_mul(count, extent);
    }
    STIPPLE_REQUIRE(count == static_cast<int64_t>(tensor.values.size()), "tensor '{}': {} values for a shape of {}",
                    name, tensor.values.size(), count);
    return count;
}

void require_number(float written, const std::string& name, const WeightTensor& tensor, size_t i,
                    std::string_view storage) {
    if (!std::isfinite(written))
        throw Error(ErrorCode::not_finite,
                    fmt::format("tensor '{}': {} at {} is no number of {}", name, tensor.values[i], i, storage));
}

io::Tensor to_file(const std::string& name, const WeightTensor& tensor, DType dtype) {
    const int64_t count = count_of(name, tensor);
    io::Tensor result{name, dtype, tensor.shape, Buffer(checked_mul(count, size_of(dtype)))};
    auto* bits = reinterpret_cast<uint16_t*>(result.data.data());
    for (size_t i = 0; i < tensor.values.size(); ++i) {
        const float value = tensor.values[i];
        float written = value;
        if (dtype == DType::f16) written = half_to_float(bits[i] = float_to_half(value));
        if (dtype == DType::bf16) written = bfloat16_to_float(bits[i] = float_to_bfloat16(value));
        require_number(written, name, tensor, i, name_of(dtype));
    }
    if (dtype == DType::f32 && count > 0)
        std::memcpy(result.data.data(), tensor.values.data(), tensor.values.size() * sizeof(float));
    return result;
}

// 17 significant bits: times a whole number of 7 bits it is exact in float32.
float scale_of_row(const float* row, int64_t length) {
    float largest = 0;
    for (int64_t i = 0; i < length; ++i) largest = std::max(largest, std::fabs(row[i]));
    const uint32_t bits = std::bit_cast<uint32_t>(largest / 127);
    return std::bit_cast<float>((bits + 0x3fu + ((bits >> 7) & 1u)) & ~0x7fu);
}

void add_int8_rows(const std::string& name, const WeightTensor& tensor, std::vector<io::Tensor>& tensors) {
    const int64_t count = count_of(name, tensor), rows = tensor.shape[0], length = count / rows;
    io::Tensor stored{name, DType::i8, tensor.shape, Buffer(count)};
    io::Tensor scales{name + ".scale", DType::f32, {rows}, Buffer(checked_mul(rows, size_of(DType::f32)))};
    auto* to = reinterpret_cast<int8_t*>(stored.data.data());
    auto* scale = reinterpret_cast<float*>(scales.data.data());
    for (int64_t row = 0; row < rows; ++row) {
        const auto begin = static_cast<size_t>(row * length), end = static_cast<size_t>((row + 1) * length);
        for (size_t i = begin; i < end; ++i) require_number(tensor.values[i], name, tensor, i, "int8 rows");
        scale[row] = scale_of_row(tensor.values.data() + begin, length);
        for (size_t i = begin; i < end; ++i) {
            // 0 / 0 in a row of zeros; beyond 127 only where the scale is a denormal.
            const double steps = scale[row] > 0 ? double{tensor.values[i]} / scale[row] : 0;
            to[i] = static_cast<int8_t>(std::nearbyint(std::clamp(steps, -127.0, 127.0)));
            require_number(scale[row] * static_cast<float>(to[i]), name, tensor, i, "int8 rows");
        }
    }
    tensors.push_back(std::move(stored));
    tensors.push_back(std::move(scales));
}

bool is_stored_in_rows(const Weights& weights, const std::string& name, const WeightTensor& tensor) {
    if (tensor.shape.size() < 2 || weights.tensors.count(name + ".scale")) return false;
    const int64_t count = count_of(name, tensor);
    return count > 0 && count / tensor.shape[0] >= kInt8RowLength;
}

}  // namespace

Weights parse_weights(io::ByteReader& reader) {
    return to_weights(io::parse_safetensors(reader));
}

Weights load_weights(const std::string& path) {
    try {
        return to_weights(io::load_safetensors(path));
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

std::string_view name_of(WeightStorage storage) {
    return kWeightStorageWords[static_cast<size_t>(storage)];
}

WeightStorage parse_weight_storage(std::string_view name) {
    for (size_t i = 0; i < std::size(kWeightStorageWords); ++i)
        if (name == kWeightStorageWords[i]) return static_cast<WeightStorage>(i);
    throw Error(ErrorCode::bad_argument, fmt::format("weights are stored as {}, not {}",
                                                     fmt::join(kWeightStorageWords, ", "), io::in_quotes(name)));
}

void write_weights(const Weights& weights, WeightStorage storage, ByteSink& sink) {
    const DType dtype = storage == WeightStorage::f32    ? DType::f32
                        : storage == WeightStorage::bf16 ? DType::bf16
                                                         : DType::f16;
    io::TensorFile file;
    file.metadata = weights.metadata;
    file.metadata[kStorage] = name_of(storage);
    for (const auto& [name, tensor] : weights.tensors)
        if (storage == WeightStorage::int8_rows && is_stored_in_rows(weights, name, tensor))
            add_int8_rows(name, tensor, file.tensors);
        else
            file.tensors.push_back(to_file(name, tensor, dtype));
    io::write_safetensors(file, sink);
}

void save_weights(const std::string& path, const Weights& weights, WeightStorage storage, Overwrite overwrite) {
    AtomicFile output(path, overwrite);
    write_weights(weights, storage, output);
    output.commit();
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
                                                     io::in_quotes(text->second)));
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
