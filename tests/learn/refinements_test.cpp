// Upsampling by flow matching and by descent: the terms of their losses, and small networks that learn.

#include <gtest/gtest.h>

#include <cmath>
#include <torch/torch.h>

#include "stipple/learn/train.h"
#include "stipple/learn/upsampling/distance_upsampling.h"
#include "stipple/learn/upsampling/matching_upsampling.h"
#include "stipple/learn/upsampling/upsampling.h"
#include "stipple/models/registry.h"
#include "tests/learn/solid_patches.h"
#include "tests/support/margin.h"
#include "tests/support/temporary_folder.h"

namespace stipple::learn {
namespace {

using test::row_of_tensor;
using test::SolidPatches;

constexpr int64_t kSolidRows = SolidPatches::kPatches * SolidPatches::kQueries;

TEST(LearnMatching, TimesAreMixedAndEarly) {
    constexpr int64_t kCount = 1000;
    const torch::Tensor times = matching_times(kCount);
    ASSERT_EQ(times.sizes(), (torch::IntArrayRef{kCount, 1}));
    EXPECT_GE(times.min().item<double>(), 0);
    EXPECT_LT(times.max().item<double>(), 1);
    // As many below t as the law says, in every part of the sequence.
    for (const int64_t begin : {0, 137, 900})
        for (const double t : {0.1, 0.5, 0.9}) {
            const double share = (times.narrow(0, begin, 100) < t).to(torch::kFloat64).mean().item<double>();
            EXPECT_NEAR(share, std::acos(1 - t) * 2 / M_PI, 0.03) << begin << " " << t;
        }
    EXPECT_TRUE(torch::equal(matching_times(10), times.narrow(0, 0, 10)));
}

TEST(LearnMatching, TermsAreThoseOfASlowComputation) {
    const SolidPatches patches;
    const SurfaceIndex index(patches.set, torch::kCPU);
    const torch::Tensor rows = patches.queries.reshape({SolidPatches::kPatches, SolidPatches::kQueries, 3});
    torch::manual_seed(4);
    MatchedBatch batch = {patches.frames,
                          patches.queries,
                          index.closest(rows, patches.frames).reshape({-1, 3}),
                          matching_times(kSolidRows),
                          {},
                          {},
                          patches.truth};
    batch.velocity = (batch.ends - batch.starts + 0.2 * torch::randn_like(batch.ends)).set_requires_grad(true);
    batch.uncertainty = torch::rand({kSolidRows, 1}).set_requires_grad(true);
    const MatchingTerms terms = matching_terms(index, batch);

    double velocity = 0, uncertainty = 0, before = 0, after = 0, to_truth = 0, to_arrived = 0;
    std::vector<Vec3d> arrived;
    for (int64_t i = 0; i < kSolidRows; ++i) {
        const Vec3d start = row_of_tensor(patches.queries, i), v = row_of_tensor(batch.velocity.detach(), i);
        const Vec3d end = patches.slow_closest(i / SolidPatches::kQueries, start);
        const double t = batch.times.data_ptr<float>()[i];
        const Vec3d there = (1 - t) * start + t * end + (1 - t) * v;
        arrived.push_back(there);
        const double wrong = length(v - (end - start));
        velocity += (std::sqrt(wrong * wrong + 0.02 * 0.02) - 0.02) / kSolidRows;
        const double error = length(there - patches.slow_closest(i / SolidPatches::kQueries, there));
        const double b = batch.uncertainty.data_ptr<float>()[i] + 1e-3;
        uncertainty += (error / b + std::log(b)) / kSolidRows;
        before += length(end - start) / kSolidRows;
        after += error / kSolidRows;
    }
    constexpr int64_t kTruthRows = SolidPatches::kPatches * SolidPatches::kTruth;
    std::vector<double> of_truth(kTruthRows, INFINITY), of_arrived(kSolidRows, INFINITY);
    for (int64_t i = 0; i < kTruthRows; ++i)
        for (int64_t q = 0; q < kSolidRows; ++q) {
            if (i / SolidPatches::kTruth != q / SolidPatches::kQueries) continue;
            const double d = length(row_of_tensor(patches.truth, i) - arrived[static_cast<size_t>(q)]);
            of_truth[static_cast<size_t>(i)] = std::min(of_truth[static_cast<size_t>(i)], d);
            of_arrived[static_cast<size_t>(q)] = std::min(of_arrived[static_cast<size_t>(q)], d);
        }
    for (const double d : of_truth) to_arrived += d / kTruthRows;
    for (const double d : of_arrived) to_truth += d / kSolidRows;
    EXPECT_NEAR(terms.velocity.item<double>(), velocity, 1e-5);
    EXPECT_NEAR(terms.uncertainty.item<double>(), uncertainty, 1e-4);
    EXPECT_NEAR(terms.chamfer.item<double>(), (to_truth + to_arrived) / 2, 1e-5);
    EXPECT_NEAR(terms.before.item<double>(), before, 1e-5);
    EXPECT_NEAR(terms.after.item<double>(), after, 1e-5);
    terms.uncertainty.backward();
    EXPECT_FALSE(batch.velocity.grad().defined());  // errors are constants of the uncertainty
}

TEST(LearnDistances, ErrorIsThatOfASlowComputation) {
    const SolidPatches patches;
    const SurfaceIndex index(patches.set, torch::kCPU);
    torch::manual_seed(4);
    const torch::Tensor distance = torch::rand({kSolidRows, 1}).set_requires_grad(true);
    const DistanceTerms terms = distance_terms(index, patches.frames, patches.queries, distance);
    double error = 0, before = 0;
    std::vector<double> signs;
    for (int64_t i = 0; i < kSolidRows; ++i) {
        const Vec3d query = row_of_tensor(patches.queries, i);
        const double exact = length(query - patches.slow_closest(i / SolidPatches::kQueries, query));
        const double off = distance.data_ptr<float>()[i] - exact;
        error += std::abs(off) / kSolidRows;
        before += exact / kSolidRows;
        signs.push_back(off > 0 ? 1 : -1);
    }
    EXPECT_NEAR(terms.error.item<double>(), error, 1e-5);
    EXPECT_NEAR(terms.before.item<double>(), before, 1e-5);
    terms.error.backward();
    for (int64_t i = 0; i < kSolidRows; ++i)
        EXPECT_NEAR(distance.grad()[i][0].item<double>(), signs[static_cast<size_t>(i)] / kSolidRows, 1e-7);
}

/// A run of 150 steps. Queries lie farther from the surface than they do in use: what there is to see shows sooner.
Recipe small_refinement(const std::string& refinement) {
    Recipe recipe = test::small_upsampler();
    recipe.options["refinement"] = refinement;
    recipe.options["flow_neighbours"] = "4";
    recipe.patch.query_noise_share = 1;
    recipe.patch.query_noise = 0.6;
    recipe.patch.noise_share = recipe.patch.input_share = 0;
    recipe.schedule.rate = 0.01;
    recipe.data.validation_items = 12;
    recipe.run.epochs = recipe.run.evaluate_every = 3;
    return recipe;
}

struct RefinementRun {
    double gain_at_first = 0;
    std::map<std::string, double> scores;
    models::Model model;  // that it ended in
};

RefinementRun run_refinement(const Recipe& recipe) {
    const test::TemporaryFolder folder(test::Where::memory);
    const SurfaceSet set = test::round_bodies(recipe);
    const std::unique_ptr<Objective> objective = make_upsampling_objective(recipe, set);
    objective->prepare(recipe.run.batch, 1, 1, torch::kCPU);
    Module untrained(objective->network(), network::initial_weights(objective->network(), recipe.run.seed));
    RefinementRun result;
    result.gain_at_first = objective->evaluate(untrained).front().second;
    RunFolder run = RunFolder::create(folder / "run", to_toml(recipe));
    TrainOptions options;
    options.progress = ProgressMode::never;
    const TrainReport report = train(recipe, *make_upsampling_objective(recipe, set), run, options);
    EXPECT_EQ(report.skipped, 0);
    result.scores = {report.scores.begin(), report.scores.end()};
    result.model = models::load_model(report.weights);
    return result;
}

TEST(LearnMatching, LearnsToFindSurfacesItHasNotSeen) {
    const RefinementRun run = run_refinement(small_refinement("matching"));
    EXPECT_ABOVE(run.scores.at("validation_gain"), run.gain_at_first + 0.03);
    EXPECT_ABOVE(run.scores.at("validation_gain"), 0.03);
    EXPECT_BELOW(run.scores.at("velocity"), 0.88 * run.scores.at("distance_before"));  // a velocity of 0: 0.95
    EXPECT_BELOW(run.scores.at("distance_after"), 0.45 * run.scores.at("distance_before"));
    EXPECT_EQ(run.model.network.config.at("refinement"), "matching");
    EXPECT_EQ(run.model.weights.metadata.at("stipple.unit"), "spacing");
}

TEST(LearnMatching, HasASecondStage) {
    Recipe recipe = small_refinement("matching");
    recipe.loss.chamfer_weight = 1;
    recipe.data.items = 8;
    recipe.run.epochs = 1;
    const RefinementRun run = run_refinement(recipe);
    EXPECT_ABOVE(run.scores.at("loss"), run.scores.at("velocity") + 0.1 * run.scores.at("uncertainty"));
}

TEST(LearnDistances, LearnsToFindSurfacesItHasNotSeen) {
    Recipe recipe = small_refinement("descent");
    recipe.run.epochs = recipe.run.evaluate_every = 30;
    const RefinementRun run = run_refinement(recipe);
    EXPECT_ABOVE(run.scores.at("validation_gain"), run.gain_at_first + 0.05);
    EXPECT_ABOVE(run.scores.at("validation_gain"), 0.03);
    EXPECT_BELOW(run.scores.at("distance_error"), 0.6 * run.scores.at("distance_before"));
    EXPECT_EQ(run.model.network.config.at("refinement"), "descent");
}

}  // namespace
}  // namespace stipple::learn
