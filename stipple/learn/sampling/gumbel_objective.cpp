#include "stipple/learn/sampling/gumbel_objective.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <torch/torch.h>

#include "stipple/learn/profiler.h"
#include "stipple/learn/sampling/gumbel_terms.h"
#include "stipple/learn/sampling/sampler_scores.h"
#include "stipple/learn/sampling/sampler_terms.h"
#include "stipple/learn/sampling/shape_tasks.h"
#include "stipple/models/gumbel_subset.h"
#include "stipple/models/registry.h"

namespace stipple::learn {
namespace {

using models::GumbelSubsetOptions;
using torch::Tensor;

constexpr uint64_t kNoiseSeed = 0x47554D42;  // keeps apart from other uses of the seed

SamplingTask named_task(const SamplingOptions& options) {
    if (const std::optional<SamplingTask> task = sampling_task(options)) return *task;
    throw Error(ErrorCode::bad_config, "gumbel-subset needs sampling.task, which a samplenet's shape tells",
                fmt::format("one of {}", fmt::join(kSamplingTaskWords, ", ")));
}

class GumbelObjective : public ShapeObjective {
public:
    GumbelObjective(const Recipe& recipe, const LabelData& data)
        : ShapeObjective(recipe, data),
          network_(models::build_model(recipe.model, recipe.options)),
          options_(models::gumbel_subset_options(network_.config)),
          sizes_(sampled_sizes(recipe.sampling.smallest, options_.count, options_.progressive)),
          task_(make_shape_task(recipe, data, named_task(recipe.sampling), sizes_.front())),
          steps_(recipe.run.epochs * (items() / std::max<int64_t>(1, std::min(recipe.run.batch, items())))) {
        require_sizes(options_.count, options_.points, recipe.data.points);
    }

    network::Network network() const override { return network_; }
    void prepare(int64_t batch, int buffers, int threads, torch::Device device) override {
        ShapeObjective::prepare(batch, buffers, threads, device);
        task_->prepare(device);
        weights_ = simplification_weights(recipe().sampling, sizes_, device);
    }
    std::vector<std::string> sums() const override {
        return {"loss", "task_loss", "simplification", "temperature", "steps"};
    }
    Scores scores(std::span<const double> sums) const override {
        const double steps = std::max(sums[4], 1.0);
        return {{"loss", sums[0]},
                {"task_loss", sums[1] / steps},
                {"simplification", sums[2] / steps},
                {"temperature", sums[3] / steps}};
    }
    Scores evaluate(Module& module) override {
        const torch::NoGradGuard no_gradients;
        SamplerScores found(*task_, sizes_);
        for_each_validation_batch([&](const ShapeBatch& batch) {
            const Clouds points = looked_at(*task_, batch);
            const Tensor scores = scores_of(module, points, {});
            const int64_t clouds = points.batch.clouds();
            const Tensor none = torch::zeros({clouds, batch.size, options_.count}, scores.options());
            const Tensor last = torch::full({1}, recipe().sampling.last_temperature, scores.options());
            found.add(batch, points, best_points(points, scores), gumbel_points(points, scores, none, last, false));
        });
        return found.scores();
    }

private:
    Tensor scores_of(Module& module, const Clouds& points, const RunOptions& options) const {
        return module.run(points.batch, {{"points", points.rows}}, options).at("scores");
    }
    StepOutput step_of(Module& module, const ShapeBatch& batch, const RunOptions& options) override;

    network::Network network_;
    GumbelSubsetOptions options_;
    std::vector<int64_t> sizes_;
    std::unique_ptr<ShapeTask> task_;
    int64_t steps_ = 0;  // of the run
    Tensor weights_;     // of the terms of simplification
};

StepOutput GumbelObjective::step_of(Module& module, const ShapeBatch& batch, const RunOptions& options) {
    const SamplingOptions& how = recipe().sampling;
    const Clouds points = looked_at(*task_, batch);
    const int64_t looks = points.batch.clouds() / batch.count, count = options_.count;
    const Tensor scores = scores_of(module, points, options);
    const ProfileMark of_loss(options.profiler, "loss");
    const auto of_run = torch::TensorOptions(torch::kInt64).device(batch.number.device());
    const Tensor numbers = torch::arange(looks, of_run).unsqueeze(1) + batch.number.unsqueeze(0) * looks;
    const Tensor noise = gumbel_noise_of(numbers.reshape({-1}), batch.size, count, recipe().run.seed ^ kNoiseSeed);
    const Tensor temperature = temperature_at(batch.step, steps_, how);
    const Tensor chosen = gumbel_points(points, scores, noise, temperature, how.straight_through);
    Tensor task;
    for (const int64_t size : sizes_) {
        const Tensor term = task_->loss(batch, first_points(chosen, count, size), size);
        task = task.defined() ? task + term : term;
    }
    if (how.mean) task = task / static_cast<double>(sizes_.size());
    Tensor simplification = torch::zeros_like(task);
    if (how.alpha > 0) {
        const Clouds queries = {chosen, ops::Batch::dense(points.batch.clouds(), count)};
        const Tensor nearest = knn(points, queries, 1).indices.reshape({-1});
        simplification = simplification_loss(learn::simplification(points, queries, nearest, sizes_), weights_);
    }
    const Tensor loss = task + how.alpha * simplification;
    const torch::NoGradGuard no_gradients;
    return {loss, torch::stack({loss.detach(), task.detach(), simplification.detach(),
                                temperature.to(torch::kFloat64).squeeze(0), torch::ones_like(loss)})};
}

}  // namespace

std::unique_ptr<Objective> make_gumbel_objective(const Recipe& recipe, const LabelData& data) {
    return std::make_unique<GumbelObjective>(recipe, data);
}

}  // namespace stipple::learn
