#pragma once
// group: the rows that indices name, side by side; optionally relative to a centre row (PointNet++'s local
// coordinates).

#include "stipple/ops/neighbours.h"

namespace stipple::ops {

/// Copies the rows that `neighbours` name.
///
/// rows        [n, c], any c
/// neighbours  [m, k] indices into the clouds of `rows`, as many clouds
/// centres     [m, c] contiguous, taken off every row of the group; an empty view: nothing is
/// out         [m, k, c]
///
/// A missing neighbour gives a row of zeros (with or without centres). CPU and CUDA agree exactly. Throws
/// Error{bad_argument} for wrong shapes and mixed devices. O(m k c) time, bound by memory; rows of 4 a numbers at
/// 16-byte addresses are moved 16 bytes at a time.
void group(const Clouds& rows, const Neighbours& neighbours, View<const float, 2> centres, View<float, 3> out,
           Stream stream = {});
inline void group(const Clouds& rows, const Neighbours& neighbours, View<float, 3> out, Stream stream = {}) {
    group(rows, neighbours, {}, out, stream);
}

/// Gradient of group with respect to the centres: minus the sum of the gradients of a group's neighbours, missing ones
/// left out. (With respect to the rows it is scatter_add of dL_dout seen as [m k, c].)
///
/// rows          the batch that the indices point into
/// dL_dout       [m, k, c] contiguous
/// dL_dcentres   [m, c]
///
/// Summed in double in the order of the neighbours: CPU and CUDA agree exactly.
void group_backward_centres(const Neighbours& neighbours, const Batch& rows, View<const float, 3> dL_dout,
                            View<float, 2> dL_dcentres, Stream stream = {});

namespace cuda {
void group(const Clouds& rows, const Neighbours& neighbours, const float* centres, View<float, 3> out, Stream stream);
void group_backward_centres(const Neighbours& neighbours, const Batch& rows, View<const float, 3> dL_dout,
                            View<float, 2> dL_dcentres, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
