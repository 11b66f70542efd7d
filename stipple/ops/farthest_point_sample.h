#pragma once

#include "stipple/ops/clouds.h"

namespace stipple::ops {

struct FarthestPointOptions {
    /// The first sample of every cloud for which `chosen` gives none. In [0, n) of every cloud that is sampled; a
    /// non-finite point there leaves the beginning to the lowest finite one.
    int32_t start = 0;

    /// Points that are chosen already, in this order: the samples begin with them and go on from there. [rows of
    /// chosen_batch] on the device of the points; as many clouds. Repeated ones, non-finite points and numbers outside
    /// [0, n) (such as a -1 that means "none") are passed over, and so are those beyond the count asked for. One row a
    /// cloud is a start of its own for each.
    View<const int32_t, 1> chosen;
    Batch chosen_batch;
};

/// Farthest point sampling [Eldar et al. 1997]: every sample is the point farthest from those before it.
///
/// points        [n, 3], any batch, CPU or CUDA
/// samples       how many of each cloud, e.g. Batch::dense(clouds, m); not more than it has points
/// indices       [samples.rows()] int32, positions in the cloud
/// distances_sq  [samples.rows()] float32, how far each sample was from those before it (squared; the first:
/// +infinity),
///               or an empty view when they are not wanted
///
/// Exact: the same samples as the loop over all points. Distances are distance_sq of core/numeric.h, ties go to the
/// lowest index, so CPU and CUDA agree exactly, on any number of threads. A point is chosen once: when only duplicates
/// of the chosen are left they follow at distance 0, lowest index first. The first j samples do not depend on how many
/// are asked for, and going on from them (`chosen`) gives the rest.
/// A point with a non-finite coordinate is never chosen. A cloud with fewer finite points than samples has index -1 and
/// distance 0 in the remaining rows (finding that out on the host would cost a synchronisation).
/// Throws Error{bad_argument} for more samples than points, wrong shapes, mixed devices and a start out of range.
///
/// CPU: points in blocks of a bounding-box tree; a sample touches the blocks that it can change [cf. Han et al. 2023,
/// QuickFPS], about O(n log n + n log m + m log n) on surfaces, some 25 bytes of scratch a point. Clouds run in
/// parallel. CUDA: a thread block for each cloud of up to 8192 points, else a group of blocks that live through all
/// samples (one cooperative launch, which waits until the device has room for all of them).
void farthest_point_sample(const Clouds& points, const Batch& samples, View<int32_t, 1> indices,
                           View<float, 1> distances_sq = {}, const FarthestPointOptions& options = {},
                           Stream stream = {});

namespace cuda {
void farthest_point_sample(const Clouds& points, const Batch& samples, View<int32_t, 1> indices,
                           View<float, 1> distances_sq, const FarthestPointOptions& options, Stream stream);
}

}  // namespace stipple::ops
