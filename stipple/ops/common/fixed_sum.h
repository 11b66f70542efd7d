#pragma once
// Sums that do not depend on the order of their terms: floats as multiples of a power of two in a 64-bit integer.
//
// Scattered gradients have many writers of one sum. Integer additions commute, so atomic ones give the same bits on any
// number of threads and on any device, without sorting. The grid is chosen for each sum from its largest term, so the
// scale of the data does not matter: a term is rounded by at most terms * 2^-61 of the largest one, 1e-9 of it when
// 2^31 terms are possible and 5e-13 for a million: finer than a float sum in any order.
//
//   pass 1   largest = max(largest, magnitude_bits(term))           one 32-bit maximum for each sum
//   pass 2   sum += to_grid(term, FixedGrid(largest, terms))        terms: an upper bound of their number
//   pass 3   grid.value(sum)

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "stipple/core/numeric.h"

namespace stipple::ops {

/// |x| as an integer that orders like it; NaN and infinity are above every number.
STIPPLE_HD uint32_t magnitude_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffffu;
}

/// 2^exponent, -1022 <= exponent <= 1023.
STIPPLE_HD double power_of_two(int exponent) {
    const uint64_t bits = static_cast<uint64_t>(1023 + exponent) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

struct FixedGrid {
    int exponent = 0;  // of the grid's step
    bool finite = true;

    /// largest: magnitude_bits of the largest term; terms <= 2^31.
    STIPPLE_HD FixedGrid(uint32_t largest, int64_t terms) {
        // Rounded up.
        const unsigned long long last = terms > 1 ? static_cast<unsigned long long>(terms) - 1 : 0;
#ifdef __CUDA_ARCH__
        const int log_terms = 64 - __clzll(static_cast<long long>(last));
#else
        const int log_terms = static_cast<int>(std::bit_width(last));
#endif
        const int biased = static_cast<int>(largest >> 23);
        finite = biased < 255;
        // Terms are below 2^top, their sum below 2^(top + log_terms): 62 bits of it are kept.
        const int top = (biased == 0 ? 1 : biased) - 126;
        exponent = top + log_terms - 62;
    }

    /// The term in steps, rounded towards zero: one instruction on any machine. 0 where the sum is not finite.
    STIPPLE_HD int64_t steps(float term) const {
        return finite ? static_cast<int64_t>(static_cast<double>(term) * power_of_two(-exponent)) : 0;
    }

    /// NaN where a term was not finite.
    STIPPLE_HD double value(int64_t sum) const {
        return finite ? static_cast<double>(sum) * power_of_two(exponent) : static_cast<double>(NAN);
    }
};

/// Three sums that share a grid: what a point receives. 32 bytes, so that its writers touch one sector of memory.
struct alignas(32) FixedSums {
    int64_t sums[3];
    uint32_t largest;
    uint32_t unused;
};

STIPPLE_HD uint32_t largest_of(const float* term) {
    const uint32_t x = magnitude_bits(term[0]), y = magnitude_bits(term[1]), z = magnitude_bits(term[2]);
    const uint32_t xy = x > y ? x : y;
    return xy > z ? xy : z;
}

}  // namespace stipple::ops
