#include "stipple/learn/upsampling/child_upsampling.h"

#include <algorithm>
#include <torch/torch.h>

#include "stipple/learn/losses.h"
#include "stipple/learn/profiler.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

constexpr int64_t kScoredAtATime = 16;
constexpr double kTinyDistance = 1e-3;  // spacings: keeps the gradient of a distance finite at 0

/// Children of a point; 0 where the network makes none.
int64_t children_of(const network::Network& network) {
    const network::TensorType* points = nullptr;
    for (const network::Layer& layer : network.layers)
        if (layer.kind == network::Kind::input && layer.name == "points") points = &layer.type;
    if (!points || *points != network::points_of(3)) return 0;
    for (const network::Output& output : network.outputs) {
        const network::TensorType& type = network.layers[static_cast<size_t>(output.tensor)].type;
        if (output.name == "upsampled" && type == network::rows_of(type.width, 3)) return type.width;
    }
    return 0;
}

Tensor mean_rows(const Tensor& rows) {
    return rows.to(torch::kFloat64).mean();
}

class ChildObjective : public SurfaceObjective {
public:
    ChildObjective(const Recipe& recipe, const SurfaceSet& set, network::Network network)
        : SurfaceObjective(recipe, set, network, 0),
          ratio_(children_of(network)),
          has_nll_(has_output(network, "nll")) {
        if (recipe.patch.truth != recipe.data.points * ratio_)
            throw Error(ErrorCode::bad_config,
                        fmt::format("patch.truth is {}: {} points have {} children", recipe.patch.truth,
                                    recipe.data.points, recipe.data.points * ratio_));
    }

    std::map<std::string, std::string> metadata() const override {
        return {{"stipple.trained", "true"}, {"stipple.task", "upsampling"}, {"stipple.unit", "unit sphere"}};
    }
    std::vector<std::string> sums() const override {
        return {"loss", "transport", "distance", "coverage", "nll", "chamfer", "batches"};
    }
    Scores scores(std::span<const double> sums) const override {
        const double batches = std::max(sums[6], 1.0);
        return {{"loss", sums[0]},
                {"transport", sums[1] / batches},
                {"distance", sums[2] / batches},
                {"coverage", sums[3] / batches},
                {"nll", sums[4] / batches},
                {"chamfer", sums[5] / batches}};
    }
    Scores evaluate(Module& module) override;

private:
    StepOutput step_of(Module& module, const PatchTensors& patches, const RunOptions& options) const override {
        const ChildBatch batch = run(module, patches, options);
        const ProfileMark of_loss(options.profiler, "loss");
        const LossRecipe& weights = recipe().loss;
        const ChildTerms terms = child_terms(*truth_of(patches), batch, weights);
        const Tensor loss = weights.transport_weight * terms.transport + weights.distance_weight * terms.distance +
                            weights.coverage_weight * terms.coverage + weights.nll_weight * terms.nll +
                            weights.chamfer_weight * terms.chamfer;
        const torch::NoGradGuard no_gradients;
        return {loss,
                torch::stack({loss.detach(), terms.transport.detach(), terms.distance.detach(), terms.coverage.detach(),
                              terms.nll.detach(), terms.chamfer.detach(), torch::ones_like(loss)})};
    }

    ChildBatch run(Module& module, const PatchTensors& patches, const RunOptions& options) const {
        const int64_t count = patches.patches(), n = recipe().data.points;
        const Tensor points = patches.points.reshape({count, n, 3});
        const Tensor centre = points.mean(1, true);
        const Tensor radius = (points - centre).square().sum(2).amax(1).sqrt().clamp_min(1e-12).reshape({count, 1, 1});
        const std::map<std::string, Tensor> outputs = module.run(
            {ops::Batch::dense(count, n)}, {{"points", ((points - centre) / radius).reshape({count * n, 3})}}, options);
        const Tensor children = outputs.at("upsampled").reshape({count, n * ratio_, 3}) * radius + centre;
        return {patches.frames, children.reshape({-1, 3}), patches.truth, has_nll_ ? outputs.at("nll") : Tensor(), n};
    }

