// Upsampling: the terms of its loss against a slow computation, and a small network that learns to find surfaces.

#include "stipple/learn/upsampling/upsampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <malloc.h>
#include <torch/torch.h>

#include "stipple/core/vec3.h"
#include "stipple/geometry/primitives.h"
#include "stipple/io/format.h"
#include "stipple/learn/task.h"
#include "stipple/learn/train.h"
#include "stipple/models/registry.h"
#include "tests/learn/solid_patches.h"
#include "tests/support/expect_error.h"
#include "tests/support/margin.h"
#include "tests/support/temporary_folder.h"

namespace stipple::learn {
namespace {

using test::round_bodies;
using test::row_of_tensor;
using test::small_upsampler;

TEST(LearnUpsampling, TermsAreThoseOfASlowComputation) {
    constexpr int64_t kPatches = test::SolidPatches::kPatches, kQueries = test::SolidPatches::kQueries,
                      kTruth = test::SolidPatches::kTruth;
    const test::SolidPatches patches;
    const SurfaceIndex index(patches.set, torch::kCPU);
    UpsampledBatch batch = {patches.frames, patches.queries, {}, {}, patches.truth};
    torch::manual_seed(4);
    batch.moved.push_back((batch.queries + 0.3 * torch::randn_like(batch.queries)).set_requires_grad(true));
    batch.moved.push_back((batch.queries + 0.1 * torch::randn_like(batch.queries)).set_requires_grad(true));
    batch.uncertainty = torch::rand({kPatches * kQueries, 1}).set_requires_grad(true);
    const UpsamplingTerms terms = upsampling_terms(index, batch);

    const auto smooth = [](double d) { return std::sqrt(d * d + 0.02 * 0.02) - 0.02; };
    double vector = 0, distance = 0, coverage = 0, reach = 0, uncertainty = 0, before = 0, after = 0;
    constexpr double kRows = kPatches * kQueries;
    for (int64_t i = 0; i < kPatches * kQueries; ++i) {
        const auto closest = [&](Vec3d p) { return patches.slow_closest(i / kQueries, p); };
        const Vec3d at[] = {row_of_tensor(batch.queries, i), row_of_tensor(batch.moved[0], i),
                            row_of_tensor(batch.moved[1], i)};
        for (int step = 1; step <= 2; ++step) {
            vector += smooth(length(at[step] - closest(at[step - 1]))) / (2 * kRows);
            distance += smooth(length(at[step] - closest(at[step]))) / (2 * kRows);
        }
        const double error = length(at[2] - closest(at[2]));
        const double b = batch.uncertainty.data_ptr<float>()[i] + 1e-3;
        uncertainty += (error / b + std::log(b)) / kRows;
        before += length(at[0] - closest(at[0])) / kRows;
        after += error / kRows;
    }
    for (int64_t i = 0; i < kPatches * kTruth; ++i) {
        double nearest = INFINITY;
        for (int64_t q = i / kTruth * kQueries; q < (i / kTruth + 1) * kQueries; ++q)
            nearest = std::min(nearest, length(row_of_tensor(batch.truth, i) - row_of_tensor(batch.moved[1], q)));
        coverage += nearest / (kPatches * kTruth);
    }
    for (int64_t q = 0; q < kPatches * kQueries; ++q) {
        double nearest = INFINITY;
        for (int64_t i = q / kQueries * kTruth; i < (q / kQueries + 1) * kTruth; ++i)
            nearest = std::min(nearest, length(row_of_tensor(batch.truth, i) - row_of_tensor(batch.moved[1], q)));
        reach += nearest / kRows;
    }
    EXPECT_NEAR(terms.vector.item<double>(), vector, 1e-5);
    EXPECT_NEAR(terms.distance.item<double>(), distance, 1e-5);
    EXPECT_NEAR(terms.coverage.item<double>(), coverage, 1e-5);
    EXPECT_NEAR(terms.chamfer.item<double>(), (coverage + reach) / 2, 1e-5);
    EXPECT_NEAR(terms.uncertainty.item<double>(), uncertainty, 1e-4);
    EXPECT_NEAR(terms.before.item<double>(), before, 1e-5);
    EXPECT_NEAR(terms.after.item<double>(), after, 1e-5);
    EXPECT_FALSE(terms.after.requires_grad());

    // The gradient of the distance points away from the surface, which does not move with the points.
    terms.distance.backward();
    const torch::Tensor gradient = batch.moved[1].grad();
    for (int64_t i = 0; i < kPatches * kQueries; ++i) {
        const Vec3d p = row_of_tensor(batch.moved[1], i);
        const Vec3d offset = p - patches.slow_closest(i / kQueries, p);
        const Vec3d expected = (1 / (2 * kRows * std::sqrt(dot(offset, offset) + 0.02 * 0.02))) * offset;
        EXPECT_LT(length(row_of_tensor(gradient, i) - expected), 1e-5);
    }
}

/// Steps of an objective without a loop around it.
struct BareSteps {
    explicit BareSteps(const Recipe& recipe)
        : set(round_bodies(recipe)),
          objective(make_upsampling_objective(recipe, set)),
          module(objective->network(), network::initial_weights(objective->network(), recipe.run.seed)) {
        objective->prepare(recipe.run.batch, 1, 1, torch::kCPU);
        items.resize(static_cast<size_t>(recipe.run.batch));
    }
    StepOutput step(int64_t number) {
        for (size_t i = 0; i < items.size(); ++i) {
            items[i] = number * static_cast<int64_t>(items.size() + i) % objective->items();
            objective->make(0, items[i], {.buffer = 0, .place = static_cast<int64_t>(i), .thread = 0});
        }
        data::LoadedBatch batch;
        batch.items = items;
        RunOptions options;
        options.is_training = true;
        return objective->step(module, batch, options);
    }

