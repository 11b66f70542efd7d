#include "stipple/data/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <set>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "tests/data/augment_clouds.h"
#include "tests/support/allocation.h"
#include "tests/support/not_finite.h"

namespace stipple::data {
namespace {

TEST(Augment, OffIsBitIdentical) {
    AugmentedCloud stored = stored_cloud(100);
    stored.points[4] = -0.0f, stored.points[9] = test::kNan, stored.points[13] = test::kInfinity;
    AugmentedCloud result = augmented_cloud(stored, {}, 1, 2, 3);
    EXPECT_EQ(result.source, stored.labels);
    result.source.clear();
    EXPECT_TRUE(result == stored);
    EXPECT_EQ(augmented_cloud({}, {}, 1, 2, 3).size(), 0);
    AugmentOptions all = all_augmentations();
    all.choose = 0;
    EXPECT_EQ(augmented_cloud({}, all, 1, 2, 3).size(), 0);
}

TEST(Augment, IsTheSameOnAnyNumberOfThreads) {
    const AugmentedCloud stored = stored_cloud(900);
    const AugmentOptions options = all_augmentations();
    const auto run = [&](int count) {
        set_threads(count);
        std::vector<AugmentedCloud> results(40);
        parallel_for(40, 1,
                     [&](int64_t item, int64_t) { results[item] = augmented_cloud(stored, options, 9, 4, item); });
        set_threads(0);
        return results;
    };
    const std::vector<AugmentedCloud> one = run(1);
    EXPECT_EQ(one, run(2));
    EXPECT_EQ(one, run(7));
    std::set<std::vector<float>> different;
    for (const AugmentedCloud& cloud : one) different.insert(cloud.points);
    EXPECT_EQ(different.size(), 40u);
    EXPECT_FALSE(one[0] == augmented_cloud(stored, options, 9, 5, 0));
    EXPECT_FALSE(one[0] == augmented_cloud(stored, options, 10, 4, 0));
}

TEST(Augment, MemoryIsReused) {
    AugmentedCloud stored = stored_cloud(900);
    const AugmentOptions options = all_augmentations();
    AugmentScratch scratch;
    const AugmentCloud views = {View<float, 2>(stored.points.data(), {900, 3}),
                                View<float, 2>(stored.normals.data(), {900, 3}),
                                View<int32_t, 1>(stored.labels.data(), {900})};
    augment(views, options, 1, 0, 0, scratch);
    for (int64_t item = 1; item < 20; ++item) augment(views, options, 1, 0, item, scratch);  // dropout differs
    const int64_t calls = test::allocation_calls();
    for (int64_t item = 0; item < 20; ++item) augment(views, options, 1, 1, item, scratch);
    EXPECT_EQ(test::allocation_calls(), calls);
}

TEST(Augment, NormalsStayNormalWhenAxesAreScaled) {
    // Three points of a plane with its normal: it must stay at right angles to what the plane becomes.
    AugmentOptions options = all_augmentations();
    options.choose = 0, options.shuffle = false, options.dropout_ratio = 0, options.jitter_sigma = 0;
    AugmentedCloud plane;
    plane.points = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const float part = 1 / std::sqrt(3.0f);
    plane.normals = std::vector<float>(9, part);
    plane.labels = {0, 1, 2};
    for (int64_t item = 0; item < 100; ++item) {
        const AugmentedCloud moved = augmented_cloud(plane, options, 2, 0, item);
        for (int corner = 1; corner < 3; ++corner) {
            double along = 0, length_sq = 0;
            for (int axis = 0; axis < 3; ++axis) {
                along += moved.normals[axis] * (moved.points[3 * corner + axis] - moved.points[axis]);
                length_sq += moved.normals[axis] * moved.normals[axis];
            }
            EXPECT_NEAR(along, 0, 1e-6);
            EXPECT_NEAR(length_sq, 1, 1e-6);
        }
    }
}

TEST(Augment, OnePointIsAlwaysLeft) {
    for (DropoutForm form : {DropoutForm::replace, DropoutForm::remove}) {
        AugmentOptions options;
        options.dropout_ratio = 1, options.dropout_form = form;
        int64_t emptied = 0;
        for (int64_t item = 0; item < 200; ++item) {
            EXPECT_EQ(augmented_cloud(stored_cloud(1), options, 3, 0, item).labels, std::vector<int32_t>{0});
            const AugmentedCloud two = augmented_cloud(stored_cloud(2), options, 3, 0, item);
            EXPECT_GE(two.size(), 1);
            const double ratio = numbers_of(3, 0, item, 2).uniform(1);
            if (numbers_of(3, 0, item, 2).uniform(4) < ratio && numbers_of(3, 0, item, 2).uniform(5) < ratio) {
                ++emptied;
                EXPECT_EQ(two.labels, std::vector<int32_t>(form == DropoutForm::replace ? 2 : 1, 0));
            }
        }
        EXPECT_GT(emptied, 20);
    }
    AugmentOptions all = all_augmentations();
    all.choose = 1;
    EXPECT_EQ(augmented_cloud(stored_cloud(1), all, 3, 0, 0).size(), 1);
}

TEST(Augment, KeptRowsAreRepeated) {
    AugmentOptions removes, repeats;
    removes.dropout_ratio = repeats.dropout_ratio = 0.9;
    removes.dropout_form = DropoutForm::remove, repeats.dropout_form = DropoutForm::repeat;
    for (int64_t item = 0; item < 30; ++item) {
        const std::vector<int32_t> kept = augmented_cloud(stored_cloud(100), removes, 5, 2, item).source;
        const std::vector<int32_t> again = augmented_cloud(stored_cloud(100), repeats, 5, 2, item).source;
        ASSERT_EQ(again.size(), 100u);
        for (size_t row = 0; row < 100; ++row) ASSERT_EQ(again[row], kept[row % kept.size()]);
    }
}

TEST(Augment, ThinnedCloudsHaveEverySizeAlike) {
    AugmentOptions options;
    options.thin_share = 1, options.thin_min = 16, options.thin_max = 256, options.dropout_form = DropoutForm::remove;
    int64_t below_64 = 0, firsts = 0;
    for (int64_t item = 0; item < 400; ++item) {
        const AugmentedCloud any = augmented_cloud(stored_cloud(1000), options, 5, 2, item);
        ASSERT_GE(any.size(), 16);
        ASSERT_LE(any.size(), 256);
        const Rng numbers = numbers_of(5, 2, item, 10);
        ASSERT_NEAR(static_cast<double>(any.size()), 16 * std::pow(16, numbers.uniform(1)), 1);
        below_64 += any.size() < 64;
        // Those with the smallest numbers, in stored order.
        ASSERT_TRUE(std::is_sorted(any.source.begin(), any.source.end()));
        float largest_kept = 0;
        for (const int32_t s : any.source) largest_kept = std::max(largest_kept, numbers.uniform(4 + s));
        int64_t not_larger = 0;
        for (uint64_t s = 0; s < 1000; ++s) not_larger += numbers.uniform(4 + s) <= largest_kept;
        ASSERT_EQ(not_larger, any.size());
        AugmentOptions half = options;
        half.thin_first = 0.5;
        const AugmentedCloud mixed = augmented_cloud(stored_cloud(1000), half, 5, 2, item);
        const bool is_first = mixed.source.back() == mixed.size() - 1;
        ASSERT_EQ(is_first, numbers.uniform(2) < 0.5);
        firsts += is_first;
    }
    EXPECT_NEAR(static_cast<double>(below_64), 200, 40);  // log-uniform: half of them, four deviations
    EXPECT_NEAR(static_cast<double>(firsts), 200, 40);
    options.thin_share = 0;
    EXPECT_EQ(augmented_cloud(stored_cloud(50), options, 5, 2, 0).size(), 50);
    options.thin_share = 1;
    EXPECT_EQ(augmented_cloud(stored_cloud(5), options, 5, 2, 0).size(), 5);  // fewer than the fewest
}

TEST(Augment, SwitchingOneOnLeavesTheNumbersOfTheOthers) {
    const AugmentedCloud stored = stored_cloud(900);
    const AugmentOptions all = all_augmentations();
    AugmentOptions chosen, shuffled, jittered, moved = all;
    chosen.choose = 700;
    shuffled.shuffle = true;
    jittered.jitter_sigma = 0.01, jittered.jitter_clip = 0.05;
    moved.jitter_sigma = 0;
    for (int64_t item = 0; item < 10; ++item) {
        const auto run = [&](const AugmentOptions& options) { return augmented_cloud(stored, options, 8, 1, item); };
        const AugmentedCloud everything = run(all), unmoved = run(moved), noise = run(jittered);
        const std::vector<int32_t> choice = run(chosen).source, order = run(shuffled).source;
        // Which points are left, and their order: those of the single operations combined.
        std::vector<int32_t> expected;
        const double ratio = 0.9 * numbers_of(8, 1, item, 2).uniform(1);
        const bool drops = numbers_of(8, 1, item, 2).uniform(0) < 0.8;
        for (int32_t s : order) {
            const bool is_dropped = drops && numbers_of(8, 1, item, 2).uniform(4 + s) < ratio;
            if (std::binary_search(choice.begin(), choice.end(), s) && !is_dropped) expected.push_back(s);
        }
        ASSERT_EQ(everything.source, expected);
        ASSERT_EQ(everything.labels, expected);
        // The jitter of a stored point, whatever else happens to it.
        for (size_t row = 0; row < expected.size(); ++row)
            for (int axis = 0; axis < 3; ++axis) {
                const int32_t at = 3 * expected[row] + axis;
                ASSERT_NEAR(everything.points[3 * row + axis] - unmoved.points[3 * row + axis],
                            noise.points[at] - stored.points[at], 1e-6);
            }
        // Each of the other operations off, one at a time: the rest is as when it is on and does nothing.
        AugmentOptions fixed = all, off = all;
        fixed.scale_min = fixed.scale_max = 1.5, off.scale_min = off.scale_max = 1;
        fixed.jitter_sigma = off.jitter_sigma = 0;
        fixed.shift = off.shift = {0, 0, 0};
        const AugmentedCloud larger = run(fixed), plain = run(off);
        for (size_t i = 0; i < larger.points.size(); ++i) ASSERT_NEAR(larger.points[i], 1.5f * plain.points[i], 1e-6);
    }
}

TEST(Augment, PointsThatAreNotFiniteStay) {
    AugmentedCloud stored = stored_cloud(10);
    stored.points[3] = test::kNan, stored.points[13] = test::kInfinity, stored.points[29] = -test::kInfinity;
    AugmentOptions options = all_augmentations();
    options.choose = 0, options.shuffle = false, options.dropout_ratio = 0;
    const AugmentedCloud moved = augmented_cloud(stored, options, 1, 0, 0);
    for (int row = 0; row < 10; ++row)
        for (int axis = 0; axis < 3; ++axis) {
            const int at = 3 * row + axis;
            const bool stays = row == 1 || row == 4 || row == 9;
            EXPECT_EQ(std::bit_cast<uint32_t>(stored.points[at]) == std::bit_cast<uint32_t>(moved.points[at]), stays);
            EXPECT_EQ(stored.normals[at] == moved.normals[at], stays);
            EXPECT_TRUE(stays || std::isfinite(moved.points[at]));
        }
}

TEST(Augment, RowsMayBeApartAndNormalsAndLabelsAbsent) {
    const AugmentedCloud stored = stored_cloud(900), expected = augmented_cloud(stored, all_augmentations(), 1, 2, 3);
    std::vector<float> rows(900 * 6, 7);
    for (int64_t i = 0; i < 900; ++i) std::copy_n(&stored.points[3 * i], 3, &rows[6 * i]);
    AugmentScratch scratch;
    const int64_t m = augment({View<float, 2>(rows.data(), {900, 3}, {6, 1})}, all_augmentations(), 1, 2, 3, scratch);
    ASSERT_EQ(m, expected.size());
    for (int64_t i = 0; i < 900; ++i)
        for (int axis = 0; axis < 3; ++axis) {
            ASSERT_EQ(rows[6 * i + axis], i < m ? expected.points[3 * i + axis] : stored.points[3 * i + axis]);
            ASSERT_EQ(rows[6 * i + 3 + axis], 7);
        }
}

TEST(Augment, BitsAreTheSameOnEveryMachine) {
    // Without rotation, tilt and jitter: IEEE arithmetic alone. From a program in Python that was written from the
    // header. A change of these breaks every resumed training.
    AugmentOptions options = all_augmentations();
    options.choose = 20, options.rotation_angle = options.tilt_sigma = options.jitter_sigma = 0;
    const auto digest = [&](uint64_t seed, int64_t epoch, int64_t item) {
        const AugmentedCloud cloud = augmented_cloud(stored_cloud(32), options, seed, epoch, item);
        uint64_t hash = 14695981039346656037u;  // FNV-1a
        const auto add = [&](uint32_t word) {
            for (int byte = 0; byte < 4; ++byte) hash = (hash ^ (word >> 8 * byte & 255)) * 1099511628211u;
        };
        for (float value : cloud.points) add(std::bit_cast<uint32_t>(value));
        for (int32_t label : cloud.labels) add(static_cast<uint32_t>(label));
        return hash;
    };
    EXPECT_EQ(digest(0, 0, 0), 0x038CC647399C0D46u);
    EXPECT_EQ(digest(1, 0, 0), 0x6F6910FCE0B08BB9u);
    EXPECT_EQ(digest(1, 250, 9839), 0x158783B390210ABEu);
    EXPECT_EQ(digest(0xFFFFFFFFFFFFFFFFu, (int64_t{1} << 40), (int64_t{1} << 50)), 0xB92EC60B0A597341u);
}

TEST(Augment, RefusesWhatIsOutOfRange) {
    const std::pair<const char*, std::function<void(AugmentOptions&)>> wrong[] = {
        {"choose must be", [](AugmentOptions& o) { o.choose = -1; }},
        {"choose 11 of 10", [](AugmentOptions& o) { o.choose = 11; }},
        {"dropout_ratio must be 0 to 1", [](AugmentOptions& o) { o.dropout_ratio = 1.5; }},
        {"dropout_share", [](AugmentOptions& o) { o.dropout_share = -0.1; }},
        {"thin_share", [](AugmentOptions& o) { o.thin_share = 2; }},
        {"thin_first", [](AugmentOptions& o) { o.thin_first = -1; }},
        {"thin_min must be from 1", [](AugmentOptions& o) { o.thin_min = 0; }},
        {"thin_max must be 0", [](AugmentOptions& o) { o.thin_min = 4, o.thin_max = 3; }},
        {"rotation_angle", [](AugmentOptions& o) { o.rotation_angle = 4; }},
        {"rotation_axis has no direction",
         [](AugmentOptions& o) {
             o.rotation_axis = {0, 0, 0};
         }},
        {"rotation_axis must be a number, got nan", [](AugmentOptions& o) { o.rotation_axis[1] = test::kNan; }},
        {"tilt_sigma", [](AugmentOptions& o) { o.tilt_sigma = test::kInfinity; }},
        {"tilt_clip", [](AugmentOptions& o) { o.tilt_clip = test::kNan; }},
        {"scale_min must be above 0, got 0", [](AugmentOptions& o) { o.scale_min = 0; }},
        {"scale_min, scale_max", [](AugmentOptions& o) { o.scale_min = 2; }},
        {"axis_scale_max must be above 0, got inf", [](AugmentOptions& o) { o.axis_scale_max = test::kInfinity; }},
        {"shift", [](AugmentOptions& o) { o.shift[2] = -1; }},
        {"jitter_sigma", [](AugmentOptions& o) { o.jitter_sigma = test::kNan; }},
        {"jitter_clip", [](AugmentOptions& o) { o.jitter_clip = -1; }},
    };
    const auto message_of = [](const std::function<void()>& call) -> std::string {
        try {
            call();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_argument);
            return error.what();
        }
        return "no error";
    };
    for (const auto& [part, change] : wrong) {
        AugmentOptions options;
        change(options);
        const std::string message = message_of([&] { augmented_cloud(stored_cloud(10), options, 1, 0, 0); });
        EXPECT_NE(message.find(part), std::string::npos) << message;
    }
    EXPECT_NE(message_of([&] { augmented_cloud(stored_cloud(10), {}, 1, -1, 0); }), "no error");
    EXPECT_NE(message_of([&] { augmented_cloud(stored_cloud(10), {}, 1, 0, int64_t{1} << 59); }), "no error");
    std::vector<float> numbers(30);
    std::vector<int32_t> labels(9);
    AugmentScratch scratch;
    const View<float, 2> points(numbers.data(), {10, 3}), flat(numbers.data(), {10, 2});
    EXPECT_NE(message_of([&] { augment({flat}, {}, 1, 0, 0, scratch); }), "no error");
    EXPECT_NE(message_of([&] { augment({points, points.slice(0, 9)}, {}, 1, 0, 0, scratch); }), "no error");
    EXPECT_NE(message_of([&] {
                  augment({points, {}, View<int32_t, 1>(labels.data(), {9})}, {}, 1, 0, 0, scratch);
              }),
              "no error");
}

}  // namespace
}  // namespace stipple::data