    int64_t ratio_;
    bool has_nll_;
};

Scores ChildObjective::evaluate(Module& module) {
    const torch::NoGradGuard no_gradients;
    const PatchTensors& scored = scored_patches();
    std::vector<Tensor> distances, coverages, starts;
    for (int64_t begin = 0; begin < scored.patches(); begin += kScoredAtATime) {
        const int64_t end = std::min(scored.patches(), begin + kScoredAtATime), count = end - begin;
        const PatchTensors patches = scored.slice(begin, end);
        const ChildBatch batch = run(module, patches, {});
        const Clouds truth = {batch.truth, ops::Batch::dense(count, recipe().patch.truth)};
        const auto coverage = [&](const Tensor& rows) {
            return chamfer({rows, ops::Batch::dense(count, rows.size(0) / count)}, truth, ops::DistanceNorm::euclidean)
                .b_to_a.reshape({count, -1})
                .to(torch::kFloat64)
                .mean(1);
        };
        distances.push_back(mean_distances(batch.children, patches));
        coverages.push_back(coverage(batch.children));
        starts.push_back(coverage(patches.points));
    }
    const Tensor distance = torch::cat(distances).cpu(), coverage = torch::cat(coverages).cpu(),
                 start = torch::cat(starts).cpu();
    const auto gain = [&](const Tensor& d, const Tensor& c, const Tensor& c0) {
        return 1 - (d + c).sum().item<double>() / c0.sum().item<double>();
    };
    Scores scores = {{"validation_gain", gain(distance, coverage, start)}};
    for (int64_t kind = 0; kind < kScoredKindCount; ++kind) {
        scores.emplace_back(fmt::format("validation_distance_{}", kScoredKinds[kind]),
                            of_kind(distance, kind).mean().item<double>());
        scores.emplace_back(fmt::format("validation_gain_{}", kScoredKinds[kind]),
                            gain(of_kind(distance, kind), of_kind(coverage, kind), of_kind(start, kind)));
    }
    scores.emplace_back("validation_coverage", coverage.mean().item<double>());
    return scores;
}

}  // namespace

ChildTerms child_terms(const SurfaceTruth& surface, const ChildBatch& batch, const LossRecipe& weights) {
    const int64_t patches = batch.frames.size(0);
    const auto clouds = [&](const Tensor& rows) {
        return Clouds{rows, ops::Batch::dense(patches, rows.size(0) / patches)};
    };
    const Tensor none = torch::zeros({}, batch.children.options().dtype(torch::kFloat64));
    ChildTerms terms = {none, none, none, none, none};
    if (weights.transport_weight > 0) terms.transport = emd_loss(clouds(batch.children), clouds(batch.truth));
    if (weights.distance_weight > 0) {
        const Tensor rows = batch.children.reshape({patches, -1, 3});
        const Tensor square = (rows - surface.closest(rows.detach(), batch.frames)).square().sum(2);
        terms.distance = mean_rows((square + kTinyDistance * kTinyDistance).sqrt() - kTinyDistance);
    }
    if (weights.coverage_weight > 0)
        terms.coverage =
            mean_rows(chamfer(clouds(batch.children), clouds(batch.truth), ops::DistanceNorm::euclidean).b_to_a);
    if (weights.nll_weight > 0 && batch.nll.defined())
        terms.nll = flow_loss(batch.nll) / static_cast<double>(3 * batch.points);
    if (weights.chamfer_weight > 0)
        terms.chamfer = chamfer_loss(clouds(batch.children), clouds(batch.truth), ChamferConvention::half_euclidean);
    return terms;
}

bool makes_children(const network::Network& network) {
    return children_of(network) > 0;
}

std::unique_ptr<Objective> make_child_objective(const Recipe& recipe, const SurfaceSet& set, network::Network network) {
    return std::make_unique<ChildObjective>(recipe, set, std::move(network));
}

}  // namespace stipple::learn
