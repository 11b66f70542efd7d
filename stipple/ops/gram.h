#pragma once
// The sum of the rows of a matrix and of their products with themselves: all that the mean and the covariance of rows
// need, and so the variance of any linear function of them before it is computed.

#include "stipple/ops/matrix_view.h"

namespace stipple::ops {

/// sum = sum of row_r and products = sum of row_r row_r^T over the rows r.
///
/// rows      [n, k] of float32, float16 or bfloat16; on CUDA not of float32, which tensor cores would round
/// sum       [k]
/// products  [k, k], all of it: exactly symmetric
///
/// Products are added in float32 over at most 512 rows, these sums in float32 again up to 131,072 rows (on the CPU in
/// double), the rest in double; all in a fixed order. A number is good to about 2e-6 of the sum of its terms'
/// magnitudes: tensor cores cut sums off where the CPU rounds them. Whole numbers are exact while sums over 131,072
/// rows stay below 2^24. The same from run to run, and on the CPU for any number of threads; last bits differ between
/// CPU and CUDA. NaN and infinity in a column reach that column's sum and its row and column of products alone, as the
/// formula has it; products beyond float32 (3e38) are infinite. 0 for a matrix without rows.
///
/// O(n k^2) time. Scratch: up to 16 MB or, where that is more, 8 k^2 bytes on the CPU; about 80 KB for each
/// multiprocessor on CUDA, or 0.2 % of a matrix of gigabytes. There rows are read once, and a call is two launches that
/// can be captured in a graph.
///
/// Throws Error{bad_argument} for wrong shapes and types, mixed devices, and on CUDA for what can_gram_cuda() refuses
/// and for rows that do not begin at a multiple of 16 bytes.
void gram(const MatrixView& rows, View<double, 1> sum, View<double, 2> products, Stream stream = {});

/// Whether the CUDA kernels take rows of k numbers: k a multiple of 16 up to 128. In a build with CUDA also whether the
/// current GPU multiplies such matrices: sm_80 and newer.
bool can_gram_cuda(int64_t k);

namespace cuda {
bool has_gram();  // the current device is sm_80 or newer; false without one
void gram(const MatrixView& rows, View<double, 1> sum, View<double, 2> products, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
