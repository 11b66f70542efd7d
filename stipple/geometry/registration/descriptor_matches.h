#pragma once
// Which points of two scans look alike. Internal to register_globally().

#include <vector>

#include "stipple/core/view.h"

namespace stipple::geometry {

struct Match {
    int32_t source, target;
    float distance_sq;  // of the descriptors
    bool is_mutual;     // the source point is also the nearest of the target point
};

/// The nearest target descriptor of every source descriptor, and the nearest source descriptor of every target
/// descriptor that is not in this way matched already: mutual matches first, then by distance, then by index, no more
/// than `most`. Rows [n, c] and [m, c] on the CPU, any c; rows of zeros match nothing. Distances are those of the
/// square roots of the numbers [Hellinger; Arandjelovic and Zisserman 2012]; ties go to the lowest index.
/// Deterministic for any number of threads. O(n m c).
std::vector<Match> match_descriptors(View<const float, 2> source, View<const float, 2> target, int64_t most);

}  // namespace stipple::geometry
