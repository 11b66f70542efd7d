// Gumbel subset sampling while training: its terms against loops in float64, and small trainings on the CPU.

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <torch/torch.h>

#include "stipple/core/rng.h"
#include "stipple/learn/sampling/gumbel_terms.h"
#include "stipple/learn/sampling/sampling.h"
#include "stipple/learn/sampling/shape_tasks.h"
#include "stipple/tasks/network_sample.h"
#include "tests/learn/learn.h"
#include "tests/learn/small_shapes.h"
#include "tests/support/expect_error.h"
#include "tests/support/margin.h"

namespace stipple::learn {
namespace {

using test::kShapePoints;
using test::shape_recipe;
using test::small_classifier;
using test::small_shapes;
using test::train_small;
using test::Trained;
using test::trial;

TEST(LearnGumbel, NoiseIsThatOfItsPlaceAndHasTheDistribution) {
    const torch::Tensor numbers = torch::arange(40, torch::kInt64);
    const torch::Tensor g = gumbel_noise_of(numbers, 50, 20, 7 + trial());
    EXPECT_EQ(g.sizes().vec(), (std::vector<int64_t>{40, 50, 20}));
    EXPECT_TRUE(torch::isfinite(g).all().item<bool>());
    EXPECT_BELOW(std::abs(g.mean().item<double>() - 0.5772),
                 0.02);  // Euler's constant; 40,000 numbers of deviation 1.28
    EXPECT_BELOW(std::abs(g.std().item<double>() - std::numbers::pi / std::sqrt(6)), 0.03);
    EXPECT_TRUE(torch::equal(gumbel_noise_of(numbers.slice(0, 7, 9), 50, 20, 7 + trial()), g.slice(0, 7, 9)));
    EXPECT_FALSE(torch::equal(gumbel_noise_of(numbers, 50, 20, 8 + trial()), g));
    // The winner is point i with probability softmax(scores)_i.
    const torch::Tensor scores = torch::tensor({0.f, 1.f, 2.f}), many = torch::arange(20000, torch::kInt64);
    const torch::Tensor winners = (gumbel_noise_of(many, 3, 1, 1 + trial()).squeeze(2) + scores).argmax(1);
    const torch::Tensor share = torch::bincount(winners, {}, 3).to(torch::kFloat32) / 20000;
    EXPECT_BELOW((share - scores.softmax(0)).abs().max().item<double>(), 0.015);  // four deviations
}

TEST(LearnGumbel, TheTemperatureFallsOverTheRun) {
    SamplingOptions options;
    options.temperature = 2;
    options.last_temperature = 0.5;
    const auto at = [&](int64_t step) {
        return temperature_at(torch::tensor({step}, torch::kInt64), 100, options).item<double>();
    };
    EXPECT_NEAR(at(0), 2, 1e-6);
    EXPECT_NEAR(at(50), 1, 1e-6);
    EXPECT_NEAR(at(100), 0.5, 1e-6);
    EXPECT_NEAR(at(1000), 0.5, 1e-6);
    EXPECT_ERROR(parse_recipe("[sampling]\nlast_temperature = 0\n"), bad_config, "last_temperature must be");
    EXPECT_ERROR(parse_recipe("[sampling]\ntask = \"dancing\"\n"), bad_config, "sampling.task must be one of");
}

struct SoftChoice {
    int64_t clouds = 2, n = 7, count = 3;
    torch::Tensor points, scores, noise, temperature = torch::full({1}, 0.6f);

