#include "stipple/tasks/upsample/attributes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "stipple/core/parallel.h"

namespace stipple::tasks {
namespace {

/// Whether a weighted mean of its values makes sense.
bool has_mean(const Attribute& attribute) {
    const bool is_amount = attribute.name() == "color" || attribute.name() == "intensity";
    return attribute.dtype() == DType::f32 || attribute.dtype() == DType::f64 ||
           (is_amount && is_integer(attribute.dtype()) && size_of(attribute.dtype()) <= 4);
}

/// The first source of the largest weight.
int32_t heaviest(std::span<const int32_t> sources, std::span<const float> weights) {
    size_t best = 0;
    for (size_t j = 1; j < sources.size(); ++j)
        if (sources[j] >= 0 && (sources[best] < 0 || weights[j] > weights[best])) best = j;
    return sources[best];
}

template <class T>
T as_number(double value) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(std::llround(std::clamp(value, static_cast<double>(std::numeric_limits<T>::min()),
                                                      static_cast<double>(std::numeric_limits<T>::max()))));
    else
        return static_cast<T>(value);
}

/// Stores a number in one of the types that has_mean() lets through.
void store(DType type, std::byte* to, double value) {
    const auto put = [&](auto number) { std::memcpy(to, &number, sizeof number); };
    switch (type) {
        case DType::i8: return put(as_number<int8_t>(value));
        case DType::u8: return put(as_number<uint8_t>(value));
        case DType::i16: return put(as_number<int16_t>(value));
        case DType::u16: return put(as_number<uint16_t>(value));
        case DType::i32: return put(as_number<int32_t>(value));
        case DType::u32: return put(as_number<uint32_t>(value));
        case DType::f32: return put(static_cast<float>(value));
        case DType::f64: return put(value);
        default: throw Error(ErrorCode::internal, "an attribute of a type that has no mean");
    }
}

void blend_row(const Attribute& from, std::span<const int32_t> sources, std::span<const float> weights, Attribute& to,
               int64_t row) {
    const int32_t main = heaviest(sources, weights);
    std::byte* out = to.data() + row * to.row_bytes();
    if (!has_mean(from)) {
        std::memcpy(out, from.data() + main * from.row_bytes(), static_cast<size_t>(from.row_bytes()));
        return;
    }
    double total = 0;
    for (size_t j = 0; j < sources.size(); ++j) total += sources[j] >= 0 ? weights[j] : 0;
    std::vector<double> mean(static_cast<size_t>(from.components()), 0);
    for (size_t j = 0; j < sources.size(); ++j)
        for (size_t c = 0; c < mean.size() && sources[j] >= 0; ++c)
            mean[c] += weights[j] / total * from.value(sources[j], static_cast<int64_t>(c));
    if (from.name() == "normal") {
        double length = 0;
        for (const double x : mean) length += x * x;
        length = std::sqrt(length);
        for (size_t c = 0; c < mean.size(); ++c)
            mean[c] = length > 1e-6 ? mean[c] / length : from.value(main, static_cast<int64_t>(c));
    }
    for (size_t c = 0; c < mean.size(); ++c)
        store(from.dtype(), out + static_cast<int64_t>(c) * size_of(from.dtype()), mean[c]);
}

}  // namespace

Attributes blend_attributes(const Attributes& attributes, int64_t n, int64_t width, std::span<const int32_t> sources,
                            std::span<const float> weights) {
    Attributes blended;
    for (const Attribute& from : attributes) {
        Attribute to(from.name(), from.dtype(), n, from.components());
        parallel_for(n, 4096, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                blend_row(from, sources.subspan(static_cast<size_t>(i * width), static_cast<size_t>(width)),
                          weights.subspan(static_cast<size_t>(i * width), static_cast<size_t>(width)), to, i);
        });
        blended.push_back(std::move(to));
    }
    return blended;
}

}  // namespace stipple::tasks
