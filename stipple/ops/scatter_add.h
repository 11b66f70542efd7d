#pragma once

#include "stipple/ops/invert_index.h"

namespace stipple::ops {

/// out[r] = the sum of the values of the entries that name row r: the gradient of gather and group.
///
/// values   [m k, c] contiguous, one row for each entry
/// inverse  what invert_index made of the entries
/// out      [n, c]; a row that no entry refers to is zero
///
/// Without atomics: a row sums its entries in ascending order, in double, and rounds once, so CPU and CUDA agree
/// exactly. Throws Error{bad_argument} for wrong shapes and mixed devices. O((n + m k) c) time, bound by memory; a row
/// named by very many entries is summed by one thread a column.
void scatter_add(View<const float, 2> values, const InvertedIndex& inverse, View<float, 2> out, Stream stream = {});

namespace cuda {
void scatter_add(View<const float, 2> values, const InvertedIndex& inverse, View<float, 2> out, Stream stream);
}

}  // namespace stipple::ops
