#include "tests/learn/small_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <torch/torch.h>

#include "stipple/core/rng.h"
#include "stipple/learn/labels/labels.h"
#include "stipple/learn/sampling/sampling.h"
#include "stipple/learn/sampling/shape_tasks.h"
#include "stipple/models/registry.h"
#include "stipple/tasks/network_sample.h"
#include "tests/learn/learn.h"
#include "tests/support/margin.h"

namespace stipple::test {

using learn::LabelData;
using learn::Objective;
using learn::OptimizerKind;
using learn::Recipe;

LabelData small_shapes(int64_t trained_on, int64_t held_out) {
    LabelData data;
    data.set.classes = {"ellipsoid", "box", "slabs"};
    for (int64_t c = 0; c < 3; ++c)
        data.set.categories.push_back({data.set.classes[static_cast<size_t>(c)], 2 * c, 2 * c + 2});
    for (int64_t item = 0; item < trained_on + held_out; ++item) {
        const Rng rng(3 + trial(), static_cast<uint64_t>(item));
        const int64_t label = item % 3;
        const float half[3] = {0.5f + 0.3f * rng.uniform(0), 0.5f + 0.3f * rng.uniform(1),
                               0.3f + 0.3f * rng.uniform(2)};
        for (int64_t i = 0; i < kShapePoints; ++i) {
            const auto at = static_cast<uint64_t>(16 + 8 * i);
            float p[3];
            for (int axis = 0; axis < 3; ++axis) p[axis] = 2 * rng.uniform(at + static_cast<uint64_t>(axis)) - 1;
            if (label == 0) {
                const float length = std::sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]) + 1e-6f;
                for (float& x : p) x /= length;
            } else if (label == 1) {
                p[rng.below(at + 3, 3)] = rng.uniform(at + 4) < 0.5f ? -1.0f : 1.0f;
            } else {
                p[2] = p[2] < 0 ? -1.0f : 1.0f;
            }
            for (int axis = 0; axis < 3; ++axis) data.set.clouds.points.push_back(half[axis] * p[axis]);
            data.set.parts.push_back(static_cast<int32_t>(2 * label + (p[2] < 0 ? 0 : 1)));
        }
        data.set.clouds.offsets.push_back(kShapePoints * (item + 1));
        data.set.labels.push_back(static_cast<int32_t>(label));
        (item < trained_on ? data.train : data.held_out).push_back(item);
    }
    return data;
}

Recipe shape_recipe(learn::TrainingTask task, const std::string& model, std::map<std::string, std::string> options) {
    Recipe recipe;
    recipe.name = "small-" + model;
    recipe.task = task;
    recipe.model = model;
    recipe.options = std::move(options);
    recipe.data.folder = "memory";
    recipe.data.points = kShapePoints;
    recipe.data.subset = learn::PointSubset::first;
    recipe.optimizer.kind = OptimizerKind::adam;
    recipe.schedule.rate = 2e-3;
    recipe.run.epochs = 10;
    recipe.run.batch = 8;
    recipe.run.evaluate_every = 100;
    recipe.run.storage = network::WeightStorage::f32;
    recipe.run.loader_threads = 1;
    recipe.run.confidence = false;
    recipe.run.seed = trial();
    return recipe;
}

Trained train_small(const Recipe& recipe, Objective& objective, const std::string& folder,
                    learn::TrainOptions options) {
    RunFolder run = options.is_resumed ? RunFolder::resume(folder) : RunFolder::create(folder, to_toml(recipe));
    options.progress = ProgressMode::never;
    const learn::TrainReport report = train(recipe, objective, run, options);
    EXPECT_EQ(report.skipped, 0);
    return {{report.scores.begin(), report.scores.end()}, report.weights};
}

std::string random_weights_file(const std::string& path, const std::string& model,
                                const std::map<std::string, std::string>& options) {
    network::Weights weights = network::initial_weights(models::build_model(model, options), 5);
    network::save_weights(path, weights, network::WeightStorage::f32, Overwrite::refuse);
    return path;
}

