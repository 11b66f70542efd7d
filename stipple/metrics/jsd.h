#pragma once

#include "stipple/metrics/normalise.h"

namespace stipple::metrics {

struct JsdOptions {
    int resolution = 28;        // lattice points on an axis, 2 to 256
    double half_extent = 1;     // the lattice spans [-half_extent, half_extent]^3, its end points included
    bool within_sphere = true;  // only lattice points at most half_extent from the middle
};

struct Jsd {
    double value = 0;     // bit, 0 (same) to 1 (disjoint)
    int64_t outside = 0;  // points of both clouds beyond the cube or sphere; they count at its nearest lattice point
};

/// Jensen-Shannon divergence of two occupancies [Achlioptas et al. 2018]: every point counts at the nearest point of a
/// lattice; H((P + Q) / 2) - (H(P) + H(Q)) / 2 of the two histograms, base 2.
///
/// With both clouds in their unit spheres the defaults are PU-Flow's figure (which scales clouds and lattice by 1/2:
/// the same). Ties between lattice points go to the lowest (x, y, z). Throws Error{bad_argument} for a cloud without
/// finite points and options out of range; non-finite points are left out.
Jsd jensen_shannon(const Points& prediction, const Points& truth, const JsdOptions& options = {});

}  // namespace stipple::metrics
