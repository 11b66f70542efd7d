#include "stipple/learn/sampling/gumbel_terms.h"

#include <cmath>
#include <torch/torch.h>

#include "stipple/learn/functions/tensors.h"
#include "stipple/learn/sampling/pose_terms.h"
#include "stipple/ops/argmax_points.h"

namespace stipple::learn {

using torch::Tensor;

Tensor gumbel_noise_of(const Tensor& numbers, int64_t points, int64_t count, uint64_t seed) {
    // The middle of one of 2^23 steps: neither 0 nor 1, whose logarithms are not finite or 0.
    const Tensor u = ((uniform_of(numbers, points * count, seed) * 0x1p23f).floor_() + 0.5f) * 0x1p-23f;
    return u.log_().neg_().log_().neg_().reshape({numbers.size(0), points, count});
}

Tensor temperature_at(const Tensor& step, int64_t steps, const SamplingOptions& options) {
    const double fall = std::log(options.last_temperature / options.temperature);
    const Tensor share = (step.to(torch::kFloat64) / static_cast<double>(std::max<int64_t>(steps, 1))).clamp_max(1);
    return (options.temperature * (fall * share).exp()).to(torch::kFloat32);
}

Tensor gumbel_points(const Clouds& points, const Tensor& scores, const Tensor& noise, const Tensor& temperature,
                     bool straight_through) {
    const int64_t clouds = points.batch.clouds(), n = points.batch.largest(), count = scores.size(1);
    const Tensor logits = (scores.reshape({clouds, n, count}) + noise) / temperature;
    const Tensor weights = logits.softmax(1), rows = points.rows.reshape({clouds, n, 3});
    const Tensor mean = torch::bmm(weights.transpose(1, 2), rows);
    if (!straight_through) return mean.reshape({clouds * count, 3});
    const Tensor winners = logits.detach().argmax(1).unsqueeze(2).expand({clouds, count, 3});
    const Tensor hard = rows.gather(1, winners);
    return (hard + (mean - mean.detach())).reshape({clouds * count, 3});
}

Tensor best_points(const Clouds& points, const Tensor& scores) {
    const torch::NoGradGuard no_gradients;
    const int64_t clouds = points.batch.clouds(), count = scores.size(1);
    const Tensor rows = scores.contiguous(), winners = new_indices(rows, {clouds, count});
    ops::argmax_points(clouds_of(rows, points.batch), view_of<int32_t, 2>(winners), {}, current_stream(rows));
    return gather(points, winners.reshape({-1}), ops::Batch::dense(clouds, count));
}

}  // namespace stipple::learn
