#include "stipple/learn/sampling/sampling.h"

#include <algorithm>
#include <torch/torch.h>

#include "stipple/learn/losses.h"
#include "stipple/learn/profiler.h"
#include "stipple/learn/sampling/gumbel_objective.h"
#include "stipple/learn/sampling/sampler_scores.h"
#include "stipple/learn/sampling/sampler_terms.h"
#include "stipple/learn/sampling/shape_tasks.h"
#include "stipple/models/registry.h"
#include "stipple/models/samplenet.h"

namespace stipple::learn {
namespace {

using models::SampleNetOptions;
using torch::Tensor;

/// A sampler that is trained through a task.
class SamplerObjective : public ShapeObjective {
public:
    SamplerObjective(const Recipe& recipe, const LabelData& data)
        : ShapeObjective(recipe, data),
          network_(models::build_model(recipe.model, recipe.options)),
          options_(models::samplenet_options(network_.config)),
          sizes_(sampled_sizes(recipe.sampling.smallest, options_.count, options_.progressive)),
          task_(make_shape_task(recipe, data, task_for(recipe.sampling, options_.shape), sizes_.front())) {
        require_sizes(options_.count, options_.points, recipe.data.points);
        if (options_.neighbours > options_.points)
            throw Error(ErrorCode::bad_config,
                        fmt::format("clouds of {} points have no {} neighbours", options_.points, options_.neighbours));
    }

    network::Network network() const override { return network_; }
    void prepare(int64_t batch, int buffers, int threads, torch::Device device) override {
        ShapeObjective::prepare(batch, buffers, threads, device);
        task_->prepare(device);
        weights_ = simplification_weights(recipe().sampling, sizes_, device);
    }
    std::vector<std::string> sums() const override { return {"loss", "task_loss", "simplification", "sigma", "steps"}; }
    Scores scores(std::span<const double> sums) const override {
        const double steps = std::max(sums[4], 1.0);
        return {{"loss", sums[0]},
                {"task_loss", sums[1] / steps},
                {"simplification", sums[2] / steps},
                {"sigma", sums[3] / steps}};
    }
    Scores evaluate(Module& module) override;

private:
    struct Sampled {
        Tensor simplified, nearest, projected;  // nearest: [clouds * count] of the cloud
    };
    Sampled sample(Module& module, const Clouds& points, const RunOptions& options) const;
    StepOutput step_of(Module& module, const ShapeBatch& batch, const RunOptions& options) override;

    network::Network network_;
    SampleNetOptions options_;
    std::vector<int64_t> sizes_;
    std::unique_ptr<ShapeTask> task_;
    Tensor weights_;  // of the terms of simplification
};

SamplerObjective::Sampled SamplerObjective::sample(Module& module, const Clouds& points,
                                                   const RunOptions& options) const {
    const Tensor simplified = module.run(points.batch, {{"points", points.rows}}, options).at("simplified");
    const Clouds queries = {simplified, ops::Batch::dense(points.batch.clouds(), options_.count)};
    const NearestPoints near = knn(points, queries, std::max<int64_t>(1, options_.neighbours));
    const Tensor nearest = near.indices.select(1, 0).contiguous();
    if (options_.neighbours == 0) return {simplified, nearest, simplified};  // S-NET
    const Tensor temperature = module.parameters().at("temperature.value").to(torch::kFloat32);
    Tensor projected = soft_project(points, queries, near.indices, temperature, options_.min_sigma).projected;
    if (recipe().sampling.straight_through && options.is_training)
        projected = projected + (gather(points, nearest, queries.batch) - projected).detach();
    return {simplified, nearest, projected};
}

StepOutput SamplerObjective::step_of(Module& module, const ShapeBatch& batch, const RunOptions& options) {
    const SamplingOptions& weights = recipe().sampling;
    // Registration looks at two clouds of each shape; both are sampled in one run.
    const Clouds points = looked_at(*task_, batch);
    const Sampled sampled = sample(module, points, options);
    const ProfileMark of_loss(options.profiler, "loss");
    Tensor task;
    for (const int64_t size : sizes_) {
        const Tensor term = task_->loss(batch, first_points(sampled.projected, options_.count, size), size);
        task = task.defined() ? task + term : term;
    }
    if (weights.mean) task = task / static_cast<double>(sizes_.size());
    const Clouds simplified = {sampled.simplified, ops::Batch::dense(points.batch.clouds(), options_.count)};
    const Tensor simplification =
        simplification_loss(learn::simplification(points, simplified, sampled.nearest, sizes_), weights_);
    const Tensor sigma = options_.neighbours == 0
                             ? torch::zeros_like(task)
                             : sigma_of(module.parameters().at("temperature.value"), options_.min_sigma);
    const Tensor loss = task + weights.alpha * simplification + weights.lambda * sigma;
    const torch::NoGradGuard no_gradients;
    return {loss, torch::stack(
                      {loss.detach(), task.detach(), simplification.detach(), sigma.detach(), torch::ones_like(loss)})};
}

Scores SamplerObjective::evaluate(Module& module) {
    const torch::NoGradGuard no_gradients;
    SamplerScores found(*task_, sizes_);
    for_each_validation_batch([&](const ShapeBatch& batch) {
        const Clouds points = looked_at(*task_, batch);
        const Sampled sampled = sample(module, points, {});
        found.add(batch, points, sampled.simplified, sampled.projected);
    });
    return found.scores();
}

/// The network of a task itself, on whole clouds.
class TaskObjective : public ShapeObjective {
public:
    TaskObjective(const Recipe& recipe, const LabelData& data)
        : ShapeObjective(recipe, data), network_(models::build_model(recipe.model, recipe.options)) {
        const bool is_pose = recipe.task == TrainingTask::registration;
        const char* wanted = is_pose ? "pcrnet" : "autoencoder";
        if (recipe.model != wanted)
            throw Error(ErrorCode::bad_config,
                        fmt::format("{} trains {}, not {}", name_of(recipe.task), wanted, recipe.model));
    }

