#pragma once
// Dropout [Srivastava et al. 2014] whose mask is a function of integers: a key, the step and the element's number.
// There is no generator to keep, and a resumed run draws what the first would have drawn.

#include "stipple/ops/linear_max.h"

namespace stipple::ops {

/// out[i] = x[i] / (1 - rate) where element i is kept, else 0.
///
/// x      [rows, c] f32, f16 or bf16; element i counts row after row
/// rate   share that is dropped, 0 <= rate < 1
/// key    of what draws: the caller mixes the seed of the run and the layer
/// step   one number in the memory of x's device, read when the op runs: a CUDA graph that is launched again draws anew
/// first  number of x's first element, not negative: processes that share a batch draw what one would
/// out    as many numbers of x's type, on x's device; x's own memory, or apart from it
///
/// Element i is kept where Rng(key, *step).uniform(first + i) >= rate: the same mask on CPU and CUDA, bit for bit. The
/// gradient is the same function of the gradient, with the same arguments.
///
/// Arithmetic is x * factor in float32, rounded once to x's type; the factor is 1 / (1 - rate) rounded to float32, or
/// 0. So a NaN or an infinity that is dropped gives NaN, not 0 (as in torch's x * mask / (1 - rate)), and whoever
/// watches for them sees it; a negative number that is dropped gives -0. But for the bits of NaN the results are the
/// same on CPU and CUDA. O(rows c) time, no memory; four elements share a Philox block. On CUDA wide accesses need x
/// and out at multiples of 16 bytes and `first` at a multiple of 4; all else is taken too, more slowly.
///
/// Throws Error{bad_argument} for wrong types, shapes and rates, a negative first, and a step of nullptr.
void dropout(const MatrixView& x, float rate, uint64_t key, const int64_t* step, int64_t first, void* out,
             Stream stream = {});

namespace cuda {
void dropout(const MatrixView& x, float rate, uint64_t key, const int64_t* step, int64_t first, void* out,
             Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
