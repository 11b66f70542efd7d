#pragma once
// Points of two scans that look alike, with their normals. Internal to register_globally() and search_promise().

#include "stipple/core/view.h"
#include "stipple/geometry/registration/consensus.h"

namespace stipple::geometry {

/// Rows of each belong together; descriptors by fpfh().
struct DescribedPoints {
    View<const float, 2> points, normals, descriptors;
};

/// Matches of the descriptors, best first; where sides of normals were guessed, with the source's normals as they are
/// and turned round. Cost and ties as match_descriptors().
std::vector<MatchedPair> match_points(const DescribedPoints& source, const DescribedPoints& target, bool is_sided,
                                      int64_t most);

}  // namespace stipple::geometry
