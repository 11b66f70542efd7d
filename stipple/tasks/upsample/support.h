#pragma once
// Where a scan supports a point: between its input points, not beyond its rims and not in its holes.

#include <vector>

#include "stipple/tasks/upsample.h"
#include "stipple/tasks/upsample/cloud_search.h"

namespace stipple::tasks {

/// From what a scan has nothing to say about to what it supports; a place of a higher grade is the better one.
enum class SupportGrade : uint8_t {
    far,      // no input within half of the width of a hole that may be filled
    beyond,   // near an input, but with inputs to one side alone: beyond a rim
    between,  // supported
};

/// 1 / sqrt(density) at each point of a cloud [n], by its 16 nearest neighbours and averaged over those and theirs; 0
/// where all of its neighbours coincide with it. O(n log n).
std::vector<float> local_spacings(const CloudSearch& cloud);

/// Judges places by the input points around them. The unit is the local spacing of the nearest input.
///
/// A hole is what is farther from all inputs than half of its width, which is two spacings where holes are kept. A
/// place is supported where an input lies within half of that width, though never farther away than four mean spacings
/// of the cloud, and where the inputs within two spacings surround it: seen in the tangent plane of the nearest input,
/// the widest angle between neighbouring directions to them is at most half a turn, which is to say that the place lies
/// in their convex hull, and ten degrees for what noise adds. So along a straight rim or a wire the line of the inputs
/// is supported, and nothing beyond.
class Support {
public:
    /// `cloud` must outlive it. Holes as in `options`: where they are filled, up to options.hole_size, and then inputs
    /// within that width count, or, without it, as far as five local spacings from an input, on any side of it.
    /// O(n log n).
    Support(const CloudSearch& cloud, const UpsampleOptions& options);

    /// Grades each of m places [m, 3]; those that are not finite are far. The same for any number of threads. O(m log
    /// n).
    std::vector<SupportGrade> of(View<const float, 2> places) const;
    /// Whether places in holes may be supported.
    bool fills_holes() const { return is_any_hole_filled_ || hole_size_ > 0; }
    /// At each input point [n].
    const std::vector<float>& spacings() const { return spacings_; }

private:
    const CloudSearch& cloud_;
    bool is_any_hole_filled_ = false;
    float hole_size_ = 0, farthest_ = 0;
    std::vector<float> spacings_;
    Array<float, 2> normals_;  // empty where all holes are filled
};

}  // namespace stipple::tasks
