// Each operation of augmentation against its formula: numbers at their documented places, and the distribution.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/data/augment_clouds.h"

namespace stipple::data {
namespace {

/// One cloud of unit vectors: its points are the columns of a linear map.
std::array<double, 9> linear_map_of(const AugmentOptions& options, int64_t item, bool of_normals = false) {
    AugmentedCloud cloud;
    cloud.points = cloud.normals = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    cloud.labels = {0, 1, 2};
    cloud = augmented_cloud(cloud, options, 5, 0, item);
    std::array<double, 9> map;  // by rows
    for (int row = 0; row < 3; ++row)
        for (int column = 0; column < 3; ++column)
            map[3 * row + column] = (of_normals ? cloud.normals : cloud.points)[3 * column + row];
    return map;
}

struct Moments {
    double sum = 0, sum_sq = 0, min = 1e300, max = -1e300;
    int64_t n = 0;
    void add(double x) { sum += x, sum_sq += x * x, min = std::min(min, x), max = std::max(max, x), ++n; }
    double mean() const { return sum / static_cast<double>(n); }
    double variance() const { return sum_sq / static_cast<double>(n) - mean() * mean(); }
};

/// Of a uniform distribution; the bounds are five standard errors, a wrong factor of 1.1 is far outside.
void expect_uniform(const Moments& moments, double min, double max) {
    const double width = max - min, n = static_cast<double>(moments.n);
    EXPECT_GE(moments.min, min - 1e-6);
    EXPECT_LE(moments.max, max + 1e-6);
    EXPECT_LT(moments.min, min + 20 * width / n);
    EXPECT_GT(moments.max, max - 20 * width / n);
    EXPECT_NEAR(moments.mean(), (min + max) / 2, 5 * width / std::sqrt(12 * n));
    EXPECT_NEAR(moments.variance(), width * width / 12, 5 * width * width / 12 * std::sqrt(0.8 / n));
}

TEST(AugmentStatistics, RotationIsOrthogonalAndTurnsNormalsAlike) {
    AugmentOptions options;
    options.rotation_angle = kHalfTurn, options.rotation_axis = {1, 2, -1};
    options.tilt_sigma = 0.3;
    for (int64_t item = 0; item < 50; ++item) {
        const std::array<double, 9> r = linear_map_of(options, item);
        EXPECT_EQ(r, linear_map_of(options, item, true));
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) {
                double sum = 0;
                for (int k = 0; k < 3; ++k) sum += r[3 * i + k] * r[3 * j + k];
                EXPECT_NEAR(sum, i == j, 1e-6);
            }
        const double determinant = r[0] * (r[4] * r[8] - r[5] * r[7]) - r[1] * (r[3] * r[8] - r[5] * r[6]) +
                                   r[2] * (r[3] * r[7] - r[4] * r[6]);
        EXPECT_NEAR(determinant, 1, 1e-6);
    }
}

TEST(AugmentStatistics, RotationAboutAnAxisIsUniformInItsRange) {
    for (double range : {kHalfTurn, 0.5}) {
        AugmentOptions options;
        options.rotation_angle = range;
        Moments angles;
        for (int64_t item = 0; item < 20000; ++item) {
            const std::array<double, 9> r = linear_map_of(options, item);
            ASSERT_EQ(r[4], 1);                           // the axis y stays
            const double angle = std::atan2(r[2], r[0]);  // counterclockwise about y: z goes to x
            EXPECT_NEAR(angle, range * (2.0 * numbers_of(5, 0, item, 4).uniform(0) - 1), 1e-6);
            angles.add(angle);
        }
        expect_uniform(angles, -range, range);
    }
    AugmentOptions a, b;
    a.rotation_angle = b.rotation_angle = 1, a.rotation_axis = {1, 2, 3}, b.rotation_axis = {1e200, 2e200, 3e200};
    for (int k = 0; k < 9; ++k) EXPECT_NEAR(linear_map_of(a, 0)[k], linear_map_of(b, 0)[k], 1e-6);
}

TEST(AugmentStatistics, TiltIsAClippedNormalAboutXThenYThenZ) {
    AugmentOptions options;
    options.tilt_sigma = 0.06, options.tilt_clip = 0.09;  // 1.5 sigma
    Moments angles[3];
    int64_t at_clip = 0;
    for (int64_t item = 0; item < 20000; ++item) {
        const std::array<double, 9> r = linear_map_of(options, item);  // Rz Ry Rx
        const double found[3] = {std::atan2(r[7], r[8]), -std::asin(r[6]), std::atan2(r[3], r[0])};
        for (int axis = 0; axis < 3; ++axis) {
            const double wanted = 0.06 * numbers_of(5, 0, item, 5).normal(axis);
            ASSERT_NEAR(found[axis], std::clamp(wanted, -0.09, 0.09), 1e-6);
            angles[axis].add(found[axis]);
            at_clip += std::abs(found[axis]) > 0.09 - 1e-6;
        }
    }
    // Of a normal clipped at c = 1.5 sigma: E x^2 = sigma^2 (erf(c/sqrt 2) - 2 c phi(c)) + c^2 (1 - erf(c/sqrt 2)).
    const double c = 1.5, inside = std::erf(c / std::sqrt(2.0));
    const double phi = std::exp(-c * c / 2) / std::sqrt(2 * kHalfTurn);
    const double variance = 0.06 * 0.06 * (inside - 2 * c * phi + c * c * (1 - inside));
    for (const Moments& moments : angles) {
        EXPECT_NEAR(moments.mean(), 0, 5 * 0.06 / std::sqrt(20000.0));
        EXPECT_NEAR(moments.variance(), variance, 0.05 * variance);
    }
    EXPECT_NEAR(static_cast<double>(at_clip) / 60000, 1 - inside, 0.007);
}

TEST(AugmentStatistics, ScalesAreUniform) {
    AugmentOptions same, each;
    same.scale_min = 0.8, same.scale_max = 1.25;
    each.axis_scale_min = 0.67, each.axis_scale_max = 1.5;
    Moments all, axes[3], product;
    for (int64_t item = 0; item < 20000; ++item) {
        const std::array<double, 9> s = linear_map_of(same, item), a = linear_map_of(each, item);
        ASSERT_TRUE(s[0] == s[4] && s[4] == s[8]);
        ASSERT_EQ(s[0], static_cast<float>(0.8 + (1.25 - 0.8) * numbers_of(5, 0, item, 6).uniform(0)));
        all.add(s[0]);
        for (int axis = 0; axis < 3; ++axis) axes[axis].add(a[4 * axis]);
        product.add((a[0] - 1.085) * (a[4] - 1.085));
        for (int k : {1, 2, 3, 5, 6, 7}) ASSERT_TRUE(s[k] == 0 && a[k] == 0);
    }
    expect_uniform(all, 0.8, 1.25);
    for (const Moments& moments : axes) expect_uniform(moments, 0.67, 1.5);
    EXPECT_NEAR(product.mean(), 0, 0.002);  // the axes are independent: variance 0.057
}

TEST(AugmentStatistics, ShiftIsUniformOnEachAxis) {
    AugmentOptions options;
    options.shift = {0.1, 0, 0.3};
    Moments x, z;
    for (int64_t item = 0; item < 20000; ++item) {
        AugmentedCloud origin;
        origin.points = origin.normals = std::vector<float>(6, 0);
        origin.labels = {0, 0};
        origin = augmented_cloud(origin, options, 5, 0, item);
        ASSERT_TRUE(origin.points[0] == origin.points[3] && origin.points[2] == origin.points[5]);
        ASSERT_EQ(origin.points[1], 0);
        ASSERT_EQ(origin.normals, std::vector<float>(6, 0));
        x.add(origin.points[0]), z.add(origin.points[2]);
    }
    expect_uniform(x, -0.1, 0.1);
    expect_uniform(z, -0.3, 0.3);
}

TEST(AugmentStatistics, JitterIsAClippedNormal) {
    const int64_t n = 50000;
    AugmentedCloud zero;
    zero.points = zero.normals = std::vector<float>(3 * n, 0);
    zero.labels.resize(n);
    AugmentOptions options;
    options.jitter_sigma = 0.02;
    Moments free, clipped;
    const AugmentedCloud free_cloud = augmented_cloud(zero, options, 1, 0, 0);
    for (float value : free_cloud.points) free.add(value);
    EXPECT_NEAR(free.mean(), 0, 5 * 0.02 / std::sqrt(3.0 * n));
    EXPECT_NEAR(free.variance(), 0.0004, 5 * 0.0004 * std::sqrt(2 / (3.0 * n)));
    EXPECT_GT(free.max, 3.5 * 0.02);
    options.jitter_clip = 0.03;
    const AugmentedCloud clipped_cloud = augmented_cloud(zero, options, 1, 0, 0);
    int64_t at_clip = 0;
    for (size_t i = 0; i < clipped_cloud.points.size(); ++i) {
        ASSERT_EQ(clipped_cloud.points[i], std::clamp(free_cloud.points[i], -0.03f, 0.03f));
        at_clip += std::abs(clipped_cloud.points[i]) == 0.03f;
    }
    EXPECT_NEAR(static_cast<double>(at_clip) / (3.0 * n), 1 - std::erf(1.5 / std::sqrt(2.0)), 0.005);
    for (float value : clipped_cloud.normals) ASSERT_EQ(value, 0);
}

TEST(AugmentStatistics, MirrorTurnsAxesWithProbabilityOneHalf) {
    AugmentOptions options;
    options.mirror = {true, false, true};
    int64_t x = 0, z = 0, both = 0;
    for (int64_t item = 0; item < 10000; ++item) {
        const std::array<double, 9> m = linear_map_of(options, item);
        ASSERT_EQ(m, linear_map_of(options, item, true));
        ASSERT_TRUE(std::abs(m[0]) == 1 && m[4] == 1 && std::abs(m[8]) == 1);
        x += m[0] < 0, z += m[8] < 0, both += m[0] < 0 && m[8] < 0;
    }
    EXPECT_NEAR(static_cast<double>(x), 5000, 250);
    EXPECT_NEAR(static_cast<double>(z), 5000, 250);
    EXPECT_NEAR(static_cast<double>(both), 2500, 220);
}

TEST(AugmentStatistics, ChoiceIsUniformWithoutReplacementAndNested) {
    const AugmentedCloud stored = stored_cloud(50);
    AugmentOptions options, smaller;
    options.choose = 20, smaller.choose = 7;
    std::vector<int64_t> times(50);
    for (int64_t item = 0; item < 5000; ++item) {
        const AugmentedCloud chosen = augmented_cloud(stored, options, 3, 0, item);
        ASSERT_EQ(chosen.size(), 20);
        ASSERT_EQ(chosen.labels, chosen.source);
        ASSERT_EQ(std::set<int32_t>(chosen.labels.begin(), chosen.labels.end()).size(), 20u);
        ASSERT_TRUE(std::is_sorted(chosen.labels.begin(), chosen.labels.end()));
        for (int64_t row = 0; row < 20; ++row) {
            ASSERT_EQ(chosen.points[3 * row + 1], stored.points[3 * chosen.labels[row] + 1]);
            ASSERT_EQ(chosen.normals[3 * row + 2], stored.normals[3 * chosen.labels[row] + 2]);
            ++times[chosen.labels[row]];
        }
        const AugmentedCloud few = augmented_cloud(stored, smaller, 3, 0, item);
        ASSERT_TRUE(std::includes(chosen.labels.begin(), chosen.labels.end(), few.labels.begin(), few.labels.end()));
    }
    for (int64_t count : times) EXPECT_NEAR(static_cast<double>(count), 2000, 5 * std::sqrt(5000 * 0.4 * 0.6));
    options.choose = 50;
    EXPECT_EQ(augmented_cloud(stored, options, 3, 0, 0).labels, stored.labels);
}

TEST(AugmentStatistics, ShuffleGivesEveryOrderAlike) {
    AugmentOptions options;
    options.shuffle = true;
    const AugmentedCloud stored = stored_cloud(4);
    std::map<std::vector<int32_t>, int64_t> orders;
    for (int64_t item = 0; item < 24000; ++item) {
        const AugmentedCloud shuffled = augmented_cloud(stored, options, 3, 0, item);
        for (int row = 0; row < 4; ++row) ASSERT_EQ(shuffled.points[3 * row], stored.points[3 * shuffled.labels[row]]);
        ++orders[shuffled.labels];
    }
    ASSERT_EQ(orders.size(), 24u);
    for (const auto& [order, count] : orders) EXPECT_NEAR(static_cast<double>(count), 1000, 5 * std::sqrt(1000.0));
}

TEST(AugmentStatistics, DropoutLosesAUniformShare) {
    const int64_t n = 400;
    const AugmentedCloud stored = stored_cloud(n);
    AugmentOptions remove, replace;
    remove.dropout_ratio = replace.dropout_ratio = 0.875;
    remove.dropout_form = DropoutForm::remove;
    Moments lost;
    for (int64_t item = 0; item < 4000; ++item) {
        const AugmentedCloud few = augmented_cloud(stored, remove, 3, 0, item);
        lost.add(1 - static_cast<double>(few.size()) / n);
        if (item >= 200) continue;
        const double ratio = 0.875 * numbers_of(3, 0, item, 2).uniform(1);
        std::vector<int32_t> kept;
        for (int32_t s = 0; s < n; ++s)
            if (!(numbers_of(3, 0, item, 2).uniform(4 + s) < ratio)) kept.push_back(s);
        ASSERT_EQ(few.labels, kept);
        const AugmentedCloud same = augmented_cloud(stored, replace, 3, 0, item);
        ASSERT_EQ(same.size(), n);
        for (int32_t row = 0; row < n; ++row) {
            const bool is_kept = std::binary_search(kept.begin(), kept.end(), row);
            const int32_t source = is_kept ? row : kept[0];
            ASSERT_EQ(same.labels[row], source);
            ASSERT_EQ(same.points[3 * row], stored.points[3 * source]);
        }
    }
    EXPECT_NEAR(lost.mean(), 0.875 / 2, 5 * 0.875 / std::sqrt(12 * 4000.0));
    EXPECT_NEAR(lost.variance(), 0.875 * 0.875 / 12, 0.05 * 0.875 * 0.875 / 12);
    EXPECT_LT(lost.max, 0.875 + 0.1);
}

TEST(AugmentStatistics, DropoutConcernsAShareOfTheClouds) {
    const AugmentedCloud stored = stored_cloud(400);
    AugmentOptions options;
    options.dropout_ratio = 0.97, options.dropout_form = DropoutForm::remove, options.dropout_share = 0.3;
    int64_t whole = 0;
    for (int64_t item = 0; item < 4000; ++item) whole += augmented_cloud(stored, options, 3, 0, item).size() == 400;
    EXPECT_NEAR(static_cast<double>(whole) / 4000, 0.7, 0.04);  // 0.2 % of the others lose none
    options.dropout_share = 0;
    for (int64_t item = 0; item < 100; ++item) EXPECT_EQ(augmented_cloud(stored, options, 3, 0, item).size(), 400);
}

}  // namespace
}  // namespace stipple::data
