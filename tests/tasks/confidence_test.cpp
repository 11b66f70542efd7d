#include "stipple/tasks/confidence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/rng.h"
#include "stipple/tasks/fit_confidence.h"
#include "tests/support/data_sets.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::contains;
using test::message_of;

constexpr int64_t kFitted = 3;  // classes

/// Clouds whose measures are normal about the class's number, and logits that are right nine times of ten. Smaller
/// sizes measure more, and less precisely.
ConfidenceClouds measured_clouds(int64_t points, int64_t count, double spread, double shift, uint64_t seed) {
    const Rng rng(seed, static_cast<uint64_t>(points));
    ConfidenceClouds set;
    set.points = points;
    for (int64_t i = 0; i < count; ++i) {
        const auto label = static_cast<int32_t>(i % kFitted);
        set.labels.push_back(label);
        ShapeMeasures measures;
        for (int k = 0; k < kShapeMeasures; ++k)
            measures[k] = 2 * label + shift + spread * rng.normal(static_cast<uint64_t>(i * kShapeMeasures + k));
        set.measures.push_back(measures);
        const auto said = (label + (i % 10 == 9 ? 1 : 0)) % kFitted;
        for (int64_t c = 0; c < kFitted; ++c) set.logits.push_back(c == said ? 8.0f : 0.0f);
    }
    return set;
}

TEST(Confidence, TemperatureMakesProbabilitiesTrue) {
    const ConfidenceClouds set = measured_clouds(64, 3000, 1, 0, 1);
    const double temperature = fit_temperature(set.logits, set.labels, kFitted);
    // The best: the winner's probability is 0.9. e^(8 / t) / (e^(8 / t) + 2) = 0.9 at t = 8 / ln 18.
    EXPECT_NEAR(temperature, 8 / std::log(18.0), 5e-3);
    const Confidence confidence = fit_confidence({{set}}, kFitted);
    EXPECT_EQ(confidence.temperature, temperature);
    EXPECT_NEAR(assess(confidence, {{8, 0, 0}}, {}, 64).probabilities[0], 0.9, 1e-3);
    EXPECT_NEAR(assess({{8, 0, 0}}).probabilities[0], std::exp(8.0) / (std::exp(8.0) + 2), 1e-12);
    EXPECT_FALSE(assess({{8, 0, 0}}).is_unlike());
    EXPECT_EQ(fit_confidence({{set}}, kFitted, {.temperature = 2}).temperature, 2);
}

TEST(Confidence, AcceptsTheShareThatWasAskedForAtEverySize) {
    const std::vector<ConfidenceClouds> sets = {
        measured_clouds(64, 3000, 2, 1, 1), measured_clouds(1024, 3000, 1, 0, 1), measured_clouds(1024, 600, 1, 0, 2)};
    const Confidence confidence = fit_confidence(sets, kFitted, {.accepted = 0.95});
    ASSERT_EQ(confidence.sizes.size(), 2u);
    EXPECT_EQ(confidence.sizes[0].points, 64);
    for (const auto& [points, spread, shift] :
         {std::tuple{int64_t{64}, 2.0, 1.0}, std::tuple{int64_t{1024}, 1.0, 0.0}}) {
        const ConfidenceClouds other = measured_clouds(points, 2000, spread, shift, 7);
        int64_t unlike = 0;
        for (size_t i = 0; i < other.labels.size(); ++i)
            unlike +=
                assess(confidence, std::span(other.logits).subspan(i * kFitted, kFitted), other.measures[i], points)
                    .is_unlike();
        EXPECT_NEAR(static_cast<double>(unlike) / 2000, 0.05, 0.02) << points;
    }
    ShapeMeasures far = {};
    far.fill(12);
    EXPECT_TRUE(assess(confidence, {{8, 0, 0}}, far, 1024).is_unlike());
    EXPECT_TRUE(assess(confidence, {{8, 0, 0}}, far, 5000).is_unlike());
    // The shape of class 2 is one that clouds have, but not those that look like class 0.
    ShapeMeasures third = {};
    third.fill(4);
    EXPECT_FALSE(assess(confidence, {{0, 0, 8}}, third, 1024).is_unlike());
    EXPECT_TRUE(assess(confidence, {{8, 0, 0}}, third, 1024).is_unlike());
    EXPECT_GT(assess(confidence, {{0, 0, 8}}, third, 1024).evidence,
              assess(confidence, {{8, 0, 0}}, third, 1024).evidence);
    // Between two sizes the limit and the shift are between theirs.
    const double low = *assess(confidence, {{8, 0, 0}}, far, 64).distance,
                 high = *assess(confidence, {{8, 0, 0}}, far, 1024).distance,
                 middle = *assess(confidence, {{8, 0, 0}}, far, 256).distance;
    EXPECT_GT(middle, std::min(low, high));
    EXPECT_LT(middle, std::max(low, high));
}

