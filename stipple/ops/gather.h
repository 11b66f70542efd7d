#pragma once

#include "stipple/ops/neighbours.h"

namespace stipple::ops {

/// out[i] = rows[indices[i]]: the chosen rows of every cloud, e.g. the features of sampled points.
///
/// rows     [n, c], any c
/// indices  [m] (Neighbours with k = 1) into the clouds of `rows`, as many clouds
/// out      [m, c]
///
/// An index that names no row gives a row of zeros. CPU and CUDA agree exactly. Its gradient is scatter_add. Throws
/// Error{bad_argument} for wrong shapes and mixed devices. O(m c) time, bound by memory.
void gather(const Clouds& rows, const Neighbours& indices, View<float, 2> out, Stream stream = {});

}  // namespace stipple::ops
