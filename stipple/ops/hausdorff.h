#pragma once
// Hausdorff distance: the largest distance from a point to the other cloud, and the pair of points that attains it.

#include "stipple/ops/clouds.h"

namespace stipple::ops {

enum class Direction { a_to_b, b_to_a, both };

/// max over the points of one cloud of the Euclidean distance to the nearest point of the other, for each cloud.
///
/// a, b        [n, 3], [m, 3], the same number of clouds, the same device
/// direction   a_to_b, b_to_a, or both: the larger of the two, the symmetric distance
/// distance    [clouds] float32, the square root of the squared distance of nearest_pairs
/// pair        [clouds, 2] int32, the index in a and the index in b of the two points, in this order for every
///             direction
///
/// Ties: a_to_b before b_to_a, then the lowest index of the point whose nearest point is sought, then its lowest
/// nearest point. A point with a non-finite coordinate has no part in it; where nothing is left (an empty cloud, or one
/// without a finite point) the distance is NaN and the pair -1, -1.
///
/// Maxima do not depend on their order: the result is the same bits on every device. Throws Error{bad_argument} for
/// wrong shapes and mixed devices. Costs what nearest_pairs costs, with 8 bytes of scratch a point; CUDA does not
/// synchronise.
void hausdorff(const Clouds& a, const Clouds& b, Direction direction, View<float, 1> distance, View<int32_t, 2> pair,
               Stream stream = {});

/// Subgradient of a loss of hausdorff's distance: only the two points of the pair receive one.
///
/// pair           [clouds, 2] from hausdorff; an index outside of its cloud counts as none
/// dL_ddistance   [clouds]
/// dL_da, dL_db   [n, 3], [m, 3], written; an empty view is left out
///
/// The gradient at distance 0 is 0. Same bits on every device. O(n + m), the clearing of the output.
void hausdorff_backward(const Clouds& a, const Clouds& b, View<const int32_t, 2> pair,
                        View<const float, 1> dL_ddistance, View<float, 2> dL_da, View<float, 2> dL_db,
                        Stream stream = {});

namespace cuda {
void hausdorff(const Clouds& a, const Clouds& b, Direction direction, View<float, 1> distance, View<int32_t, 2> pair,
               Stream stream);
void hausdorff_backward(const Clouds& a, const Clouds& b, View<const int32_t, 2> pair,
                        View<const float, 1> dL_ddistance, View<float, 2> dL_da, View<float, 2> dL_db, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
