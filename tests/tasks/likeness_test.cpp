#include "stipple/tasks/likeness.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/rng.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::contains;
using test::message_of;

/// Both ways drawn independently, times `scale`.
LikenessClouds drawn_gaps(int64_t points, int64_t clouds, double scale, uint64_t seed) {
    const Rng rng(seed);
    LikenessClouds set{points, {}};
    for (int64_t i = 0; i < clouds; ++i)
        set.gaps.push_back({scale * (0.5 + rng.uniform(static_cast<uint64_t>(2 * i))),
                            2 * scale * (0.5 + rng.uniform(static_cast<uint64_t>(2 * i + 1)))});
    return set;
}

TEST(Likeness, AcceptsTheShareOfItsClouds) {
    const LikenessClouds set = drawn_gaps(64, 4000, 0.1, 1);
    for (const double accepted : {0.5, 0.9, 0.985, 1.0}) {
        const Likeness likeness = fit_likeness({{set}}, {.accepted = accepted, .slack = 1});
        int64_t inside = 0;
        for (const Gaps& gaps : set.gaps) inside += unlikeness(likeness, gaps, 64) <= 1 + 1e-9;
        EXPECT_NEAR(static_cast<double>(inside) / 4000, accepted, 1e-3);
    }
    // Either way alone makes a cloud unlike.
    const Likeness likeness = fit_likeness({{set}}, {.slack = 1});
    EXPECT_GT(unlikeness(likeness, {1, 0}, 64), 1);
    EXPECT_GT(unlikeness(likeness, {0, 1}, 64), 1);
    EXPECT_LT(unlikeness(likeness, {0.05, 0.05}, 64), 1);
    const Likeness wide = fit_likeness({{set}}, {.slack = 2});
    EXPECT_NEAR(unlikeness(wide, {0.3, 0.1}, 64), unlikeness(likeness, {0.3, 0.1}, 64) / 2, 1e-12);
}

TEST(Likeness, IsInterpolatedBetweenSizes) {
    // Two sets of one size count as one; sizes in any order.
    const Likeness likeness =
        fit_likeness({{drawn_gaps(1024, 500, 0.1, 1), drawn_gaps(16, 500, 0.4, 2), drawn_gaps(16, 500, 0.4, 3)}});
    ASSERT_EQ(likeness.sizes.size(), 2u);
    EXPECT_EQ(likeness.sizes[0].points, 16);
    const Gaps gaps{0.3, 0.3};
    const double few = unlikeness(likeness, gaps, 16), many = unlikeness(likeness, gaps, 1024);
    EXPECT_LT(few, many);
    EXPECT_EQ(unlikeness(likeness, gaps, 8), few);
    EXPECT_EQ(unlikeness(likeness, gaps, 100000), many);
    EXPECT_NEAR(unlikeness(likeness, gaps, 128), std::sqrt(few * many), 1e-9);  // the middle, by logarithms
}

TEST(Likeness, SurvivesItsMetadata) {
    const Likeness fitted = fit_likeness({{drawn_gaps(16, 50, 0.3, 2), drawn_gaps(64, 50, 0.1, 1)}});
    std::map<std::string, std::string> metadata;
    EXPECT_FALSE(likeness_of(metadata));
    set_likeness(metadata, fitted);
    const std::optional<Likeness> read = likeness_of(metadata);
    ASSERT_TRUE(read);
    EXPECT_NEAR(unlikeness(*read, {0.2, 0.3}, 30), unlikeness(fitted, {0.2, 0.3}, 30), 1e-5);
    EXPECT_EQ(likeness_json(*read), metadata["stipple.likeness"]);
    const std::string good = metadata["stipple.likeness"];
    for (const auto& [from, to] :
         std::vector<std::pair<std::string, std::string>>{{"\"sizes\":", "\"seizes\":"},
                                                          {"\"points\":16", "\"points\":64"},
                                                          {"\"points\":16", "\"points\":0"},
                                                          {"\"points\":16", "\"points\":1e300"},
                                                          {"\"points\":16,", ""},
                                                          {"\"to_made\":0", "\"to_made\":-0"},
                                                          {"\"to_made\":0", "\"to_made\":1e999"},
                                                          {"\"from_made\"", "\"form_made\""},
                                                          {"{\"sizes\"", "[\"sizes\""},
                                                          {"]}", ""}}) {
        std::string bad = good;
        ASSERT_NE(bad.find(from), std::string::npos) << from;
        bad.replace(bad.find(from), from.size(), to);
        EXPECT_TRUE(contains(message_of([&, text = bad] { parse_likeness(text); }), "the likeness")) << bad;
    }
    EXPECT_NE(message_of([] { parse_likeness("{}"); }), "");
    EXPECT_NE(message_of([] { parse_likeness("{\"sizes\":[]}"); }), "");
}

TEST(Likeness, RefusesWhatDoesNotFit) {
    EXPECT_TRUE(contains(message_of([] { fit_likeness({}); }), "no clouds"));
    EXPECT_TRUE(contains(message_of([] { fit_likeness({{LikenessClouds{64, {}}}}); }), "no clouds"));
    LikenessClouds bad = drawn_gaps(64, 5, 1, 1);
    bad.gaps[2].to_made = NAN;
    EXPECT_TRUE(contains(message_of([&] { fit_likeness({{bad}}); }), "not finite"));
    bad.gaps[2].to_made = -1;
    EXPECT_TRUE(contains(message_of([&] { fit_likeness({{bad}}); }), "negative"));
    const LikenessClouds good = drawn_gaps(64, 5, 1, 1);
    EXPECT_NE(message_of([&] { fit_likeness({{good}}, {.accepted = 0}); }), "");
    EXPECT_NE(message_of([&] { fit_likeness({{good}}, {.accepted = NAN}); }), "");
    EXPECT_NE(message_of([&] { fit_likeness({{good}}, {.slack = 0}); }), "");
    EXPECT_NE(message_of([&] { unlikeness({}, {}, 64); }), "");
    // Clouds that are rebuilt without a fault leave a limit above 0.
    EXPECT_EQ(unlikeness(fit_likeness({{LikenessClouds{64, {Gaps{}}}}}), {}, 64), 0);
}

}  // namespace
}  // namespace stipple::tasks
