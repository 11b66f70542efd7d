#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "stipple/picture/coloring.h"
#include "stipple/picture/legend.h"
#include "tests/picture/scene.h"

namespace stipple::picture {
namespace {

TEST(ColorMap, EndsAndNames) {
    EXPECT_EQ(map_color(ColorMap::viridis, 0), (Rgb{0x44, 0x01, 0x54}));
    EXPECT_EQ(map_color(ColorMap::viridis, 1), (Rgb{0xfd, 0xe7, 0x25}));
    EXPECT_EQ(map_color(ColorMap::viridis, 7), map_color(ColorMap::viridis, 1));
    EXPECT_EQ(map_color(ColorMap::viridis, std::nan("")), map_color(ColorMap::viridis, 0));
    EXPECT_NEAR(map_color(ColorMap::coolwarm, 0.5).g, 0xdd, 1);
    for (std::string_view name : color_map_names())
        EXPECT_EQ(color_map_names()[static_cast<size_t>(color_map_by_name(name))], name);
    EXPECT_THROW(color_map_by_name("jet"), Error);
    EXPECT_EQ(parse_color("#1aB0ff"), (Rgb{0x1a, 0xb0, 0xff}));
    for (const char* bad : {"", "#", "#12345", "#1234567", "#12345g", "red"}) EXPECT_THROW(parse_color(bad), Error);
}

TEST(ColorMap, LightnessOfViridisRises) {
    double last = -1;
    for (int i = 0; i <= 20; ++i) {
        const Rgb c = map_color(ColorMap::viridis, i / 20.0);
        const double light = 0.3 * c.r + 0.59 * c.g + 0.11 * c.b;
        EXPECT_GT(light, last);
        last = light;
    }
}

TEST(ColorMap, CategoriesDiffer) {
    std::set<std::tuple<int, int, int>> seen;
    for (int64_t i = 0; i < 40; ++i) {
        const Rgb c = category_color(i);
        seen.insert({c.r, c.g, c.b});
    }
    EXPECT_EQ(seen.size(), 40u);
}

TEST(Coloring, ChoosesByNameAndType) {
    PointCloud cloud = cloud_of({{0, 0, 0}, {1, 2, 3}});
    add_attribute<uint16_t>(cloud, "color", 3, {65535, 0, 0, 0, 65535, 0});
    add_attribute<int32_t>(cloud, "label", 1, {4, -2});
    add_attribute<uint16_t>(cloud, "intensity", 1, {0, 100});
    add_attribute<float>(cloud, "normal", 3, {0, 0, 1, 0, 0, -2});
    ColorScale scale;
    scale.high = 100;
    scale.labels = {-2, 4};
    const auto color = [&](const char* by, int64_t i) {
        return to_rgb(Coloring(cloud, nullptr, by, kBlue).of_point(i, 0, scale));
    };
    EXPECT_EQ(color("", 0), kRed);
    EXPECT_EQ(color("color", 1), (Rgb{0, 255, 0}));
    EXPECT_EQ(color("constant", 1), kBlue);
    EXPECT_EQ(color("#102030", 1), (Rgb{16, 32, 48}));
    EXPECT_EQ(color("label", 0), category_color(1));
    EXPECT_EQ(color("label", 1), category_color(0));
    EXPECT_EQ(color("intensity", 1), map_color(scale.map, 1));
    EXPECT_EQ(color("normal", 1), (Rgb{128, 128, 0}));
    EXPECT_EQ(Coloring(cloud, nullptr, "z", kBlue).kind(), ColorKind::axis);
    EXPECT_EQ(Coloring(cloud, nullptr, "depth", kBlue).kind(), ColorKind::depth);
    try {
        Coloring(cloud, nullptr, "error", kBlue);
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_argument);
        EXPECT_NE(error.hint().find("intensity"), std::string::npos);
    }
}

TEST(Coloring, RangeIgnoresTheTails) {
    std::vector<double> values(1000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    values[3] = 1e9;
    double low, high;
    choose_range(values, low, high);
    EXPECT_NEAR(low, 20, 2);
    EXPECT_NEAR(high, 980, 2);
    for (std::vector<double> few : {std::vector<double>{}, {7.0}, {7, 7, 7}, {1e300, 1e300}, {-1.7e308, 1.7e308}}) {
        choose_range(few, low, high);
        EXPECT_LT(low, high);
        EXPECT_TRUE(std::isfinite(high - low));
    }
}

TEST(Legend, TicksAreRoundAndInside) {
    for (auto [low, high] : {std::pair{0.0, 1.0}, {-3.2, 7.9}, {1e-7, 3e-7}, {4e6, 9e6}, {19.999, 20.001}}) {
        const std::vector<Tick> ticks = choose_ticks(low, high, 5);
        EXPECT_GE(ticks.size(), 2u) << low;
        EXPECT_LE(ticks.size(), 7u) << low;
        for (const Tick& tick : ticks) {
            EXPECT_GE(tick.value, low - 1e-9 * std::abs(low));
            EXPECT_LE(tick.value, high + 1e-9 * std::abs(high));
        }
    }
    EXPECT_EQ(choose_ticks(0, 1, 5)[1].text, "0.2");
    EXPECT_TRUE(choose_ticks(1, 1, 5).empty());
    EXPECT_TRUE(choose_ticks(-1e308, 1e308, 5).empty());
    choose_ticks(1e300, 1.0000001e300, 5);
}

TEST(Coloring, WithoutAWishByColourThenIntensityThenHeight) {
    PointCloud cloud = cloud_of({{0, 1, 2}, {3, 4, 5}});
    EXPECT_EQ(automatic_color(cloud, UpAxis::z), "z");
    EXPECT_EQ(automatic_color(cloud, UpAxis::minus_y), "y");
    add_attribute<float>(cloud, "intensity", 1, {0.5f, 0.5f});  // tells nothing
    EXPECT_EQ(automatic_color(cloud, UpAxis::x), "x");
    cloud.attributes.clear();
    add_attribute<float>(cloud, "intensity", 1, {0.5f, 0.6f});
    EXPECT_EQ(automatic_color(cloud, UpAxis::z), "intensity");
    EXPECT_EQ(Coloring(cloud, nullptr, "", {1, 2, 3}).kind(), ColorKind::scalar);
    add_attribute<uint8_t>(cloud, "color", 3, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(automatic_color(cloud, UpAxis::z), "color");
    Mesh mesh;
    mesh.vertices = cloud_of({{0, 0, 0}});
    EXPECT_EQ(Coloring(mesh.vertices, &mesh, "", {1, 2, 3}).kind(), ColorKind::constant);
}

}  // namespace
}  // namespace stipple::picture
