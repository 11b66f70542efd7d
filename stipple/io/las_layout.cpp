#include "stipple/io/las_layout.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include "stipple/core/parallel.h"

namespace stipple::io::las {
namespace {

constexpr int64_t kGrain = int64_t{1} << 15;
constexpr double kExact = 9007199254740992.0;  // from 2^53 on a double does not tell one integer from the next

template <class T>
bool convert(const Attribute& from, Attribute& to) {
    Attribute result(from.name(), to.dtype(), from.rows(), from.components());
    T* out = reinterpret_cast<T*>(result.data());
    const int64_t size = size_of(from.dtype());
    std::atomic<bool> exact{true};
    parallel_for(from.rows() * from.components(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const double value = load_as_double(from.dtype(), from.data() + i * size);
            bool fits = size < 8 || is_float(from.dtype()) || std::abs(value) < kExact;
            if constexpr (std::is_integral_v<T>)
                fits = fits && value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
                       value <= static_cast<double>(std::numeric_limits<T>::max()) && std::abs(value) < kExact &&
                       value == std::floor(value);
            else
                fits = fits && (static_cast<double>(static_cast<T>(value)) == value || std::isnan(value));
            if (!fits) {
                exact.store(false, std::memory_order_relaxed);
                return;
            }
            out[i] = static_cast<T>(value);
        }
    });
    if (exact) to = std::move(result);
    return exact;
}

}  // namespace

std::vector<Column> columns_of(int format) {
    const auto u8 = DType::u8;
    const auto u16 = DType::u16;
    std::vector<Column> columns;
    const auto add = [&](const char* name, DType dtype, int64_t offset, int shift = 0, int bits = 0,
                         int64_t components = 1) {
        columns.push_back({name, dtype, components, offset, shift, bits});
    };
    const bool wide = format >= 6;
    add("intensity", u16, 12);
    add("return_number", u8, 14, 0, wide ? 4 : 3);
    add("number_of_returns", u8, 14, wide ? 4 : 3, wide ? 4 : 3);
    add("scan_direction", u8, wide ? 15 : 14, 6, 1);
    add("edge_of_flight_line", u8, wide ? 15 : 14, 7, 1);
    if (wide) {
        add("label", u8, 16);
        add("classification_flags", u8, 15, 0, 4);
        add("scanner_channel", u8, 15, 4, 2);
        add("scan_angle", DType::i16, 18);
        add("user_data", u8, 17);
        add("point_source_id", u16, 20);
        add("time", DType::f64, 22);
        if (format == 7 || format == 8 || format == 10) add("color", u16, 30, 0, 0, 3);
        if (format == 8 || format == 10) add("nir", u16, 36);
        return columns;
    }
    add("label", u8, 15, 0, 5);
    add("classification_flags", u8, 15, 5, 3);
    add("scan_angle", DType::i8, 16);
    add("user_data", u8, 17);
    add("point_source_id", u16, 18);
    const bool timed = format == 1 || format >= 3;
    if (timed) add("time", DType::f64, 20);
    if (format == 2 || format == 3 || format == 5) add("color", u16, timed ? 28 : 20, 0, 0, 3);
    return columns;
}

bool convert_exactly(const Attribute& from, DType dtype, Attribute& to) {
    Attribute result(from.name(), dtype, 0, from.components());
    bool exact = false;
    switch (dtype) {
        case DType::u8: exact = convert<uint8_t>(from, result); break;
        case DType::i8: exact = convert<int8_t>(from, result); break;
        case DType::u16: exact = convert<uint16_t>(from, result); break;
        case DType::i16: exact = convert<int16_t>(from, result); break;
        case DType::u32: exact = convert<uint32_t>(from, result); break;
        case DType::i32: exact = convert<int32_t>(from, result); break;
        case DType::u64: exact = convert<uint64_t>(from, result); break;
        case DType::i64: exact = convert<int64_t>(from, result); break;
        case DType::f32: exact = convert<float>(from, result); break;
        case DType::f64: exact = convert<double>(from, result); break;
        case DType::boolean: exact = convert<bool>(from, result); break;
        case DType::f16:
        case DType::bf16: break;
    }
    if (exact) to = std::move(result);
    return exact;
}

Attribute widen_color(const Attribute& color) {
    Attribute wide(color.name(), DType::u16, color.rows(), 3);
    const auto from = color.as<uint8_t>();
    uint16_t* to = reinterpret_cast<uint16_t*>(wide.data());
    for (int64_t i = 0; i < color.rows(); ++i)
        for (int64_t c = 0; c < 3; ++c) to[3 * i + c] = static_cast<uint16_t>(from(i, c) * 257);
    return wide;
}

bool narrow_color(const Attribute& color, Attribute& to) {
    Attribute narrow(color.name(), DType::u8, color.rows(), 3);
    const auto* from = reinterpret_cast<const uint16_t*>(color.data());
    for (int64_t i = 0; i < 3 * color.rows(); ++i) {
        if (from[i] % 257 != 0) return false;
        narrow.data()[i] = static_cast<std::byte>(from[i] / 257);
    }
    to = std::move(narrow);
    return true;
}

Attribute degrees_to_steps(const Attribute& angle) {
    Attribute steps(angle.name(), DType::i16, angle.rows(), 1);
    const auto from = angle.as<int8_t>();
    for (int64_t i = 0; i < angle.rows(); ++i)
        reinterpret_cast<int16_t*>(steps.data())[i] = static_cast<int16_t>(std::lround(from(i, 0) / 0.006));
    return steps;
}

bool steps_to_degrees(const Attribute& angle, Attribute& to) {
    Attribute degrees(angle.name(), DType::i8, angle.rows(), 1);
    const auto from = angle.as<int16_t>();
    for (int64_t i = 0; i < angle.rows(); ++i) {
        const long degree = std::lround(from(i, 0) * 0.006);
        if (degree < -128 || degree > 127 || std::lround(static_cast<double>(degree) / 0.006) != from(i, 0))
            return false;
        degrees.data()[i] = static_cast<std::byte>(static_cast<int8_t>(degree));
    }
    to = std::move(degrees);
    return true;
}

}  // namespace stipple::io::las
