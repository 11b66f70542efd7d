#include "stipple/learn/upsampling/distance_upsampling.h"

#include <algorithm>
#include <torch/torch.h>

#include "stipple/learn/profiler.h"
#include "stipple/learn/upsampling/surface_terms.h"
#include "stipple/tasks/upsample/descend.h"

namespace stipple::learn {

using torch::Tensor;

namespace {

class DistanceObjective : public SurfaceObjective {
public:
    DistanceObjective(const Recipe& recipe, const SurfaceSet& set, network::Network network)
        : SurfaceObjective(recipe, set, std::move(network), recipe.patch.queries) {}

    std::map<std::string, std::string> metadata() const override {
        return {{"stipple.trained", "true"}, {"stipple.task", "upsampling"}, {"stipple.unit", "spacing"}};
    }
    std::vector<std::string> sums() const override { return {"loss", "error", "before", "batches"}; }
    Scores scores(std::span<const double> sums) const override {
        const double batches = std::max(sums[3], 1.0);
        return {{"loss", sums[0]}, {"distance_error", sums[1] / batches}, {"distance_before", sums[2] / batches}};
    }
    Scores evaluate(Module& module) override {
        return score_moved([&](const PatchTensors& patches) { return descended(module, patches); });
    }

private:
    StepOutput step_of(Module& module, const PatchTensors& patches, const RunOptions& options) const override {
        const Tensor distance = run(module, patches, patches.queries, options);
        const ProfileMark of_loss(options.profiler, "loss");
        const DistanceTerms terms = distance_terms(*truth_of(patches), patches.frames, patches.queries, distance);
        const Tensor loss = recipe().loss.distance_weight * terms.error;
        return {loss,
                torch::stack({loss.detach(), terms.error.detach(), terms.before, torch::ones_like(terms.before)})};
    }

    /// The distances [patches * m, 1] of places, as many in each patch.
    Tensor run(Module& module, const PatchTensors& patches, const Tensor& places, const RunOptions& options) const {
        const int64_t count = patches.patches();
        return module
            .run({ops::Batch::dense(count, recipe().data.points), ops::Batch::dense(count, places.size(0) / count)},
                 {{"points", patches.points}, {"queries", places}}, options)
            .at("distance");
    }

    Tensor descended(Module& module, const PatchTensors& patches) const {
        const torch::Device device = patches.queries.device();
        const Tensor moved = patches.queries.to(torch::kCPU, torch::kFloat32, false, /*copy=*/true).contiguous();
        const int64_t n = moved.size(0);
        tasks::descend({moved.data_ptr<float>(), {n, 3}}, [&](View<const float, 2> places, View<float, 1> distances) {
            const Tensor rows = torch::from_blob(const_cast<float*>(places.data()), {n, 3}).to(device);
            const Tensor found = run(module, patches, rows, {}).to(torch::kCPU, torch::kFloat32).contiguous();
            std::copy_n(found.data_ptr<float>(), n, distances.data());
        });
        return moved.to(device);
    }
};

}  // namespace

DistanceTerms distance_terms(const SurfaceTruth& surface, const Tensor& frames, const Tensor& queries,
                             const Tensor& distance) {
    const Tensor closest = surface.closest(queries.reshape({frames.size(0), -1, 3}), frames);
    const Tensor exact = row_distances(queries, closest.reshape({-1, 3}));
    return {row_mean((distance.flatten() - exact).abs()), row_mean(exact)};
}

bool tells_distances(const network::Network& network) {
    const bool takes_queries = std::any_of(
        network.layers.begin(), network.layers.end(),
        [](const network::Layer& layer) { return layer.kind == network::Kind::input && layer.name == "queries"; });
    return takes_queries && has_output(network, "distance");
}

std::unique_ptr<Objective> make_distance_objective(const Recipe& recipe, const SurfaceSet& set,
                                                   network::Network network) {
    return std::make_unique<DistanceObjective>(recipe, set, std::move(network));
}

}  // namespace stipple::learn
