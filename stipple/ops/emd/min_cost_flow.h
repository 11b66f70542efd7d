#pragma once
// The exact solver under emd_exact and emd_transport: least-cost flow between two clouds, costs in double.
//
// Successive shortest augmenting paths [Jonker and Volgenant 1987 for the assignment; Ahuja et al. 1993, 9.7 with
// capacities], started from the prices of a nearly optimal auction, which leaves few and short paths. A row is scanned
// in float with a margin above all rounding first; only pairs that may matter are computed in double.

#include <cstdint>
#include <vector>

#include "stipple/core/view.h"

namespace stipple::ops::flow {

struct Arc {
    int32_t from, to;
    int64_t units;
};

/// Every point of a supplies `supply` units, every point of b takes `demand`: n * supply == m * demand.
struct Problem {
    View<const float, 2> a, b;  // [n, 3], [m, 3], finite, n, m >= 1
    int64_t supply, demand;
    bool squared;
};

struct Solution {
    std::vector<Arc> arcs;               // by from, then to
    std::vector<double> dual_a, dual_b;  // dual_a[i] + dual_b[j] <= cost(i, j), equal on arcs, up to rounding
    double cost = 0;                     // per unit
    int64_t paths = 0, scans = 0;        // what it took
};

Solution solve(const Problem& problem);

bool all_finite(View<const float, 2> points);

}  // namespace stipple::ops::flow
