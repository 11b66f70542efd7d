// Samplers and the networks of their tasks: losses by their definitions, and small trainings on the CPU.

#include "stipple/learn/sampling/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <torch/torch.h>

#include "stipple/learn/finish.h"
#include "stipple/learn/sampling/fold_norms.h"
#include "stipple/learn/sampling/pose_terms.h"
#include "stipple/learn/sampling/sampler_terms.h"
#include "stipple/learn/sampling/thin_clouds.h"
#include "stipple/learn/train.h"
#include "stipple/models/registry.h"
#include "stipple/models/samplenet.h"
#include "stipple/tasks/network_sample.h"
#include "stipple/tasks/reconstruct.h"
#include "tests/learn/learn.h"
#include "tests/learn/small_shapes.h"
#include "tests/learn/thread_group.h"
#include "tests/support/expect_error.h"
#include "tests/support/margin.h"
#include "tests/support/temporary_folder.h"

namespace stipple::learn {
namespace {

using test::kShapePoints;
using test::random_weights_file;
using test::shape_recipe;
using test::small_classifier;
using test::small_shapes;
using test::train_small;
using test::Trained;

TEST(LearnSampling, TermsAreThoseOfTheirDefinitions) {
    const int64_t clouds = 2, n = 9, count = 5;
    torch::manual_seed(3);
    const torch::Tensor p = torch::randn({clouds * n, 3}), q = torch::randn({clouds * count, 3}).requires_grad_();
    const Clouds points = {p, ops::Batch::dense(clouds, n)};
    const NearestPoints near = knn(points, {q, ops::Batch::dense(clouds, count)}, 3);
    const torch::Tensor d = (q.reshape({clouds, count, 1, 3}) - p.reshape({clouds, 1, n, 3})).square().sum(3).detach();
    const std::vector<int64_t> sizes = {2, count};
    const Clouds queries = {q, ops::Batch::dense(clouds, count)};
    const torch::Tensor nearest = near.indices.select(1, 0).contiguous();
    const torch::Tensor terms = simplification(points, queries, nearest, sizes);
    SamplingOptions options;
    options.beta = 2;
    options.gamma = 0.5;
    options.delta = 0.1;
    double wanted = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        const torch::Tensor few = d.slice(1, 0, sizes[i]);
        const double a = few.amin(2).mean().item<double>(), m = few.amin(2).amax(1).mean().item<double>(),
                     b = few.amin(1).mean().item<double>();
        EXPECT_NEAR(terms.mean(0)[at][0].item<double>(), a, 1e-6);
        EXPECT_NEAR(terms.mean(0)[at][1].item<double>(), m, 1e-6);
        EXPECT_NEAR(terms.mean(0)[at][2].item<double>(), b, 1e-6);
        wanted += a + 2 * m + (0.5 + 0.1 * static_cast<double>(sizes[i])) * b;
    }
    EXPECT_NEAR(simplification_loss(terms, simplification_weights(options, sizes, torch::kCPU)).item<double>(), wanted,
                1e-5);
    options.mean = true;
    EXPECT_NEAR(simplification_loss(terms, simplification_weights(options, sizes, torch::kCPU)).item<double>(),
                wanted / 2, 1e-5);
    const std::vector<int64_t> two = {2};
    simplification_loss(simplification(points, queries, nearest, two), simplification_weights({}, two, torch::kCPU))
        .backward();
    EXPECT_GT(q.grad().reshape({clouds, count, 3}).slice(1, 0, 2).abs().sum().item<double>(), 0);
    EXPECT_EQ(q.grad().reshape({clouds, count, 3}).slice(1, 2, count).abs().sum().item<double>(), 0);

