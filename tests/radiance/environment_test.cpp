// The map of what lies behind the box, and training with it.

#include "stipple/radiance/march/environment.h"

#include <gtest/gtest.h>

#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/radiance/evaluate.h"
#include "stipple/radiance/train.h"
#include "stipple/radiance/train/environment_map.h"
#include "tests/support/analytic_scene.h"
#include "tests/support/expect_error.h"
#include "tests/support/margin.h"

namespace stipple::radiance {
namespace {

Vec3f random_direction(uint64_t i) {
    const Rng rng(8, 1);
    return {2 * rng.uniform(3 * i) - 1, 2 * rng.uniform(3 * i + 1) - 1, 2 * rng.uniform(3 * i + 2) - 1};
}

TEST(EnvironmentMap, TheMiddleOfATexelIsThisTexel) {
    const int side = 6;
    for (int x = 0; x < side; ++x) {
        for (int y = 0; y < side; ++y) {
            const double u = 2 * (x + 0.5) / side - 1, v = 2 * (y + 0.5) / side - 1;
            const Vec3f middle = direction_of_texel(x, y, side);
            Vec3d d = {u, v, 1 - std::abs(u) - std::abs(v)};
            if (d.z < 0) d.x = std::copysign(1 - std::abs(v), u), d.y = std::copysign(1 - std::abs(u), v);
            const Texels texels =
                texels_of({static_cast<float>(d.x), static_cast<float>(d.y), static_cast<float>(d.z)}, side);
            EXPECT_NEAR(middle.x, d.x, 1e-6);
            EXPECT_NEAR(middle.y, d.y, 1e-6);
            EXPECT_NEAR(middle.z, d.z, 1e-6);
            double weight = 0;
            for (int corner = 0; corner < 4; ++corner)
                if (texels.texel[corner] == x * side + y) weight += texels.weight[corner];
            EXPECT_NEAR(weight, 1, 1e-4) << x << " " << y;
        }
    }
}

TEST(EnvironmentMap, WeightsAreThoseOfAMean) {
    const auto expect_mean = [](Vec3f direction, int side) {
        const Texels texels = texels_of(direction, side);
        float sum = 0;
        for (int corner = 0; corner < 4; ++corner) {
            EXPECT_GE(texels.texel[corner], 0);
            EXPECT_LT(texels.texel[corner], side * side);
            EXPECT_GE(texels.weight[corner], 0);
            sum += texels.weight[corner];
        }
        EXPECT_NEAR(sum, 1, 1e-5);
    };
    for (const int side : {2, 3, 64, 1024}) {
        for (uint64_t i = 0; i < 500; ++i) expect_mean(random_direction(i), side);
        for (int k = 0; k < 27; ++k)  // poles and folds
            expect_mean(
                {static_cast<float>(k / 9 - 1), static_cast<float>(k / 3 % 3 - 1), static_cast<float>(k % 3 - 1)},
                side);
        const float nan = std::numeric_limits<float>::quiet_NaN();
        expect_mean({nan, nan, nan}, side);
    }
}

TEST(EnvironmentMap, HasNoSeams) {
    const int side = 16;
    std::vector<float> values(3 * side * side);
    const Rng rng(2, 2);
    for (size_t i = 0; i < values.size(); ++i) values[i] = rng.uniform(i);
    for (uint64_t i = 0; i < 20000; ++i) {
        Vec3f a = unit(random_direction(2 * i));
        if (i % 4 == 1) a.z = 0;
        if (i % 4 == 2) a.x = 0, a.z = -std::fabs(a.z);
        if (i % 4 == 3) a = unit(Vec3f{0.01f * a.x, 0.01f * a.y, -1});
        const Vec3f b = a + random_direction(2 * i + 1) * 1e-4f;
        const float difference =
            interpolate(texels_of(a, side), values.data(), 0) - interpolate(texels_of(b, side), values.data(), 0);
        EXPECT_LT(std::fabs(difference), 1e-4f * 8 * side) << a.x << " " << a.y << " " << a.z;
    }
}

TEST(EnvironmentMap, OnOtherTexelsIsTheSameMap) {
    // What is linear in the square stays linear, away from its edges.
    Environment map;
    map.side = 8;
    for (int i = 0; i < 64; ++i)
        for (int c = 0; c < 3; ++c) map.texels.push_back(static_cast<float>(c + 1) * static_cast<float>(i / 8));
    const Environment more = resampled(map, 32);
    ASSERT_EQ(more.texels.size(), size_t{3 * 32 * 32});
    for (int x = 4; x < 28; ++x)
        for (int y = 4; y < 28; ++y)
            for (int c = 0; c < 3; ++c)
                EXPECT_NEAR(more.texels[static_cast<size_t>(3 * (32 * x + y) + c)], (c + 1) * ((x + 0.5) / 4 - 0.5),
                            1e-3);
}

// ---- training

constexpr float kAbove[3] = {0.2f, 0.4f, 0.9f}, kBelow[3] = {0.7f, 0.5f, 0.2f};

/// The analytic scene before a sky and a ground: pictures without transparency.
Scene scene_before_sky(int side, int train_views, int test_views) {
    Scene scene = test::analytic_scene(side, train_views, test_views, test::trial());
    scene.has_alpha = false;
    for (std::vector<Photograph>* photographs : {&scene.train, &scene.test}) {
        for (Photograph& photo : *photographs) {
            const CameraView camera = view_of(photo.camera);
            for (int y = 0; y < camera.height; ++y) {
                for (int x = 0; x < camera.width; ++x) {
                    uint8_t* rgba = photo.pixels.at(x, y);
                    const float alpha = static_cast<float>(rgba[3]) / 255;
                    const float* behind = camera_ray(camera, x, y).direction.z > 0 ? kAbove : kBelow;
                    for (int c = 0; c < 3; ++c)
                        rgba[c] = static_cast<uint8_t>(
                            std::lround(static_cast<float>(rgba[c]) * alpha + 255 * (1 - alpha) * behind[c]));
                    rgba[3] = 255;
                }
            }
        }
    }
    return scene;
}

TrainOptions sky_options(Background background) {
    TrainOptions options = small_options();
    options.coarse.N_iters = 300;
    options.coarse.lrate_density = 0.5f;
    options.coarse.N_rand = options.fine.N_rand = 256;
    options.coarse.num_voxels = options.coarse.num_voxels_base = 20 * 20 * 20;
    options.fine.N_iters = 150;
    options.fine.num_voxels = options.fine.num_voxels_base = 28 * 28 * 28;
    options.fine.pg_scale = {50};
    options.background = background;
    options.environment_side = 32;
    options.seed = test::trial();
    return options;
}

double sky_psnr(const Field& field, const Scene& scene, Device device = {}) {
    Renderer renderer(field, device);
    return evaluate(renderer, scene.test, field.background).psnr;
}

std::optional<Device> sky_gpu() {
    for (const DeviceInfo& info : list_devices()) {
        if (info.device.type == DeviceType::cuda) return info.device;
    }
    return std::nullopt;
}

TEST(LearnedBackground, IsBetterThanABlackOne) {
    const Scene scene = scene_before_sky(24, 60, 4);
    const Field learned = train(scene, sky_options(Background::learned), {}).field;
    const Field black = train(scene, sky_options(Background::black), {}).field;
    EXPECT_EQ(learned.environment.side, 32);
    EXPECT_EQ(black.environment.side, 0);
    const double by_map = sky_psnr(learned, scene), by_black = sky_psnr(black, scene);
    std::printf("test PSNR: learned %.2f, black %.2f dB\n", by_map, by_black);
    EXPECT_ABOVE(by_map, 17);
    EXPECT_ABOVE(by_map, by_black + 3);
    // A ray that misses everything shows the map.
    Renderer renderer(learned, Device{});
    const RenderedView view = renderer.render(test::analytic_camera(9, {4, 0.5, 0.5}));
    EXPECT_BELOW(std::abs(view.colour.view()(0, 0, 2) - kAbove[2]), 0.2);
    EXPECT_BELOW(view.alpha.view()(0, 0, 0), 0.2);
}

TEST(LearnedBackground, ThreadsDoNotMatter) {
    const Scene scene = scene_before_sky(16, 8, 0);
    TrainOptions options = sky_options(Background::learned);
    options.coarse.N_iters = options.fine.N_iters = 8;
    options.fine.pg_scale = {};
    options.bbox_thres = 1e-7f;
    const int before = threads();
    set_threads(1);
    const Field one = train(scene, options, {}).field;
    set_threads(3);
    const Field three = train(scene, options, {}).field;
    set_threads(before);
    EXPECT_EQ(one.environment.texels, three.environment.texels);
    EXPECT_EQ(one.density, three.density);
}

TEST(LearnedBackground, IsRefusedWhereTransparencyShowsIt) {
    Scene scene = test::analytic_scene(16, 4, 0, 0);
    scene.has_alpha = true;
    EXPECT_ERROR(train(scene, sky_options(Background::learned), {}), bad_argument, "transparency");
    TrainOptions options = sky_options(Background::learned);
    options.environment_side = 100000;
    EXPECT_ERROR(train(scene_before_sky(16, 4, 0), options, {}), bad_argument, "environment_side 100000");
}

TEST(LearnedBackgroundCuda, AgreesWithTheCpu) {
    const std::optional<Device> device = sky_gpu();
    if (!device) GTEST_SKIP() << "no GPU";
    const Scene scene = scene_before_sky(32, 12, 1);
    TrainOptions options = sky_options(Background::learned);
    options.coarse.N_iters = options.fine.N_iters = 10;
    options.fine.pg_scale = {6};
    options.bbox_thres = 1e-7f;
    options.deterministic = true;
    options.half_network = false;
    const Field cpu = train(scene, options, {}).field, cuda = train(scene, options, *device).field;
    ASSERT_EQ(cpu.environment.texels.size(), cuda.environment.texels.size());
    EXPECT_EQ(cpu.brick, cuda.brick);
    double difference = 0, sum = 0;
    for (size_t i = 0; i < cpu.environment.texels.size(); ++i) {
        const double d = double{cpu.environment.texels[i]} - cuda.environment.texels[i];
        difference += d * d;
        sum += double{cpu.environment.texels[i]} * cpu.environment.texels[i];
    }
    std::printf("relative distance of the maps %.2g\n", std::sqrt(difference / sum));
    EXPECT_LT(std::sqrt(difference / sum), 1e-4);
    const Field again = train(scene, options, *device).field;
    EXPECT_EQ(again.environment.texels, cuda.environment.texels);
    // The same field on both devices.
    const RenderedView a = Renderer(cuda, Device{}).render(scene.test[0].camera),
                       b = Renderer(cuda, *device).render(scene.test[0].camera);
    for (int64_t i = 0; i < a.colour.elements(); ++i) EXPECT_NEAR(a.colour.data()[i], b.colour.data()[i], 5e-3);
}

TEST(LearnedBackgroundCuda, LearnsAsTheCpuDoes) {
    const std::optional<Device> device = sky_gpu();
    if (!device) GTEST_SKIP() << "no GPU";
    const Scene scene = scene_before_sky(24, 60, 4);
    const Field cpu = train(scene, sky_options(Background::learned), {}).field,
                cuda = train(scene, sky_options(Background::learned), *device).field;
    const double by_cpu = sky_psnr(cpu, scene), by_cuda = sky_psnr(cuda, scene, *device);
    std::printf("PSNR: CPU %.2f, CUDA %.2f dB\n", by_cpu, by_cuda);
    EXPECT_NEAR(by_cpu, by_cuda, 1);
}

}  // namespace
}  // namespace stipple::radiance
