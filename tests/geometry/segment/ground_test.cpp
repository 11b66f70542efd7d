#include "stipple/geometry/ground.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/geometry/segment/height_field.h"

namespace stipple::test {
namespace {

using geometry::Ground;
using geometry::GroundOptions;
using geometry::HeightField;

/// 120 x 120 m of hills up to 20 degrees steep, with buildings, trees, bushes, cars and stray echoes, as a plane would
/// see them.
struct Terrain {
    PointCloud cloud;
    std::vector<uint8_t> is_ground;
    std::vector<double> height;
};

double hill(double x, double y) {
    return 8 * std::sin(x / 23) * std::cos(y / 31) + 0.05 * x +
           2 * std::exp(-((x - 80) * (x - 80) + (y - 40) * (y - 40)) / 150);
}

Terrain terrain(int64_t n) {
    const Rng rng(23);
    struct Block {
        double x, y, w, h, height, gable;
    };
    const Block blocks[] = {{10, 10, 12, 9, 6, 3},  {40, 15, 25, 15, 9, 0},     {85, 80, 14, 30, 12, 4},
                            {20, 70, 10, 10, 4, 2}, {60, 95, 4.5, 1.8, 1.5, 0}, {70, 60, 4.5, 1.8, 1.5, 0}};
    Terrain made;
    made.cloud = PointCloud(n);
    made.cloud.origin = {640000, 5500000, 100};
    for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<uint64_t>(8 * i);
        const double x = 120 * rng.uniform(at), y = 120 * rng.uniform(at + 1);
        double above = 0;
        for (const Block& b : blocks)
            if (x > b.x && x < b.x + b.w && y > b.y && y < b.y + b.h) {
                const double middle = hill(b.x + b.w / 2, b.y + b.h / 2),
                             side = std::abs(y - b.y - b.h / 2) / (b.h / 2);
                above = std::max(0.5, middle + b.height + b.gable * (1 - side) - hill(x, y));
            }
        for (uint64_t tree = 0; tree < 40; ++tree) {
            const double tx = 120 * rng.uniform(900000000 + 4 * tree), ty = 120 * rng.uniform(900000001 + 4 * tree);
            const double radius = 1 + 2 * rng.uniform(900000002 + 4 * tree), d = std::hypot(x - tx, y - ty);
            // Half of the echoes come from the crown, the others reach the ground.
            if (above == 0 && d < radius && rng.uniform(at + 2) < 0.5)
                above = 1.5 + 6 * rng.uniform(at + 3) * std::sqrt(1 - d * d / radius / radius);
        }
        for (uint64_t bush = 0; bush < 60; ++bush) {  // through which one echo in three reaches the ground
            const double bx = 120 * rng.uniform(910000000 + 2 * bush), by = 120 * rng.uniform(910000001 + 2 * bush);
            if (above == 0 && std::hypot(x - bx, y - by) < 1.2 && rng.uniform(at + 2) < 0.67)
                above = 0.3 + 0.7 * rng.uniform(at + 3);
        }
        const bool is_stray = above == 0 && rng.uniform(at + 4) < 0.0005;
        const double noise = 0.03 * rng.normal(at + 6);
        made.is_ground.push_back(above == 0 && !is_stray);
        made.height.push_back(above);
        float* p = made.cloud.positions.data() + 3 * i;
        p[0] = static_cast<float>(x - 60), p[1] = static_cast<float>(y - 60);
        p[2] = static_cast<float>(hill(x, y) + above + noise - (is_stray ? 8 : 0));
    }
    return made;
}

TEST(GeometryGround, HillsWithBuildingsAndTrees) {
    const Terrain made = terrain(80000);
    const Ground found = geometry::find_ground(made.cloud, {});
    int64_t right = 0, grounds = 0, missed = 0;
    double worst = 0, squares = 0;
    for (int64_t i = 0; i < made.cloud.size(); ++i) {
        right += found.is_ground[i] == made.is_ground[i];
        grounds += made.is_ground[i];
        missed += made.is_ground[i] && !found.is_ground[i];
        if (!made.is_ground[i]) continue;
        squares += found.height.data()[i] * found.height.data()[i];
        worst = std::max(worst, std::abs(double{found.height.data()[i]}));
    }
    const auto n = static_cast<double>(made.cloud.size());
    EXPECT_GE(static_cast<double>(right) / n, 0.97);
    EXPECT_LT(static_cast<double>(missed) / static_cast<double>(grounds), 0.03);
    EXPECT_LT(std::sqrt(squares / static_cast<double>(grounds)), 0.15);
    for (int64_t i = 0; i < made.cloud.size(); ++i)
        if (made.height[i] > 3) {
            ASSERT_FALSE(found.is_ground[i]) << i << ", " << made.height[i] << " above";
        }
    RecordProperty("right", std::to_string(static_cast<double>(right) / n));
    std::printf("ground: %.3f %% right, %.3f %% of the ground missed, height rms %.3f, worst %.2f\n",
                100 * static_cast<double>(right) / n, 100 * static_cast<double>(missed) / static_cast<double>(grounds),
                std::sqrt(squares / static_cast<double>(grounds)), worst);
}

TEST(GeometryGround, HeightsAreAboveTheSurface) {
    PointCloud cloud(10100);
    for (int64_t i = 0; i < 10000; ++i) {
        const auto x = static_cast<float>(i % 100), y = static_cast<float>(i / 100);
        float* p = cloud.positions.data() + 3 * i;
        p[0] = x + 0.3f, p[1] = y + 0.6f, p[2] = 0.2f * p[0] - 0.1f * p[1];
    }
    for (int64_t i = 10000; i < 10100; ++i) {
        float* p = cloud.positions.data() + 3 * i;
        p[0] = static_cast<float>(i - 10000), p[1] = 50;
        p[2] = 0.2f * p[0] - 0.1f * p[1] + 4;
    }
    const Ground found = geometry::find_ground(cloud, {});
    for (int64_t i = 0; i < 10100; ++i) {
        EXPECT_EQ(found.is_ground[i], i < 10000) << i;
        const bool is_inner = cloud.positions.data()[3 * i] > 2 && cloud.positions.data()[3 * i] < 98;
        if (is_inner) {
            ASSERT_NEAR(found.height.data()[i], i < 10000 ? 0 : 4, 0.12) << i;
        }
    }
}

TEST(GeometryGround, PlacesAndThreadsDoNotMatter) {
    const Terrain made = terrain(20000);
    set_threads(1);
    const Ground one = geometry::find_ground(made.cloud, {});
    set_threads(3);
    const Ground three = geometry::find_ground(made.cloud, {});
    set_threads(0);
    EXPECT_EQ(one.is_ground, three.is_ground);
    EXPECT_TRUE(std::equal(one.height.span().begin(), one.height.span().end(), three.height.span().begin()));
    PointCloud moved = made.cloud.clone();
    moved.origin = {};
    EXPECT_EQ(geometry::find_ground(moved, {}).is_ground, one.is_ground);
}

TEST(GeometryGround, LittleOrNothing) {
    EXPECT_TRUE(geometry::find_ground(PointCloud(0), {}).is_ground.empty());
    PointCloud cloud(3);
    const float at[9] = {0, 0, 1, NAN, 0, 0, 0, 0, HUGE_VALF};
    std::copy_n(at, 9, cloud.positions.data());
    const Ground one = geometry::find_ground(cloud, {});
    EXPECT_EQ(one.is_ground, (std::vector<uint8_t>{1, 0, 0}));
    EXPECT_EQ(one.height.data()[0], 0);
    EXPECT_TRUE(std::isnan(one.height.data()[1]));
    cloud.positions.data()[3] = 1e7f, cloud.positions.data()[4] = 1e7f;
    EXPECT_THROW(geometry::find_ground(cloud, {}), Error);
    GroundOptions bad;
    bad.cell = 0;
    EXPECT_THROW(geometry::find_ground(cloud, bad), Error);
    bad = {};
    bad.slope = -1;
    EXPECT_THROW(geometry::find_ground(cloud, bad), Error);
    bad = {};
    bad.window = NAN;
    EXPECT_THROW(geometry::find_ground(cloud, bad), Error);
}

TEST(GeometryGround, ExtremesOfWindowsAgreeWithLookingAtAll) {
    const Rng rng(4);
    for (const auto& [columns, rows] : {std::pair<int64_t, int64_t>{1, 1}, {7, 1}, {1, 9}, {13, 22}, {40, 31}}) {
        HeightField field(columns, rows);
        for (size_t i = 0; i < field.heights.size(); ++i) field.heights[i] = rng.uniform(i);
        for (const int64_t radius : {1, 2, 3, 7, 50}) {
            const HeightField low = lowest_around(field, radius), high = highest_around(field, radius);
            for (int64_t row = 0; row < rows; ++row)
                for (int64_t column = 0; column < columns; ++column) {
                    float least = 2, most = -1;
                    for (int64_t r = std::max<int64_t>(0, row - radius); r <= std::min(rows - 1, row + radius); ++r)
                        for (int64_t c = std::max<int64_t>(0, column - radius);
                             c <= std::min(columns - 1, column + radius); ++c)
                            least = std::min(least, field.at(c, r)), most = std::max(most, field.at(c, r));
                    ASSERT_EQ(low.at(column, row), least) << columns << " " << rows << " " << radius;
                    ASSERT_EQ(high.at(column, row), most) << columns << " " << rows << " " << radius;
                }
        }
    }
}

TEST(GeometryGround, HolesAreFilledBetweenWhatIsKnown) {
    HeightField field(64, 48);
    const Rng rng(6);
    for (int64_t row = 0; row < 48; ++row)
        for (int64_t column = 0; column < 64; ++column)
            if (rng.uniform(static_cast<uint64_t>(row * 64 + column)) < 0.2 && !(row > 20 && row < 30 && column > 30))
                field.at(column, row) = 0.25f * static_cast<float>(column) + 0.5f * static_cast<float>(row);
    const HeightField full = filled(field);
    for (int64_t row = 2; row < 46; ++row)
        for (int64_t column = 2; column < 60; ++column) {
            const float expected = 0.25f * static_cast<float>(column) + 0.5f * static_cast<float>(row);
            EXPECT_NEAR(full.at(column, row), expected, 1.5) << column << " " << row;
            if (!std::isnan(field.at(column, row))) {
                EXPECT_EQ(full.at(column, row), field.at(column, row));
            }
        }
    EXPECT_EQ(filled(HeightField(3, 2)).heights, std::vector<float>(6, 0.0f));
    EXPECT_NEAR(full.between(10.5, 20.5), full.at(10, 20), 1e-6);
    EXPECT_NEAR(full.between(-5, 20.5), full.at(0, 20), 1e-6);
}

}  // namespace
}  // namespace stipple::test
