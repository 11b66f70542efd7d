#pragma once

#include "stipple/ops/clouds.h"

namespace stipple::ops {

struct InverseDensityOptions {
    int k = 16;         // density is measured by the distance to the k-th neighbour, 1..127
    int dimension = 2;  // 1 for curves, 2 for surfaces, 3 for solids
};

/// A random subset of each cloud that is thinned where points are dense: point i is drawn without replacement with
/// probability proportional to 1 / density, that is to r_i^dimension with r_i the distance to its k-th neighbour.
///
/// points   [n, 3], any batch, CPU or CUDA
/// samples  how many of each cloud, e.g. Batch::dense(clouds, m)
/// seed     of the random numbers; each depends on seed, cloud and index alone
/// indices  [samples.rows()] int32, positions in the cloud, ascending
///
/// Drawn by keys [Efraimidis and Spirakis 2006]: the m smallest of -log(u_i) / r_i^dimension, ties to the lowest index,
/// computed alike on CPU and CUDA, which agree exactly. With one seed, what is drawn contains what a smaller count
/// draws. Points with k duplicates have r = 0 and are taken last, lowest index first. Non-finite points are never
/// chosen and no neighbours; a point with fewer than k neighbours takes the farthest.
/// Throws Error{bad_argument} when a cloud has fewer finite points than samples, or some but not more than k points.
/// O(n log n + n k) time, 8 bytes a point and 9 MB for k = 16. On CUDA it waits for the stream once a cloud.
void inverse_density_sample(const Clouds& points, const Batch& samples, uint64_t seed, View<int32_t, 1> indices,
                            const InverseDensityOptions& options = {}, Stream stream = {});

}  // namespace stipple::ops
