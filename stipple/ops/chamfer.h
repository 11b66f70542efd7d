#pragma once
// Chamfer distance: how far the points of one cloud are from the other, on average, with gradients.

#include "stipple/ops/clouds.h"
#include "stipple/ops/distance_norm.h"

namespace stipple::ops {

/// One direction of a chamfer distance: from every point of a cloud to the nearest point of the other. Left empty
/// ({}), the direction is not computed.
struct ChamferSide {
    View<int32_t, 1> nearest;     // [n] index in the other cloud, ties to the lowest; -1 for none
    View<float, 1> distances_sq;  // [n] squared distance to it, whatever the norm; +infinity for none
    View<float, 1> mean;          // [clouds] mean distance in the given norm over the points that have a nearest one
    View<int32_t, 1> used;        // [clouds] the number of these points
};

/// Mean distance to the nearest point of the other cloud, per cloud and direction [Fan et al. 2017].
///
/// a, b     [n, 3], [m, 3], the same number of clouds, the same device
/// a_to_b   sizes n and clouds; b_to_a: sizes m and clouds. At least one of the two
///
/// The published conventions are sums of the two means: squared a_to_b + b_to_a ("CD-T", PyTorch3D), the half of the
/// Euclidean ones ("CD-P"), the larger one, one direction alone.
///
/// Points with a non-finite coordinate are neither found nor counted: they leave `used` smaller than the cloud. The
/// mean of no points (used = 0: an empty cloud, or nothing finite in it or in its partner) is NaN, not 0: a network
/// that has diverged must not look perfect.
///
/// Indices and distances are those of nearest_pairs, equal on every device. Means are sums in double of a fixed order,
/// the same for any number of threads; CPU and CUDA agree to 1e-6. Throws Error{bad_argument} for wrong shapes and
/// mixed devices. Costs what nearest_pairs costs; CUDA adds one launch (two above 64k points a cloud) and does not
/// synchronise.
void chamfer(const Clouds& a, const Clouds& b, DistanceNorm norm, const ChamferSide& a_to_b, const ChamferSide& b_to_a,
             Stream stream = {});

/// What the backward pass needs of a direction: the result of chamfer and dL/dmean. Left empty, the direction has no
/// part in the loss.
struct ChamferSideGradient {
    View<const float, 1> dL_dmean;   // [clouds]
    View<const int32_t, 1> nearest;  // [n] from chamfer
    View<const int32_t, 1> used;     // [clouds] from chamfer
};

/// Gradient of a loss of chamfer's means with respect to the points, the choice of nearest points held fixed.
///
/// dL_da, dL_db   [n, 3], [m, 3], written; an empty view is left out
///
/// A point receives its own term and those of the points it is nearest to. The gradient of the Euclidean norm at
/// distance 0 is 0; points without a nearest one receive 0 of their own. An index outside of the other cloud counts as
/// none. A non-finite term makes the sum it belongs to NaN.
///
/// Sums are order-independent integers (fixed_sum.h): the same bits for any number of threads and on every device.
/// O(n + m) time, 32 bytes of scratch a point. CUDA: one clear and three launches, no synchronisation.
/// Throws Error{bad_argument} for wrong shapes and mixed devices.
void chamfer_backward(const Clouds& a, const Clouds& b, DistanceNorm norm, const ChamferSideGradient& a_to_b,
                      const ChamferSideGradient& b_to_a, View<float, 2> dL_da, View<float, 2> dL_db,
                      Stream stream = {});

namespace cuda {
void chamfer_means(const Batch& a, const Batch& b, DistanceNorm norm, const ChamferSide& a_to_b,
                   const ChamferSide& b_to_a, Device device, Stream stream);
void chamfer_backward(const Clouds& a, const Clouds& b, DistanceNorm norm, const ChamferSideGradient& a_to_b,
                      const ChamferSideGradient& b_to_a, View<float, 2> dL_da, View<float, 2> dL_db, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
