#pragma once
// fp8 e4m3 as tensor cores have it: 4 bits of exponent, 3 of mantissa, no infinities, largest number 448.

#include <cmath>
#include <cstdint>
#include <cstring>

namespace stipple::engine {

inline constexpr float kLargestE4m3 = 448;

/// The e4m3 number nearest to x, ties to even, as a float. Numbers beyond 448 become 448; NaN stays NaN.
inline float round_e4m3(float x) {
    const float magnitude = std::abs(x);
    if (!(magnitude < kLargestE4m3)) return std::isnan(x) ? x : std::copysign(kLargestE4m3, x);
    // 8 steps from one power of 2 to the next; below 2^-6 the steps stay at 2^-9.
    uint32_t bits;
    std::memcpy(&bits, &magnitude, 4);
    const int exponent = static_cast<int>(bits >> 23) - 127;
    const int step = (exponent < -6 ? -6 : exponent) - 3;
    return std::copysign(std::ldexp(std::nearbyint(std::ldexp(magnitude, -step)), step), x);
}

}  // namespace stipple::engine
