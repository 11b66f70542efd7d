#include "stipple/learn/sampling/sampler_scores.h"

#include <torch/torch.h>

#include "stipple/learn/sampling/sampler_terms.h"

namespace stipple::learn {

using torch::Tensor;

void SamplerScores::add(const ShapeBatch& batch, const Clouds& points, const Tensor& proposals, const Tensor& soft) {
    const int64_t count = sizes_.back();
    soft_.push_back(task_.score(batch, soft, count));
    for (const int64_t size : sizes_)
        hard_[size].push_back(task_.score(batch, matched_points(points, proposals, count, size), size));
}

Scores SamplerScores::scores() const {
    const auto mean = [](const std::vector<Tensor>& parts) {
        return torch::cat(parts).to(torch::kFloat64).mean().item<double>();
    };
    const std::string name = task_.score_name();
    const double last = mean(hard_.at(sizes_.back()));
    Scores scores;
    if (!task_.is_better_larger()) scores.push_back({"validation_score", -last});
    scores.push_back({"validation_" + name, last});
    scores.push_back({"validation_soft_" + name, mean(soft_)});
    for (const int64_t size : sizes_)
        if (size != sizes_.back())
            scores.push_back({fmt::format("validation_{}_{}", name, size), mean(hard_.at(size))});
    return scores;
}

}  // namespace stipple::learn
