#include "stipple/picture/color_map.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "stipple/core/error.h"

namespace stipple::picture {
namespace {

// Samples of the maps at equal steps, joined by a cubic through them.
constexpr uint32_t kViridis[] = {0x440154, 0x482475, 0x414487, 0x355f8d, 0x2a788e, 0x21918c,
                                 0x22a884, 0x44bf70, 0x7ad151, 0xbddf26, 0xfde725};
constexpr uint32_t kTurbo[] = {0x30123b, 0x4662d8, 0x35abf8, 0x1be5b5, 0x74fe5d,
                               0xc9ef34, 0xfbb938, 0xf56918, 0xc92903, 0x7a0403};
constexpr uint32_t kMagma[] = {0x000004, 0x140e36, 0x3b0f70, 0x641a80, 0x8c2981, 0xb73779,
                               0xde4968, 0xf7705c, 0xfe9f6d, 0xfecf92, 0xfcfdbf};
constexpr uint32_t kInferno[] = {0x000004, 0x160b39, 0x420a68, 0x6a176e, 0x932667, 0xbc3754,
                                 0xdd513a, 0xf37819, 0xfca50a, 0xf6d746, 0xfcffa4};
constexpr uint32_t kPlasma[] = {0x0d0887, 0x41049d, 0x6a00a8, 0x8f0da4, 0xb12a90, 0xcc4778,
                                0xe16462, 0xf2844b, 0xfca636, 0xfcce25, 0xf0f921};
constexpr uint32_t kGrey[] = {0x1c1c1c, 0xf0f0f0};
constexpr uint32_t kCoolwarm[] = {0x3b4cc0, 0x6282ea, 0x8db0fe, 0xb8d0f9, 0xdddddd,
                                  0xf5c4ad, 0xf49a7b, 0xde604d, 0xb40426};
constexpr uint32_t kCategories[] = {0x4078bc, 0xee8634, 0x4aa05c, 0xd0484c, 0x8e68b8, 0xe8be40,
                                    0x50b2be, 0xd874aa, 0x8c644c, 0x96b048, 0x70808f, 0x28507a};

constexpr std::string_view kNames[] = {"viridis", "turbo", "magma", "inferno", "plasma", "grey", "coolwarm"};
constexpr int kSteps = 256;
using Table = std::array<Rgb, kSteps>;

float channel(uint32_t color, int c) {
    return static_cast<float>((color >> (16 - 8 * c)) & 0xff);
}

Table make_table(std::span<const uint32_t> samples) {
    Table table;
    const int last = static_cast<int>(samples.size()) - 1;
    for (int i = 0; i < kSteps; ++i) {
        const float at = static_cast<float>(i) / (kSteps - 1) * static_cast<float>(last);
        const int k = std::min(static_cast<int>(at), last - 1);
        const float t = at - static_cast<float>(k);
        float value[3];
        for (int c = 0; c < 3; ++c) {
            const float b = channel(samples[k], c), d = channel(samples[k + 1], c);
            const float a = k > 0 ? channel(samples[k - 1], c) : 2 * b - d;
            const float e = k + 2 <= last ? channel(samples[k + 2], c) : 2 * d - b;
            value[c] = b + 0.5f * t * (d - a + t * (2 * a - 5 * b + 4 * d - e + t * (3 * (b - d) + e - a)));
        }
        table[i] = to_rgb({value[0], value[1], value[2]});
    }
    return table;
}

const Table& table_of(ColorMap map) {
    static const std::array<Table, std::size(kNames)> tables = {
        make_table(kViridis), make_table(kTurbo), make_table(kMagma),   make_table(kInferno),
        make_table(kPlasma),  make_table(kGrey),  make_table(kCoolwarm)};
    return tables[static_cast<size_t>(map)];
}

Rgb unpack(uint32_t color) {
    return {static_cast<uint8_t>(color >> 16), static_cast<uint8_t>(color >> 8), static_cast<uint8_t>(color)};
}

}  // namespace

Rgb to_rgb(Vec3f color) {
    const auto clamp = [](float v) { return static_cast<uint8_t>(std::fmin(std::fmax(v, 0.f), 255.f) + 0.5f); };
    return {clamp(color.x), clamp(color.y), clamp(color.z)};
}

Rgb parse_color(std::string_view text) {
    uint32_t value = 0;
    bool good = text.size() == 7 && text[0] == '#';
    for (size_t i = 1; good && i < 7; ++i) {
        const char c = text[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        good = digit >= 0;
        value = value * 16 + static_cast<uint32_t>(digit & 15);
    }
    STIPPLE_REQUIRE(good, "'{}' is not a colour of the form #rrggbb", text);
    return unpack(value);
}

std::span<const std::string_view> color_map_names() {
    return kNames;
}

ColorMap color_map_by_name(std::string_view name) {
    std::string known;
    for (size_t i = 0; i < std::size(kNames); ++i) {
        if (kNames[i] == name) return static_cast<ColorMap>(i);
        known += std::string(i ? ", " : "") + std::string(kNames[i]);
    }
    throw Error(ErrorCode::bad_argument, fmt::format("no colour map '{}'", name), "one of: " + known);
}

Rgb map_color(ColorMap map, double t) {
    const double clamped = t > 0 ? std::min(t, 1.0) : 0;  // NaN too becomes 0
    return table_of(map)[static_cast<size_t>(clamped * (kSteps - 1) + 0.5)];
}

Rgb category_color(int64_t i) {
    const int64_t known = static_cast<int64_t>(std::size(kCategories));
    i = std::max<int64_t>(i, 0);
    if (i < known) return unpack(kCategories[i]);
    // Golden-angle steps of hue, with two lightnesses in turn.
    const double hue = std::fmod(0.12 + 0.61803398875 * static_cast<double>(i % 100'000), 1.0) * 6;
    const float light = i % 2 ? 0.86f : 0.68f, saturation = i % 3 ? 0.62f : 0.45f;
    const auto wave = [&](double shift) {
        const double h = std::fmod(hue + shift, 6.0);
        const float k = static_cast<float>(std::clamp(std::abs(h - 3) - 1, 0.0, 1.0));
        return 255 * light * (1 - saturation * (1 - k));
    };
    return to_rgb({wave(0), wave(4), wave(2)});
}

}  // namespace stipple::picture
