#include "stipple/picture/figure.h"

#include <gtest/gtest.h>

#include <cfloat>

#include "stipple/core/parallel.h"
#include "stipple/picture/render/splat.h"
#include "tests/picture/scene.h"

namespace stipple::picture {
namespace {

// Columns that hold something, in a panel.
int64_t width_drawn(const Figure& figure, size_t panel, int64_t side) {
    int64_t columns = 0;
    for (int64_t x = 0; x < side; ++x)
        columns += drawn_in(figure.image, figure.corners[panel][0] + x, figure.corners[panel][1], 1, side) > 0;
    return columns;
}

TEST(Figure, APointIsWhereItShouldBeInItsColor) {
    const PointCloud cloud = cloud_of({{0, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}});
    Panel panel{&cloud};
    panel.color_by = "#ff0000";
    FigureStyle style = plain_style(101);
    style.point_radius = 4;
    const Image image = draw_figure({&panel, 1}, style).image;
    ASSERT_EQ(image.width(), 101);
    ASSERT_EQ(image.channels(), 3);
    const int64_t edge = 4;  // the margin
    for (auto [x, y] : {std::pair{50, 50}, {50, 4}, {50, 96}, {4, 50}, {96, 50}}) EXPECT_EQ(pixel(image, x, y), kRed);
    for (auto [x, y] : {std::pair{0, 0}, {50, 30}, {30, 50}, {100, 100}}) EXPECT_EQ(pixel(image, x, y), kWhite);
    EXPECT_EQ(pixel(image, 50 + edge + 2, 50), kWhite);
}

TEST(Figure, EdgesOfSplatsAreSmooth) {
    const PointCloud cloud = cloud_of({{0, 0, 0}});
    Panel panel{&cloud};
    panel.color_by = "#000000";
    FigureStyle style = plain_style(64);
    style.point_radius = 10;
    const Image image = draw_figure({&panel, 1}, style).image;
    double ink = 0;
    int64_t between = 0;
    for (int64_t y = 0; y < 64; ++y)
        for (int64_t x = 0; x < 64; ++x) {
            const int value = pixel(image, x, y).g;
            ink += (255 - value) / 255.0;
            between += value > 0 && value < 255;
        }
    EXPECT_NEAR(ink, 3.14159 * 100, 4);
    EXPECT_GT(between, 30);
}

TEST(Figure, TheNearerPointHides) {
    PointCloud cloud = cloud_of({{-1, 0, 0}, {1, 0, 0}});
    add_attribute<uint8_t>(cloud, "color", 3, {255, 0, 0, 0, 0, 255});
    Panel panel{&cloud};
    FigureStyle style = plain_style();
    style.point_radius = 5;
    EXPECT_EQ(pixel(draw_figure({&panel, 1}, style).image, 32, 32), kBlue);
    style.viewpoint.azimuth = 180;
    EXPECT_EQ(pixel(draw_figure({&panel, 1}, style).image, 32, 32), kRed);
    style.viewpoint.projection = Projection::perspective;
    EXPECT_EQ(pixel(draw_figure({&panel, 1}, style).image, 32, 32), kRed);
}

TEST(Figure, MeshAndCloudHideEachOther) {
    const Mesh wall = wall_mesh(1);
    PointCloud cloud = cloud_of({{0.5f, 0.5f, 0}, {-0.5f, -0.5f, 0}});  // before and behind
    Panel panel{&cloud, &wall};
    panel.color_by = "#ff0000";
    panel.mesh_color = kBlue;
    FigureStyle style = plain_style(101);
    style.point_radius = 4;
    const Image image = draw_figure({&panel, 1}, style).image;
    EXPECT_EQ(pixel(image, 50 + 23, 50), kRed);
    EXPECT_EQ(pixel(image, 50 - 23, 50), kBlue);
}

TEST(Figure, TrianglesLeaveNoGaps) {
    const Mesh wall = wall_mesh(37);
    for (Projection projection : {Projection::orthographic, Projection::perspective})
        for (double azimuth : {0.0, 31.0}) {
            FigureStyle style = plain_style(200);
            style.viewpoint.projection = projection;
            style.viewpoint.azimuth = azimuth;
            style.viewpoint.elevation = azimuth / 2;
            Panel panel;
            panel.mesh = &wall;
            panel.color_by = "#ff0000";
            const Image image = draw_figure({&panel, 1}, style).image;
            for (int64_t y = 70; y < 130; ++y)
                for (int64_t x = 70; x < 130; ++x) ASSERT_EQ(pixel(image, x, y), kRed) << x << " " << y;
        }
}

TEST(Figure, FacesTowardsTheLightAreBrighterAndBothSidesAreLit) {
    // Two roofs: one slope up to the left (towards the light), one down to the right.
    const Mesh roof = mesh_of({{0, -1, -1}, {0, -1, 1}, {0.8f, 0, -1}, {0.8f, 0, 1}, {0, 1, -1}, {0, 1, 1}},
                              {{0, 2, 1}, {1, 2, 3}, {2, 4, 3}, {3, 4, 5}});
    Mesh turned = roof.clone();
    for (int64_t i = 0; i < turned.faces(); ++i)
        std::swap(turned.triangles.data()[3 * i], turned.triangles.data()[3 * i + 1]);
    FigureStyle style = plain_style(100);
    style.light = 1;
    const Image image = draw_mesh(roof, style);
    EXPECT_GT(pixel(image, 30, 50).g, pixel(image, 70, 50).g + 15);
    EXPECT_TRUE(same_pixels(image, draw_mesh(turned, style)));
}

TEST(Figure, SmoothNormalsBlendAndFlatOnesDoNot) {
    const Mesh bend = mesh_of({{0, -1, -1}, {0, -1, 1}, {0.3f, 0, -1}, {0.3f, 0, 1}, {0, 1, -1}, {0, 1, 1}},
                              {{0, 2, 1}, {1, 2, 3}, {2, 4, 3}, {3, 4, 5}});
    FigureStyle style = plain_style(100);
    style.light = 1;
    const auto step = [&](const Image& image) { return std::abs(pixel(image, 48, 50).g - pixel(image, 52, 50).g); };
    EXPECT_LT(step(draw_mesh(bend, style)), 4);
    style.smooth = false;
    EXPECT_GT(step(draw_mesh(bend, style)), 8);
}

TEST(Figure, TheSamePixelsForAnyNumberOfThreads) {
    PointCloud cloud = sphere_cloud(60'000, 1);
    cloud.positions.data()[7] = std::nanf("");
    std::vector<float> values(60'000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 977);
    add_attribute<float>(cloud, "value", 1, values);
    const PointCloud sparse = sphere_cloud(300, 0.9f);
    const Mesh wall = wall_mesh(40);
    std::vector<Panel> panels(3);
    panels[0].cloud = &cloud;
    panels[0].color_by = "value";
    panels[0].caption = "dense";
    panels[1].cloud = &sparse;
    panels[1].mesh = &wall;
    panels[2].mesh = &wall;
    FigureStyle style;
    style.panel_width = 210;
    style.panel_height = 190;
    style.inset = Inset{};
    set_threads(1);
    const Figure one = draw_figure(panels, style);
    EXPECT_EQ(one.panels[0].nonfinite, 1);
    for (int threads : {2, 5}) {
        set_threads(threads);
        EXPECT_TRUE(same_pixels(one.image, draw_figure(panels, style).image)) << threads;
    }
    set_threads(0);
}

TEST(Figure, NothingCrashesIt) {
    const float nan = std::nanf(""), inf = INFINITY;
    std::vector<PointCloud> clouds;
    clouds.push_back(cloud_of({}));
    clouds.push_back(cloud_of({{nan, 0, 0}, {0, inf, 0}, {0, 0, -inf}}));
    clouds.push_back(cloud_of({{3, 3, 3}}));
    clouds.push_back(cloud_of(std::vector<std::array<float, 3>>(500, {1, 2, 3})));
    clouds.push_back(cloud_of({{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3}}));
    clouds.push_back(cloud_of({{0, 0, 0}, {1, 0, 0}, {2, 0, 0}}));
    clouds.push_back(cloud_of({{1e30f, 1e30f, 1e30f}, {-1e30f, 0, 5}, {1, 1, 1}}));
    clouds.push_back(cloud_of({{FLT_MAX, FLT_MAX, FLT_MAX}, {-FLT_MAX, -FLT_MAX, -FLT_MAX}}));
    clouds.push_back(cloud_of({{1e-44f, 0, 0}, {0, 1e-44f, 0}, {0, 0, 1e-44f}}));
    clouds.push_back(cloud_of({{1e30f, 1, 1}, {1e30f, 1, 1}}));
    clouds.push_back(sphere_cloud(1000, 1));
    clouds.back().positions.data()[0] = 3e38f;
    for (PointCloud& cloud : clouds) {
        Mesh mesh;
        mesh.vertices = cloud.clone();
        const auto n = static_cast<int32_t>(cloud.size());
        mesh.triangles = Array<int32_t, 2>({n >= 3 ? n - 2 : 0, 3});
        for (int32_t i = 0; i + 2 < n; ++i)
            for (int32_t k = 0; k < 3; ++k) mesh.triangles.data()[3 * i + k] = i + k;
        for (Projection projection : {Projection::orthographic, Projection::perspective})
            for (const char* by : {"", "x", "depth"}) {
                std::vector<Panel> panels(3);
                panels[0].cloud = &cloud;
                panels[1].mesh = &mesh;
                for (Panel& panel : panels) {
                    panel.color_by = by;
                    panel.caption = "caption";
                }
                FigureStyle style;
                style.panel_width = style.panel_height = 48;
                style.viewpoint.projection = projection;
                style.scale_bar = true;
                style.inset = Inset{};
                style.edges = true;
                for (bool shared : {true, false}) {
                    style.shared_camera = shared;
                    const Figure figure = draw_figure(panels, style);
                    EXPECT_EQ(figure.panels.size(), 3u);
                    EXPECT_LE(figure.panels[0].points + figure.panels[0].nonfinite, cloud.size());
                }
            }
    }
    const Figure none = draw_figure({}, FigureStyle{});
    EXPECT_EQ(drawn_in(none.image, 0, 0, none.image.width(), none.image.height()), 0);
    EXPECT_EQ(draw_figure(std::vector<Panel>(1), plain_style()).image.width(), 64);
}

TEST(Figure, CountsWhatItSkips) {
    PointCloud cloud = sphere_cloud(100, 1);
    cloud.positions.data()[0] = std::nanf("");
    cloud.positions.data()[31] = INFINITY;
    Panel panel{&cloud};
    const Figure figure = draw_figure({&panel, 1}, plain_style());
    EXPECT_EQ(figure.panels[0].nonfinite, 2);
    EXPECT_EQ(figure.panels[0].points, 98);
}

TEST(Figure, PanelsShareTheScale) {
    const PointCloud large = sphere_cloud(4000, 1), small = sphere_cloud(4000, 0.5f);
    const Panel panels[] = {{&large}, {&small}};
    FigureStyle style = plain_style(200);
    Figure figure = draw_figure(panels, style);
    EXPECT_NEAR(static_cast<double>(width_drawn(figure, 0, 200)) / static_cast<double>(width_drawn(figure, 1, 200)), 2,
                0.1);
    style.shared_camera = false;
    figure = draw_figure(panels, style);
    EXPECT_NEAR(static_cast<double>(width_drawn(figure, 0, 200)), static_cast<double>(width_drawn(figure, 1, 200)), 4);
}

TEST(Figure, OriginsArePutInTheirTrueRelation) {
    // 500 km away: float32 would not tell the two apart, the origins do.
    PointCloud left = cloud_of({{0, 0, 0}}), right = cloud_of({{0, 0, 0}});
    left.origin = {1e5, 5e5, 200};
    right.origin = {1e5, 5e5 + 0.01, 200};
    Panel panels[] = {{&left}, {&right}};
    panels[0].color_by = "#ff0000";
    panels[1].color_by = "#0000ff";
    FigureStyle style = plain_style(101);
    style.point_radius = 4;
    const Figure figure = draw_figure(panels, style);
    const auto at = [&](size_t panel, int64_t x) {
        return pixel(figure.image, figure.corners[panel][0] + x, figure.corners[panel][1] + 50);
    };
    EXPECT_EQ(at(0, 4), kRed);
    EXPECT_EQ(at(0, 96), kWhite);
    EXPECT_EQ(at(1, 96), kBlue);
    EXPECT_EQ(at(1, 4), kWhite);
}

TEST(Figure, CaptionsTitlesAndLegendsAreDrawn) {
    PointCloud cloud = sphere_cloud(500, 1);
    Panel panel{&cloud};
    FigureStyle style = plain_style(128);
    EXPECT_EQ(draw_figure({&panel, 1}, style).image.height(), 128);  // a bare picture has no margins
    panel.caption = "a sphere";
    Figure figure = draw_figure({&panel, 1}, style);
    const int64_t below = figure.corners[0][1] + 128;
    EXPECT_GT(drawn_in(figure.image, 0, below, figure.image.width(), figure.image.height() - below), 40);

    style.title = "title";
    figure = draw_figure({&panel, 1}, style);
    EXPECT_GT(drawn_in(figure.image, 0, 0, figure.image.width(), figure.corners[0][1]), 40);

    panel.color_by = "z";
    figure = draw_figure({&panel, 1}, style);
    const int64_t beside = figure.corners[0][0] + 128;
    EXPECT_GT(drawn_in(figure.image, beside, 0, figure.image.width() - beside, figure.image.height()), 500);
    bool has_top = false;  // the end of the colour map stands in the bar
    for (int64_t y = 0; y < figure.image.height(); ++y)
        for (int64_t x = beside; x < figure.image.width(); ++x)
            has_top |= pixel(figure.image, x, y).r > 240 && pixel(figure.image, x, y).b < 45;
    EXPECT_TRUE(has_top);
    style.legend = false;
    EXPECT_LT(draw_figure({&panel, 1}, style).image.width(), figure.image.width());
    style.legend = true;

    std::vector<int32_t> labels(500);
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i % 3);
    add_attribute<int32_t>(cloud, "label", 1, labels);
    panel.color_by = "label";
    style.label_names = {{0, "wing"}, {1, "tail"}};
    figure = draw_figure({&panel, 1}, style);
    for (int64_t label = 0; label < 3; ++label) {
        int64_t swatch = 0;
        for (int64_t y = 0; y < figure.image.height(); ++y)
            for (int64_t x = beside; x < figure.image.width(); ++x)
                swatch += pixel(figure.image, x, y) == category_color(label);
        EXPECT_GT(swatch, 20) << label;
    }
    // Labels that were named beforehand keep their colours and places: here the cloud shows the last of four.
    std::fill(labels.begin(), labels.end(), 7);
    std::copy(labels.begin(), labels.end(), find(cloud.attributes, "label")->as<int32_t>().data());
    style.labels = {4, 5, 6, 7};
    figure = draw_figure({&panel, 1}, style);
    const auto drawn = [&](Rgb color) {
        int64_t count = 0;
        for (int64_t y = 0; y < figure.image.height(); ++y)
            for (int64_t x = beside; x < figure.image.width(); ++x) count += pixel(figure.image, x, y) == color;
        return count;
    };
    for (int64_t i = 0; i < 4; ++i) EXPECT_GT(drawn(category_color(i)), 20) << i;
}

TEST(Figure, PanelsShareTheRangeOfColors) {
    const PointCloud low = cloud_of({{0, 0, 0}, {0, 0, 1}}), high = cloud_of({{0, 0, 9}, {0, 0, 10}});
    Panel panels[] = {{&low}, {&high}};
    for (Panel& panel : panels) panel.color_by = "z";
    FigureStyle style = plain_style();
    Figure figure = draw_figure(panels, style);
    EXPECT_EQ(figure.low, 0);
    EXPECT_EQ(figure.high, 10);
    style.range = {-5, 5};
    figure = draw_figure(panels, style);
    EXPECT_EQ(figure.low, -5);
    style.range = {5, 5};
    EXPECT_THROW(draw_figure(panels, style), Error);
}

TEST(Figure, PanelsOfDifferentAttributesHaveTheirOwnRangeAndBar) {
    PointCloud cloud = sphere_cloud(400, 1);
    std::vector<float> error(400);
    std::vector<int32_t> labels(400);
    for (size_t i = 0; i < 400; ++i) {
        error[i] = 1000 + static_cast<float>(i);
        labels[i] = static_cast<int32_t>(i % 3);
    }
    add_attribute<float>(cloud, "error", 1, error);
    add_attribute<int32_t>(cloud, "label", 1, labels);
    Panel panels[] = {{&cloud}, {&cloud}, {&cloud}, {&cloud}, {&cloud}};
    panels[0].color_by = panels[3].color_by = "z";
    panels[1].color_by = "error";
    panels[2].color_by = "label";
    panels[4].color_by = "#102030";
    FigureStyle style = plain_style(128);
    style.columns = 5;
    const Figure figure = draw_figure(panels, style);
    EXPECT_LT(figure.panels[0].high, 2);
    EXPECT_EQ(figure.panels[0].low, figure.panels[3].low);
    EXPECT_GT(figure.panels[1].low, 999);
    EXPECT_EQ(figure.low, figure.panels[0].low);
    // Beside each panel, in its own strip up to the next one.
    for (size_t i = 0; i < 5; ++i) {
        const int64_t begin = figure.corners[i][0] + 128;
        const int64_t end = i + 1 < 5 ? figure.corners[i + 1][0] : figure.image.width();
        EXPECT_GT(end - begin, 20);
        const int64_t drawn = drawn_in(figure.image, begin, 0, end - begin, figure.image.height());
        EXPECT_EQ(drawn > 100, i != 4) << i << ' ' << drawn;
    }
    // The same attribute twice is one scale and one bar.
    Panel same[] = {{&cloud}, {&cloud}};
    same[0].color_by = same[1].color_by = "z";
    const Figure shared = draw_figure(same, style);
    EXPECT_LT(shared.corners[1][0] - shared.corners[0][0], 128 + 20);
    style.range = {-3, 3};
    EXPECT_EQ(draw_figure(panels, style).panels[1].high, 3);
}

TEST(Figure, NoPointIsCutOffAtTheEdge) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
        const Rng rng(seed);
        const int64_t n = 3 + static_cast<int64_t>(rng.below(0, 3000));
        PointCloud cloud(n);
        for (int64_t i = 0; i < n; ++i)
            for (int axis = 0; axis < 3; ++axis) {
                const float u = 2 * rng.uniform(static_cast<uint64_t>(10 + 3 * i + axis)) - 1;
                cloud.positions.data()[3 * i + axis] = (axis == static_cast<int>(seed % 3) ? 0.1f : 1.f) * u * u * u;
            }
        Panel panel{&cloud};
        panel.color_by = "#ff0000";
        FigureStyle style = plain_style();
        style.panel_width = 40 + static_cast<int64_t>(rng.below(1, 300));
        style.panel_height = 40 + static_cast<int64_t>(rng.below(2, 300));
        style.point_radius = seed % 2 ? 0 : 6 * rng.uniform(3);
        style.viewpoint.azimuth = 360 * rng.uniform(4);
        style.viewpoint.elevation = 180 * rng.uniform(5) - 90;
        style.viewpoint.field_of_view = 28 + 60 * rng.uniform(6);
        style.viewpoint.projection = seed % 5 ? Projection::perspective : Projection::orthographic;
        const Figure figure = draw_figure({&panel, 1}, style);
        EXPECT_EQ(figure.panels[0].points, n) << seed;
        const Camera& camera = figure.cameras[0];
        SplatSizes sizes;
        sizes.radius = style.point_radius / camera.pixels_per_unit(camera.depth_middle());
        if (style.point_radius == 0) sizes = choose_splat_sizes(cloud, camera, style.panel_width, style.panel_height);
        double beyond = -1;
        for (int64_t i = 0; i < n; ++i) {
            const float* p = cloud.positions.data() + 3 * i;
            const Projected at = camera.project({p[0], p[1], p[2]}, camera.offset_of(cloud));
            const double radius = sizes.radius * static_cast<double>(sizes.factor_at(at.x, at.y));
            const double r = splat_pixels(camera, radius, at.depth);
            beyond = std::max({beyond, r - at.x, r - at.y, at.x + r - static_cast<double>(style.panel_width),
                               at.y + r - static_cast<double>(style.panel_height)});
        }
        EXPECT_LE(beyond, 1e-6) << seed;
    }
}

TEST(Figure, EightBitValuesInSixteenBitsAreColors) {
    PointCloud cloud = cloud_of({{0, 0, 0}});
    add_attribute<uint16_t>(cloud, "color", 3, {255, 0, 0});
    Panel panel{&cloud};
    FigureStyle style = plain_style(64);
    style.point_radius = 10;
    EXPECT_EQ(pixel(draw_figure({&panel, 1}, style).image, 32, 32), kRed);
    cloud.attributes[0].as<uint16_t>()(0, 0) = 65535;
    EXPECT_EQ(pixel(draw_figure({&panel, 1}, style).image, 32, 32), kRed);
}

TEST(Figure, AnInsetEnlargesAndMarksItsPart) {
    PointCloud cloud = sphere_cloud(3000, 1);
    std::vector<uint8_t> colors(9000, 90);
    add_attribute<uint8_t>(cloud, "color", 3, colors);
    Panel panel{&cloud};
    FigureStyle style = plain_style(240);
    const Image before = draw_figure({&panel, 1}, style).image;
    style.inset = Inset{0.5, 0.5, 0.15, 0.3, Corner::lower_right, kRed};
    const Image image = draw_figure({&panel, 1}, style).image;
    EXPECT_EQ(pixel(image, 120 - 18, 120), kRed);  // frame of the part
    EXPECT_EQ(pixel(image, 239, 200), kRed);       // frame of the box
    EXPECT_EQ(pixel(image, 240 - 72, 200), kRed);
    EXPECT_EQ(pixel(image, 60, 60), pixel(before, 60, 60));  // the rest is as it was
    EXPECT_GT(drawn_in(image, 172, 172, 60, 60), 60 * 60 / 3);
    style.inset->corner = Corner::automatic;
    draw_figure({&panel, 1}, style);
    style.inset->size = 0;
    EXPECT_THROW(draw_figure({&panel, 1}, style), Error);
}

TEST(Figure, DenseCloudsHaveNoPinholes) {
    const PointCloud cloud = sphere_cloud(150'000, 1);
    Panel panel{&cloud};
    panel.color_by = "#ff0000";
    const Image image = draw_figure({&panel, 1}, plain_style(256)).image;
    int64_t holes = 0;
    for (int64_t y = 64; y < 192; ++y)
        for (int64_t x = 64; x < 192; ++x) holes += !(pixel(image, x, y) == kRed);
    EXPECT_EQ(holes, 0);
}

TEST(Figure, MistakesAreNamed) {
    const PointCloud cloud = sphere_cloud(10, 1), other = sphere_cloud(10, 1);
    Panel panels[] = {{&cloud}, {&other}};
    panels[0].color_by = panels[1].color_by = "error";
    EXPECT_THROW(draw_figure(panels, plain_style()), Error);
    FigureStyle style = plain_style();
    style.panel_width = 5;
    EXPECT_THROW(draw_figure(panels, style), Error);
    Mesh broken = wall_mesh(1);
    broken.triangles.data()[0] = 99;
    EXPECT_THROW(draw_mesh(broken, plain_style()), Error);
}

TEST(Figure, APanelWithoutTheAttributeIsShownPlain) {
    const PointCloud plain = sphere_cloud(10, 1);
    PointCloud colored = sphere_cloud(10, 1);
    add_attribute<float>(colored, "error", 1, std::vector<float>(10, 0.5f));
    Panel panels[] = {{&plain}, {&colored}};
    panels[0].color_by = panels[1].color_by = "error";
    EXPECT_EQ(draw_figure(panels, plain_style()).panels.size(), 2u);
}

}  // namespace
}  // namespace stipple::picture
