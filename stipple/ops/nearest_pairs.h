#pragma once

#include "stipple/ops/clouds.h"

namespace stipple::ops {

/// The nearest point of the other cloud, both ways: the heart of chamfer and Hausdorff distances. Builds what it needs.
///
/// a, b              [n, 3], [m, 3], the same number of clouds, the same device
/// b_of_a, a_of_b    [n], [m] int32, the index of the nearest point in the other cloud; ties to the lowest
/// sq_of_a, sq_of_b  [n], [m] float32 squared distances to it
///
/// An empty pair (index and distance) leaves that direction out. A non-finite point finds nothing and is never found:
/// index -1, distance +infinity; so does every point whose partner cloud has no finite point.
/// Same distances, ties and overflow as knn with k = 1. Throws Error{bad_argument} for wrong shapes and mixed devices.
void nearest_pairs(const Clouds& a, const Clouds& b, View<int32_t, 1> b_of_a, View<float, 1> sq_of_a,
                   View<int32_t, 1> a_of_b, View<float, 1> sq_of_b, Stream stream = {});

}  // namespace stipple::ops