    SoftChoice() {
        torch::manual_seed(5);
        points = torch::randn({clouds * n, 3});
        scores = torch::randn({clouds * n, count});
        noise = gumbel_noise_of(torch::arange(clouds, torch::kInt64), n, count, 3);
    }
    Clouds of() const { return {points, ops::Batch::dense(clouds, n)}; }
    /// By its definition, in float64.
    std::vector<double> oracle(const torch::Tensor& of_scores) const {
        std::vector<double> found(static_cast<size_t>(3 * clouds * count), 0);
        for (int64_t b = 0; b < clouds; ++b)
            for (int64_t c = 0; c < count; ++c) {
                double sum = 0;
                std::vector<double> weights;
                for (int64_t i = 0; i < n; ++i) {
                    const double logit = of_scores[b * n + i][c].item<double>() + noise[b][i][c].item<double>();
                    weights.push_back(std::exp(logit / temperature.item<double>()));
                    sum += weights.back();
                }
                for (int64_t i = 0; i < n; ++i)
                    for (int64_t axis = 0; axis < 3; ++axis)
                        found[static_cast<size_t>(3 * (b * count + c) + axis)] +=
                            weights[static_cast<size_t>(i)] / sum * points[b * n + i][axis].item<double>();
            }
        return found;
    }
};

TEST(LearnGumbel, PointsAreMeansByTheSoftmax) {
    const SoftChoice set;
    torch::Tensor scores = set.scores.clone().requires_grad_();
    const torch::Tensor found = gumbel_points(set.of(), scores, set.noise, set.temperature, false);
    ASSERT_EQ(found.sizes().vec(), (std::vector<int64_t>{set.clouds * set.count, 3}));
    const std::vector<double> truth = set.oracle(set.scores);
    for (int64_t i = 0; i < found.numel(); ++i)
        EXPECT_NEAR(found.reshape({-1})[i].item<double>(), truth[static_cast<size_t>(i)], 1e-5);
    // Gradients by differences of the oracle, of a sum in which every number has a weight of its own.
    const torch::Tensor weights = torch::randn(found.sizes());
    (found * weights).sum().backward();
    const auto value = [&](const torch::Tensor& at) {
        const std::vector<double> points = set.oracle(at);
        double sum = 0;
        for (size_t i = 0; i < points.size(); ++i)
            sum += points[i] * weights.reshape({-1})[static_cast<int64_t>(i)].item<double>();
        return sum;
    };
    for (int64_t row = 0; row < scores.size(0); row += 3)
        for (int64_t c = 0; c < set.count; ++c) {
            constexpr double kStep = 1e-3;
            torch::Tensor more = set.scores.to(torch::kFloat64), less = more.clone();
            more[row][c] += kStep;
            less[row][c] -= kStep;
            EXPECT_NEAR(scores.grad()[row][c].item<double>(), (value(more) - value(less)) / (2 * kStep), 1e-4);
        }
}

TEST(LearnGumbel, StraightThroughIsTheWinnerWithTheGradientOfTheMean) {
    const SoftChoice set;
    torch::Tensor soft_scores = set.scores.clone().requires_grad_(), scores = set.scores.clone().requires_grad_();
    const torch::Tensor soft = gumbel_points(set.of(), soft_scores, set.noise, set.temperature, false);
    const torch::Tensor hard = gumbel_points(set.of(), scores, set.noise, set.temperature, true);
    const torch::Tensor logits = set.scores.reshape({set.clouds, set.n, set.count}) + set.noise;
    for (int64_t b = 0; b < set.clouds; ++b)
        for (int64_t c = 0; c < set.count; ++c) {
            const int64_t winner = logits[b].select(1, c).argmax().item<int64_t>();
            EXPECT_LT((hard[b * set.count + c] - set.points[b * set.n + winner]).abs().max().item<double>(), 1e-6);
        }
    soft.square().sum().backward();
    (hard * (2 * soft.detach())).sum().backward();
    EXPECT_LT((scores.grad() - soft_scores.grad()).abs().max().item<double>(), 1e-5);

    // Without noise, and as cold as can be, the mean is the point with the best score.
    const torch::Tensor none = torch::zeros_like(set.noise), cold = torch::full({1}, 1e-3f);
    const torch::Tensor best = best_points(set.of(), set.scores);
    EXPECT_LT((gumbel_points(set.of(), 100 * set.scores, none, cold, false) - best).abs().max().item<double>(), 1e-5);
}

Recipe gumbel_recipe(const std::string& network, int64_t count) {
    Recipe recipe = shape_recipe(TrainingTask::sampling, "gumbel-subset",
                                 {{"count", std::to_string(count)}, {"points", std::to_string(kShapePoints)}});
    recipe.sampling.task = "classification";
    recipe.sampling.network = network;
    recipe.sampling.alpha = 0;
    recipe.schedule.rate = 0.01;
    return recipe;
}

TEST(LearnGumbel, ASubsetIsBetterThanRandomForAFrozenClassifier) {
    const test::TemporaryFolder folder(test::Where::memory);
    const LabelData data = small_shapes(72, 192);
    const std::string classifier = small_classifier(folder, data);
    for (const bool straight_through : {false, true}) {
        Recipe recipe = gumbel_recipe(classifier, 6);
        recipe.options["progressive"] = "true";
        recipe.sampling.smallest = 3;
        recipe.sampling.straight_through = straight_through;
        recipe.schedule.rate = 0.03;
        recipe.run.epochs = 40;
        const std::string run = folder / (straight_through ? "hard" : "soft");
        const std::unique_ptr<Objective> objective = make_shape_objective(recipe, data);
        const Trained trained = train_small(recipe, *objective, run);
        EXPECT_BELOW(test::loss_share_of_idle(recipe, data, run), 0.95);
        EXPECT_BELOW(test::loss_of_sampler(recipe, data, trained.weights, 6), test::loss_of_random(recipe, data, 6));
        EXPECT_EQ(trained.scores.count("validation_accuracy_3"), 1u);
        EXPECT_EQ(trained.scores.count("validation_soft_accuracy"), 1u);
        const std::vector<double> temperatures = test::logged(run, "epoch", "temperature");
        ASSERT_EQ(temperatures.size(), 40u);
        EXPECT_LT(temperatures.front(), 1);
        EXPECT_GT(temperatures.front(), 0.85);
        EXPECT_LT(temperatures.back(), 0.12);
        EXPECT_GT(temperatures.back(), 0.1);

        tasks::NetworkSampler sampler = tasks::load_sampler(tasks::SampleMethod::gumbel, trained.weights, 0, {});
        EXPECT_EQ(sampler.count(), 6);
        PointCloud cloud(kShapePoints);
        std::copy_n(data.set.clouds.points.data(), 3 * kShapePoints, cloud.positions.data());
        EXPECT_EQ(tasks::sample_by_network(sampler, cloud, 4, 0).cloud.size(), 4);
    }
}

TEST(LearnGumbel, ARunThatIsResumedEndsInTheSameWeights) {
    const test::TemporaryFolder folder(test::Where::memory);
    const LabelData data = small_shapes(24, 8);
    const std::string network =
        test::random_weights_file(folder / "three.safetensors", "pointnet-classifier",
                                  {{"classes", "3"}, {"input_transform", "false"}, {"feature_transform", "false"}});
    Recipe recipe = gumbel_recipe(network, 5);
    recipe.sampling.alpha = 0.5;  // and the simplification
    recipe.run.epochs = 3;
    const auto run = [&](const std::string& path, const TrainOptions& options) {
        const std::unique_ptr<Objective> objective = make_shape_objective(recipe, data);
        return test::read_file(train_small(recipe, *objective, path, options).weights);
    };
    const std::string whole = run(folder / "whole", {});
    TrainOptions first, second;
    first.max_steps = 5;
    second.is_resumed = true;
    run(folder / "run", first);
    const std::string resumed = run(folder / "run", second);
    EXPECT_FALSE(whole.empty());
    EXPECT_TRUE(resumed == whole);
    recipe.run.seed += 1;  // other noise, other weights
    EXPECT_FALSE(run(folder / "other", {}) == whole);
}

TEST(LearnGumbel, ForPairsAndReconstructions) {
    const test::TemporaryFolder folder(test::Where::memory);
    const LabelData data = small_shapes(12, 4);
    const auto step = [&](const std::string& task, const std::string& network, const char* score) {
        Recipe recipe = gumbel_recipe(network, 12);
        recipe.sampling.task = task;
        recipe.run.epochs = 1;
        const std::unique_ptr<Objective> objective = make_shape_objective(recipe, data);
        const Trained trained = train_small(recipe, *objective, folder / task);
        EXPECT_TRUE(std::isfinite(trained.scores.at(score)));
        EXPECT_NEAR(trained.scores.at("validation_score"), -trained.scores.at(score), 1e-9);
    };
    step("registration",
         test::random_weights_file(folder / "pcrnet.safetensors", "pcrnet", {{"features", "32"}, {"hidden", "32"}}),
         "validation_rotation_error");
    step("reconstruction",
         test::random_weights_file(folder / "ae.safetensors", "autoencoder", {{"count", "32"}, {"hidden", "32"}}),
         "validation_nre");

    Recipe recipe = gumbel_recipe(folder / "ae.safetensors", 12);
    recipe.sampling.task = "";
    EXPECT_ERROR(make_shape_objective(recipe, data), bad_config, "gumbel-subset needs sampling.task");
    recipe.sampling.task = "classification";
    EXPECT_ERROR(make_shape_objective(recipe, data), bad_config, "autoencoder classifies no clouds");
    recipe.sampling.task = "reconstruction";
    recipe.options["count"] = "65";
    EXPECT_ERROR(make_shape_objective(recipe, data), bad_config, "clouds of 64 points cannot give 65");
}

}  // namespace
}  // namespace stipple::learn
