#pragma once
// Powers of two as a short polynomial without branches: what the compiler turns into vector code.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "stipple/core/numeric.h"

namespace stipple::ops {

/// a * b + c, fused where the machine does it in one instruction. For values whose last bit decides nothing.
STIPPLE_HD float multiply_add(float a, float b, float c) {
#if defined(__CUDA_ARCH__) || defined(__FP_FAST_FMAF)
    return fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/// 2^x within 1.5e-7 of the result for -126 <= x < 128. Smaller x, -infinity and NaN give 2^-126; larger x gives
/// nothing of use.
///
/// x = n + r with n its nearest integer and |r| <= 1/2; 2^r by the polynomial of degree 6 whose largest relative error
/// is least (2e-9); 2^n by adding n to the exponent's bits.
STIPPLE_HD float fast_exp2(float x) {
    constexpr float kRounder = 0x1.8p23f;  // in its neighbourhood floats are the integers
    // max(x, -126) by masks: of a comparison with a constant GCC 12 makes a branch, and no vector code.
    constexpr uint32_t kLowest = 0xc2fc0000u;  // -126
    uint32_t x_bits;
    memcpy(&x_bits, &x, sizeof x_bits);
    const uint32_t keep = 0u - static_cast<uint32_t>(x > -126.0f);
    x_bits = (x_bits & keep) | (kLowest & ~keep);
    memcpy(&x, &x_bits, sizeof x);
    const float shifted = x + kRounder;
    const float r = x - (shifted - kRounder);
    float p = 0x1.41d334p-13f;
    p = multiply_add(p, r, 0x1.5f456ap-10f);
    p = multiply_add(p, r, 0x1.3b2dbcp-7f);
    p = multiply_add(p, r, 0x1.c6aed4p-5f);
    p = multiply_add(p, r, 0x1.ebfbdap-3f);
    p = multiply_add(p, r, 0x1.62e430p-1f);
    p = multiply_add(p, r, 1.0f);
    uint32_t n_bits, p_bits;
    memcpy(&n_bits, &shifted, sizeof n_bits);
    memcpy(&p_bits, &p, sizeof p_bits);
    p_bits += n_bits << 23;  // the rounder's own bits leave at the top
    memcpy(&p, &p_bits, sizeof p);
    return p;
}

/// e^x within 2e-7 * (1 + |x|) of the result, -87 <= x < 88; below, at most 1.2e-38.
STIPPLE_HD float fast_exp(float x) {
    return fast_exp2(x * 0x1.715476p+0f);
}

}  // namespace stipple::ops
