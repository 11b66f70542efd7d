#pragma once
// Image: 8-bit pixels, rows from top to bottom, channels interleaved (1 grey, 3 RGB, 4 RGBA with straight alpha).

#include "stipple/core/array.h"

namespace stipple {

struct Image {
    Array<uint8_t, 3> pixels;  // [height, width, channels]

    Image() = default;
    Image(int64_t width, int64_t height, int64_t channels) : pixels({height, width, channels}) {}

    int64_t height() const { return pixels.size(0); }
    int64_t width() const { return pixels.size(1); }
    int64_t channels() const { return pixels.size(2); }
    uint8_t* at(int64_t x, int64_t y) { return pixels.data() + (y * width() + x) * channels(); }
    const uint8_t* at(int64_t x, int64_t y) const { return pixels.data() + (y * width() + x) * channels(); }
};

}  // namespace stipple
