#include "stipple/learn/upsampling/surface_truth.h"

#include <torch/torch.h>

#include "stipple/learn/functions/tensors.h"
#include "stipple/ops/nearest_pairs.h"

namespace stipple::learn {

using torch::Tensor;

DiscTruth::DiscTruth(Tensor points, Tensor normals, double radius)
    : points_(points.contiguous()), normals_(std::move(normals)), radius_(radius) {
    STIPPLE_REQUIRE(points_.dim() == 2 && points_.size(1) == 3 && normals_.sizes() == points_.sizes() && radius > 0,
                    "discs of {} points and {} normals, radius {}", points_.size(0), normals_.size(0), radius);
}

Tensor DiscTruth::closest(const Tensor& positions, const Tensor& frames) const {
    const torch::NoGradGuard no_gradients;
    const int64_t patches = frames.size(0);
    STIPPLE_REQUIRE(positions.dim() == 3 && positions.size(0) == patches && patches > 0 &&
                        points_.size(0) % patches == 0 && points_.size(0) > 0,
                    "closest points of {} clouds among {} points of {} patches", positions.size(0), points_.size(0),
                    patches);
    const int64_t m = positions.size(1), t = points_.size(0) / patches;
    const Tensor rows = positions.detach().reshape({-1, 3}).contiguous();
    const Tensor nearest = new_indices(rows, {patches * m}), squares = new_floats(rows, {patches * m});
    ops::nearest_pairs(clouds_of(rows, ops::Batch::dense(patches, m)),
                       clouds_of(points_, ops::Batch::dense(patches, t)), view_of<int32_t, 1>(nearest),
                       view_of<float, 1>(squares), {}, {}, current_stream(rows));
    const Tensor first = torch::arange(patches, nearest.options().dtype(torch::kInt64)).reshape({patches, 1}) * t;
    const Tensor at = (nearest.to(torch::kInt64).clamp_min(0).reshape({patches, m}) + first).reshape({-1});
    const Tensor point = points_.index_select(0, at), normal = normals_.index_select(0, at);
    const Tensor offset = rows - point;
    const Tensor flat = offset - (offset * normal).sum(1, true) * normal;
    const Tensor shrunk = flat * (radius_ / flat.square().sum(1, true).sqrt().clamp_min(1e-12)).clamp_max(1);
    const Tensor has_disc = (normal.square().sum(1, true) > 0.5).to(rows.scalar_type());
    return (point + shrunk * has_disc + nan_of_rows(rows)).reshape(positions.sizes());
}

}  // namespace stipple::learn
