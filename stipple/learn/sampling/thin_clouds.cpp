#include "stipple/learn/sampling/thin_clouds.h"

#include <cmath>
#include <torch/torch.h>

#include "stipple/learn/sampling/pose_terms.h"

namespace stipple::learn {

using torch::Tensor;

Tensor thinned(const Clouds& points, const Tensor& numbers, const ThinOptions& options, uint64_t seed) {
    STIPPLE_ASSERT(points.batch.is_dense());
    const int64_t n = points.batch.largest();
    const auto least = static_cast<double>(std::min(options.least, n));
    // Columns: whether, how many, and a key for each point.
    const Tensor draws = uniform_of(numbers, n + 2, seed);
    const Tensor few = torch::exp(draws.select(1, 1) * std::log(static_cast<double>(n) / least)) * least;
    const Tensor is_thin = draws.select(1, 0) < options.share;
    const Tensor left = torch::where(is_thin, few, torch::full_like(few, static_cast<double>(n)))
                            .to(torch::kInt64)
                            .clamp(1, n)
                            .unsqueeze(1);
    const Tensor order = draws.slice(1, 2).argsort(1, /*descending=*/false);
    const Tensor places = torch::arange(n, numbers.options()).unsqueeze(0).remainder(left);
    const Tensor rows = order.gather(1, places) + torch::arange(numbers.size(0), numbers.options()).unsqueeze(1) * n;
    return points.rows.index_select(0, rows.reshape({-1}));
}

}  // namespace stipple::learn
