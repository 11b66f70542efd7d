#include "stipple/learn/upsampling/upsampling.h"

#include <algorithm>
#include <torch/torch.h>

#include "stipple/learn/losses.h"
#include "stipple/learn/profiler.h"
#include "stipple/learn/upsampling/child_upsampling.h"
#include "stipple/learn/upsampling/distance_upsampling.h"
#include "stipple/learn/upsampling/matching_upsampling.h"
#include "stipple/learn/upsampling/surface_objective.h"
#include "stipple/learn/upsampling/surface_terms.h"
#include "stipple/models/registry.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

/// Of networks that move queries.
class QueryObjective : public SurfaceObjective {
public:
    QueryObjective(const Recipe& recipe, const SurfaceSet& set, network::Network network);

    std::map<std::string, std::string> metadata() const override {
        return {{"stipple.trained", "true"}, {"stipple.task", "upsampling"}, {"stipple.unit", "spacing"}};
    }
    std::vector<std::string> sums() const override {
        return {"loss", "vector", "distance", "coverage", "uncertainty", "chamfer", "before", "after", "batches"};
    }
    Scores scores(std::span<const double> sums) const override;
    Scores evaluate(Module& module) override {
        return score_moved([&](const PatchTensors& patches) { return run(module, patches, {}).moved.back(); });
    }

private:
    StepOutput step_of(Module& module, const PatchTensors& patches, const RunOptions& options) const override;
    UpsampledBatch run(Module& module, const PatchTensors& patches, const RunOptions& options) const;

    std::vector<std::string> moved_;  // outputs, of each step
};

QueryObjective::QueryObjective(const Recipe& recipe, const SurfaceSet& set, network::Network network)
    : SurfaceObjective(recipe, set, network, recipe.patch.queries) {
    for (std::string name = "moved_1"; has_output(network, name); name = fmt::format("moved_{}", moved_.size() + 1))
        moved_.push_back(name);
}

UpsampledBatch QueryObjective::run(Module& module, const PatchTensors& patches, const RunOptions& options) const {
    const int64_t count = patches.patches();
    const std::map<std::string, Tensor> outputs =
        module.run({ops::Batch::dense(count, recipe().data.points), ops::Batch::dense(count, recipe().patch.queries)},
                   {{"points", patches.points}, {"queries", patches.queries}}, options);
    UpsampledBatch batch = {patches.frames, patches.queries, {}, outputs.at("uncertainty"), patches.truth};
    for (const std::string& name : moved_) batch.moved.push_back(outputs.at(name));
    return batch;
}

StepOutput QueryObjective::step_of(Module& module, const PatchTensors& patches, const RunOptions& options) const {
    const UpsampledBatch batch = run(module, patches, options);
    const ProfileMark of_loss(options.profiler, "loss");
    const UpsamplingTerms terms = upsampling_terms(*truth_of(patches), batch);
    const LossRecipe& weights = recipe().loss;
    Tensor loss = weights.vector_weight * terms.vector + weights.distance_weight * terms.distance +
                  weights.coverage_weight * terms.coverage + weights.uncertainty_weight * terms.uncertainty;
    if (weights.chamfer_weight > 0) loss = loss + weights.chamfer_weight * terms.chamfer;
    const torch::NoGradGuard no_gradients;
    return {loss, torch::stack({loss.detach(), terms.vector.detach(), terms.distance.detach(), terms.coverage.detach(),
                                terms.uncertainty.detach(), terms.chamfer.detach(), terms.before, terms.after,
                                torch::ones_like(terms.before)})};
}

Scores QueryObjective::scores(std::span<const double> sums) const {
    const double batches = std::max(sums[8], 1.0);
    return {{"loss", sums[0]},
            {"vector", sums[1] / batches},
            {"distance", sums[2] / batches},
            {"coverage", sums[3] / batches},
            {"uncertainty", sums[4] / batches},
            {"chamfer", sums[5] / batches},
            {"distance_before", sums[6] / batches},
            {"distance_after", sums[7] / batches}};
}

}  // namespace

UpsamplingTerms upsampling_terms(const SurfaceTruth& surface, const UpsampledBatch& batch) {
    const int64_t patches = batch.frames.size(0), rows = batch.queries.size(0), queries = rows / patches;
    const auto steps = static_cast<int64_t>(batch.moved.size());
    std::vector<Tensor> positions = {batch.queries.detach().reshape({patches, queries, 3})};
    for (const Tensor& moved : batch.moved) positions.push_back(moved.detach().reshape({patches, queries, 3}));
    const Tensor found = surface.closest(torch::cat(positions, 1), batch.frames);
    const auto closest = [&](int64_t step) {  // of where it has put the queries; step 0: of the queries
        return found.narrow(1, step * queries, queries).reshape({rows, 3});
    };
    UpsamplingTerms terms;
    for (int64_t step = 1; step <= steps; ++step) {
        const Tensor& moved = batch.moved[static_cast<size_t>(step - 1)];
        const Tensor vector = smooth_distance(moved, closest(step - 1)),
                     distance = smooth_distance(moved, closest(step));
        terms.vector = terms.vector.defined() ? terms.vector + vector : vector;
        terms.distance = terms.distance.defined() ? terms.distance + distance : distance;
    }
    terms.vector = terms.vector / steps;
    terms.distance = terms.distance / steps;
    const ChamferMeans means =
        chamfer({batch.moved.back(), ops::Batch::dense(patches, queries)},
                {batch.truth, ops::Batch::dense(patches, batch.truth.size(0) / patches)}, ops::DistanceNorm::euclidean);
    terms.coverage = row_mean(means.b_to_a);
    terms.chamfer = row_mean(means.a_to_b + means.b_to_a) / 2;
    const Tensor error = row_distances(batch.moved.back().detach(), closest(steps));
    terms.uncertainty = uncertainty_term(error, batch.uncertainty);
    const torch::NoGradGuard no_gradients;
    terms.before = row_mean(row_distances(batch.queries, closest(0)));
    terms.after = row_mean(error);
    return terms;
}

std::unique_ptr<Objective> make_upsampling_objective(const Recipe& recipe, const SurfaceSet& set) {
    network::Network network = models::build_model(recipe.model, recipe.options);
    const auto refinement = network.config.find("refinement");
    if (refinement != network.config.end() && refinement->second == "matching")
        return make_matching_objective(recipe, set, std::move(network));
    if (tells_distances(network)) return make_distance_objective(recipe, set, std::move(network));
    if (has_output(network, "moved_1") && has_output(network, "uncertainty"))
        return std::make_unique<QueryObjective>(recipe, set, std::move(network));
    if (makes_children(network)) return make_child_objective(recipe, set, std::move(network));
    throw Error(ErrorCode::bad_config, fmt::format("{} does not upsample: its outputs are neither moved queries nor "
                                                   "their distances nor children of points",
                                                   recipe.model));
}

}  // namespace stipple::learn
