#pragma once
// Which of many scans may share surface, before they are registered.

#include "stipple/geometry/global_registration.h"

namespace stipple::geometry {

/// What a short search says of two scans: matches of descriptors of a part of their points, and how many of them one
/// motion explains. Scans that share surface have more; which ones do is for register_globally() to decide.
struct SearchPromise {
    int64_t matches = 0, inliers = 0;
    RigidTransform transform;  // that explains so many: source to target, world coordinates
};

/// `most_points` of each scan, spread evenly over its cells, and `most_matches` of their matches count. Deterministic
/// for any number of threads. A hundredth of the time of register_globally(). CPU.
SearchPromise search_promise(const SearchScan& source, const SearchScan& target, int64_t most_points = 1000,
                             int64_t most_matches = 500);

}  // namespace stipple::geometry