std::string small_classifier(const TemporaryFolder& folder, const LabelData& data) {
    Recipe recipe = shape_recipe(learn::TrainingTask::classification, "pointnet-classifier",
                                 {{"input_transform", "false"}, {"feature_transform", "false"}});
    recipe.run.epochs = 8;
    const std::unique_ptr<Objective> objective = learn::make_label_objective(recipe, data);
    const Trained trained = train_small(recipe, *objective, folder / "classifier");
    EXPECT_ABOVE(trained.scores.at("validation_accuracy"), 0.8);
    return trained.weights;
}

learn::ShapeBatch held_out_batch(const LabelData& data) {
    const auto clouds = static_cast<int64_t>(data.held_out.size());
    learn::ShapeBatch batch = {torch::zeros({clouds * kShapePoints, 3}), torch::zeros({clouds}, torch::kInt64),
                               torch::arange(clouds, torch::kInt64), clouds, kShapePoints};
    batch.parts = torch::zeros({clouds * kShapePoints}, torch::kInt64);
    for (int64_t i = 0; i < clouds; ++i) {
        const int64_t item = data.held_out[static_cast<size_t>(i)], first = i * kShapePoints;
        std::copy_n(data.set.points_of(item).data(), 3 * kShapePoints, batch.points.data_ptr<float>() + 3 * first);
        std::copy_n(data.set.parts.begin() + data.set.clouds.offsets[static_cast<size_t>(item)], kShapePoints,
                    batch.parts.data_ptr<int64_t>() + first);
        batch.labels[i] = data.set.labels[static_cast<size_t>(item)];
    }
    return batch;
}

double loss_share_of_idle(const Recipe& recipe, const LabelData& data, const std::string& folder) {
    Recipe idle = recipe;
    idle.schedule.rate = 1e-12;  // 0 is refused
    const std::string idle_folder = folder + "-idle";
    train_small(idle, *learn::make_shape_objective(idle, data), idle_folder);
    const auto mean_loss = [](const std::string& run) {
        const std::vector<double> losses = logged(run, "epoch", "loss");
        return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
    };
    return mean_loss(folder) / mean_loss(idle_folder);
}

namespace {

double held_out_loss(const Recipe& recipe, const LabelData& data, int64_t size, const torch::Tensor& sampled) {
    const std::unique_ptr<learn::ShapeTask> task =
        learn::make_shape_task(recipe, data, *learn::sampling_task(recipe.sampling), size);
    task->prepare(torch::kCPU);
    const torch::NoGradGuard no_gradients;
    return task->loss(held_out_batch(data), sampled, size).item<double>();
}

}  // namespace

double loss_of_random(const Recipe& recipe, const LabelData& data, int64_t size) {
    const learn::ShapeBatch batch = held_out_batch(data);
    double sum = 0;
    constexpr int kDraws = 10;
    torch::manual_seed(1 + trial());
    for (int draw = 0; draw < kDraws; ++draw) {
        const torch::Tensor order = std::get<1>(torch::rand({batch.count, kShapePoints}).sort(1)).slice(1, 0, size);
        const torch::Tensor rows = (order + torch::arange(batch.count).unsqueeze(1) * kShapePoints).reshape({-1});
        sum += held_out_loss(recipe, data, size, batch.points.index_select(0, rows));
    }
    return sum / kDraws;
}

double loss_of_sampler(const Recipe& recipe, const LabelData& data, const std::string& weights, int64_t size) {
    tasks::NetworkSampler sampler(tasks::load_model_or_engine(weights), {});
    torch::Tensor sampled = torch::empty({static_cast<int64_t>(data.held_out.size()) * size, 3});
    float* next = sampled.data_ptr<float>();
    for (const int64_t item : data.held_out) {
        PointCloud cloud(kShapePoints);
        std::copy_n(data.set.points_of(item).data(), 3 * kShapePoints, cloud.positions.data());
        next = std::copy_n(tasks::sample_by_network(sampler, cloud, size, 0).cloud.positions.data(), 3 * size, next);
    }
    return held_out_loss(recipe, data, size, sampled);
}

}  // namespace stipple::test