TEST(Confidence, SurvivesItsMetadata) {
    const Confidence fitted = fit_confidence({{measured_clouds(64, 300, 1, 0, 1)}}, kFitted);
    std::map<std::string, std::string> metadata;
    EXPECT_FALSE(confidence_of(metadata, kFitted));
    set_confidence(metadata, fitted);
    const std::optional<Confidence> read = confidence_of(metadata, kFitted);
    ASSERT_TRUE(read);
    EXPECT_NEAR(read->temperature, fitted.temperature, 1e-5);
    ShapeMeasures measures = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
    const Assessment a = assess(fitted, {{1, 2, 0}}, measures, 64), b = assess(*read, {{1, 2, 0}}, measures, 64);
    EXPECT_NEAR(*a.distance, *b.distance, 1e-4);
    EXPECT_EQ(confidence_json(*read), metadata["stipple.confidence"]);
    EXPECT_TRUE(contains(message_of([&] { confidence_of(metadata, 4); }), "about 3 classes, the network has 4"));
    const std::string good = metadata["stipple.confidence"];
    for (const auto& [from, to] :
         std::vector<std::pair<std::string, std::string>>{{"\"temperature\":", "\"heat\":"},
                                                          {"\"points\":[64]", "\"points\":[-64]"},
                                                          {"\"points\":[64]", "\"points\":[]"},
                                                          {"\"limits\":[", "\"limits\":[1.0,"},
                                                          {"\"means\":[", "\"means\":[[1.0],"},
                                                          {"\"means\":[", "\"means\":[1.0,"},
                                                          {"{", "["}}) {
        std::string bad = good;
        bad.replace(bad.find(from), from.size(), to);
        EXPECT_TRUE(contains(message_of([&, text = bad] { parse_confidence(text); }), "the confidence")) << to;
    }
}

TEST(Confidence, RefusesWhatDoesNotFit) {
    const ConfidenceClouds good = measured_clouds(64, 30, 1, 0, 1);
    EXPECT_NE(message_of([&] { fit_confidence({}, kFitted); }), "");
    EXPECT_TRUE(contains(message_of([&] { fit_confidence({{good}}, 4); }), "do not fit"));
    ConfidenceClouds bad = good;
    bad.labels[3] = 3;
    EXPECT_TRUE(contains(message_of([&] { fit_confidence({{bad}}, kFitted); }), "label 3 of 3"));
    bad = good;
    bad.measures[3][2] = NAN;
    EXPECT_TRUE(contains(message_of([&] { fit_confidence({{bad}}, kFitted); }), "not finite"));
    bad = good;
    std::fill(bad.labels.begin(), bad.labels.end(), 1);
    EXPECT_TRUE(contains(message_of([&] { fit_confidence({{bad}}, kFitted); }), "class 0 has no clouds"));
    EXPECT_NE(message_of([&] { assess(fit_confidence({{good}}, kFitted), {{1, 2}}, {}, 64); }), "");
}

TEST(Confidence, OfAClassifierAndItsTrainingSet) {
    const test::TemporaryFolder folder;
    Classifier classifier(load_model_or_engine(test::save_model(folder / "m.safetensors", "pointnet-classifier", 2)),
                          {.device = "cpu", .batch = 4});
    data::DataSet set;
    const CloudBatch clouds = synthetic_clouds(10, 40, 4);
    set.clouds.points = clouds.rows;
    set.clouds.offsets = clouds.offsets;
    int advanced = 0;
    const ConfidenceSizes sizes{.points = {40, 16, 500}};
    EXPECT_TRUE(contains(message_of([&] { confidence_clouds(classifier, set, sizes); }), "no labels"));
    set.labels = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
    const std::vector<ConfidenceClouds> sets = confidence_clouds(classifier, set, sizes, [&] { ++advanced; });
    EXPECT_EQ(advanced, 60);
    ASSERT_EQ(sets.size(), 4u);  // no cloud has 500
    EXPECT_EQ(sets[2].points, 16);
    EXPECT_EQ(sets[2].logits.size(), 20u);
    EXPECT_NE(sets[2].measures, sets[3].measures);
    const Confidence confidence = fit_confidence(classifier, set, sizes, {});
    EXPECT_EQ(confidence.sizes.size(), 2u);
    EXPECT_EQ(confidence.classes.size(), 2u);
    set.labels[0] = 2;
    EXPECT_TRUE(contains(message_of([&] { confidence_clouds(classifier, set, sizes); }), "label 2"));
}

}  // namespace
}  // namespace stipple::tasks
