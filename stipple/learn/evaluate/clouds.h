#pragma once
// Rows of a batch and the clouds that they belong to, as torch sees them. Clouds of one size in a row become one
// tensor [clouds, rows, channels]: a dense batch is one, a ragged one as many as sizes follow each other. Every
// gradient is a sum in a fixed order: no atomics.

#include <torch/torch.h>

#include "stipple/ops/clouds.h"

namespace stipple::learn {

/// One row for each cloud [clouds, c] from all rows [points * width, c].
torch::Tensor max_of_clouds(const torch::Tensor& rows, const ops::Batch& batch, int64_t width);
torch::Tensor sum_of_clouds(const torch::Tensor& rows, const ops::Batch& batch, int64_t width);

/// Every point of a cloud with the cloud's row: [clouds, c] -> [points, c].
torch::Tensor repeat_for_points(const torch::Tensor& clouds, const ops::Batch& batch);

/// Every row times its cloud's matrix: rows [points * width, k], matrices [clouds, k, k].
torch::Tensor transform_rows(const torch::Tensor& rows, const torch::Tensor& matrices, const ops::Batch& batch,
                             int64_t width);

/// Points of each cloud, [clouds, 1], in the type of `like`.
torch::Tensor sizes_of_clouds(const ops::Batch& batch, const torch::Tensor& like);

/// The `width` nearest of `points` for each query, within their cloud, as ops::knn: int64 [queries, width], counted
/// from the first point of the cloud. A neighbour that is missing, because points are not finite, is the query itself
/// where the sets are one (is_own), else the first point: as in the engine. Any number of channels; above 32 in
/// O(queries * points) memory of a cloud.
torch::Tensor nearest(const torch::Tensor& queries, const ops::Batch& of_queries, const torch::Tensor& points,
                      const ops::Batch& of_points, int64_t width, bool is_own);

/// Indices within clouds [queries, width] as rows of the set that they name, [queries * width].
torch::Tensor rows_of_indices(const torch::Tensor& indices, const ops::Batch& of_queries, const ops::Batch& of_points);

}  // namespace stipple::learn
