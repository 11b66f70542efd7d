#include "stipple/learn/upsampling/matching_upsampling.h"

#include <cmath>
#include <numbers>
#include <torch/torch.h>

#include "stipple/learn/losses.h"
#include "stipple/learn/profiler.h"
#include "stipple/learn/upsampling/surface_terms.h"
#include "stipple/models/flow_upsampler.h"

namespace stipple::learn {

using torch::Tensor;

namespace {

class MatchingObjective : public SurfaceObjective {
public:
    MatchingObjective(const Recipe& recipe, const SurfaceSet& set, network::Network deployed)
        : SurfaceObjective(recipe, set,
                           models::flow_upsampler_velocity(models::flow_upsampler_options(deployed.config)),
                           recipe.patch.queries),
          deployed_(std::move(deployed)) {}

    std::map<std::string, std::string> metadata() const override {
        return {{"stipple.trained", "true"}, {"stipple.task", "upsampling"}, {"stipple.unit", "spacing"}};
    }
    std::vector<std::string> sums() const override {
        return {"loss", "velocity", "uncertainty", "chamfer", "before", "after", "batches"};
    }
    Scores scores(std::span<const double> sums) const override {
        const double batches = std::max(sums[6], 1.0);
        return {{"loss", sums[0]},
                {"velocity", sums[1] / batches},
                {"uncertainty", sums[2] / batches},
                {"chamfer", sums[3] / batches},
                {"distance_before", sums[4] / batches},
                {"distance_after", sums[5] / batches}};
    }
    void prepare(int64_t batch, int buffers, int threads, torch::Device device) override {
        SurfaceObjective::prepare(batch, buffers, threads, device);
        times_ = matching_times(recipe().patch.queries).to(device).repeat({batch, 1});
    }
    Scores evaluate(Module& module) override;

private:
    StepOutput step_of(Module& module, const PatchTensors& patches, const RunOptions& options) const override;
    std::vector<ops::Batch> batches_of(const PatchTensors& patches) const {
        return {ops::Batch::dense(patches.patches(), recipe().data.points),
                ops::Batch::dense(patches.patches(), recipe().patch.queries)};
    }

    network::Network deployed_;
    Tensor times_;  // of the queries of a batch
};

StepOutput MatchingObjective::step_of(Module& module, const PatchTensors& patches, const RunOptions& options) const {
    const Tensor rows = patches.queries.reshape({patches.patches(), -1, 3});
    const std::shared_ptr<const SurfaceTruth> surface = truth_of(patches);
    const Tensor ends = surface->closest(rows, patches.frames).reshape({-1, 3});
    MatchedBatch batch = {patches.frames, patches.queries, ends, times_, {}, {}, patches.truth};
    const std::map<std::string, Tensor> outputs = module.run(
        batches_of(patches), {{"points", patches.points}, {"queries", batch.position()}, {"time", times_}}, options);
    batch.velocity = outputs.at("velocity");
    batch.uncertainty = outputs.at("uncertainty");
    const ProfileMark of_loss(options.profiler, "loss");
    const MatchingTerms terms = matching_terms(*surface, batch);
    const LossRecipe& weights = recipe().loss;
    Tensor loss = weights.vector_weight * terms.velocity + weights.uncertainty_weight * terms.uncertainty;
    if (weights.chamfer_weight > 0) loss = loss + weights.chamfer_weight * terms.chamfer;
    const torch::NoGradGuard no_gradients;
    return {loss, torch::stack({loss.detach(), terms.velocity.detach(), terms.uncertainty.detach(),
                                terms.chamfer.detach(), terms.before, terms.after, torch::ones_like(terms.before)})};
}

Scores MatchingObjective::evaluate(Module& module) {
    Module deployed(deployed_, module.weights(), module.parameters().begin()->second.device());
    return score_moved([&](const PatchTensors& patches) {
        return deployed.run(batches_of(patches), {{"points", patches.points}, {"queries", patches.queries}})
            .at("upsampled");
    });
}

}  // namespace

Tensor matching_times(int64_t count) {
    std::vector<float> times;
    for (int64_t i = 1; i <= count; ++i) {
        const double multiple = static_cast<double>(i) / std::numbers::phi, u = multiple - std::floor(multiple);
        times.push_back(static_cast<float>(1 - std::cos(u * std::numbers::pi / 2)));
    }
    return torch::tensor(times, torch::kFloat32).reshape({count, 1});
}

MatchingTerms matching_terms(const SurfaceTruth& surface, const MatchedBatch& batch) {
    const int64_t patches = batch.frames.size(0), rows = batch.starts.size(0);
    const Tensor arrived = batch.position() + (1 - batch.times) * batch.velocity;
    const Tensor at = arrived.detach();
    const Tensor closest = surface.closest(at.reshape({patches, -1, 3}), batch.frames).reshape({rows, 3});
    const Tensor error = row_distances(at, closest);
    MatchingTerms terms;
    terms.velocity = smooth_distance(batch.velocity, batch.ends - batch.starts);
    terms.uncertainty = uncertainty_term(error, batch.uncertainty);
    terms.chamfer = chamfer_loss({arrived, ops::Batch::dense(patches, rows / patches)},
                                 {batch.truth, ops::Batch::dense(patches, batch.truth.size(0) / patches)},
                                 ChamferConvention::half_euclidean);
    const torch::NoGradGuard no_gradients;
    terms.before = row_mean(row_distances(batch.starts, batch.ends));
    terms.after = row_mean(error);
    return terms;
}

std::unique_ptr<Objective> make_matching_objective(const Recipe& recipe, const SurfaceSet& set,
                                                   network::Network network) {
    return std::make_unique<MatchingObjective>(recipe, set, std::move(network));
}

}  // namespace stipple::learn
