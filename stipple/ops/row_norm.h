#pragma once
// Batch norm over the rows of a matrix [n, c], with or without a rectifier (ReLU), and its gradients: means and
// variances of the columns, then a scale and a shift for each of them.
//
//   column_statistics(x, mean, variance)
//   norm_columns(mean, variance, n, parameters, running, inverse, scale, shift)
//   normalise_rows(x, scale, shift, has_relu, out)
//   norm_backward_sums(dL_dout, x, {mean, inverse, scale, shift}, has_relu, sum_g, sum_gx)
//   norm_backward_rows(dL_dout, x, {mean, inverse, scale, shift}, sum_g, sum_gx, n, has_relu, dL_dx)
//
// sum_g is the gradient of beta, sum_gx that of gamma. Several processes that share their statistics add up their sums
// between the last two calls, and give the number of all their rows.
//
// Matrices are of float32, float16 or bfloat16, each of its own type where nothing else is said; all numbers of columns
// are float32 and on the device of the matrices. n is up to 2^31. Arithmetic is in float32. Every result is the same
// from run to run, and on the CPU for any number of threads. Each call reads its matrices once and writes its result
// once. On CUDA a call is one or two launches on the stream, and can be captured in a graph; it is quickest where c is
// a multiple of 8 (of 4, where a matrix is of float32) and matrices begin at multiples of 16 bytes.
//
// All throw Error{bad_argument} for wrong shapes and types, and for mixed devices.

#include "stipple/ops/matrix_view.h"

namespace stipple::ops {

/// What norm_backward_sums and norm_backward_rows know of the columns, [c] each: those that the forward pass used.
struct NormColumns {
    View<const float, 1> mean, inverse, scale, shift;
};

/// Mean and variance of every column, [c] each. The variance is the biased one: the mean of (x - mean)^2.
///
/// Made of the means and variances of parts, never of a difference of large sums: the variance is good to about 1e-5 of
/// itself where the mean is thousands of times the deviation, and that of equal numbers is exactly 0. Parts are
/// combined in their order, in double. A column that holds NaN or infinity has NaN for both; squares of deviations
/// beyond float32 (3e38) make the variance infinite or NaN. Last bits differ between CPU and CUDA.
///
/// Throws Error{bad_argument} for a matrix without rows. O(n c) time; scratch of a few megabytes, or of 0.4 % of a
/// matrix of gigabytes.
void column_statistics(const MatrixView& rows, View<float, 1> mean, View<float, 1> variance, Stream stream = {});

/// What a batch norm has learned, [c] each.
struct NormParameters {
    View<const float, 1> gamma, beta;
    View<const float, 1> offset = {};  // that the rows lack, of the running mean alone; empty: 0
    double eps = 1e-5, momentum = 0.1;
};

/// From the statistics of `count` rows, at least 2, to what the other calls need, and the running statistics one step
/// on:
///
///   inverse = 1 / sqrt(variance + eps);   scale = gamma inverse;   shift = beta - mean scale
///   running_mean += momentum (mean + offset - running_mean)
///   running_variance += momentum (variance count / (count - 1) - running_variance)
///
/// mean, variance, inverse, scale, shift, running_mean, running_variance  [c]
///
/// Each number in float64, rounded once: the CPU and CUDA give the same bits (but for those of NaN). O(c).
void norm_columns(View<const float, 1> mean, View<const float, 1> variance, double count,
                  const NormParameters& parameters, View<float, 1> running_mean, View<float, 1> running_variance,
                  View<float, 1> inverse, View<float, 1> scale, View<float, 1> shift, Stream stream = {});

/// out = act(rows * scale + shift), where act is max(0, y) if has_relu, else y. NaN stays NaN. Product and sum are
/// rounded one after the other, so that the CPU and CUDA give the same bits (but for those of NaN).
///
/// scale, shift  [c]
/// out           [n, c], of any of the three types; may be the memory of rows where both have the same size
///
/// O(n c) time, no scratch.
void normalise_rows(const MatrixView& rows, View<const float, 1> scale, View<const float, 1> shift, bool has_relu,
                    const MutableMatrixView& out, Stream stream = {});

/// sum_g = sum of g and sum_gx = sum of g * (x - mean) * inverse over the rows x of a column, where g is dL_dout, or if
/// has_relu 0 wherever x * scale + shift, rounded as in normalise_rows, is not above 0.
///
/// dL_dout        [n, c]
/// sum_g, sum_gx  [c]; 0 for a matrix without rows
///
/// Sums are in float32 over at most some thousand numbers, and in double over these sums, in a fixed order: good to
/// about 1e-6 of the sum of magnitudes. Last bits differ between CPU and CUDA. Time and scratch as column_statistics.
void norm_backward_sums(const MatrixView& dL_dout, const MatrixView& rows, const NormColumns& columns, bool has_relu,
                        View<float, 1> sum_g, View<float, 1> sum_gx, Stream stream = {});

/// dL_drows = scale * (g - sum_g / count - (x - mean) * inverse * sum_gx / count), with g as above.
///
/// sum_g, sum_gx  [c], over all rows that share the statistics
/// count          how many these are, above 0
/// dL_drows       [n, c] of the type of rows; may be the memory of rows, or of dL_dout if of the same size
///
/// The CPU and CUDA give the same bits (but for those of NaN). O(n c) time, no scratch.
void norm_backward_rows(const MatrixView& dL_dout, const MatrixView& rows, const NormColumns& columns,
                        View<const float, 1> sum_g, View<const float, 1> sum_gx, double count, bool has_relu,
                        const MutableMatrixView& dL_drows, Stream stream = {});

namespace cuda {
void column_statistics(const MatrixView& rows, View<float, 1> mean, View<float, 1> variance, Stream stream);
void norm_columns(View<const float, 1> mean, View<const float, 1> variance, double count,
                  const NormParameters& parameters, View<float, 1> running_mean, View<float, 1> running_variance,
                  View<float, 1> inverse, View<float, 1> scale, View<float, 1> shift, Stream stream);
void normalise_rows(const MatrixView& rows, View<const float, 1> scale, View<const float, 1> shift, bool has_relu,
                    const MutableMatrixView& out, Stream stream);
void norm_backward_sums(const MatrixView& dL_dout, const MatrixView& rows, const NormColumns& columns, bool has_relu,
                        View<float, 1> sum_g, View<float, 1> sum_gx, Stream stream);
void norm_backward_rows(const MatrixView& dL_dout, const MatrixView& rows, const NormColumns& columns,
                        View<const float, 1> sum_g, View<const float, 1> sum_gx, double count, bool has_relu,
                        const MutableMatrixView& dL_drows, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
