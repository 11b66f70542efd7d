#pragma once
// Upsampling of a sweep of a spinning LiDAR, whose points lie far closer along its rings than between them.

#include "stipple/geometry/sweep_rings.h"
#include "stipple/tasks/upsample.h"
#include "stipple/tasks/upsample/candidates.h"

namespace stipple::tasks {

struct SweepPoints {
    Candidates made;      // with three sources each, and their weights
    int64_t between = 0;  // the first so many lie between rings, the others along them
    int64_t dropped = 0;  // places between rings where nothing was made
};

/// New points of a sweep, as many as `wanted`: as if it had more lasers. `spacings` [n] are those of its points.
///
/// A point between two rings is what a beam between theirs would hit, were the surface flat there: a mean of three
/// points, weighted so that planes stay planes. It is made where the rings tell the surface between them, which is to
/// say that on each side the line through a ring and the one beyond it foretells the other ring, or there is no ring
/// beyond: the middle is known to a fifth of the local spacing, as a curve strays from its chord by an eighth of what
/// it strays from its tangent line. Across occlusion edges and in rough places nothing is made, and none across
/// gaps of more than eight spacings either, unless options.holes says that they are filled (up to options.hole_size).
/// Of too many those in the widest gaps are taken. Points along the rings, wherever the surface is told in the same
/// way, make the number up, evenly.
///
/// Order: from the highest ring to the lowest, points by azimuth. Throws nothing; returns nothing where so many cannot
/// be made. The same for any number of threads. O(n log n).
std::optional<SweepPoints> points_of_sweep(const PointCloud& cloud, const geometry::SweepRings& sweep,
                                           std::span<const float> spacings, int64_t wanted,
                                           const UpsampleOptions& options);

}  // namespace stipple::tasks
