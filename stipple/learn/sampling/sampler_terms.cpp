#include "stipple/learn/sampling/sampler_terms.h"

#include <torch/torch.h>

#include "stipple/learn/functions/tensors.h"
#include "stipple/ops/farthest_point_sample.h"

namespace stipple::learn {

using ops::Batch;
using torch::Tensor;

SimplificationTerms simplification_terms(const Clouds& points, const Tensor& sampled, const Tensor& nearest_sq,
                                         int64_t count, int64_t size) {
    const int64_t clouds = points.batch.clouds();
    const Tensor own = nearest_sq.reshape({clouds, count}).slice(1, 0, size).to(torch::kFloat64);
    const Tensor few = sampled.reshape({clouds, count, 3}).slice(1, 0, size).reshape({clouds * size, 3});
    const Tensor back = knn({few, Batch::dense(clouds, size)}, points, 1).distances_sq;
    return {own.mean(), std::get<0>(own.max(1)).mean(), back.to(torch::kFloat64).mean()};
}

Tensor simplification_loss(const SimplificationTerms& terms, const SamplingOptions& options, int64_t size) {
    return terms.a + options.beta * terms.m + (options.gamma + options.delta * static_cast<double>(size)) * terms.b;
}

Tensor sigma_of(const Tensor& temperature, double least) {
    return temperature.to(torch::kFloat64).square().clamp_min(least).sum();
}

Tensor matched_points(const Clouds& points, const Tensor& proposals, int64_t count, int64_t size) {
    const torch::NoGradGuard no_gradients;
    const int64_t clouds = points.batch.clouds();
    const Tensor nearest = knn(points, {proposals, Batch::dense(clouds, count)}, 1).indices.reshape({-1});
    const Tensor indices = new_indices(points.rows, {clouds * size});
    ops::FarthestPointOptions options;
    options.chosen = view_of<const int32_t, 1>(nearest);
    options.chosen_batch = Batch::dense(clouds, count);
    const Batch samples = Batch::dense(clouds, size);
    ops::farthest_point_sample(clouds_of(points.rows, points.batch), samples, view_of<int32_t, 1>(indices), {}, options,
                               current_stream(points.rows));
    return gather(points, indices, samples);
}

}  // namespace stipple::learn
