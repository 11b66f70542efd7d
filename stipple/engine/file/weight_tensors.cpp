#include "stipple/engine/file/weight_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stipple/core/error.h"
#include "stipple/core/half.h"

namespace stipple::engine {
namespace {

constexpr float kSteps = 127;

float largest_of(const float* row, int64_t n) {
    float largest = 0;
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(row[i]));
    return largest;
}

/// As the CPU's chains do (cpu/chain/pack.cpp).
int8_t step_of(float value, float per_scale) {
    return static_cast<int8_t>(std::clamp(std::nearbyint(value * per_scale), -kSteps, kSteps));
}

/// The ends are the largest magnitude itself, so that it is found again.
float value_of(int8_t step, float largest) {
    if (step == 127 || step == -127) return step > 0 ? largest : -largest;
    return static_cast<float>(step) * (largest / kSteps);
}

/// False when a row would not come back as the same steps.
bool store_int8(const std::vector<float>& values, int64_t out, int64_t in, StoredWeight& stored) {
    auto* steps = reinterpret_cast<int8_t*>(stored.weight.data.data());
    stored.largest.resize(static_cast<size_t>(out));
    for (int64_t o = 0; o < out; ++o) {
        const float* row = values.data() + o * in;
        const float largest = largest_of(row, in), per_scale = largest > 0 ? kSteps / largest : 0;
        float again = 0;
        for (int64_t k = 0; k < in; ++k) {
            const int8_t step = step_of(row[k], per_scale);
            steps[o * in + k] = step;
            const float restored = value_of(step, largest);
            if (step_of(restored, per_scale) != step) return false;
            again = std::max(again, std::abs(restored));
        }
        if (again != largest) return false;
        stored.largest[static_cast<size_t>(o)] = largest;
    }
    return true;
}

bool store_bf16(const std::vector<float>& values, StoredWeight& stored) {
    auto* bits = reinterpret_cast<uint16_t*>(stored.weight.data.data());
    for (size_t i = 0; i < values.size(); ++i) {
        bits[i] = float_to_bfloat16(values[i]);
        if (!std::isfinite(bfloat16_to_float(bits[i]))) return false;  // rounded beyond the largest
    }
    return true;
}

}  // namespace

io::Tensor tensor_of(std::string name, std::vector<int64_t> shape, const std::vector<float>& values) {
    io::Tensor tensor{std::move(name), DType::f32, std::move(shape), Buffer(4 * static_cast<int64_t>(values.size()))};
    if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), 4 * values.size());
    return tensor;
}

StoredWeight store_weight(std::string name, int64_t out, int64_t in, const std::vector<float>& values,
                          Precision precision) {
    const auto n = static_cast<int64_t>(values.size());
    StoredWeight stored;
    if (precision == Precision::int8) {
        stored.weight = {name, DType::i8, {out, in}, Buffer(n)};
        if (store_int8(values, out, in, stored)) return stored;
        stored.largest.clear();
    }
    if (precision == Precision::bf16) {
        stored.weight = {name, DType::bf16, {out, in}, Buffer(2 * n)};
        if (store_bf16(values, stored)) return stored;
    }
    stored.weight = tensor_of(std::move(name), {out, in}, values);
    return stored;
}

std::vector<float> restore_weight(const io::Tensor& tensor, const std::vector<float>& largest) {
    const int64_t width = tensor.dtype == DType::i8 ? 1 : tensor.dtype == DType::bf16 ? 2 : 4;
    const int64_t n = tensor.data.bytes() / width;
    std::vector<float> values(static_cast<size_t>(n));
    if (tensor.dtype == DType::f32 && n > 0) std::memcpy(values.data(), tensor.data.data(), 4 * values.size());
    for (int64_t i = 0; tensor.dtype == DType::bf16 && i < n; ++i) {
        uint16_t bits;
        std::memcpy(&bits, tensor.data.data() + 2 * i, 2);
        values[static_cast<size_t>(i)] = bfloat16_to_float(bits);
    }
    if (tensor.dtype != DType::i8) return values;
    const auto rows = static_cast<int64_t>(largest.size()), in = rows > 0 ? n / rows : 0;
    const auto* steps = reinterpret_cast<const int8_t*>(tensor.data.data());
    for (int64_t o = 0; o < rows; ++o) {
        const float most = largest[static_cast<size_t>(o)];
        if (!(most >= 0) || !std::isfinite(most))
            throw Error(ErrorCode::bad_file, fmt::format("tensor {}: the scale of row {} is {}", tensor.name, o, most));
        for (int64_t k = 0; k < in; ++k) {
            const int8_t step = steps[o * in + k];
            if (step == -128)
                throw Error(ErrorCode::bad_file,
                            fmt::format("tensor {}: row {} has a -128, of -127 to 127", tensor.name, o));
            values[static_cast<size_t>(o * in + k)] = value_of(step, most);
        }
    }
    return values;
}

}  // namespace stipple::engine
