#pragma once
// Colours: maps from numbers to colours, and a palette for labels.

#include <cstdint>
#include <span>
#include <string_view>

#include "stipple/picture/vec.h"

namespace stipple::picture {

/// 8-bit sRGB.
struct Rgb {
    uint8_t r = 0, g = 0, b = 0;
    bool operator==(const Rgb&) const = default;
};

inline Vec3f to_vec(Rgb c) {
    return {static_cast<float>(c.r), static_cast<float>(c.g), static_cast<float>(c.b)};
}

/// 0..255 per channel, rounded and clamped.
Rgb to_rgb(Vec3f color);

/// "#rrggbb"; throws Error{bad_argument} for anything else.
Rgb parse_color(std::string_view text);

enum class ColorMap { viridis, turbo, magma, inferno, plasma, grey, coolwarm };

std::span<const std::string_view> color_map_names();

/// By name; throws Error{bad_argument} that lists the names.
ColorMap color_map_by_name(std::string_view name);

/// The colour at t in [0, 1]; t is clamped, NaN gives the map's low end. 256 steps.
Rgb map_color(ColorMap map, double t);

/// The colour of the i-th label; the first twelve are chosen by hand, the others walk around the colour circle.
Rgb category_color(int64_t i);

}  // namespace stipple::picture
