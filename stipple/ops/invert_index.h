#pragma once
// invert_index: which entries name a row. Turns the scattered sums of gradients into gathers in a fixed order: no
// atomics on floats, the same bits on every device and every run.

#include "stipple/ops/neighbours.h"

namespace stipple::ops {

/// What invert_index wrote: entry e of the m k entries names row r for the e in positions[ranges(r, 0) .. ranges(r,
/// 1)).
struct InvertedIndex {
    View<const int32_t, 2> ranges;
    View<const int32_t, 1> positions;
};

/// Sorts the entries of `neighbours` by the row they name, stably.
///
/// neighbours  [m, k] indices into the clouds of `rows`
/// rows        the batch of the n rows, as many clouds as neighbours.batch
/// ranges      [n, 2] int32, begin and end of a row's entries in `positions`; begin = end for a row without entries
/// positions   [m k] int32, entry numbers i k + j (i counts through the whole batch), a permutation: by cloud, then
///             by row, then ascending; the entries of a cloud that name no row come last in the cloud's part
///
/// CPU and CUDA agree exactly. Throws Error{bad_argument} for wrong shapes, mixed devices, and more than 2^31 - 1
/// entries or rows and clouds. O(n + m k) time. CUDA: one launch without scratch when no cloud has more than 8192
/// entries, else a radix sort; the host never waits.
void invert_index(const Neighbours& neighbours, const Batch& rows, View<int32_t, 2> ranges, View<int32_t, 1> positions,
                  Stream stream = {});

/// Checks of the ops that take one.
void require_inverse(const char* op, const InvertedIndex& inverse, int64_t n, int64_t entries, Device device);

namespace cuda {
void invert_index(const Neighbours& neighbours, const Batch& rows, View<int32_t, 2> ranges, View<int32_t, 1> positions,
                  Stream stream);
}

}  // namespace stipple::ops
