#include "stipple/learn/sampling/sampler_terms.h"

#include <torch/torch.h>

#include "stipple/learn/functions/tensors.h"
#include "stipple/ops/farthest_point_sample.h"

namespace stipple::learn {

using ops::Batch;
using torch::Tensor;

Tensor simplification_weights(const SamplingOptions& options, std::span<const int64_t> sizes, torch::Device device) {
    std::vector<double> weights;
    const double over = options.mean ? static_cast<double>(sizes.size()) : 1;
    for (const int64_t size : sizes)
        for (const double weight : {1.0, options.beta, options.gamma + options.delta * static_cast<double>(size)})
            weights.push_back(weight / over);
    return torch::tensor(weights, torch::kFloat64).reshape({-1, 3}).to(device);
}

Tensor simplification_loss(const Tensor& terms, const Tensor& weights) {
    return (terms.mean(0) * weights).sum();
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
