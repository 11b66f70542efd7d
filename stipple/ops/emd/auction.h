#pragma once
// The arithmetic of emd that CPU and CUDA share bit for bit, and the interface of the CPU solver. README.md in this
// folder has the algorithm in steps, a glossary, and where each constant was measured.
//
// Why nothing depends on the order of threads: every choice is a minimum or maximum with a rule for ties, sums that
// decide anything are sums of integers, and every edge of a search forest is at least one unit long, so that there is
// one forest of shortest paths, in whatever order its objects are settled. Prices and profits are floats.
//
// Bidders are the points of a, objects those of b. Both clouds are first sorted along a Hilbert curve through their
// common box, equal keys in the order of their rows: runs of objects are compact then, and most of a scan skips whole
// runs. Every index here, and so every tie rule, is a position in that order; only the result is mapped back to rows.

#include <cmath>
#include <cstdint>
#include <vector>

#include "stipple/core/numeric.h"
#include "stipple/ops/clouds.h"
#include "stipple/ops/space_curve.h"

namespace stipple::ops::assignment {

constexpr int kMaxRounds = 4096;           // bidding rounds of a phase
constexpr int kMaxBids = 512;              // bids of a phase, per bidder
constexpr float kFinestEps = 0x1p-18f;     // of the scaled box: the smallest eps that float prices resolve
constexpr float kFilterMargin = 0x1p-17f;  // added to limits: above every rounding error of prices below 16
constexpr float kFilterFactor = 1.0f + 0x1p-20f;
constexpr float kUnit = 0x1p-6f;              // of eps: the unit of path lengths (levels)
constexpr int32_t kStride = 2 * 64;           // levels settled between two tests whether a search may stop
constexpr int32_t kMaxLevel = (1 << 18) - 2;  // no path of a search is longer
constexpr int32_t kUnreached = 0x7fffffff;    // the level of an object without a path

/// The common box of both clouds. Points are multiplied by 2^shift, so that its longest side is in [0.5, 1).
struct Extent {
    float low[3], high[3];
};

STIPPLE_HD int scale_shift(const Extent& box) {
    float half = 0.0f;
    for (int axis = 0; axis < 3; ++axis) half = fmaxf(half, 0.5f * box.high[axis] - 0.5f * box.low[axis]);
    if (!(half > 0.0f)) return 0;
    int exponent = 0;
    frexpf(half, &exponent);
    const int shift = -1 - exponent;
    return shift > 125 ? 125 : shift;
}

/// Position of a point on the Hilbert curve through the box, kCurveBits bits; scale is 2^scale_shift(box). Defined for
/// non-finite points too.
constexpr int kCurveBits = 30;
STIPPLE_HD uint32_t curve_key(const float* point, const Extent& box, float scale) {
    constexpr uint32_t kCells = 1u << (kCurveBits / 3);
    uint32_t cell[3];
    for (int axis = 0; axis < 3; ++axis)
        cell[axis] = curve_cell(point[axis] * scale, box.low[axis] * scale, static_cast<float>(kCells), kCells);
    return static_cast<uint32_t>(hilbert_code(cell[0], cell[1], cell[2], kCurveBits / 3));
}

/// The cost of a pair from its squared distance.
template <bool squared>
STIPPLE_HD float cost_from_sq(float sq) {
    if (squared) return sq;
#ifdef __CUDA_ARCH__
    // As __fsqrt_rn, but its branch for numbers near 0 would keep the roots of several pairs from overlapping. Of no
    // use for infinity.
    const bool tiny = sq < 0x1p-100f;
    const float x = tiny ? sq * 0x1p64f : sq;
    float inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(fmaxf(x, 0x1p-100f)));
    const float near = __fmul_rn(x, inverse);
    const float root = __fmaf_rn(__fmaf_rn(-near, near, x), __fmul_rn(0.5f, inverse), near);
    return tiny ? root * 0x1p-32f : root;
#else
    return std::sqrt(sq);
#endif
}

template <bool squared>
STIPPLE_HD float pair_cost(float dx, float dy, float dz) {
    return cost_from_sq<squared>(distance_sq(dx, dy, dz));
}

/// False only where cost <= limit is false: avoids the square root of most pairs.
template <bool squared>
STIPPLE_HD bool may_cost(float sq, float limit) {
    return sq <= (squared ? limit : limit * fabsf(limit));
}

/// Length of an edge of the search graph: the reduced cost in units, rounded up or one more, and so at least 1; above
/// kMaxLevel where it does not fit.
STIPPLE_HD int32_t edge_length(float cost, float price, float profit, float inverse_unit) {
    const float units = multiply_rounded(add_rounded(add_rounded(cost, price), -profit), inverse_unit);
    return 1 + static_cast<int32_t>(fminf(fmaxf(units, 0.0f), static_cast<float>(kMaxLevel)));
}

/// The auction of a phase stops when no more bidders than this are unassigned. A phase that is not the last only needs
/// prices good enough to start the next one; in the last, augmenting paths take over.
STIPPLE_HD int64_t tolerated_unassigned(int64_t n, bool last) {
    const int64_t few = n > 6 * 1024 ? n / 512 : 12;
    return last ? few * 7 / 3 : few;
}