    const torch::Tensor t = torch::full({1}, 0.5).requires_grad_();
    EXPECT_NEAR(sigma_of(t, 0.01).item<double>(), 0.25, 1e-7);
    sigma_of(t, 0.01).backward();
    EXPECT_NEAR(t.grad().item<double>(), 1, 1e-6);
    const torch::Tensor low = torch::full({1}, 0.05).requires_grad_();
    EXPECT_NEAR(sigma_of(low, 0.01).item<double>(), 0.01, 1e-9);
    sigma_of(low, 0.01).backward();
    EXPECT_EQ(low.grad().item<double>(), 0);
}

TEST(LearnSampling, SizesOfProgressiveOnes) {
    EXPECT_EQ(sampled_sizes(8, 64, true), (std::vector<int64_t>{8, 16, 32, 64}));
    EXPECT_EQ(sampled_sizes(8, 50, true), (std::vector<int64_t>{8, 16, 32, 50}));
    EXPECT_EQ(sampled_sizes(8, 4, true), (std::vector<int64_t>{4}));
    EXPECT_EQ(sampled_sizes(8, 64, false), (std::vector<int64_t>{64}));
}

TEST(LearnSampling, PosesAreRotationsWithinTheirAngles) {
    const torch::Tensor numbers = torch::arange(2000, torch::kInt64);
    const torch::Tensor u = uniform_of(numbers, 6, 4);
    EXPECT_GE(u.min().item<double>(), 0);
    EXPECT_LT(u.max().item<double>(), 1);
    for (int64_t c = 0; c < 6; ++c) {
        EXPECT_NEAR(u.select(1, c).mean().item<double>(), 0.5, 0.03);
        EXPECT_NEAR(u.select(1, c).std().item<double>(), 0.2887, 0.02);
    }
    EXPECT_TRUE(torch::equal(uniform_of(numbers.slice(0, 7, 9), 6, 4), u.slice(0, 7, 9)));
    EXPECT_FALSE(torch::equal(uniform_of(numbers, 6, 5), u));

    const PoseTensors poses = draw_poses(numbers, {.angle = 45, .shift = 0.2}, 4);
    const torch::Tensor identity = torch::eye(3).expand({2000, 3, 3});
    EXPECT_LT((torch::bmm(poses.rotation, poses.rotation.transpose(1, 2)) - identity).abs().max().item<double>(), 1e-5);
    EXPECT_LE(poses.translation.abs().max().item<double>(), 0.2 + 1e-6);
    const torch::Tensor angles = rotation_angles(poses.rotation, identity);
    EXPECT_LT(angles.max().item<double>(), 90);
    EXPECT_GT(angles.mean().item<double>(), 25);
    // About one axis the angle is the angle.
    const double a = 0.3;
    torch::Tensor turn = torch::eye(3).unsqueeze(0).clone();
    turn[0][0][0] = turn[0][1][1] = std::cos(a);
    turn[0][0][1] = -std::sin(a);
    turn[0][1][0] = std::sin(a);
    EXPECT_NEAR(rotation_angles(turn, torch::eye(3).unsqueeze(0)).item<double>(), a * 180 / M_PI, 1e-4);
    const torch::Tensor moved = moved_by({turn, torch::full({1, 3}, 2.f)}, torch::tensor({{1.f, 0.f, 0.f}}));
    EXPECT_NEAR(moved[0][0].item<double>(), std::cos(a) + 2, 1e-6);
    EXPECT_NEAR(moved[0][1].item<double>(), std::sin(a) + 2, 1e-6);
}

TEST(LearnSampling, ThinnedCloudsAreSubsetsOfAllSizes) {
    constexpr int64_t kClouds = 40, kEach = 100;
    const torch::Tensor rows = torch::arange(kClouds * kEach * 3, torch::kFloat32).reshape({-1, 3});
    const Clouds clouds = {rows, ops::Batch::dense(kClouds, kEach)};
    const torch::Tensor numbers = torch::arange(kClouds, torch::kInt64);
    const torch::Tensor found = thinned(clouds, numbers, {.share = 0.5, .least = 4}, 7);
    EXPECT_TRUE(found.equal(thinned(clouds, numbers, {.share = 0.5, .least = 4}, 7)));
    EXPECT_FALSE(found.equal(thinned(clouds, numbers, {.share = 0.5, .least = 4}, 8)));
    int64_t whole = 0, few = 0;
    for (int64_t cloud = 0; cloud < kClouds; ++cloud) {
        std::set<float> seen;
        for (int64_t i = 0; i < kEach; ++i) {
            const float x = found[cloud * kEach + i][0].item<float>();
            EXPECT_EQ(std::floor(x / (3 * kEach)), static_cast<float>(cloud));  // of its own cloud
            seen.insert(x);
        }
        EXPECT_GE(seen.size(), 4u);
        whole += seen.size() == static_cast<size_t>(kEach);
        few += seen.size() < 20;
    }
    EXPECT_GT(whole, kClouds / 4);
    EXPECT_GT(few, 2);
    EXPECT_LT(whole, 3 * kClouds / 4);
}

TEST(LearnSampling, FoldedNormsChangeNothing) {
    models::Model model = {models::build_model("pointnet-classifier", {{"classes", "5"}}), {}};
    model.weights = network::initial_weights(model.network, 5);
    for (auto& [name, tensor] : model.weights.tensors)  // statistics as of a network that was trained
        for (size_t i = 0; i < tensor.values.size() && name.find(".norm.") != std::string::npos; ++i)
            tensor.values[i] = 0.5f + 0.1f * static_cast<float>(i % 7);
    torch::manual_seed(2);
    const torch::Tensor points = torch::randn({3 * 20, 3});
    const ops::Batch batch = ops::Batch::dense(3, 20);
    const torch::NoGradGuard no_gradients;
    const torch::Tensor before = Module(model.network, model.weights).run(batch, {{"points", points}}).at("logits");
    const size_t tensors = model.weights.tensors.size();
    fold_norms(model);
    EXPECT_LT(model.weights.tensors.size(), tensors);
    for (const bool fuses : {false, true}) {
        RunOptions options;
        options.fuses = fuses;
        const torch::Tensor after =
            Module(model.network, model.weights).run(batch, {{"points", points}}, options).at("logits");
        EXPECT_LT((after - before).abs().max().item<double>(), 1e-4 * before.abs().max().item<double>());
    }
}

TEST(LearnSampling, ASamplerLearnsForAFrozenClassifier) {
    const test::TemporaryFolder folder(test::Where::memory);
    const LabelData data = small_shapes(72, 96);
    const std::string classifier = small_classifier(folder, data);
    const std::string before = test::read_file(classifier);
    Recipe recipe = shape_recipe(TrainingTask::sampling, "samplenet",
                                 {{"count", "8"}, {"points", std::to_string(kShapePoints)}, {"progressive", "true"}});
    recipe.sampling.network = classifier;
    recipe.sampling.alpha = 1;
    recipe.sampling.smallest = 4;
    recipe.schedule.rate = 0.01;
    recipe.run.epochs = 30;
    const std::unique_ptr<Objective> objective = make_shape_objective(recipe, data);
    EXPECT_EQ(objective->items(), 72);
    const Trained trained = train_small(recipe, *objective, folder / "run");
    EXPECT_ABOVE(trained.scores.at("validation_accuracy"), 0.5);  // of 8 sampled points; chance is a third
    const std::vector<double> losses = test::logged(folder / "run", "epoch", "task_loss");
    ASSERT_EQ(losses.size(), 30u);
    EXPECT_BELOW(losses.back(), 0.7 * losses.front());
    EXPECT_EQ(trained.scores.count("validation_soft_accuracy"), 1u);
    EXPECT_EQ(trained.scores.count("validation_accuracy_4"), 1u);
    EXPECT_BELOW(trained.scores.at("sigma"), 1);
    EXPECT_EQ(test::read_file(classifier), before);

    // What was trained samples: by the engine, any count.
    tasks::NetworkSampler sampler = tasks::load_sampler(tasks::SampleMethod::samplenet_cls, trained.weights, 0, {});
    EXPECT_EQ(sampler.count(), 8);
    EXPECT_TRUE(sampler.is_progressive());
    PointCloud cloud(kShapePoints);
    std::copy_n(data.set.clouds.points.data(), 3 * kShapePoints, cloud.positions.data());
    EXPECT_EQ(tasks::sample_by_network(sampler, cloud, 3, 0).cloud.size(), 3);
}

TEST(LearnSampling, MatchedPointsAreThoseOfTheSampler) {
    const int64_t n = 40, count = 6;
    torch::manual_seed(8);
    const torch::Tensor p = torch::rand({2 * n, 3}), q = torch::rand({2 * count, 3}) * 0.1 + 0.5;  // near each other
    const Clouds points = {p, ops::Batch::dense(2, n)};
    const torch::Tensor six = matched_points(points, q, count, 6), ten = matched_points(points, q, count, 10);
    for (int64_t cloud = 0; cloud < 2; ++cloud) {
        const torch::Tensor of = p.slice(0, cloud * n, (cloud + 1) * n),
                            sample = ten.slice(0, cloud * 10, cloud * 10 + 10);
        const torch::Tensor to = (sample.unsqueeze(1) - of.unsqueeze(0)).abs().amax(2);
        EXPECT_EQ(to.amin(1).max().item<double>(), 0);  // all of the cloud
        EXPECT_EQ(std::get<0>(at::_unique(to.argmin(1))).size(0), 10);
        EXPECT_TRUE(torch::equal(six.slice(0, cloud * 6, cloud * 6 + 6), sample.slice(0, 0, 6)));
        const torch::Tensor first = (q.slice(0, cloud * count, cloud * count + 1) - of).square().sum(1).argmin();
        EXPECT_TRUE(torch::equal(sample[0], of[first.item<int64_t>()]));
    }
}

TEST(LearnSampling, PcrNetLearnsTheRotation) {
    const test::TemporaryFolder folder(test::Where::memory);
    LabelData data = small_shapes(48, 96);
    std::vector<float>& points = data.set.clouds.points;
    for (size_t i = 0; i < points.size(); i += 3) {  // bent: what is symmetric looks alike from several sides
        points[i + 1] += points[i] * points[i];
        points[i + 2] += points[i] * points[i + 1];
    }
    Recipe recipe = shape_recipe(TrainingTask::registration, "pcrnet", {{"features", "128"}, {"hidden", "128"}});
    recipe.pose.angle = 45;
    recipe.run.epochs = 60;
    const std::unique_ptr<Objective> objective = make_shape_objective(recipe, data);
    const Trained trained = train_small(recipe, *objective, folder / "run");
    const double untrained = rotation_angles(draw_poses(torch::arange(500, torch::kInt64), recipe.pose, 1).rotation,
                                             torch::eye(3).expand({500, 3, 3}))
                                 .mean()
                                 .item<double>();
    EXPECT_BELOW(trained.scores.at("validation_rotation_error"), untrained);
    EXPECT_NEAR(trained.scores.at("validation_score"), -trained.scores.at("validation_rotation_error"), 1e-9);

    // A sampler for it: a few steps, both clouds sampled.
    Recipe of_sampler =
        shape_recipe(TrainingTask::sampling, "samplenet",
                     {{"shape", "registration"}, {"count", "12"}, {"points", std::to_string(kShapePoints)}});
    of_sampler.sampling.network = trained.weights;
    of_sampler.sampling.alpha = of_sampler.sampling.lambda = 0.01;
    of_sampler.pose = recipe.pose;
    of_sampler.run.epochs = 2;
    const std::unique_ptr<Objective> sampling = make_shape_objective(of_sampler, data);
    const Trained sampler = train_small(of_sampler, *sampling, folder / "sampler");
    EXPECT_GT(sampler.scores.at("validation_rotation_error"), 0);
    EXPECT_LT(sampler.scores.at("validation_rotation_error"), 90);
}

TEST(LearnSampling, RanksDrawWhatOneProcessWould) {
    // A PCRNet has no batch norms and its loss is a mean over pairs: only what is drawn could differ.
    const LabelData data = small_shapes(12, 4);
    const Recipe recipe = shape_recipe(TrainingTask::registration, "pcrnet", {{"features", "32"}, {"hidden", "32"}});
    const auto loss_of = [&](const std::vector<int64_t>& items, ProcessGroup* group) {
        const std::unique_ptr<Objective> objective = make_shape_objective(recipe, data);
        objective->prepare(static_cast<int64_t>(items.size()), 1, 1, torch::kCPU);
        for (size_t i = 0; i < items.size(); ++i) objective->make(0, items[i], {0, static_cast<int64_t>(i), 0});
        Module module(objective->network(), network::initial_weights(objective->network(), 3));
        RunOptions options;
        options.is_training = true;
        options.step = 5;
        options.group = group;
        return objective->step(module, {0, 0, 0, items, false}, options).loss.item<double>();
    };
    const double whole = loss_of({0, 1, 0, 1}, nullptr);
    double of_rank[2] = {};
    test::run_ranks(2, [&](ProcessGroup& group) { of_rank[group.rank()] = loss_of({0, 1}, &group); });
    EXPECT_NE(of_rank[0], of_rank[1]);  // the same shapes, in other poses
    EXPECT_NEAR((of_rank[0] + of_rank[1]) / 2, whole, 1e-6);
}

TEST(LearnSampling, AnAutoencoderLearnsAndASamplerForIt) {
    const test::TemporaryFolder folder(test::Where::memory);
    const LabelData data = small_shapes(24, 24);
    Recipe recipe =
        shape_recipe(TrainingTask::reconstruction, "autoencoder", {{"count", std::to_string(kShapePoints)}});
    recipe.run.epochs = 30;
    const std::unique_ptr<Objective> objective = make_shape_objective(recipe, data);
    const Trained trained = train_small(recipe, *objective, folder / "run");
    EXPECT_BELOW(trained.scores.at("chamfer"), 0.12);  // all points at 0 are some 0.6 away, squared and both ways

    Recipe of_sampler =
        shape_recipe(TrainingTask::sampling, "samplenet",
                     {{"shape", "reconstruction"}, {"count", "12"}, {"points", std::to_string(kShapePoints)}});
    of_sampler.sampling = {.network = trained.weights, .alpha = 0.01, .gamma = 0, .delta = 1.0 / 64, .lambda = 1e-4};
    of_sampler.run.epochs = 10;
    const std::unique_ptr<Objective> sampling = make_shape_objective(of_sampler, data);
    const Trained sampler = train_small(of_sampler, *sampling, folder / "sampler");
    EXPECT_ABOVE(sampler.scores.at("validation_nre"), 0.9);
    EXPECT_BELOW(sampler.scores.at("validation_nre"), 10);
}

TEST(LearnSampling, AnAutoencoderTellsWhatItCannotRebuild) {
    const test::TemporaryFolder folder(test::Where::memory);
    LabelData data = small_shapes(36, 12);
    std::erase_if(data.train, [&](int64_t item) { return data.set.labels[static_cast<size_t>(item)] == 2; });
    Recipe recipe =
        shape_recipe(TrainingTask::reconstruction, "autoencoder", {{"count", std::to_string(kShapePoints)}});
    recipe.run.confidence = true;
    TrainReport report;
    report.weights = random_weights_file(folder / "weights.safetensors", "autoencoder", recipe.options);
    finish_weights(recipe, &data, report, {.command = "", .commit = "", .progress = ProgressMode::never});
    EXPECT_TRUE(report.warnings.empty());
    const tasks::Reconstructor made(tasks::load_model_or_engine(report.weights), {.points = kShapePoints});
    EXPECT_EQ(made.classes(), (std::vector<std::string>{"ellipsoid", "box"}));  // those that it was trained on
    ASSERT_TRUE(made.likeness());
    EXPECT_EQ(made.likeness()->sizes.front().points, 8);
    EXPECT_EQ(made.likeness()->sizes.back().points, kShapePoints);
}

TEST(LearnSampling, NetworksThatDoNotFitAreRefused) {
    const test::TemporaryFolder folder(test::Where::memory);
    const LabelData data = small_shapes(12, 4);
    const std::string points = std::to_string(kShapePoints);
    const std::string ten =
        random_weights_file(folder / "ten.safetensors", "pointnet-classifier",
                            {{"classes", "10"}, {"input_transform", "false"}, {"feature_transform", "false"}});
    const std::string autoencoder =
        random_weights_file(folder / "ae.safetensors", "autoencoder", {{"count", "8"}, {"hidden", "8"}});
    const auto refuse = [&](const std::string& shape, const std::string& network, const char* message) {
        Recipe recipe =
            shape_recipe(TrainingTask::sampling, "samplenet", {{"shape", shape}, {"count", "8"}, {"points", points}});
        recipe.sampling.network = network;
        EXPECT_ERROR(make_shape_objective(recipe, data), bad_config, message);
    };
    refuse("classification", ten, "it tells 10 classes, the data have 3");
    refuse("classification", autoencoder, "autoencoder classifies no clouds");
    refuse("registration", autoencoder, "registration needs a pcrnet, the weights are of autoencoder");
    refuse("reconstruction", ten, "reconstruction needs an autoencoder");
    Recipe recipe = shape_recipe(TrainingTask::sampling, "samplenet", {{"count", "8"}});
    recipe.sampling.network =
        random_weights_file(folder / "three.safetensors", "pointnet-classifier",
                            {{"classes", "3"}, {"input_transform", "false"}, {"feature_transform", "false"}});
    EXPECT_ERROR(make_shape_objective(recipe, data), bad_config, "model.points is 1024, data.points 64");
    EXPECT_ERROR(make_shape_objective(shape_recipe(TrainingTask::sampling, "autoencoder", {}), data), bad_config,
                 "sampling trains samplenet and gumbel-subset");
    EXPECT_ERROR(make_shape_objective(shape_recipe(TrainingTask::registration, "autoencoder", {}), data), bad_config,
                 "registration trains pcrnet");
    EXPECT_ERROR(parse_recipe("[sampling]\nalpha = -1\n"), bad_config, "sampling.alpha must be");
    EXPECT_ERROR(parse_recipe("[pose]\nangle = 200\n"), bad_config, "pose.angle must be");
}

}  // namespace
}  // namespace stipple::learn
