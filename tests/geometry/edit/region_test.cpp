#include "stipple/geometry/region.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using geometry::Region;
using geometry::Side;

PointCloud cloud_of(const std::vector<std::array<float, 3>>& points, std::array<double, 3> origin = {}) {
    PointCloud cloud(static_cast<int64_t>(points.size()));
    cloud.origin = origin;
    for (size_t i = 0; i < points.size(); ++i) std::copy_n(points[i].data(), 3, cloud.positions.data() + 3 * i);
    return cloud;
}

Side side_of(std::array<float, 3> point, const Region& region, std::array<double, 3> origin = {}) {
    return geometry::sides_of(cloud_of({point}, origin), region)[0];
}

TEST(GeometryRegion, BoxAndSphereHoldTheirBorder) {
    Region box;
    box.box = {{0, 0, 0}, {1, 2, HUGE_VAL}};
    EXPECT_EQ(side_of({0, 0, 0}, box), Side::inside);
    EXPECT_EQ(side_of({1, 2, 1e30f}, box), Side::inside);
    EXPECT_EQ(side_of({1.0001f, 2, 3}, box), Side::outside);
    EXPECT_EQ(side_of({NAN, 1, 1}, box), Side::nowhere);
    EXPECT_EQ(side_of({0.5f, 1, HUGE_VALF}, box), Side::nowhere);
    Region ball;
    ball.sphere = {{1, 0, 0}, 2};
    EXPECT_EQ(side_of({3, 0, 0}, ball), Side::inside);
    EXPECT_EQ(side_of({3, 0.01f, 0}, ball), Side::outside);
    ball.box = Region::Block{{-10, -10, -10}, {0, 10, 10}};  // both
    EXPECT_EQ(side_of({3, 0, 0}, ball), Side::outside);
    EXPECT_EQ(side_of({-1, 0, 0}, ball), Side::inside);
}

TEST(GeometryRegion, CoordinatesAreTheWorlds) {
    Region box;
    box.box = {{639913.25, 485143.5, 0}, {639913.5, 485144, 1}};
    EXPECT_EQ(side_of({-16.75f, -16, 0.5f}, box, {639930, 485160, 0}), Side::inside);
    EXPECT_EQ(side_of({-16.76f, -16, 0.5f}, box, {639930, 485160, 0}), Side::outside);
}

/// Crossings of a ray to the right, edge by edge, in long double.
bool is_in_polygon(const Region::Polygon& polygon, double x, double y) {
    int crossings = 0;
    for (size_t i = 0; i < polygon.size(); ++i) {
        auto a = polygon[i], b = polygon[(i + 1) % polygon.size()];
        if (a[1] > b[1]) std::swap(a, b);
        if (y < a[1] || y >= b[1]) continue;
        const long double at =
            a[0] + (static_cast<long double>(b[0]) - a[0]) * (static_cast<long double>(y) - a[1]) / (b[1] - a[1]);
        crossings += at > x;
    }
    return crossings % 2 == 1;
}

TEST(GeometryRegion, PolygonsAgreeWithCountingCrossings) {
    PointCloud cloud = random_cloud(3000, 5).vertices.clone();
    for (float& x : cloud.positions.span()) x *= 3;
    const Rng rng(3);
    for (const int corners : {3, 4, 17, 500, 6000}) {
        Region region;  // wild: crosses itself
        for (int i = 0; i < corners; ++i)
            region.polygon.push_back(
                {rng.uniform(2 * static_cast<uint64_t>(i)), rng.uniform(2 * static_cast<uint64_t>(i) + 1)});
        const std::vector<Side> sides = geometry::sides_of(cloud, region);
        int64_t inside = 0;
        for (int64_t i = 0; i < (corners > 1000 ? 300 : cloud.size()); ++i) {
            const bool expected = is_in_polygon(region.polygon, cloud.world(i, 0), cloud.world(i, 1));
            ASSERT_EQ(sides[i] == Side::inside, expected) << corners << " corners, point " << i;
            inside += expected;
        }
        EXPECT_TRUE(inside > 0);
    }
}

