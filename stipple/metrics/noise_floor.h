#pragma once
// The sampling noise floor: what the true surface itself scores, drawn anew. Scores are read against it.

#include "stipple/metrics/evaluate.h"

namespace stipple::metrics {

/// n points of the mesh, seeded; farthest: of 5 n uniform ones. CPU.
PointCloud resampled(const Mesh& mesh, int64_t n, FloorSampling sampling, uint64_t seed);

/// Two random halves of a cloud: all that can be had without a mesh. Each has half the density, so squared distances
/// between them are about twice and distances about 1.41 times what two whole samplings of a surface would have. An odd
/// point is left out.
struct Halves {
    PointCloud a, b;
};
Halves halves_of(const PointCloud& cloud, uint64_t seed);

}  // namespace stipple::metrics