    SurfaceSet set;
    std::unique_ptr<Objective> objective;
    Module module;
    std::vector<int64_t> items;
};

TEST(LearnUpsampling, GradientsReachAllParameters) {
    BareSteps steps(small_upsampler());
    {
        // Layers that begin with zeros hide those before them.
        const torch::NoGradGuard no_gradients;
        torch::manual_seed(1);
        for (torch::Tensor& parameter : steps.module.trained()) parameter.add_(0.1 * torch::randn_like(parameter));
    }
    const StepOutput output = steps.step(0);
    output.loss.backward();
    ASSERT_EQ(output.sums.numel(), static_cast<int64_t>(steps.objective->sums().size()));
    int64_t trained = 0;
    for (const auto& [name, parameter] : steps.module.parameters()) {
        if (!parameter.requires_grad()) {
            EXPECT_NE(name.find("running"), std::string::npos) << name;
            continue;
        }
        ++trained;
        ASSERT_TRUE(parameter.grad().defined()) << name;
        EXPECT_TRUE(torch::isfinite(parameter.grad()).all().item<bool>()) << name;
        // These biases have the gradient 0: a batch norm subtracts them, the inverse flow takes back a shift of the
        // whole latent space, and a softmax ignores a shift of all its logits.
        const bool is_idle = name.ends_with("flow2.move.bias") || name.ends_with(".logits.bias") ||
                             (name.starts_with("edge") && name.ends_with(".linear.bias"));
        EXPECT_TRUE(is_idle || parameter.grad().abs().max().item<double>() > 0) << name;
    }
    EXPECT_GT(trained, 40);
}

TEST(LearnUpsampling, LearnsToFindSurfacesItHasNotSeen) {
    const test::TemporaryFolder folder(test::Where::memory);
    const Recipe recipe = small_upsampler();
    BareSteps untrained(recipe);
    const Scores at_first = untrained.objective->evaluate(untrained.module);
    EXPECT_EQ(at_first.front().first, "validation_gain");

    const SurfaceSet set = round_bodies(recipe);
    const std::unique_ptr<Objective> objective = make_upsampling_objective(recipe, set);
    RunFolder run = RunFolder::create(folder / "run", to_toml(recipe));
    TrainOptions options;
    options.progress = ProgressMode::never;
    const TrainReport report = train(recipe, *objective, run, options);
    EXPECT_EQ(report.steps, recipe.run.epochs * 50);
    const std::map<std::string, double> scores(report.scores.begin(), report.scores.end());
    const std::map<std::string, double> first(at_first.begin(), at_first.end());
    EXPECT_ABOVE(scores.at("validation_gain"), first.at("validation_gain") + 0.3);
    for (const char* kind : {"uniform", "random", "noisy"}) {
        const std::string name = std::string("validation_distance_") + kind;
        EXPECT_BELOW(scores.at(name), 0.9 * first.at(name)) << kind;
        const std::string gain = std::string("validation_gain_") + kind;  // of the same patches
        EXPECT_NEAR(scores.at(name) / (1 - scores.at(gain)), first.at(name) / (1 - first.at(gain)), 1e-9);
    }
    EXPECT_BELOW(scores.at("distance_after"), scores.at("distance_before"));

    const models::Model model = models::load_model(report.weights);
    EXPECT_EQ(model.weights.metadata.at("stipple.task"), "upsampling");
    EXPECT_EQ(model.weights.metadata.at("stipple.unit"), "spacing");
    EXPECT_EQ(model.network.name, "flow-upsampler");
}

TEST(LearnUpsampling, ThreadsAndRestartsChangeNothing) {
    const test::TemporaryFolder folder(test::Where::memory);
    Recipe recipe = small_upsampler();
    recipe.data.items = 16;
    recipe.run.epochs = 2;
    const SurfaceSet set = round_bodies(recipe);
    const auto run = [&](const std::string& name, int64_t threads, int64_t pause) {
        recipe.run.loader_threads = threads;
        TrainOptions options;
        options.progress = ProgressMode::never;
        if (pause > 0) {
            options.max_steps = pause;
            RunFolder begun = RunFolder::create(folder / name, to_toml(recipe));
            train(recipe, *make_upsampling_objective(recipe, set), begun, options);
            options.max_steps = 0;
            options.is_resumed = true;
        }
        RunFolder whole =
            pause > 0 ? RunFolder::resume(folder / name) : RunFolder::create(folder / name, to_toml(recipe));
        return test::read_file(train(recipe, *make_upsampling_objective(recipe, set), whole, options).weights);
    };
    const std::string weights = run("one", 1, 0);
    EXPECT_EQ(run("three", 3, 0), weights);
    EXPECT_EQ(run("paused", 1, 3), weights);
}

TEST(LearnUpsampling, AGraphTrainsAsStepsOneByOne) {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
    const test::TemporaryFolder folder(test::Where::memory);
    Recipe recipe = small_upsampler();
    recipe.run.epochs = 2;
    const SurfaceSet set = round_bodies(recipe);
    std::map<std::string, double> scores[2];
    for (const bool is_graph : {false, true}) {
        recipe.run.graph = is_graph;
        TrainOptions options;
        options.progress = ProgressMode::never;
        options.device = torch::Device(torch::kCUDA, 0);
        RunFolder run = RunFolder::create(folder / (is_graph ? "graph" : "plain"), to_toml(recipe));
        const TrainReport report = train(recipe, *make_upsampling_objective(recipe, set), run, options);
        EXPECT_EQ(report.steps, 100);
        EXPECT_EQ(report.skipped, 0);
        scores[is_graph] = {report.scores.begin(), report.scores.end()};
    }
    EXPECT_NEAR(scores[1].at("distance_before"), scores[0].at("distance_before"), 1e-6);  // the same patches
    // Sums of gradients differ in their order, and small differences grow.
    EXPECT_NEAR(scores[1].at("distance_after"), scores[0].at("distance_after"), 0.1 * scores[0].at("distance_after"));
    EXPECT_NEAR(scores[1].at("validation_gain"), scores[0].at("validation_gain"), 0.1);
}

TEST(LearnUpsampling, MemoryDoesNotGrow) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    Recipe recipe = small_upsampler();
    recipe.run.batch = 1;
    BareSteps steps(recipe);
    int64_t settled = 0;
    const auto allocated = [] {
        const struct mallinfo2 info = ::mallinfo2();
        return static_cast<int64_t>(info.uordblks + info.hblkhd);
    };
    for (int64_t i = 0; i < 200; ++i) {
        steps.step(i).loss.backward();
        if (i == 40) settled = allocated();
    }
    steps.step(0);
    EXPECT_LE(allocated() - settled, 160 * 256);  // the patch alone has 3 kB, its activations a megabyte
#endif
}

TEST(LearnUpsampling, RecipesAreReadBackAndMisfitsRefused) {
    Recipe recipe = small_upsampler();
    recipe.patch.scan_share = 0.2;
    recipe.loss.coverage_weight = 0.25;
    EXPECT_TRUE(differences(recipe, parse_recipe(to_toml(recipe))).empty());
    set_option(recipe, "patch.cloud_max", "5000");
    EXPECT_ERROR(validate(recipe), bad_config, "twice patch.cloud_max");
    recipe = small_upsampler();
    recipe.loss.distance_weight = -1;
    EXPECT_ERROR(validate(recipe), bad_config, "loss.distance_weight must be from 0, got -1");
    recipe = small_upsampler();
    const SurfaceSet set = round_bodies(recipe);
    recipe.patch.pools = 4;
    EXPECT_ERROR(make_upsampling_objective(recipe, set), bad_config, "sampled with other options");
    recipe = small_upsampler();
    recipe.model = "pointnet-classifier";
    recipe.options.clear();
    EXPECT_ERROR(make_upsampling_objective(recipe, set), bad_config, "does not upsample");
    std::vector<std::string> warnings;
    EXPECT_ERROR(load_task(recipe, warnings, ProgressMode::never), bad_argument, "no meshes to train on");
}

TEST(LearnUpsampling, TasksAreLoadedFromFoldersOfMeshes) {
    const test::TemporaryFolder folder(test::Where::memory);
    std::vector<std::string> warnings;
    for (const char* name : {"a.ply", "b.ply", "c.ply"})
        io::save(folder / name, geometry::sphere_mesh(2, 2), Overwrite::refuse, {}, warnings);
    Recipe recipe = small_upsampler();
    recipe.data.folder = folder / "";
    const LoadedTask task = load_task(recipe, warnings, ProgressMode::never);
    EXPECT_EQ(task.labels, nullptr);
    ASSERT_NE(task.surfaces, nullptr);
    EXPECT_EQ(task.surfaces->held_out, (std::vector<int64_t>{1}));
    EXPECT_EQ(task.objective->items(), 200);
    EXPECT_TRUE(task.objective->has_validation());
    const int64_t items[] = {0, 1};
    EXPECT_EQ(task.objective->describe(items), "0 of a.ply, 1 of c.ply");
}

}  // namespace
}  // namespace stipple::learn
