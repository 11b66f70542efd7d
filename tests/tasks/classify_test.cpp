#include "stipple/tasks/classify.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/tasks/agreement.h"
#include "stipple/tasks/fit_confidence.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::contains;
using test::message_of;
using test::random_cloud;
using test::save_cloud;
using test::save_model;

class Classify : public testing::Test {
protected:
    Classifier classifier(RunnerOptions options = {.device = "cpu"}) const {
        return {load_model_or_engine(model), options};
    }
    test::TemporaryFolder folder;
    const std::string model = save_model(folder / "m.safetensors", "pointnet-classifier", 5);
};

TEST(Ranked, TiesGoToTheLowerIndex) {
    const double probabilities[] = {0.1, 0.4, 0.4, 0.05};
    const std::vector<Guess> guesses = ranked(probabilities);
    ASSERT_EQ(guesses.size(), 4u);
    EXPECT_EQ(guesses[0].index, 1);
    EXPECT_EQ(guesses[1].index, 2);
    EXPECT_EQ(guesses[3].index, 3);
    EXPECT_EQ(guesses[2].probability, 0.1);
    EXPECT_TRUE(ranked({}).empty());
}

TEST_F(Classify, AnswersInOrderWhateverTheBatch) {
    std::vector<data::CloudEntry> entries;
    for (int i = 0; i < 7; ++i)
        entries.push_back({save_cloud(folder / ("c" + std::to_string(i) + ".ply"), random_cloud(20 + 9 * i, i + 1))});
    std::vector<std::vector<Guess>> one_by_one;
    for (const int64_t batch : {1, 3, 32}) {
        Classifier made = classifier({.device = "cpu", .batch = batch, .points = 25});  // most clouds have more
        EXPECT_EQ(made.classes(), 5);
        io::Warnings warnings;
        int advanced = 0;
        const std::vector<Classified> answers =
            classify(made, entries, {.points = 0}, {}, warnings, [&] { ++advanced; });
        ASSERT_EQ(answers.size(), 7u);
        EXPECT_EQ(advanced, 7);
        for (size_t i = 0; i < 7; ++i) {
            EXPECT_FALSE(answers[i].error);
            EXPECT_EQ(answers[i].points, 20 + 9 * static_cast<int64_t>(i));
            ASSERT_EQ(answers[i].guesses.size(), 5u);
            if (batch == 1)
                one_by_one.push_back(answers[i].guesses);
            else
                for (size_t k = 0; k < 5; ++k) {
                    EXPECT_EQ(answers[i].guesses[k].index, one_by_one[i][k].index);
                    EXPECT_NEAR(answers[i].guesses[k].probability, one_by_one[i][k].probability, 1e-6);
                }
        }
    }
}

TEST_F(Classify, OneUnreadableCloudLeavesTheOthers) {
    const std::string good = save_cloud(folder / "good.ply", random_cloud(40));
    test::write_file(folder / "bad.ply", "ply\nnonsense");
    io::Warnings warnings;
    Classifier made = classifier();
    const std::vector<Classified> answers =
        classify(made, {{folder / "bad.ply"}, {good}, {folder / "none.ply"}, {good}}, {}, {}, warnings);
    ASSERT_EQ(answers.size(), 4u);
    for (const size_t i : {0, 2}) {
        ASSERT_TRUE(answers[i].error);
        EXPECT_EQ(answers[i].error->code(), ErrorCode::bad_file);
        EXPECT_TRUE(answers[i].guesses.empty());
    }
    EXPECT_EQ(answers[1].guesses[0].index, answers[3].guesses[0].index);
}

TEST_F(Classify, SaysWhatIsUnlikeItsTrainingClouds) {
    // A network that knows ellipsoids, boxes and cylinders.
    data::DataSet set;
    const CloudBatch clouds = synthetic_clouds(60, 128, 4);
    set.clouds.points = clouds.rows;
    set.clouds.offsets = clouds.offsets;
    for (int i = 0; i < 60; ++i) set.labels.push_back(i % 5);
    Classifier bare = classifier();
    EXPECT_FALSE(bare.confidence());
    std::map<std::string, std::string> metadata;
    set_confidence(metadata, fit_confidence(bare, set, {.points = {128, 64}}, {.accepted = 0.95}));
    const std::string path = save_model(folder / "sure.safetensors", "pointnet-classifier", 5, metadata);
    Classifier made(load_model_or_engine(path), {.device = "cpu"});
    ASSERT_TRUE(made.confidence());
    Mesh like = random_cloud(128), unlike = random_cloud(128);
    const CloudBatch fresh = synthetic_clouds(1, 128, 4);
    std::copy(fresh.rows.begin(), fresh.rows.end(), like.vertices.positions.data());
    for (int64_t i = 0; i < 128; ++i) {  // a bent line: lop-sided, and hardly a surface
        const float t = static_cast<float>(i) / 128;
        const float p[] = {t, t * t * t, 0.3f * t};
        std::copy_n(p, 3, unlike.vertices.positions.data() + 3 * i);
    }
    like.vertices.origin = unlike.vertices.origin = {};
    const std::vector<data::CloudEntry> entries = {{save_cloud(folder / "like.ply", like)},
                                                   {save_cloud(folder / "unlike.ply", unlike)}};
    io::Warnings warnings;
    const std::vector<Classified> answers = classify(made, entries, {}, {}, warnings);
    EXPECT_FALSE(answers[0].is_unlike()) << *answers[0].distance;
    EXPECT_TRUE(answers[1].is_unlike()) << *answers[1].distance;
    for (const Classified& answer : classify(bare, entries, {}, {}, warnings)) EXPECT_FALSE(answer.distance);
    // A Confidence of another network is refused.
    const std::string other = save_model(folder / "other.safetensors", "pointnet-classifier", 4, metadata);
    EXPECT_TRUE(contains(message_of([&] { Classifier(load_model_or_engine(other), {.device = "cpu"}); }),
                         "about 5 classes, the network has 4"));
}

