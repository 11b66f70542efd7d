#pragma once
// The largest product of a cloud's rows with each of many vectors, and its gradients: what a PointNet does in its
// widest layer, without the [rows, channels] products ever being in memory.

#include "stipple/ops/clouds.h"
#include "stipple/ops/matrix_view.h"

namespace stipple::ops {

/// largest[cloud, c] = max over the cloud's rows r of rows[r] . weight[c].
///
/// rows     [batch.rows(), k]
/// weight   [channels, k], of the same type
/// largest  [clouds, channels]
/// winners  [clouds, channels] the row that it comes from, counted from the first of its cloud; of equal ones the first
///
/// Where a product is NaN the largest is NaN, and the first such row wins. An empty cloud has -infinity and winner -1.
/// Products are summed in float32; on CUDA, f32 numbers are rounded to tf32 (10 bits of mantissa) first. A result is
/// the same from run to run, and on the CPU for any number of threads. The order of summation, and so the last bits,
/// differ between CPU and CUDA. O(rows k channels) time; memory beyond the results: a float32 copy of the weight on the
/// CPU, on CUDA about half a megabyte where clouds are too few to fill the GPU and each is cut into parts.
///
/// Throws Error{bad_argument} for wrong shapes and types, mixed devices, and on CUDA for what can_linear_max_cuda()
/// refuses and for arrays that do not begin at a multiple of 16 bytes.
void linear_max(const MatrixView& rows, const Batch& batch, const MatrixView& weight, View<float, 2> largest,
                View<int32_t, 2> winners, Stream stream = {});

/// Whether the CUDA kernels take rows of k numbers and so many channels: k a multiple of 16 up to 128, channels a
/// multiple of 64. In a build with CUDA also whether the current GPU multiplies such matrices: sm_80 and newer; the
/// gradients need no more than sm_75.
bool can_linear_max_cuda(int64_t k, int64_t channels);

/// What dL_drows holds before the winners' part is added: factor * dL_drows + constant.
struct RowsBefore {
    View<const float, 1> factor = {};    // [1], on the device; empty: 1
    View<const float, 1> constant = {};  // [k]; empty: 0
};

/// Gradients of linear_max: those of its winners, all others are 0. A winner that is no row of its cloud, as the -1 of
/// an empty one, gives nothing. Shapes and alignment on CUDA as above.
///
/// winners      [clouds, channels] as linear_max gave them
/// dL_dlargest  [clouds, channels]
/// dL_drows     [batch.rows(), k] f32, f16 or bf16, to which the gradient is ADDED, in float32. Those of 16 bits
///              are rounded once for each 1024 channels
/// dL_dweight   [channels, k] float32, which is set
///
/// Sums are in float32 and in a fixed order (a row's channels ascending; a channel's clouds ascending, on CUDA first
/// within each warp's share of them): the same bits from run to run, on the CPU for any number of threads. O(clouds
/// channels k).
void linear_max_backward_rows(const Batch& batch, const MatrixView& weight, View<const int32_t, 2> winners,
                              View<const float, 2> dL_dlargest, const MutableMatrixView& dL_drows,
                              const RowsBefore& before = {}, Stream stream = {});
void linear_max_backward_weight(const MatrixView& rows, const Batch& batch, View<const int32_t, 2> winners,
                                View<const float, 2> dL_dlargest, View<float, 2> dL_dweight, Stream stream = {});

namespace cuda {
bool has_linear_max();  // the current device is sm_80 or newer; false without one
void linear_max(const MatrixView& rows, const Batch& batch, const MatrixView& weight, View<float, 2> largest,
                View<int32_t, 2> winners, Stream stream);
void linear_max_backward_rows(const Batch& batch, const MatrixView& weight, View<const int32_t, 2> winners,
                              View<const float, 2> dL_dlargest, const MutableMatrixView& dL_drows,
                              const RowsBefore& before, Stream stream);
void linear_max_backward_weight(const MatrixView& rows, const Batch& batch, View<const int32_t, 2> winners,
                                View<const float, 2> dL_dlargest, View<float, 2> dL_dweight, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
