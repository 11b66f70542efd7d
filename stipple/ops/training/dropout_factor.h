#pragma once
// What decides over an element of dropout, for CPU and CUDA.

#include "stipple/core/rng.h"

namespace stipple::ops {

/// What the kept are multiplied with.
inline float kept_factor(float rate) {
    return static_cast<float>(1 / (1 - static_cast<double>(rate)));
}

/// A word of random bits is kept where it is at least this: then its uniform is at least the rate. Uniforms are
/// multiples of 2^-24, of the upper 24 bits.
inline uint32_t least_kept(float rate) {
    return static_cast<uint32_t>(std::ceil(static_cast<double>(rate) * 0x1p24)) << 8;
}

}  // namespace stipple::ops
