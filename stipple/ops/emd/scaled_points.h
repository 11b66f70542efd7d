#pragma once
// The points of emd on the CPU: scaled, sorted along the curve (see auction.h).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "stipple/ops/emd/auction.h"

namespace stipple::ops::assignment {

constexpr int kBlock = 16;  // objects tested together: four NEON or two AVX registers
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Structure of arrays, scaled, padded with points at infinity to whole blocks.
struct Points {
    std::vector<float> x, y, z;

    /// Row order[k] becomes point k.
    Points(const float* rows, int64_t stride, int64_t n, int shift, const std::vector<int32_t>& order) {
        const int64_t padded = (n + kBlock - 1) / kBlock * kBlock;
        x.assign(padded, kInfinity);
        y.assign(padded, kInfinity);
        z.assign(padded, kInfinity);
        const float scale = std::ldexp(1.0f, shift);
        for (int64_t i = 0; i < n; ++i) {
            const float* row = rows + order[i] * stride;
            x[i] = row[0] * scale;
            y[i] = row[1] * scale;
            z[i] = row[2] * scale;
        }
    }
};

/// Row numbers in the order of the curve.
inline std::vector<int32_t> curve_order(const float* rows, int64_t stride, int64_t n, const Extent& box, int shift) {
    const float scale = std::ldexp(1.0f, shift);
    std::vector<uint64_t> keys(n);  // the row in the low bits: equal codes stay in order
    for (int64_t i = 0; i < n; ++i)
        keys[i] = static_cast<uint64_t>(curve_key(rows + i * stride, box, scale)) << 32 | static_cast<uint64_t>(i);
    std::sort(keys.begin(), keys.end());
    std::vector<int32_t> order(n);
    for (int64_t k = 0; k < n; ++k) order[k] = static_cast<int32_t>(keys[k] & 0xffffffffu);
    return order;
}

inline Extent extent_of(const Problem& problem) {
    Extent box;
    for (int axis = 0; axis < 3; ++axis) {
        float low = kInfinity, high = -kInfinity;
        for (int64_t i = 0; i < problem.n; ++i) {
            const float p = problem.a[i * problem.stride_a + axis], q = problem.b[i * problem.stride_b + axis];
            low = std::min(low, std::min(p, q));
            high = std::max(high, std::max(p, q));
        }
        box.low[axis] = low;
        box.high[axis] = high;
    }
    return box;
}

}  // namespace stipple::ops::assignment
