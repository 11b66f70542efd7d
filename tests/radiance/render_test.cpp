#include "stipple/radiance/render.h"

#include <gtest/gtest.h>

#include <cstring>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/radiance/render_oracle.h"
#include "tests/support/expect_error.h"
#include "tests/support/radiance_fields.h"

namespace stipple::radiance {
namespace {

RenderedView render_on_cpu(const DenseField& dense, const Camera& camera, bool geometry = true) {
    return Renderer(pack(dense), Device{}).render(camera, {geometry});
}

// Single and double precision may decide a threshold differently now and then; such a sample counts little.
void expect_like_oracle(const DenseField& dense, const Camera& camera) {
    const RenderedView view = render_on_cpu(dense, camera);
    ASSERT_EQ(view.colour.shape(), (std::array<int64_t, 3>{camera.height, camera.width, 3}));
    const auto error_of = [&](int x, int y, const test::OraclePixel& truth) {
        double error = std::abs(view.alpha.view()(y, x, 0) - truth.alpha);
        for (int c = 0; c < 3; ++c) error = std::max(error, std::abs(view.colour.view()(y, x, c) - truth.colour[c]));
        for (int c = 0; c < 3; ++c)
            error = std::max(error, 0.1 * std::abs(view.normal.view()(y, x, c) - truth.normal[c]));
        const double depth = view.depth.view()(y, x, 0);
        if (std::isfinite(depth) != std::isfinite(truth.depth)) return std::max(error, std::abs(truth.alpha - 0.5));
        if (std::isfinite(depth)) error = std::max(error, std::abs(depth - truth.depth) / truth.depth);
        return error;
    };
    int far_off = 0, seen = 0;
    for (int y = 0; y < camera.height; ++y)
        for (int x = 0; x < camera.width; ++x) {
            const test::OraclePixel truth = test::oracle_pixel(dense, camera, x, y, true);
            double error = error_of(x, y, truth);
            if (error > 1e-4) error = std::min(error, error_of(x, y, test::oracle_pixel(dense, camera, x, y, false)));
            EXPECT_LT(error, 0.02) << x << ", " << y;
            far_off += error > 1e-4;
            seen += truth.alpha > 0.05;
        }
    EXPECT_LE(far_off, camera.width * camera.height / 50);
    EXPECT_GT(seen, camera.width * camera.height / 60) << "the test sees nothing";
}

TEST(RenderField, IsLikeTheOracleOnRandomFields) {
    const Box<float> box = {{-1, -0.75f, -0.5f}, {1, 1, 1.25f}};
    for (uint64_t seed : {1, 2}) {
        DenseField dense = test::random_field({13, 17, 11}, box, seed == 1 ? 0.6f : 0.03f, seed);
        dense.background = seed == 1 ? Background::white : Background::black;
        for (const Vec3d eye : {Vec3d{3, 1, 0.7}, Vec3d{-1.5, -2.5, 2}, Vec3d{0.1, 0.2, 4}})
            expect_like_oracle(dense, test::camera_at(eye, {0, 0, 0.3}, 23, 14, 20));
    }
}

TEST(RenderField, ALearnedBackgroundIsLikeTheOracle) {
    DenseField dense = test::random_field({13, 17, 11}, {{-1, -0.75f, -0.5f}, {1, 1, 1.25f}}, 0.6f, 3);
    dense.background = Background::learned;
    dense.environment.side = 7;
    const Rng rng(4, 4);
    for (uint64_t i = 0; i < 7 * 7 * 3; ++i) dense.environment.texels.push_back(6 * rng.uniform(i) - 3);
    // Along the axes and the folds of the map too.
    for (const Vec3d eye : {Vec3d{3, 1, 0.7}, Vec3d{-1.5, -2.5, -2}, Vec3d{0.1, 0.2, 4}, Vec3d{-3, 0.1, 0.3}})
        expect_like_oracle(dense, test::camera_at(eye, {0, 0, 0.3}, 23, 14, 9));
}

TEST(RenderField, EmptyFieldIsItsBackground) {
    DenseField dense = test::empty_field({9, 9, 9}, {{-1, -1, -1}, {1, 1, 1}});
    test::random_network(dense.network, 1);
    const Camera camera = test::camera_at({0, -3, 0}, {0, 0, 0}, 7, 5, 6);
    for (Background background : {Background::white, Background::black, Background::random}) {
        dense.background = background;
        const RenderedView view = render_on_cpu(dense, camera);
        for (float c : view.colour.span()) EXPECT_EQ(c, background == Background::white ? 1.0f : 0.0f);
        for (float a : view.alpha.span()) EXPECT_EQ(a, 0.0f);
        for (float d : view.depth.span()) EXPECT_EQ(d, std::numeric_limits<float>::infinity());
        for (float n : view.normal.span()) EXPECT_EQ(n, 0.0f);
    }
    const RenderedView flat = render_on_cpu(dense, camera, false);
    EXPECT_EQ(flat.depth.elements(), 0);
    EXPECT_EQ(flat.normal.elements(), 0);
}

// All of the box is solid: rays see its face, at the depth where they enter, straight to the camera.
TEST(RenderField, OpaqueFieldIsItsBox) {
    DenseField dense = test::empty_field({20, 20, 20}, {{-1, -1, -1}, {1, 1, 1}});
    test::set_density(dense, [](Vec3f p) { return 40 - 10 * std::fmax(std::fabs(p.y), 0.1f); });
    for (size_t i = 0; i < dense.features.size(); i += kFeatures) dense.features[i + 1] = 20;  // green
    const Camera camera = test::camera_at({0, -4, 0}, {0, 0, 0}, 9, 9, 20);
    const RenderedView view = render_on_cpu(dense, camera);
    const float step = dense.step * dense.grid.voxel;
    for (int y = 0; y < 9; ++y)
        for (int x = 0; x < 9; ++x) {
            EXPECT_NEAR(view.alpha.view()(y, x, 0), 1, 1e-3);
            EXPECT_NEAR(view.depth.view()(y, x, 0), 3, step);
            EXPECT_NEAR(view.colour.view()(y, x, 0), 0.5, 2e-3);
            EXPECT_NEAR(view.colour.view()(y, x, 1), 1, 2e-3);
            EXPECT_NEAR(view.normal.view()(y, x, 1), -1, 1e-5);
        }
}

// Rays along an axis have directions with zeros. Steps and spacing have no common multiple in the box: a sample at a
// node or on the far face would be decided by rounding.
TEST(RenderField, RaysAlongAxes) {
    const DenseField dense = test::random_field({9, 10, 11}, {{-1, -1, -1}, {1, 1.03f, 1.1f}}, 1, 4);
    Camera camera = test::camera_at({0, -3, 0}, {0, 0, 0}, 1, 1, 10);
    camera.cx = camera.cy = 0.5f;
    camera.to_world = {1, 0, 0, 0.3f, 0, 0, -1, -3, 0, 1, 0, -0.45f};
    expect_like_oracle(dense, camera);
    // Between nodes: at a node the gradient has several values.
    const Vec3d middle = {0.05, 0.1, -0.07};
    for (const Vec3d away : {Vec3d{3, 0, 0}, Vec3d{0, 3, 0}, Vec3d{0, 0, 3}})
        expect_like_oracle(dense, test::camera_at(middle + away, middle, 1, 1, 10));
}

TEST(RenderField, CameraInsideTheBox) {
    const DenseField dense = test::random_field({12, 12, 12}, {{-1, -1, -1}, {1, 1, 1}}, 0.3f, 8);
    expect_like_oracle(dense, test::camera_at({0.1, 0.2, 0.15}, {1, 0.3, 0.2}, 12, 9, 8));
    DenseField later = dense;
    later.near = 0.4f;
    expect_like_oracle(later, test::camera_at({0.1, 0.2, 0.15}, {1, 0.3, 0.2}, 12, 9, 8));
}

TEST(RenderField, OneBrick) {
    const DenseField dense = test::random_field({kBrick, kBrick, kBrick}, {{0, 0, 0}, {1, 1, 1}}, 1, 6);
    ASSERT_EQ(pack(dense).stored_bricks(), 1);
    expect_like_oracle(dense, test::camera_at({2, 2, 1.5}, {0.5, 0.5, 0.5}, 11, 6, 12));
}

TEST(RenderField, TwoNodesAlongEachAxis) {
    const DenseField dense = test::random_field({2, 2, 2}, {{0, 0, 0}, {1, 1, 1}}, 1, 9);
    expect_like_oracle(dense, test::camera_at({2, 2, 1.5}, {0.5, 0.5, 0.5}, 8, 8, 12));
}

// The ball's depth is that of a sphere, and its normals point outwards.
TEST(RenderField, DepthAndNormalsOfABall) {
    const DenseField dense = test::ball_field(48, 0.7f, 1, 40);
    const Camera& camera = dense.cameras[0];
    const RenderedView view = render_on_cpu(dense, camera);
    const CameraView rays = view_of(camera);
    int hits = 0;
    for (int y = 0; y < 40; ++y)
        for (int x = 0; x < 40; ++x) {
            const float depth = view.depth.view()(y, x, 0);
            if (!std::isfinite(depth)) continue;
            const Ray ray = camera_ray(rays, x, y);
            const Vec3f p = ray.origin + depth * ray.direction;
            const Vec3f normal = {view.normal.view()(y, x, 0), view.normal.view()(y, x, 1),
                                  view.normal.view()(y, x, 2)};
            EXPECT_NEAR(length(p), 0.7f, 1.0f * dense.grid.voxel);
            const bool is_rim = dot(unit(ray.direction), unit(p)) > -0.3f;
            EXPECT_GT(dot(normal, unit(p)), is_rim ? 0.8f : 0.97f);
            ++hits;
        }
    EXPECT_GT(hits, 100);
}

TEST(RenderField, ThreadsDoNotMatter) {
    const DenseField dense = test::random_field({13, 17, 11}, {{-1, -1, -1}, {1, 1, 1}}, 0.2f, 5);
    const Camera camera = test::camera_at({3, 1, 0.7}, {0, 0, 0}, 37, 29, 30);
    const int before = threads();
    set_threads(1);
    const RenderedView one = render_on_cpu(dense, camera);
    set_threads(5);
    const RenderedView five = render_on_cpu(dense, camera);
    set_threads(before);
    EXPECT_EQ(std::memcmp(one.colour.data(), five.colour.data(), one.colour.span().size_bytes()), 0);
    EXPECT_EQ(std::memcmp(one.depth.data(), five.depth.data(), one.depth.span().size_bytes()), 0);
}

TEST(RenderField, WithoutColourTheRestIsTheSame) {
    const DenseField dense = test::random_field({13, 17, 11}, {{-1, -1, -1}, {1, 1, 1}}, 0.2f, 5);
    Renderer renderer(pack(dense), Device{});
    const Camera camera = test::camera_at({3, 1, 0.7}, {0, 0, 0}, 21, 16, 20);
    const RenderedView all = renderer.render(camera, {.geometry = true});
    const RenderedView some = renderer.render(camera, {.geometry = true, .colour = false});
    EXPECT_EQ(some.colour.elements(), 0);
    EXPECT_EQ(std::memcmp(all.depth.data(), some.depth.data(), all.depth.span().size_bytes()), 0);
    EXPECT_EQ(std::memcmp(all.normal.data(), some.normal.data(), all.normal.span().size_bytes()), 0);
    EXPECT_EQ(std::memcmp(all.alpha.data(), some.alpha.data(), all.alpha.span().size_bytes()), 0);
}

TEST(RenderField, WrongUse) {
    Field field = pack(test::random_field({4, 4, 4}, {{0, 0, 0}, {1, 1, 1}}, 1, 6));
    Renderer renderer(field, Device{});
    EXPECT_ERROR(renderer.render(Camera{}), bad_argument, "0 x 0");
    field.brick[0] = 3;
    EXPECT_ERROR(Renderer(field, Device{}), bad_argument, "brick");
}

}  // namespace
}  // namespace stipple::radiance
