// Upsampling by children: the terms of its loss, and PU-Flow learning on patches of meshes.

#include "stipple/learn/upsampling/child_upsampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <torch/torch.h>

#include "stipple/geometry/primitives.h"
#include "stipple/learn/train.h"
#include "stipple/learn/upsampling/upsampling.h"
#include "stipple/models/puflow.h"
#include "stipple/models/registry.h"
#include "tests/learn/learn.h"
#include "tests/support/expect_error.h"
#include "tests/support/margin.h"
#include "tests/support/temporary_folder.h"

namespace stipple::learn {
namespace {

Recipe small_puflow() {
    Recipe recipe;
    recipe.name = "small-puflow";
    recipe.task = learn::TrainingTask::upsampling;
    recipe.model = "puflow";
    recipe.options = {{"ratio", "2"}, {"neighbours", "8"}};
    recipe.data.points = 48;
    recipe.data.held_out = 0.5;
    recipe.data.items = 24;
    recipe.data.validation_items = 6;
    recipe.patch.truth = 96;
    recipe.patch.inner_share = recipe.patch.truth_radius = 1;
    recipe.patch.samples = 2048;
    recipe.patch.cloud_min = 192;
    recipe.patch.cloud_max = 512;
    recipe.patch.noise_share = 0;
    recipe.loss.coverage_weight = 0;
    recipe.optimizer.kind = OptimizerKind::adamw;
    recipe.schedule = {.kind = ScheduleKind::cosine, .rate = 2e-3, .warmup = 0.1};
    recipe.run.epochs = 5;
    recipe.run.batch = 4;
    recipe.run.storage = network::WeightStorage::f32;
    recipe.run.loader_threads = 1;
    recipe.run.seed = test::trial();
    return recipe;
}

SurfaceSet two_spheres(const Recipe& recipe) {
    std::vector<Mesh> meshes;
    meshes.push_back(geometry::sphere_mesh(1, 4));
    meshes.push_back(geometry::sphere_mesh(1, 4));
    return make_surfaces(
        std::move(meshes), {"sphere", "held-out sphere"},
        {.held_out = 0.5, .pools = recipe.patch.pools, .samples = recipe.patch.samples, .seed = recipe.run.seed},
        ProgressMode::never);
}

TEST(LearnChildUpsampling, TermsAreThoseOfTheirDefinitions) {
    const Recipe recipe = small_puflow();
    const SurfaceSet set = two_spheres(recipe);
    const SurfaceIndex index(set, torch::kCPU);
    // A patch in the coordinates of the shape: children 0.1 outside of the sphere, the truth on it, one to one.
    const torch::Tensor frames = torch::zeros({1, kFrameNumbers});
    PatchFrame frame;
    frame.rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    index.write_frame(0, frame, frames.data_ptr<float>());
    const float directions[][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {-1, 0, 0}};
    const torch::Tensor truth = torch::from_blob(const_cast<float*>(&directions[0][0]), {4, 3}).clone();
    const torch::Tensor children = (1.1 * truth).flip(0).to(torch::kFloat32).requires_grad_();
    LossRecipe weights;
    weights.coverage_weight = weights.chamfer_weight = 1;
    const ChildTerms terms = child_terms(index, {frames, children, truth, torch::full({1, 1}, 6.0), 2}, weights);
    EXPECT_NEAR(terms.transport.item<double>(), 0.1, 1e-5);
    EXPECT_NEAR(terms.coverage.item<double>(), 0.1, 1e-5);
    EXPECT_NEAR(terms.chamfer.item<double>(), 0.1, 1e-5);
    EXPECT_NEAR(terms.distance.item<double>(), 0.1, 0.004);  // the mesh lies a little inside of the sphere
    EXPECT_NEAR(terms.nll.item<double>(), 1, 1e-12);         // 6 nats for 6 coordinates
    (terms.transport + terms.distance).backward();
    EXPECT_TRUE(torch::isfinite(children.grad()).all().item<bool>());
    EXPECT_GT(children.grad()[3][0].item<double>(), 0);  // inwards

    // Three children near one point of the truth: from there the distances are short, to the others long.
    const torch::Tensor gathered = 1.1 * truth.narrow(0, 0, 1).expand({3, 3});
    weights.transport_weight = 0;
    const double far = std::sqrt(1 + 1.1 * 1.1);
    EXPECT_NEAR(child_terms(index, {frames, gathered, truth, {}, 2}, weights).chamfer.item<double>(),
                (0.1 + (0.1 + far + far + 2.1) / 4) / 2, 1e-5);

    weights.distance_weight = weights.coverage_weight = weights.nll_weight = weights.chamfer_weight = 0;
    const ChildTerms none = child_terms(index, {frames, children, truth, {}, 2}, weights);
    for (const torch::Tensor& term : {none.transport, none.distance, none.coverage, none.nll, none.chamfer})
        EXPECT_EQ(term.item<double>(), 0);
}

TEST(LearnChildUpsampling, PuFlowLearnsToCoverASurface) {
    const test::TemporaryFolder folder(test::Where::memory);
    const Recipe recipe = small_puflow();
    const SurfaceSet set = two_spheres(recipe);
    const std::unique_ptr<Objective> objective = make_upsampling_objective(recipe, set);
    Module untrained(objective->network(), network::initial_weights(objective->network(), recipe.run.seed));
    objective->prepare(recipe.run.batch, 1, 1, torch::kCPU);
    const double before = objective->evaluate(untrained).front().second;
    RunFolder run = RunFolder::create(folder / "run", to_toml(recipe));
    TrainOptions options;
    options.progress = ProgressMode::never;
    const TrainReport report = train(recipe, *make_upsampling_objective(recipe, set), run, options);
    const std::map<std::string, double> scores(report.scores.begin(), report.scores.end());
    EXPECT_ABOVE(scores.at("validation_gain"), before + 0.2);  // norms that settle alone give 0.05
    EXPECT_TRUE(std::isfinite(scores.at("nll")));
    EXPECT_EQ(models::load_model(report.weights).weights.metadata.at("stipple.unit"), "unit sphere");
}

TEST(LearnChildUpsampling, AGraphTrainsAsStepsOneByOne) {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
    const test::TemporaryFolder folder(test::Where::memory);
    for (const char* family : {"coupling", "mlp", "continuous"}) {
        Recipe recipe = small_puflow();
        recipe.options["family"] = family;
        recipe.run.log_every = 1;
        const SurfaceSet set = two_spheres(recipe);
        std::vector<double> losses[2];
        for (const bool is_graph : {false, true}) {
            recipe.run.graph = is_graph;
            TrainOptions options;
            options.progress = ProgressMode::never;
            options.device = torch::Device(torch::kCUDA, 0);
            const std::string path = folder / (family + std::string(is_graph ? "_graph" : ""));
            RunFolder run = RunFolder::create(path, to_toml(recipe));
            const TrainReport report = train(recipe, *make_upsampling_objective(recipe, set), run, options);
            EXPECT_EQ(report.steps, 30);
            losses[is_graph] = test::logged(path, "step", "loss");
            ASSERT_EQ(losses[is_graph].size(), 30u);
        }
        // Three as they are, then those of the graph; later small differences grow.
        for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(losses[1][i], losses[0][i], 0.02 * losses[0][0]) << family << i;
    }
}

TEST(LearnChildUpsampling, EveryContextAndInterpolationTakesAStep) {
    Recipe recipe = small_puflow();
    recipe.data.items = 4;
    recipe.data.validation_items = 3;
    recipe.run.epochs = 1;
    const SurfaceSet set = two_spheres(recipe);
    std::vector<std::pair<std::string, std::string>> modules;
    for (const std::string name : models::kContextWords)
        if (name != "none") modules.emplace_back("context", name);
    for (const std::string name : models::kInterpolationWords)
        if (name != "learned") modules.emplace_back("interpolation", name);
    for (const auto& [option, name] : modules) {
        SCOPED_TRACE(option + " " + name);
        const test::TemporaryFolder folder(test::Where::memory);
        recipe.options = {{"ratio", "2"}, {"neighbours", "8"}, {option, name}};
        RunFolder run = RunFolder::create(folder / "run", to_toml(recipe));
        TrainOptions options;
        options.progress = ProgressMode::never;
        const TrainReport report = train(recipe, *make_upsampling_objective(recipe, set), run, options);
        const std::map<std::string, double> scores(report.scores.begin(), report.scores.end());
        EXPECT_TRUE(std::isfinite(scores.at("validation_gain")));
        EXPECT_TRUE(std::isfinite(scores.at("nll")));
        const models::Model model = models::load_model(report.weights);
        EXPECT_EQ(model.network.config.at(option), name);
    }
}

TEST(LearnChildUpsampling, MisfitsAreRefused) {
    Recipe recipe = small_puflow();
    const SurfaceSet set = two_spheres(recipe);
    recipe.patch.truth = 95;
    EXPECT_ERROR(make_upsampling_objective(recipe, set), bad_config, "48 points have 96 children");
    recipe = small_puflow();
    recipe.patch.inner_share = 0;
    EXPECT_ERROR(validate(recipe), bad_config, "patch.inner_share");
    recipe.model = "pointnet-classifier";
    recipe.options.clear();
    recipe.patch.inner_share = 1;
    EXPECT_ERROR(make_upsampling_objective(recipe, set), bad_config, "does not upsample");
}

}  // namespace
}  // namespace stipple::learn
