#include "stipple/io/las/layout.h"

#include <cmath>

namespace stipple::io::las {

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