/// A search from this many roots stops when it has settled this many free objects, or all that it can reach.
template <class Count>
STIPPLE_HD Count enough_free_objects(Count left) {
    return (left + 2) / 3;
}

/// Ties go to the lowest rank, counted from the chooser on. With the lowest index instead, coinciding bidders would all
/// bid for the same object.
STIPPLE_HD int32_t rank_of(int32_t index, int32_t chooser, int32_t n) {
    const int32_t ahead = index - chooser;
    return ahead < 0 ? ahead + n : ahead;
}

/// The bid for the best object: it becomes as expensive as the second best, and eps more. Values are cost + price.
STIPPLE_HD float bid_of(float price, float best, float second, float eps) {
    return add_rounded(price, add_rounded(add_rounded(second, -best), eps));
}

/// Fixed-point sums: value * 2^sum_shift(n) as an integer, no overflow for n values below 32.
STIPPLE_HD int sum_shift(int64_t n) {
    int bits = 0;
    while ((int64_t{1} << bits) < n) ++bits;
    return 57 - bits;
}
STIPPLE_HD int64_t to_fixed_point(float value, float factor) {
    return static_cast<int64_t>(value * factor);
}

/// A lower bound from float profits, less what their rounding may have added.
STIPPLE_HD double certified(double bound) {
    return fmax(bound - 0x1p-19, 0.0);
}

/// The sequence of eps, and when to stop. All in the scaled unit, per point.
struct Schedule {
    double relative, absolute;
    float eps;
    double bound;  // lower bound of the mean cost of any assignment
    bool done;

    STIPPLE_HD double wanted_gap() const {
        return fmax(fmax(multiply_rounded(relative, bound), absolute),
                    multiply_rounded(0.5, static_cast<double>(kFinestEps)));
    }
    /// A phase leaves a gap between eps / 3, for clouds of one shape, and eps / 2, and refinement (refine.h) reduces it
    /// to a third or less: the largest eps worth refining.
    STIPPLE_HD double last_eps() const { return multiply_rounded(10.0, wanted_gap()); }

    /// The first eps, between the mean distance to the nearest object (a lower bound of the cost) and the extent.
    STIPPLE_HD void begin(double nearest) {
        bound = certified(nearest);
        const double wanted = multiply_rounded(0.8, sqrt(bound));
        eps = static_cast<float>(fmax(fmax(wanted, last_eps()), static_cast<double>(kFinestEps)));
        done = false;
    }

    /// Whether this phase may be the last: all bidders are assigned then.
    STIPPLE_HD bool may_be_last() const { return eps <= multiply_rounded(1.01, last_eps()); }

    /// Whether the dual bound `proven` shows that an assignment of this cost is within the wanted gap.
    STIPPLE_HD bool proves(double cost, double proven) {
        bound = fmax(bound, certified(proven));
        return cost - bound <= wanted_gap();
    }

    /// After a phase; cost is infinite when a bidder is unassigned.
    STIPPLE_HD void advance(double cost, double proven) {
        const bool tried = may_be_last();
        if (proves(cost, proven) || (tried && eps <= kFinestEps)) {
            done = true;
            return;
        }
        const double last = last_eps();
        double next = multiply_rounded(static_cast<double>(eps), tried ? 0.5 : 0.14);
        if (!tried && next < multiply_rounded(1.5, last)) next = fmin(last, static_cast<double>(eps));
        eps = static_cast<float>(fmax(next, static_cast<double>(kFinestEps)));
    }
};

/// Gradient of weight * cost(p, q) with respect to p; that of q is its negative. 0 where the points coincide.
STIPPLE_HD void pair_gradient(const float* p, const float* q, float weight, bool squared, float* grad) {
    const float dx = p[0] - q[0], dy = p[1] - q[1], dz = p[2] - q[2];
    if (!squared) {
        // The largest component is taken out: neither 1e18 nor 1e-25 squared may leave the range of floats.
        const float most = fmaxf(fabsf(dx), fmaxf(fabsf(dy), fabsf(dz)));
        if (!(most > 0.0f)) {
            grad[0] = grad[1] = grad[2] = 0.0f;
            return;
        }
        const float x = dx / most, y = dy / most, z = dz / most, length = sqrtf(distance_sq(x, y, z));
        grad[0] = weight * (x / length), grad[1] = weight * (y / length), grad[2] = weight * (z / length);
        return;
    }
    const float factor = 2.0f * weight;
    grad[0] = factor * dx, grad[1] = factor * dy, grad[2] = factor * dz;
}

/// Counters of a solve, for measurements.
struct Effort {
    int64_t phases = 0, auction_rounds = 0, bids = 0, searches = 0, search_scans = 0, price_updates = 0;
};

/// One pair of clouds of the same size n >= 1 with finite points, rows of three adjacent floats `stride` apart.
/// partner [n] receives a bijection, price [n] (may be null) the final prices in units of 2^-shift.
struct Problem {
    const float* a;
    const float* b;
    int64_t stride_a, stride_b;
    int64_t n;
    bool squared;
    double relative, absolute;  // absolute in the caller's unit
};
struct Solution {
    double cost = 0, bound = 0;  // caller's unit
    int shift = 0;
    Effort effort;
};
Solution solve(const Problem& problem, int32_t* partner, float* price);

}  // namespace stipple::ops::assignment
