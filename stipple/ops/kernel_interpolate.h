#pragma once
// kernel_interpolate: InterpConv's interpolation of neighbours onto kernel points [Mao et al. 2019].
//
//   const Array<float, 2> kernel = kernel_lattice(3, 0.1f);          // 27 points
//   kernel_weights(points, queries, neighbours, kernel, {.width = 0.1f}, weights);   // [m, 27, k]
//   interpolate(features, neighbours, weights, out);                 // [m, 27, c]; the dense layer does the rest
//
// Weights are an output of their own because the gradients of both halves need them, and because they are smaller than
// the result wherever k < c.

#include "stipple/core/array.h"
#include "stipple/ops/neighbours.h"

namespace stipple::ops {

struct KernelWeights {
    enum class Shape { trilinear, gaussian };
    enum class Normalise { none, sum, count };

    Shape shape = Shape::trilinear;
    float width = 1;                       // trilinear: the spacing l; gaussian: sigma. > 0
    Normalise normalise = Normalise::sum;  // by the sum of the weights at a kernel point, or by how many are not 0
};

/// side^3 points of the given spacing around the origin, x fastest: [side^3, 3].
Array<float, 2> kernel_lattice(int64_t side, float spacing);

/// weights[i, r, j] = T(d) / N with d = points[neighbours[i, j]] - queries[i] - kernel[r],
/// T trilinear: product over the axes of max(0, 1 - |d_a| / width); gaussian: exp(-|d|^2 / (2 width^2)),
/// N the sum or the count of T over j, or 1.
///
/// points, queries  [n, 3], [m, 3], as many clouds
/// neighbours       [m, k] indices into the clouds of `points`, batch of `queries`
/// kernel           [q, 3] contiguous, 1 <= q <= 1024
/// weights          [m, q, k]
///
/// Missing neighbours weigh 0 and are not counted; where N = 0 all weights are 0. Non-finite coordinates: a trilinear
/// weight is 0, a gaussian one 0 or NaN. CPU and CUDA agree to 1e-6 of the largest weight. Throws Error{bad_argument}
/// for wrong shapes, mixed devices, width that is not positive and finite, m >= 2^31 or m q > 2^33. O(m q k) time.
void kernel_weights(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                    View<const float, 2> kernel, const KernelWeights& options, View<float, 3> weights,
                    Stream stream = {});

/// Gradient with respect to the offsets points[neighbours[i, j]] - queries[i], from which scatter_add makes that of the
/// points and group_backward_centres that of the queries; and with respect to the kernel points, for learned ones.
///
/// dL_dweights  [m, q, k] contiguous
/// dL_doffsets  [m, k, 3], zero for missing neighbours
/// dL_dkernel   [q, 3], or an empty view when it is not wanted
///
/// A trilinear weight has no derivative where |d_a| is 0 or width: 0 is given there. The count is a constant to the
/// gradient. Sums are in double and in an order of their own: results do not change from run to run.
void kernel_weights_backward(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                             View<const float, 2> kernel, const KernelWeights& options,
                             View<const float, 3> dL_dweights, View<float, 3> dL_doffsets, View<float, 2> dL_dkernel,
                             Stream stream = {});

namespace cuda {
void kernel_weights(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                    View<const float, 2> kernel, const KernelWeights& options, View<float, 3> weights, Stream stream);
void kernel_weights_backward(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                             View<const float, 2> kernel, const KernelWeights& options,
                             View<const float, 3> dL_dweights, View<float, 3> dL_doffsets, View<float, 2> dL_dkernel,
                             Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
