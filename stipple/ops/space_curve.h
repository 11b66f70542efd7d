#pragma once
// Positions on the Hilbert curve [Skilling 2004, Programming the Hilbert curve]. Runs of points in this order are more
// compact than in Morton order: no long jumps, so the boxes of consecutive points overlap less.

#include <cstdint>

#include "stipple/core/numeric.h"

namespace stipple::ops {

/// Two zero bits between any two bits; the lower 21 count.
STIPPLE_HD uint64_t spread_bits(uint32_t value) {
    uint64_t v = value & 0x1fffff;
    v = (v | v << 32) & 0x001f00000000ffffull;
    v = (v | v << 16) & 0x001f0000ff0000ffull;
    v = (v | v << 8) & 0x100f00f00f00f00full;
    v = (v | v << 4) & 0x10c30c30c30c30c3ull;
    v = (v | v << 2) & 0x1249249249249249ull;
    return v;
}

/// The same for the lower 10 bits, in half the operations.
STIPPLE_HD uint32_t spread_few_bits(uint32_t value) {
    uint32_t v = value & 0x3ff;
    v = (v | v << 16) & 0x030000ffu;
    v = (v | v << 8) & 0x0300f00fu;
    v = (v | v << 4) & 0x030c30c3u;
    v = (v | v << 2) & 0x09249249u;
    return v;
}

/// The position, of 3 * bits bits, of a cell with coordinates of `bits` <= 21 bits.
STIPPLE_HD uint64_t hilbert_code(uint32_t x, uint32_t y, uint32_t z, int bits) {
    const uint32_t top = 1u << (bits - 1);
    for (uint32_t bit = top; bit > 1; bit >>= 1) {  // undo the rotations of the coarser levels
        const uint32_t low = bit - 1;
        if (x & bit) x ^= low;
        uint32_t swap = y & bit ? 0 : (x ^ y) & low;
        if (y & bit) x ^= low;
        x ^= swap, y ^= swap;
        swap = z & bit ? 0 : (x ^ z) & low;
        if (z & bit) x ^= low;
        x ^= swap, z ^= swap;
    }
    y ^= x, z ^= y;  // Gray code
    uint32_t flip = 0;
    for (uint32_t bit = top; bit > 1; bit >>= 1) {
        if (z & bit) flip ^= bit - 1;
    }
    x ^= flip, y ^= flip, z ^= flip;
    if (bits <= 10) return spread_few_bits(x) << 2 | spread_few_bits(y) << 1 | spread_few_bits(z);
    return spread_bits(x) << 2 | spread_bits(y) << 1 | spread_bits(z);
}

/// The cell of a coordinate; scale = cells / extent. Whatever overflows or is not a number goes to an outer cell:
/// the order decides about speed only.
STIPPLE_HD uint32_t curve_cell(float coordinate, float low, float scale, uint32_t cells) {
    const float cell = (coordinate - low) * scale;
    if (!(cell > 0)) return 0;
    return cell < static_cast<float>(cells - 1) ? static_cast<uint32_t>(cell) : cells - 1;
}

}  // namespace stipple::ops
