#pragma once
// Gumbel subset sampling while training [Yang et al. 2019]: a soft choice of points by scores with noise, as plain
// functions of tensors.

#include <torch/types.h>

#include "stipple/learn/functions.h"
#include "stipple/learn/sampling/sampling_options.h"

namespace stipple::learn {

/// g = -ln(-ln u), u a function of seed, number of the cloud and place alone, as uniform_of(): always finite.
/// numbers int64 [clouds] -> float32 [clouds, points, count].
torch::Tensor gumbel_noise_of(const torch::Tensor& numbers, int64_t points, int64_t count, uint64_t seed);

/// temperature at step 0, last_temperature at step `steps` and after it, in between a geometric series. step int64 [1]
/// on any device -> float32 [1] there: a CUDA graph finds the temperature of its step without the host.
torch::Tensor temperature_at(const torch::Tensor& step, int64_t steps, const SamplingOptions& options);

/// points        clouds of equal sizes n, [clouds * n, 3]
/// scores        [clouds * n, count]
/// noise         [clouds, n, count]
/// temperature   [1], above 0
///
/// [clouds * count, 3]: for every place the mean of the points weighted by softmax((score + noise) / temperature) over
/// the points. With `straight_through` the point with the largest weight itself, the first of equal ones, with the
/// gradient of the mean. Gradients for the scores; the points get none. NaN in the scores of a place is NaN in its
/// point.
torch::Tensor gumbel_points(const Clouds& points, const torch::Tensor& scores, const torch::Tensor& noise,
                            const torch::Tensor& temperature, bool straight_through);

/// The points with the largest scores, as `stipple sample` takes them: [clouds * count, 3]. No gradient.
torch::Tensor best_points(const Clouds& points, const torch::Tensor& scores);

}  // namespace stipple::learn
