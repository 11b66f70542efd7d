#pragma once
// Visibility: which point or triangle each sample of a picture sees.
//
// Clouds and meshes are drawn into one buffer of 64-bit keys, depth above and identity below, and the smallest key
// stays. The minimum does not depend on the order of drawing, so pictures are the same for any number of threads, and
// equal depths go to the lower index. Colours are computed afterwards, once per visible sample (shade.h).

#include <bit>
#include <cstdint>

#include "stipple/core/array.h"

namespace stipple::picture {

inline constexpr uint64_t kNothing = ~uint64_t{0};
inline constexpr uint32_t kIsTriangle = uint32_t{1} << 31;  // in the identity; the rest is the index
inline constexpr int64_t kTile = 128;                       // samples a side: 128 KiB of keys, half a small L2

struct Visibility {
    int64_t width, height;    // pixels
    int64_t samples;          // per pixel and axis
    Array<uint64_t, 2> keys;  // [height * samples, width * samples]

    /// Everything sees nothing.
    Visibility(int64_t width_, int64_t height_, int64_t samples_);

    int64_t sample_width() const { return width * samples; }
    int64_t sample_height() const { return height * samples; }
    int64_t tiles_x() const { return (sample_width() + kTile - 1) / kTile; }
    int64_t tiles_y() const { return (sample_height() + kTile - 1) / kTile; }
};

/// Depth must be positive: then its bits sort as it does.
inline uint64_t make_key(float depth, uint32_t identity) {
    return uint64_t{std::bit_cast<uint32_t>(depth)} << 32 | identity;
}
inline float depth_of(uint64_t key) {
    return std::bit_cast<float>(static_cast<uint32_t>(key >> 32));
}
inline uint32_t identity_of(uint64_t key) {
    return static_cast<uint32_t>(key);
}

}  // namespace stipple::picture
