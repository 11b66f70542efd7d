#pragma once
// Morton codes of cells: bits of x, y and z in turn, so that near cells mostly have near codes. For sorting points
// along a curve, keys of octrees and networks that read points in a row. To find neighbours, use ops/point_index.h.

#include <array>

#include "stipple/ops/space_curve.h"

namespace stipple::geometry {

/// Coordinates from -2^20 to 2^20 - 1; further bits are lost. Codes grow with each coordinate. x holds the lowest bit.
STIPPLE_HD uint64_t morton_encode(int32_t x, int32_t y, int32_t z) {
    constexpr int32_t kHalf = 1 << 20;
    return ops::spread_bits(static_cast<uint32_t>(x) + kHalf) |
           ops::spread_bits(static_cast<uint32_t>(y) + kHalf) << 1 |
           ops::spread_bits(static_cast<uint32_t>(z) + kHalf) << 2;
}

/// The inverse of spread_bits.
STIPPLE_HD uint32_t gather_bits(uint64_t v) {
    v &= 0x1249249249249249ull;
    v = (v | v >> 2) & 0x10c30c30c30c30c3ull;
    v = (v | v >> 4) & 0x100f00f00f00f00full;
    v = (v | v >> 8) & 0x001f0000ff0000ffull;
    v = (v | v >> 16) & 0x001f00000000ffffull;
    v = (v | v >> 32) & 0x00000000001fffffull;
    return static_cast<uint32_t>(v);
}

inline std::array<int32_t, 3> morton_decode(uint64_t code) {
    constexpr int32_t kHalf = 1 << 20;
    const auto at = [=](int axis) { return static_cast<int32_t>(gather_bits(code >> axis)) - kHalf; };
    return {at(0), at(1), at(2)};
}

}  // namespace stipple::geometry
