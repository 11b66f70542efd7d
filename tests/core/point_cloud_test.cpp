#include "stipple/core/point_cloud.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "tests/support/allocation.h"
#include "tests/support/not_finite.h"

namespace stipple {
namespace {
using test::kNan;

constexpr float kInf = std::numeric_limits<float>::infinity();

PointCloud cloud_of(std::vector<std::array<float, 3>> points) {
    PointCloud cloud(static_cast<int64_t>(points.size()));
    if (!points.empty()) std::memcpy(cloud.positions.data(), points.data(), points.size() * 12);
    return cloud;
}

void add_label(PointCloud& cloud) {
    Attribute label("label", DType::i32, cloud.size(), 1);
    for (int64_t i = 0; i < cloud.size(); ++i) label.as<int32_t>()(i, 0) = static_cast<int32_t>(100 + i);
    cloud.attributes.push_back(std::move(label));
}

Array<int32_t, 1> indices_of(std::vector<int32_t> values) {
    Array<int32_t, 1> array({static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), array.data());
    return array;
}

void expect_bad_argument(const std::function<void()>& f, const std::string& part) {
    try {
        f();
        ADD_FAILURE() << "nothing was thrown, expected: " << part;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_argument);
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

TEST(PointCloud, SelectCarriesEverythingAlong) {
    PointCloud cloud = cloud_of({{0, 1, 2}, {3, 4, 5}, {6, 7, 8}});
    cloud.origin = {1e6, 2e6, 3};
    add_label(cloud);
    const PointCloud picked = select(cloud, indices_of({2, 0, 2}).view());
    ASSERT_EQ(picked.size(), 3);
    EXPECT_EQ(picked.origin, cloud.origin);
    EXPECT_EQ(picked.world(0, 0), 1e6 + 6);
    EXPECT_EQ(picked.world(1, 2), 5.0);
    const Attribute* label = find(picked.attributes, "label");
    ASSERT_TRUE(label);
    EXPECT_EQ(label->as<int32_t>()(0, 0), 102);
    EXPECT_EQ(label->as<int32_t>()(1, 0), 100);
    validate(picked);
}

TEST(PointCloud, SelectOfNothingAndOutOfRange) {
    PointCloud cloud = cloud_of({{0, 1, 2}});
    add_label(cloud);
    const PointCloud none = select(cloud, indices_of({}).view());
    EXPECT_EQ(none.size(), 0);
    EXPECT_EQ(none.attributes.size(), 1u);
    validate(none);
    expect_bad_argument([&] { select(cloud, indices_of({1}).view()); }, "index 1 of 1");
    expect_bad_argument([&] { select(cloud, indices_of({-1}).view()); }, "index -1");
    EXPECT_EQ(select(PointCloud(), indices_of({}).view()).size(), 0);
    expect_bad_argument([&] { select(PointCloud(), indices_of({0}).view()); }, "index 0 of 0");
}

TEST(PointCloud, Validate) {
    validate(PointCloud());
    validate(cloud_of({}));
    PointCloud cloud = cloud_of({{0, 1, 2}, {3, 4, 5}});
    add_label(cloud);
    validate(cloud);
    cloud.attributes.emplace_back("time", DType::f64, 1, 1);
    expect_bad_argument([&] { validate(cloud); }, "time has 1 rows for 2");
    cloud.attributes.pop_back();
    add_label(cloud);
    expect_bad_argument([&] { validate(cloud); }, "two attributes are named label");
    PointCloud flat;
    flat.positions = Array<float, 2>({2, 2});
    expect_bad_argument([&] { validate(flat); }, "[n, 3], got [2, 2]");
}

TEST(Mesh, Validate) {
    Mesh mesh;
    validate(mesh);
    mesh.vertices = cloud_of({{0, 0, 0}, {1, 0, 0}, {0, 1, 0}});
    mesh.triangles = Array<int32_t, 2>({1, 3});
    std::copy_n(std::array{0, 1, 2}.data(), 3, mesh.triangles.data());
    validate(mesh);
    mesh.triangles.data()[2] = 3;
    expect_bad_argument([&] { validate(mesh); }, "triangle index 3 of 3");
    mesh.triangles.data()[2] = -1;
    expect_bad_argument([&] { validate(mesh); }, "triangle index -1");
    mesh.triangles = Array<int32_t, 2>({1, 4});
    std::fill_n(mesh.triangles.data(), 4, 0);
    expect_bad_argument([&] { validate(mesh); }, "[m, 3], got [1, 4]");
    mesh.triangles = Array<int32_t, 2>({0, 3});
    mesh.face_attributes.emplace_back("label", DType::i32, 1, 1);
    expect_bad_argument([&] { validate(mesh); }, "label has 1 rows for 0");
}

TEST(PointCloud, BoundsIgnoreWhatIsNotFinite) {
    EXPECT_EQ(bounds_of(PointCloud()).finite, 0);
    EXPECT_EQ(bounds_of(cloud_of({{kNan, 0, 0}})).finite, 0);
    EXPECT_EQ(bounds_of(cloud_of({{kNan, 0, 0}})).min, (std::array<double, 3>{}));
    PointCloud cloud = cloud_of({{1, -2, 3}, {kNan, 99, 99}, {4, 5, -6}, {99, kInf, 99}, {99, 99, -kInf}});
    cloud.origin = {10, 20, 30};
    const Bounds bounds = bounds_of(cloud);
    EXPECT_EQ(bounds.finite, 2);
    EXPECT_EQ(bounds.min, (std::array<double, 3>{11, 18, 24}));
    EXPECT_EQ(bounds.max, (std::array<double, 3>{14, 25, 33}));
    const Bounds one = bounds_of(cloud_of({{1e30f, 0, -0.f}}));
    EXPECT_EQ(one.finite, 1);
    EXPECT_EQ(one.min, one.max);
}

TEST(PointCloud, DropNonfinite) {
    PointCloud cloud = cloud_of({{kNan, 0, 0}, {1, 1, 1}, {0, kInf, 0}, {2, 2, 2}, {0, 0, kNan}});
    cloud.origin = {7, 7, 7};
    add_label(cloud);
    const PointCloud kept = drop_nonfinite(cloud);
    ASSERT_EQ(kept.size(), 2);
    EXPECT_EQ(kept.positions.data()[3], 2.f);
    EXPECT_EQ(kept.attributes[0].as<int32_t>()(1, 0), 103);
    EXPECT_EQ(kept.origin, cloud.origin);
    EXPECT_EQ(drop_nonfinite(PointCloud()).size(), 0);
    EXPECT_EQ(drop_nonfinite(cloud_of({{kNan, kNan, kNan}})).size(), 0);
    EXPECT_EQ(drop_nonfinite(cloud_of({{1, 2, 3}})).size(), 1);
}

TEST(PointCloud, ChooseOrigin) {
    using Vector = std::array<double, 3>;
    EXPECT_EQ(choose_origin({0, 0, 0}, {0, 0, 0}), (Vector{0, 0, 0}));
    EXPECT_EQ(choose_origin({-1, -1, -1}, {1, 1, 1}), (Vector{0, 0, 0}));
    // UTM: each axis where the numbers are large for the cloud's extent.
    EXPECT_EQ(choose_origin({500000.2, 4649776.1, 10}, {500100.2, 4649876.1, 60}), (Vector{500050, 4649826, 0}));
    EXPECT_EQ(choose_origin({5.25, 5.25, 5.25}, {5.25, 5.25, 5.25}), (Vector{5, 5, 5}));
    EXPECT_EQ(choose_origin({1e300, 0, 0}, {1e300, 0, 0}), (Vector{0, 0, 0}));
    constexpr double kNanD = std::numeric_limits<double>::quiet_NaN(), kInfD = std::numeric_limits<double>::infinity();
    EXPECT_EQ(choose_origin({kNanD, kNanD, kNanD}, {kNanD, kNanD, kNanD}), (Vector{0, 0, 0}));
    EXPECT_EQ(choose_origin({-kInfD, 0, 0}, {kInfD, 1e9, 1e9}), (Vector{0, 0, 0}));
}

TEST(PointCloud, ChooseOriginOfASample) {
    using Vector = std::array<double, 3>;
    const auto grid = [](double x, double y, double z, double step) {
        std::vector<double> sample;
        for (int i = 0; i < 100; ++i) sample.insert(sample.end(), {x + step * i, y + step * i, z + i});
        return sample;
    };
    EXPECT_EQ(choose_origin(std::vector<double>{}), (Vector{0, 0, 0}));
    EXPECT_EQ(choose_origin(grid(500000, 4649776, 10, 1)), (Vector{500050, 4649826, 0}));
    std::vector<double> strayed = grid(500000, 4649776, 10, 1);
    std::fill_n(strayed.begin() + 150, 3, 0.0);
    EXPECT_EQ(choose_origin(strayed), (Vector{500049, 4649825, 0}));
    // Degrees and metres: a hundredth of a degree is a kilometre, and z is of no concern to it.
    EXPECT_EQ(choose_origin(grid(13.4, 52.5, 0, 1e-4)), (Vector{13.405, 52.505, 0}));
    // One place: whole numbers. A plane: as precise as the rest.
    EXPECT_EQ(choose_origin(std::vector<double>{5.25, 5.25, 0.2}), (Vector{5, 5, 0}));
    std::vector<double> plane = grid(0, 0, 0, 1);
    for (size_t i = 2; i < plane.size(); i += 3) plane[i] = 5.3;
    EXPECT_EQ(choose_origin(plane), (Vector{0, 0, 0}));
}

TEST(PointCloud, ShiftsMoveWhatTellsThePlace) {
    PointCloud cloud = cloud_of({{1, 2, 3}});
    cloud.origin = {10, 20, 30};
    cloud.facts.grid = FileFacts::Grid{{1, 1, 1}, {5, 5, 5}};
    cloud.facts.viewpoint = {0, 0, 7, 1, 0, 0, 0};
    cloud.facts.coordinate_system.push_back({"LASF_Projection", 2112, "", "WKT"});
    shift_origin(cloud, {1, 0, -1});
    EXPECT_EQ(cloud.world(0, 0), 12);
    EXPECT_EQ(cloud.world(0, 2), 32);
    EXPECT_EQ(cloud.facts.grid->offset, (std::array<double, 3>{6, 5, 4}));
    EXPECT_EQ((*cloud.facts.viewpoint)[2], 6);
    EXPECT_TRUE(cloud.facts.coordinate_system.empty());
}

TEST(PointCloud, OriginKeepsFloatPositionsExact) {
    // A float32 coordinate is its origin plus a float32 remainder, without loss: that is why files in float survive.
    for (float x : {500000.2f, 500000.25f, 4649776.5f, 1.1f, 5.3f, -812.7f}) {
        const double origin = choose_origin({x, x, x}, {x, x, x})[0];
        const float rest = static_cast<float>(x - origin);
        EXPECT_EQ(static_cast<float>(origin + rest), x);
    }
}

TEST(PointCloud, CloneIsDeepAndEqual) {
    PointCloud cloud = cloud_of({{0, 1, 2}});
    add_label(cloud);
    const PointCloud copy = cloud.clone();
    EXPECT_TRUE(copy.attributes[0] == cloud.attributes[0]);
    cloud.attributes[0].as<int32_t>()(0, 0) = 7;
    EXPECT_FALSE(copy.attributes[0] == cloud.attributes[0]);
    EXPECT_EQ(PointCloud().clone().size(), 0);
    EXPECT_EQ(Mesh().clone().faces(), 0);
}

TEST(PointCloud, FactsGoWithThePoints) {
    PointCloud cloud = cloud_of({{0, 1, 2}, {3, 4, 5}});
    cloud.facts.coordinate_system.push_back({"LASF_Projection", 2112, "WKT", "GEOGCS"});
    cloud.facts.grid = FileFacts::Grid{{0.01, 0.01, 0.01}, {1, 2, 3}};
    cloud.facts.time_type = TimeType::gps_adjusted_standard;
    cloud.facts.viewpoint = {1, 2, 3, 1, 0, 0, 0};
    EXPECT_EQ(cloud.clone().facts, cloud.facts);
    EXPECT_EQ(select(cloud, indices_of({1}).view()).facts, cloud.facts);
    EXPECT_EQ(drop_nonfinite(cloud).facts, cloud.facts);
    cloud.facts.forget_place();
    FileFacts time_alone;
    time_alone.time_type = TimeType::gps_adjusted_standard;
    EXPECT_EQ(cloud.facts, time_alone);
}

TEST(Attribute, FullBrightnessOfColors) {
    Attribute color("color", DType::u16, 3, 4);
    auto values = color.as<uint16_t>();
    for (int64_t i = 0; i < 3; ++i)
        for (int64_t c = 0; c < 4; ++c) values(i, c) = c == 3 ? 65535 : 255;
    EXPECT_EQ(color_maximum(color), 255);  // 8-bit values; alpha does not count
    values(2, 1) = 256;
    EXPECT_EQ(color_maximum(color), 65535);
    EXPECT_EQ(color_maximum(Attribute("color", DType::u8, 1, 3)), 255);
    EXPECT_EQ(color_maximum(Attribute("color", DType::f32, 1, 3)), 1);
    EXPECT_EQ(color_maximum(Attribute("color", DType::u16, 0, 3)), 255);
}

TEST(Attribute, TypesAndRows) {
    Attribute color("color", DType::u8, 2, 3);
    expect_bad_argument([&] { color.as<float>(); }, "color is uint8, not float32");
    expect_bad_argument([] { Attribute("x", DType::f32, -1, 1); }, "-1 rows");
    expect_bad_argument([] { Attribute("x", DType::f32, 1, 0); }, "0 components");
    expect_bad_argument([] { Attribute("x", DType::f64, int64_t{1} << 62, 2); }, "overflows");
    color.as<uint8_t>()(1, 2) = 200;
    EXPECT_EQ(color.value(1, 2), 200);
    EXPECT_EQ(color.row_bytes(), 3);
}

TEST(PointCloud, SurvivesAllocationFailures) {
    PointCloud cloud = cloud_of({{0, 1, 2}, {kNan, 4, 5}, {6, 7, 8}});
    add_label(cloud);
    EXPECT_GT(test::for_each_allocation_failure([&] { validate(drop_nonfinite(cloud)); }),
              test::can_fail_allocations() ? 3 : -1);
}

}  // namespace
}  // namespace stipple
