// Samplers through frozen segmenters: losses and scores against loops, and small trainings on the CPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <torch/torch.h>

#include "stipple/core/rng.h"
#include "stipple/learn/labels/labels.h"
#include "stipple/learn/sampling/sampling.h"
#include "stipple/learn/sampling/shape_tasks.h"
#include "stipple/models/registry.h"
#include "tests/learn/learn.h"
#include "tests/learn/small_shapes.h"
#include "tests/support/expect_error.h"
#include "tests/support/margin.h"

namespace stipple::learn {
namespace {

using test::kShapePoints;
using test::random_weights_file;
using test::shape_recipe;
using test::small_shapes;
using test::train_small;
using test::Trained;

const std::map<std::string, std::string> kNoTransforms = {{"input_transform", "false"}, {"feature_transform", "false"}};

std::map<std::string, std::string> with_options(std::map<std::string, std::string> options,
                                                const std::map<std::string, std::string>& more) {
    for (const auto& [key, value] : more) options[key] = value;
    return options;
}

Recipe segmentation_sampler(const std::string& model, const std::string& network, int64_t count) {
    Recipe recipe = shape_recipe(TrainingTask::sampling, model,
                                 {{"count", std::to_string(count)}, {"points", std::to_string(kShapePoints)}});
    recipe.sampling.task = "segmentation";
    recipe.sampling.network = network;
    recipe.schedule.rate = 0.01;
    return recipe;
}

TEST(LearnSegmentationSampling, LossAndScoreAreThoseOfTheNearestPointsLabels) {
    const test::TemporaryFolder folder(test::Where::memory);
    const LabelData data = small_shapes(12, 4);
    const std::string network =
        random_weights_file(folder / "parts.safetensors", "pointnet-part-segmenter",
                            with_options(kNoTransforms, {{"classes", "6"}, {"categories", "3"}, {"width", "64"}}));
    const models::Model model = models::load_model(network);
    Module module(model.network, model.weights);
    const ShapeBatch batch = test::held_out_batch(data);
    const int64_t clouds = batch.count, size = 10;
    torch::manual_seed(4);
    const torch::Tensor sampled = (torch::rand({clouds * size, 3}) - 0.5).requires_grad_();
    torch::Tensor category = torch::zeros({clouds, 3});
    for (int64_t i = 0; i < clouds; ++i) category[i][batch.labels[i].item<int64_t>()] = 1;
    const torch::Tensor logits =
        module.run(ops::Batch::dense(clouds, size), {{"points", sampled.detach()}, {"category", category}})
            .at("logits");
    for (const bool own_parts : {true, false}) {
        Recipe recipe = segmentation_sampler("samplenet", network, size);
        recipe.loss.own_parts = own_parts;
        const std::unique_ptr<ShapeTask> task = make_shape_task(recipe, data, SamplingTask::segmentation, size);
        task->prepare(torch::kCPU);
        double loss = 0;
        std::vector<double> right(static_cast<size_t>(clouds), 0);
        for (int64_t row = 0; row < clouds * size; ++row) {
            const int64_t cloud = row / size, c = batch.labels[cloud].item<int64_t>();
            const torch::Tensor to =
                batch.points.slice(0, cloud * kShapePoints, (cloud + 1) * kShapePoints) - sampled.detach()[row];
            const int64_t nearest = to.square().sum(1).argmin().item<int64_t>();
            const int64_t truth = batch.parts[cloud * kShapePoints + nearest].item<int64_t>();
            double sum = 0, most = -INFINITY;
            int64_t found = -1;
            for (int64_t part = own_parts ? 2 * c : 0; part < (own_parts ? 2 * c + 2 : 6); ++part) {
                const double logit = logits[row][part].item<double>();
                sum += std::exp(logit);
                if (logit > most) most = logit, found = part;
            }
            loss += std::log(sum) - logits[row][truth].item<double>();
            right[static_cast<size_t>(cloud)] += found == truth ? 1.0 / static_cast<double>(size) : 0;
        }
        const torch::Tensor found = task->loss(batch, sampled, size);
        EXPECT_NEAR(found.item<double>(), loss / static_cast<double>(clouds * size), 1e-5);
        const torch::Tensor score = task->score(batch, sampled, size);
        ASSERT_EQ(score.size(0), clouds);
        for (int64_t i = 0; i < clouds; ++i) EXPECT_NEAR(score[i].item<double>(), right[static_cast<size_t>(i)], 1e-9);
        found.backward();
        EXPECT_GT(sampled.grad().abs().sum().item<double>(), 0);  // through the network alone
    }
    // A diverged sampler is a loss that is not finite, not a crash.
    Recipe recipe = segmentation_sampler("samplenet", network, size);
    const std::unique_ptr<ShapeTask> task = make_shape_task(recipe, data, SamplingTask::segmentation, size);
    task->prepare(torch::kCPU);
    EXPECT_TRUE(std::isnan(task->loss(batch, torch::full({clouds * size, 3}, NAN), size).item<double>()));
}

TEST(LearnSegmentationSampling, SamplersLearnForAFrozenSegmenter) {
    const test::TemporaryFolder folder(test::Where::memory);
    // In the middle, where parts meet, labels are anybody's guess: who samples well stays away from there.
    LabelData data = small_shapes(48, 144);
    const Rng coin(7 + test::trial());
    for (size_t i = 0; i < data.set.parts.size(); ++i)
        if (std::abs(data.set.clouds.points[3 * i + 2]) < 0.2f && coin.uniform(i) < 0.5f) data.set.parts[i] ^= 1;
    Recipe recipe = shape_recipe(TrainingTask::segmentation, "pointnet-part-segmenter",
                                 with_options(kNoTransforms, {{"width", "64"}}));
    recipe.run.epochs = 12;
    const std::unique_ptr<Objective> objective = make_label_objective(recipe, data);
    const Trained segmenter = train_small(recipe, *objective, folder / "segmenter");
    EXPECT_ABOVE(segmenter.scores.at("validation_accuracy"), 0.7);
    for (const std::string model : {"samplenet", "gumbel-subset"}) {
        SCOPED_TRACE(model);
        Recipe of_sampler = segmentation_sampler(model, segmenter.weights, 8);
        of_sampler.options["progressive"] = "true";
        of_sampler.sampling.smallest = 4;
        of_sampler.sampling.alpha = model == "samplenet" ? 1 : 0;
        of_sampler.run.epochs = model == "samplenet" ? 20 : 40;
        const std::unique_ptr<Objective> sampling = make_shape_objective(of_sampler, data);
        const Trained trained = train_small(of_sampler, *sampling, folder / model);
        EXPECT_BELOW(test::loss_share_of_idle(of_sampler, data, folder / model), 0.95);
        EXPECT_EQ(trained.scores.count("validation_accuracy_4"), 1u);
    }
}

TEST(LearnSegmentationSampling, LabelsStayWithTheirPointsInRandomSubsets) {
    // A segmenter of the toy's own: its first part below z = 0, its second above. Only right labels give a small loss.
    const test::TemporaryFolder folder(test::Where::memory);
    LabelData data = small_shapes(18, 18);
    const auto of_boxes = [&](std::vector<int64_t>& items) {
        std::erase_if(items, [&](int64_t item) { return data.set.labels[static_cast<size_t>(item)] != 1; });
    };
    of_boxes(data.train), of_boxes(data.held_out);
    Recipe recipe = shape_recipe(TrainingTask::segmentation, "pointnet-segmenter", kNoTransforms);
    recipe.run.epochs = 70;
    recipe.run.batch = 3;
    const std::unique_ptr<Objective> objective = make_label_objective(recipe, data);
    const Trained segmenter = train_small(recipe, *objective, folder / "segmenter");
    EXPECT_ABOVE(segmenter.scores.at("validation_accuracy"), 0.9);
    Recipe of_sampler = segmentation_sampler("gumbel-subset", segmenter.weights, 12);
    of_sampler.options["points"] = "40";
    of_sampler.data.points = 40;  // of 64
    of_sampler.data.subset = PointSubset::random;
    of_sampler.augment.shuffle = true;
    of_sampler.sampling.straight_through = true;  // the task sees points of the cloud, not means in its middle
    of_sampler.run.epochs = 2;
    of_sampler.run.batch = 3;
    const auto train_sampler = [&](const LabelData& labelled, const char* name) {
        const std::unique_ptr<Objective> sampling = make_shape_objective(of_sampler, labelled);
        return train_small(of_sampler, *sampling, folder / name);
    };
    const Trained trained = train_sampler(data, "sampler");
    EXPECT_ABOVE(trained.scores.at("validation_accuracy"), 0.8);  // labels that went astray would be right by half
    LabelData astray = data;
    for (auto cloud = astray.set.parts.begin(); cloud != astray.set.parts.end(); cloud += kShapePoints)
        std::rotate(cloud, cloud + 1, cloud + kShapePoints);
    const double loss_of_astray = train_sampler(astray, "astray").scores.at("task_loss");
    EXPECT_BELOW(trained.scores.at("task_loss"), 0.5 * loss_of_astray);
}

TEST(LearnSegmentationSampling, NetworksThatDoNotFitAreRefused) {
    const test::TemporaryFolder folder(test::Where::memory);
    LabelData data = small_shapes(12, 4);
    const auto refuse = [&](const std::string& network, const char* message) {
        EXPECT_ERROR(make_shape_objective(segmentation_sampler("samplenet", network, 8), data), bad_config, message);
    };
    const auto segmenter = [&](const char* name, const std::string& model,
                               const std::map<std::string, std::string>& options) {
        return random_weights_file(folder / (std::string(name) + ".safetensors"), model,
                                   with_options(kNoTransforms, options));
    };
    refuse(segmenter("five", "pointnet-part-segmenter", {{"classes", "5"}, {"categories", "3"}}),
           "it tells 5 parts, the data have 6");
    refuse(segmenter("four", "pointnet-part-segmenter", {{"classes", "6"}, {"categories", "4"}}),
           "it knows 4 categories, the data have 3");
    refuse(segmenter("near", "pointnet-part-segmenter",
                     {{"classes", "6"}, {"categories", "3"}, {"neighbours", "16"}, {"variant", "torch"}}),
           "it looks at the 16 nearest points of each, and samples have 8");
    refuse(segmenter("two", "pointnet-segmenter", {{"classes", "2"}}), "it tells 2 parts, the data have 6");
    const std::string classifier =
        random_weights_file(folder / "three.safetensors", "pointnet-classifier",
                            {{"classes", "3"}, {"input_transform", "false"}, {"feature_transform", "false"}});
    refuse(classifier, "pointnet-classifier has no logits of points");
    // All parts at once, or those of the one category that there is
    EXPECT_NO_THROW(make_shape_objective(
        segmentation_sampler("samplenet", segmenter("six", "pointnet-segmenter", {{"classes", "6"}}), 8), data));
    Recipe recipe = segmentation_sampler("samplenet", folder / "six.safetensors", 8);
    recipe.sampling.task = "classification";
    EXPECT_ERROR(make_shape_objective(recipe, data), bad_config, "pointnet-segmenter classifies no clouds");
    data.train = {0, 3, 6}, data.held_out = {9};
    EXPECT_NO_THROW(make_shape_objective(segmentation_sampler("samplenet", folder / "two.safetensors", 8), data));
}

}  // namespace
}  // namespace stipple::learn