    network::Network network() const override { return network_; }
    std::vector<std::string> sums() const override { return {"loss", "score", "steps"}; }
    Scores scores(std::span<const double> sums) const override {
        return {{"loss", sums[0]}, {score_name(), sums[1] / std::max(sums[2], 1.0)}};
    }
    Scores evaluate(Module& module) override {
        const torch::NoGradGuard no_gradients;
        std::vector<Tensor> found;
        for_each_validation_batch([&](const ShapeBatch& batch) { found.push_back(terms(module, batch, {}).score); });
        const Tensor all = torch::cat(found).to(torch::kFloat64);
        const double mean = all.mean().item<double>();
        Scores scores = {{"validation_score", -mean}, {std::string("validation_") + score_name(), mean}};
        if (recipe().task == TrainingTask::registration) {
            scores.push_back({"validation_median", all.median().item<double>()});
            scores.push_back({"validation_within_5", all.le(5).to(torch::kFloat64).mean().item<double>()});
        }
        return scores;
    }

private:
    const char* score_name() const {
        return recipe().task == TrainingTask::registration ? "rotation_error" : "chamfer";
    }
    TaskTerms terms(Module& module, const ShapeBatch& batch, const RunOptions& options) const {
        return recipe().task == TrainingTask::registration ? registration_terms(module, batch, recipe(), options)
                                                           : reconstruction_terms(module, batch, recipe(), options);
    }
    StepOutput step_of(Module& module, const ShapeBatch& batch, const RunOptions& options) override {
        const TaskTerms found = terms(module, batch, options);
        const torch::NoGradGuard no_gradients;
        return {found.loss, torch::stack({found.loss.detach(), found.score.to(torch::kFloat64).mean(),
                                          torch::ones_like(found.loss)})};
    }

    network::Network network_;
};

}  // namespace

bool is_shape_task(const Recipe& recipe) {
    return recipe.task == TrainingTask::sampling || recipe.task == TrainingTask::registration ||
           recipe.task == TrainingTask::reconstruction;
}

std::unique_ptr<Objective> make_shape_objective(const Recipe& recipe, const LabelData& data) {
    if (recipe.task != TrainingTask::sampling) return std::make_unique<TaskObjective>(recipe, data);
    if (recipe.model == "gumbel-subset") return make_gumbel_objective(recipe, data);
    if (recipe.model != "samplenet")
        throw Error(ErrorCode::bad_config,
                    fmt::format("sampling trains samplenet and gumbel-subset, not {}", recipe.model));
    return std::make_unique<SamplerObjective>(recipe, data);
}

}  // namespace stipple::learn
