#pragma once
// The inverse of x + g(x) in three dimensions, for both devices: what to do with g and its Jacobian at a point, and
// where to look at them next. Channels that are not there have g = 0 and J = 0.

#include <cmath>

#include "stipple/core/numeric.h"

namespace stipple::engine {

/// det (1 + J); j is row-major.
STIPPLE_HD float determinant_beside_one(const float* j) {
    const float a = 1 + j[0], e = 1 + j[4], i = 1 + j[8];
    return a * (e * i - j[5] * j[7]) - j[1] * (j[3] * i - j[5] * j[6]) + j[2] * (j[3] * j[7] - e * j[6]);
}

/// d of (1 + J) d = r, by cofactors.
STIPPLE_HD void solve_beside_one(const float* j, const float* r, float* d) {
    const float a = 1 + j[0], e = 1 + j[4], i = 1 + j[8];
    const float factor = 1 / determinant_beside_one(j);
    const float c00 = e * i - j[5] * j[7], c01 = j[2] * j[7] - j[1] * i, c02 = j[1] * j[5] - j[2] * e;
    const float c10 = j[5] * j[6] - j[3] * i, c11 = a * i - j[2] * j[6], c12 = j[2] * j[3] - a * j[5];
    const float c20 = j[3] * j[7] - e * j[6], c21 = j[1] * j[6] - a * j[7], c22 = a * e - j[1] * j[3];
    d[0] = factor * (c00 * r[0] + c01 * r[1] + c02 * r[2]);
    d[1] = factor * (c10 * r[0] + c11 * r[1] + c12 * r[2]);
    d[2] = factor * (c20 * r[0] + c21 * r[1] + c22 * r[2]);
}

/// Evaluations of g after which a row ends where it is.
constexpr int kMostInverseIterations = 100;

/// One row. Newton's method while it brings the residual down; where it does not, the fixed point y - g(x), which does
/// for every g of a Lipschitz constant below 1. Ends when a step is below 1e-6 in every channel, or is so short that
/// rounding hides whether it helps.
struct InverseSearch {
    float y[3], at[3];  // at: where g is wanted next
    float x[3], r[3];   // the best so far, and x + g(x) - y there
    float j[9];
    float best;  // |r|^2; negative: none yet
    bool is_plain, is_done;

    STIPPLE_HD void begin(const float* from) {
        for (int c = 0; c < 3; ++c) y[c] = at[c] = from[c];
        best = -1;
        is_plain = is_done = false;
    }

    /// g and J at `at`.
    STIPPLE_HD void next(const float* g, const float* jacobian) {
        constexpr float kTolerance = 1e-6f, kRounding = 1e-5f;
        float residual[3], square = 0, step = 0;
        for (int c = 0; c < 3; ++c) {
            residual[c] = at[c] + g[c] - y[c];
            square += residual[c] * residual[c];
            if (best >= 0) step = fmaxf(step, fabsf(at[c] - x[c]) / fmaxf(1.0f, fabsf(x[c])));
        }
        if (best >= 0 && !(square < best)) {
            is_done = is_plain || step < kRounding;
            is_plain = true;
            for (int c = 0; c < 3; ++c) at[c] = x[c] - r[c];
            return;
        }
        for (int c = 0; c < 3; ++c) {
            x[c] = at[c];
            r[c] = residual[c];
        }
        for (int i = 0; i < 9; ++i) j[i] = jacobian[i];
        best = square;
        is_plain = false;
        float d[3];
        solve_beside_one(j, r, d);
        const float largest = fmaxf(fmaxf(fabsf(d[0]), fabsf(d[1])), fabsf(d[2]));
        is_done = largest < kTolerance;
        for (int c = 0; c < 3; ++c) {
            at[c] = x[c] - d[c];
            if (is_done) x[c] = at[c];
        }
    }
};

}  // namespace stipple::engine
