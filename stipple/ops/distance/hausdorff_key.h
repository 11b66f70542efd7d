#pragma once
// A squared distance, a direction and an index in 64 bits whose maximum is the farthest point and, of equals, the
// first.

#include <cstdint>
#include <cstring>

#include "stipple/core/numeric.h"

namespace stipple::ops {

constexpr uint64_t kNoFarthest = 0;  // below the key of every point

/// side: 0 for a_to_b, 1 for b_to_a; index < 2^31 - 1. Squared distances order like their bits.
STIPPLE_HD uint64_t farthest_key(float distance_sq, int side, int32_t index) {
    uint32_t bits;
    memcpy(&bits, &distance_sq, sizeof bits);
    const uint32_t rank = (static_cast<uint32_t>(side) << 31) | static_cast<uint32_t>(index);
    return (static_cast<uint64_t>(bits) << 32) | (0xffffffffu - rank);
}

STIPPLE_HD float key_distance_sq(uint64_t key) {
    const uint32_t bits = static_cast<uint32_t>(key >> 32);
    float distance_sq;
    memcpy(&distance_sq, &bits, sizeof distance_sq);
    return distance_sq;
}

STIPPLE_HD int key_side(uint64_t key) {
    return static_cast<int>((0xffffffffu - static_cast<uint32_t>(key)) >> 31);
}

STIPPLE_HD int32_t key_index(uint64_t key) {
    return static_cast<int32_t>((0xffffffffu - static_cast<uint32_t>(key)) & 0x7fffffffu);
}

}  // namespace stipple::ops
