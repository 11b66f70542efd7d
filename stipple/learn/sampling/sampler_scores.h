#pragma once
// How good samples are for their task: what a sampler's validation tells.

#include "stipple/learn/objective.h"
#include "stipple/learn/sampling/shape_tasks.h"

namespace stipple::learn {

/// Scores of validation clouds, batch by batch.
class SamplerScores {
public:
    /// sizes: samples that are scored, ascending; the last is `count`, the points that the sampler proposes.
    SamplerScores(const ShapeTask& task, std::vector<int64_t> sizes) : task_(task), sizes_(std::move(sizes)) {}

    /// points: all looks of the batch (looked_at). proposals, soft: [looks * clouds * count, 3]; soft are the points
    /// that the loss sees.
    void add(const ShapeBatch& batch, const Clouds& points, const torch::Tensor& proposals, const torch::Tensor& soft);

    /// Means over the clouds, that of `count` sampled points first: "validation_accuracy"; where smaller is better
    /// "validation_score", its negative, before it. Then "validation_soft_accuracy", and of the smaller samples
    /// "validation_accuracy_8".
    Scores scores() const;

private:
    const ShapeTask& task_;
    std::vector<int64_t> sizes_;
    std::map<int64_t, std::vector<torch::Tensor>> hard_;  // by size
    std::vector<torch::Tensor> soft_;
};

}  // namespace stipple::learn