TEST(GeometryRegion, PolygonsThatShareEdgesShareNoPoint) {
    std::vector<std::array<float, 3>> points;
    for (int y = -1; y <= 9; ++y)
        for (int x = -1; x <= 9; ++x) points.push_back({0.5f * static_cast<float>(x), 0.5f * static_cast<float>(y), 0});
    const PointCloud cloud = cloud_of(points);
    std::vector<int> holders(points.size(), 0);
    for (int y = 0; y < 4; y += 2)
        for (int x = 0; x < 4; x += 2)
            for (const bool upper : {false, true}) {  // two triangles a square, in both directions
                const double x0 = x, y0 = y, x1 = x + 2, y1 = y + 2;
                Region region;
                if (upper)
                    region.polygon = {{x0, y0}, {x1, y1}, {x0, y1}};
                else
                    region.polygon = {{x1, y0}, {x1, y1}, {x0, y0}};
                const std::vector<Side> sides = geometry::sides_of(cloud, region);
                for (size_t i = 0; i < sides.size(); ++i) holders[i] += sides[i] == Side::inside;
            }
    for (size_t i = 0; i < points.size(); ++i) {
        const bool is_within = points[i][0] >= 0 && points[i][0] < 4 && points[i][1] >= 0 && points[i][1] < 4;
        EXPECT_EQ(holders[i], is_within ? 1 : 0) << points[i][0] << " " << points[i][1];
    }
}

TEST(GeometryRegion, ThreadsDoNotMatterAndEmptyIsFine) {
    Region region;
    region.polygon = {{0, 0}, {1, 0}, {0.3, 1}};
    const PointCloud cloud = random_cloud(50000, 2).vertices.clone();
    set_threads(1);
    const std::vector<Side> one = geometry::sides_of(cloud, region);
    set_threads(3);
    EXPECT_EQ(geometry::sides_of(cloud, region), one);
    set_threads(0);
    EXPECT_TRUE(geometry::sides_of(PointCloud(0), region).empty());
    region.polygon = {{0, 0}, {1, 0}, {2, 0}};  // flat
    EXPECT_EQ(side_of({0.5f, 0, 0}, region), Side::outside);
}

TEST(GeometryRegion, RefusesWhatHoldsNothing) {
    const auto refused = [](const Region& region) {
        try {
            geometry::require_region(region);
        } catch (const Error& error) {
            return error.code() == ErrorCode::bad_argument;
        }
        return false;
    };
    Region region;
    EXPECT_TRUE(refused(region));
    region.box = {{0, 0, 1}, {1, 1, 0}};
    EXPECT_TRUE(refused(region));
    region.box = {{0, 0, NAN}, {1, 1, 1}};
    EXPECT_TRUE(refused(region));
    region.box.reset();
    region.sphere = {{0, 0, 0}, -1};
    EXPECT_TRUE(refused(region));
    region.sphere = {{0, NAN, 0}, 1};
    EXPECT_TRUE(refused(region));
    region.sphere.reset();
    region.polygon = {{0, 0}, {1, 1}};
    EXPECT_TRUE(refused(region));
    region.polygon = {{0, 0}, {1, 1}, {HUGE_VAL, 0}};
    EXPECT_TRUE(refused(region));
}

TEST(GeometryRegion, PolygonsFromText) {
    const Region::Polygon square = {{0, 0}, {1, 0}, {1, 1.5}};
    EXPECT_EQ(geometry::parse_polygon("0 0\n1,0\n 1 1.5 # last\n0 0\n"), square);
    EXPECT_EQ(geometry::parse_polygon("0 0 1 0\n\n1 1.5"), square);
    const auto error = [](std::string_view text) -> std::string {
        try {
            geometry::parse_polygon(text);
        } catch (const Error& e) {
            return e.code() == ErrorCode::bad_file ? e.what() : "?";
        }
        return "";
    };
    EXPECT_NE(error("0 0\n1 x\n").find("expected a number of a corner, found \"x\""), std::string::npos);
    EXPECT_NE(error("0 0\n1 nan\n"), "");
    EXPECT_NE(error("0 0 1 1 2"), "");
    EXPECT_NE(error("0 0 1 1"), "");
    EXPECT_NE(error(""), "");
}

}  // namespace
}  // namespace stipple::test