TEST_F(Classify, ThePoseWithTheMostEvidenceAnswers) {
    const std::vector<data::CloudEntry> entries = {{save_cloud(folder / "a.ply", random_cloud(60, 1))},
                                                   {save_cloud(folder / "b.ply", random_cloud(50, 2))}};
    const std::vector<Pose> poses = all_poses({});
    io::Warnings warnings;
    for (const int64_t batch : {5, 64}) {
        Classifier made = classifier({.device = "cpu", .batch = batch});
        const std::vector<Classified> answers = classify(made, entries, {}, {}, warnings, {}, poses);
        for (size_t i = 0; i < 2; ++i) {
            double best = -1e9;
            size_t at = 0;
            for (size_t k = 0; k < poses.size(); ++k) {
                CloudBatch one;
                Array<float, 2> points = network_points(load_points(entries[i], {}, {}, warnings), {});
                turn_points(points, poses[k]);
                one.add(points);
                const double evidence = assess(made.run(one)).evidence;
                if (evidence > best + 1e-6) best = evidence, at = k;
            }
            EXPECT_EQ(answers[i].pose, at);
            const std::vector<Classified> alone = classify(made, {entries[i]}, {}, {}, warnings, {}, {poses[at]});
            EXPECT_EQ(alone[0].guesses[0].index, answers[i].guesses[0].index);
            EXPECT_NEAR(alone[0].guesses[0].probability, answers[i].guesses[0].probability, 1e-6);
        }
    }
}

TEST_F(Classify, RefusesOtherNetworks) {
    const std::string parts = save_model(folder / "s.safetensors", "pointnet-segmenter", 4);
    EXPECT_TRUE(contains(message_of([&] { Classifier(load_model_or_engine(parts), {.device = "cpu"}); }),
                         "does not classify clouds"));
    EXPECT_NE(message_of([&] { classifier({.device = "cpu", .batch = 0}); }), "");
    EXPECT_NE(message_of([&] { load_model_or_engine(folder / "none.safetensors"); }), "");
}

TEST_F(Classify, EnginesKeepWhatTheyWereBuiltFor) {
    const models::Model loaded = models::load_model(model);
    engine::Options built;
    built.max_batch = 2;
    built.max_points = 30;
    const engine::Engine engine = engine::compile(loaded.network, loaded.weights, built);
    engine::save_engine(folder / "m.engine", engine::engine_file_of(engine, loaded.weights), Overwrite::refuse);
    Classifier made(load_model_or_engine(folder / "m.engine"), {});
    EXPECT_EQ(made.runner().device().type, DeviceType::cpu);
    EXPECT_EQ(made.runner().max_batch(), 2);
    EXPECT_EQ(made.runner().max_points(), 60);
    io::Warnings warnings;
    const std::string large = save_cloud(folder / "large.ply", random_cloud(61)),
                      small = save_cloud(folder / "small.ply", random_cloud(30));
    const std::vector<Classified> answers =
        classify(made, {{small}, {large}, {small}, {small}}, {.points = 0}, {}, warnings);
    EXPECT_FALSE(answers[0].error);
    ASSERT_TRUE(answers[1].error);
    EXPECT_TRUE(contains(answers[1].error->what(), "61 points, the engine was built for 60"));
    EXPECT_FALSE(answers[3].error);
    EXPECT_TRUE(contains(message_of([&] {
                             Classifier(load_model_or_engine(folder / "m.engine"),
                                        {.precision = engine::Precision::bf16});
                         }),
                         "was built in fp32, not bf16"));
}

TEST_F(Classify, AgreementOfAnEngineWithItselfIsPerfect) {
    const models::Model loaded = models::load_model(model);
    engine::Options options;
    options.max_batch = 3;
    options.max_points = 40;
    const CloudBatch clouds = synthetic_clouds(8, 40, 1);
    const Answers answers = answers_of(engine::compile(loaded.network, loaded.weights, options), clouds);
    EXPECT_EQ(answers.channels, 5);
    EXPECT_EQ(answers.rows.size(), 40u);
    const Agreement same = compare(answers, answers);
    EXPECT_EQ(same.error, 0);
    EXPECT_EQ(same.winners, 1);
    options.precision = engine::Precision::bf16;
    const Agreement other =
        compare(answers_of(engine::compile(loaded.network, loaded.weights, options), clouds), answers);
    EXPECT_GT(other.max_error, 0);
    EXPECT_LT(other.error, 0.2);
    Answers moved = answers;
    for (float& x : moved.rows) x += 1;
    EXPECT_NEAR(compare(moved, answers).max_error, 1, 1e-5);
    EXPECT_EQ(accuracy_of({2, {1, 0, 0, 1}}, {0, 0}), 0.5);
}

}  // namespace
}  // namespace stipple::tasks
