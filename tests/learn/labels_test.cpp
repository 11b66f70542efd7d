// Data sets with labels: what the loop is fed, and that engine and trainer mean the same by a model.

#include "stipple/learn/labels/labels.h"

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "stipple/core/rng.h"
#include "stipple/data/data_set.h"
#include "stipple/learn/train.h"
#include "stipple/tasks/segment.h"
#include "tests/support/expect_error.h"
#include "tests/support/margin.h"
#include "tests/support/temporary_folder.h"

namespace stipple::learn {
namespace {

constexpr int64_t kPartPoints = 48;

/// Labelled clouds of two categories: the parts of one lie above each other, those of the other beside each other.
std::string make_part_folders(const test::TemporaryFolder& folder, int64_t clouds) {
    const std::string data = folder / "parts";
    const Rng rng(5 + test::trial(), 0);
    uint64_t next = 0;
    for (const int category : {0, 1})
        for (int64_t i = 0; i < clouds; ++i) {
            const std::string of_category = data + (category == 0 ? "/lamp" : "/mug");
            std::filesystem::create_directories(of_category);
            std::string text =
                "ply\nformat ascii 1.0\nelement vertex " + std::to_string(kPartPoints) +
                "\nproperty float x\nproperty float y\nproperty float z\nproperty int label\nend_header\n";
            for (int64_t p = 0; p < kPartPoints; ++p) {
                float xyz[3];
                for (float& value : xyz) value = 2 * rng.uniform(next++) - 1;
                const int label = category == 0 ? (xyz[2] > 0.3f ? 2 : xyz[2] > -0.3f ? 1 : 0) : (xyz[0] > 0 ? 4 : 3);
                for (const float value : xyz) text += std::to_string(value) + " ";
                text += std::to_string(label) + "\n";
            }
            test::write_file(of_category + "/" + std::to_string(i) + ".ply", text);
        }
    test::write_file(data + "/parts.json",
                     R"({"lamp": [[0, "foot"], [1, "pole"], [2, "shade"]], "mug": [[3, "body"], [4, "handle"]]})");
    return data;
}

Recipe part_recipe(const std::string& data) {
    Recipe recipe;
    recipe.name = "parts";
    recipe.task = learn::TrainingTask::segmentation;
    recipe.model = "pointnet-part-segmenter";
    recipe.options = {
        {"input_transform", "false"}, {"feature_transform", "false"}, {"width", "64"}, {"neighbours", "4"}};
    recipe.data.folder = data;
    recipe.data.points = kPartPoints;
    recipe.data.held_out = 0.25;
    recipe.schedule.rate = 2e-3;
    recipe.run.epochs = 10;
    recipe.run.batch = 8;
    recipe.run.storage = network::WeightStorage::f32;
    recipe.run.loader_threads = 1;
    recipe.run.seed = test::trial();
    return recipe;
}

TEST(LearnLabels, PartsAreLearnedAndTheEngineAgrees) {
    const test::TemporaryFolder folder(test::Where::memory);
    const Recipe recipe = part_recipe(make_part_folders(folder, 16));
    std::vector<std::string> warnings;
    const LabelData data = load_label_data(recipe, warnings, ProgressMode::never);
    const std::unique_ptr<Objective> objective = make_label_objective(recipe, data);
    EXPECT_EQ(objective->items(), 24);  // of 32, a quarter of each category held out
    RunFolder run = RunFolder::create(folder / "run", to_toml(recipe));
    TrainOptions options;
    options.progress = ProgressMode::never;
    const TrainReport report = train(recipe, *objective, run, options);
    std::map<std::string, double> scores(report.scores.begin(), report.scores.end());
    EXPECT_ABOVE(scores.at("validation_accuracy"), 0.8);  // chance is below a half
    EXPECT_ABOVE(scores.at("validation_instance_miou"), 0.6);

    // The same clouds through the engine, by the metadata that the trainer wrote.
    tasks::Segmenter segmenter(tasks::load_model_or_engine(report.weights), {.device = "cpu"});
    ASSERT_EQ(segmenter.categories().size(), 2u);
    EXPECT_EQ(segmenter.categories()[1].name, "mug");
    EXPECT_EQ(segmenter.points(), kPartPoints);
    int64_t right = 0, points = 0;
    data::DataSetOptions how;
    const data::DataSet set = data::load_data_set(recipe.data.folder, how, warnings);
    std::map<int32_t, int64_t> seen;
    for (int64_t item = 0; item < set.size(); ++item) {
        if (seen[set.labels[item]]++ % 4 != 2) continue;  // those held out
        Array<float, 2> cloud({kPartPoints, 3});
        std::copy_n(set.points_of(item).data(), 3 * kPartPoints, cloud.data());
        const tasks::Segments found = segmenter.run(cloud, static_cast<size_t>(set.labels[item]));
        for (int64_t p = 0; p < kPartPoints; ++p, ++points)
            right += found.labels[p] == set.parts[set.clouds.offsets[item] + p];
    }
    EXPECT_BELOW(std::abs(static_cast<double>(right) / static_cast<double>(points) - scores.at("validation_accuracy")),
                 2e-3);
}

TEST(LearnLabels, OneCategoryCountsItsPartsFromZero) {
    const test::TemporaryFolder folder(test::Where::memory);
    Recipe recipe = part_recipe(make_part_folders(folder, 8));
    recipe.model = "pointnet-segmenter";
    recipe.options = {{"input_transform", "false"}, {"feature_transform", "false"}};
    std::vector<std::string> warnings;
    const LabelData both = load_label_data(recipe, warnings, ProgressMode::never);
    EXPECT_ERROR(make_label_objective(recipe, both), bad_config, "name it with data.classes");
    recipe.data.classes = "mug";
    const LabelData data = load_label_data(recipe, warnings, ProgressMode::never);
    const std::unique_ptr<Objective> objective = make_label_objective(recipe, data);
    EXPECT_EQ(objective->items(), 6);
    EXPECT_EQ(objective->metadata().at("stipple.parts"), R"(["body","handle"])");
    recipe.data.classes = "cup";
    EXPECT_ERROR(load_label_data(recipe, warnings, ProgressMode::never), bad_config, "no class cup");
}

TEST(LearnLabels, TasksThatTheDataDoNotHaveAreRefused) {
    const test::TemporaryFolder folder(test::Where::memory);
    const std::string data = folder / "classes";
    for (const char* name : {"a", "b"}) {
        std::filesystem::create_directories(data + "/" + name);
        for (int i = 0; i < 3; ++i)
            test::write_file(data + "/" + name + "/" + std::to_string(i) + ".xyz", "0 0 1\n1 0 0\n0 1 0\n");
    }
    Recipe recipe = part_recipe(data);
    std::vector<std::string> warnings;
    EXPECT_ERROR(load_label_data(recipe, warnings, ProgressMode::never), bad_config, "segmentation needs parts");
    recipe.data.folder = "";
    EXPECT_ERROR(load_label_data(recipe, warnings, ProgressMode::never), bad_argument, "no data to train on");
}

TEST(LearnLabels, TwoViewsAreTheSameForAnyNumberOfThreads) {
    const test::TemporaryFolder folder(test::Where::memory);
    Recipe recipe = part_recipe(make_part_folders(folder, 8));
    recipe.run.epochs = 2;
    recipe.view.weight = 0.5;
    recipe.view.points = 16;
    recipe.view.augment.thin_share = 1;
    recipe.view.augment.thin_min = 4;
    recipe.view.augment.thin_max = 16;
    recipe.view.augment.dropout_form = data::DropoutForm::repeat;
    recipe.augment.shift = {0.1, 0.1, 0.1};
    std::vector<double> losses[2];
    for (const int threads : {1, 3}) {
        recipe.run.loader_threads = threads;
        std::vector<std::string> warnings;
        const LabelData data = load_label_data(recipe, warnings, ProgressMode::never);
        const std::unique_ptr<Objective> objective = make_label_objective(recipe, data);
        RunFolder run = RunFolder::create(folder / ("run" + std::to_string(threads)), to_toml(recipe));
        TrainOptions options;
        options.progress = ProgressMode::never;
        for (const auto& [name, value] : train(recipe, *objective, run, options).scores)
            losses[threads == 1 ? 0 : 1].push_back(value);
    }
    EXPECT_EQ(losses[0], losses[1]);
}

}  // namespace
}  // namespace stipple::learn
