#pragma once
// interpolate: weighted sums of neighbours' rows. Every interpolation of the library is this op with weights of its
// own: inverse distances (three_interpolate.h), kernel points (kernel_interpolate.h), soft projection (soft_project.h),
// or weights that a network made, with q children for every point.

#include "stipple/ops/invert_index.h"

namespace stipple::ops {

/// out[i, r] = sum over j of weights[i, r, j] rows[neighbours[i, j]].
///
/// rows        [n, c], any c
/// neighbours  [m, k] indices into the clouds of `rows`, as many clouds
/// weights     [m, q, k] contiguous
/// out         [m, q, c]
///
/// Missing neighbours add nothing, and neither does a weight of exactly 0, so a non-finite row under a zero weight does
/// no harm. Summed in float in the order of the neighbours without contraction: CPU and CUDA agree exactly. Throws
/// Error{bad_argument} for wrong shapes and mixed devices. O(m q k c) time.
void interpolate(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> weights, View<float, 3> out,
                 Stream stream = {});

/// Gradient with respect to the rows: sum over the entries that name a row of weights times gradient.
///
/// inverse   what invert_index made of the neighbours
/// dL_drows  [n, c]
///
/// Summed in double in a fixed order (scatter_add): CPU and CUDA agree exactly.
void interpolate_backward_rows(View<const float, 3> weights, const InvertedIndex& inverse, View<const float, 3> dL_dout,
                               View<float, 2> dL_drows, Stream stream = {});

/// Gradient with respect to the weights: the dot product of dL_dout[i, r] and the neighbour's row; 0 for a missing one.
///
/// dL_dweights  [m, q, k]
///
/// Summed in double; CPU and CUDA differ by the last bit of a float at most.
void interpolate_backward_weights(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> dL_dout,
                                  View<float, 3> dL_dweights, Stream stream = {});

namespace cuda {
void interpolate(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> weights, View<float, 3> out,
                 Stream stream);
void interpolate_backward_rows(View<const float, 3> weights, const InvertedIndex& inverse, View<const float, 3> dL_dout,
                               View<float, 2> dL_drows, Stream stream);
void interpolate_backward_weights(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> dL_dout,
                                  View<float, 3> dL_dweights, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
