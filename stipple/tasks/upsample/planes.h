#pragma once
// Flat places of a sweep, which new points must not thicken.

#include <vector>

#include "stipple/tasks/upsample/cloud_search.h"

namespace stipple::tasks {

/// Knows where input points that a scanner has swept in lines are flat: where the 96 nearest neighbours of one have
/// less than a hundredth of their variance along the normal of their plane.
///
/// Lines: of most of these neighbours, the eight nearest vary in one direction at least six times as much as in
/// another. Evenly spread and random points do not, and there are no such places.
class SweptPlanes {
public:
    /// `inputs` must outlive it. The same for any number of threads. O(n log n).
    explicit SweptPlanes(const CloudSearch& inputs);

    /// Moves points [m, 3], whose nearest input is at such a place, along its normal to within half of the neighbours'
    /// mean distance from the plane. Level ground stays as thin as it was, although along a line nothing tells how the
    /// surface is tilted. Points that are not finite stay. O(m log n).
    void keep(View<float, 2> points) const;

private:
    struct Plane {
        double centre[3] = {}, normal[3] = {};
        double deviation = 0;  // mean distance of the neighbours
        double height_of(const float* point) const;
    };

    static Plane plane_of(View<const float, 2> inputs, const int32_t* near, int64_t k, const float* normal);

    const CloudSearch& inputs_;
    std::vector<int32_t> plane_at_;  // [n] of each input; -1: none. Empty: of none of them
    std::vector<Plane> planes_;
};

}  // namespace stipple::tasks
