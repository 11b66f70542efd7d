#include "stipple/radiance/train.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "stipple/core/parallel.h"
#include "stipple/metrics/image_quality.h"
#include "stipple/radiance/render.h"
#include "tests/support/analytic_scene.h"

namespace stipple::radiance {
namespace {

double test_psnr(const Field& field, const Scene& scene, Device device) {
    Renderer renderer(field, device);
    double sum = 0;
    for (const Photograph& photo : scene.test) {
        const RenderedView view = renderer.render(photo.camera);
        Array<float, 3> truth({photo.pixels.height(), photo.pixels.width(), 3});
        for (int64_t i = 0; i < truth.elements() / 3; ++i) {
            const uint8_t* rgba = photo.pixels.pixels.data() + 4 * i;
            const float alpha = static_cast<float>(rgba[3]) / 255;
            for (int k = 0; k < 3; ++k) truth.data()[3 * i + k] = static_cast<float>(rgba[k]) / 255 * alpha + 1 - alpha;
        }
        sum += metrics::psnr(std::as_const(view.colour).view(), std::as_const(truth).view());
    }
    return sum / static_cast<double>(scene.test.size());
}

/// Seconds on two cores.
TrainOptions tiny_options() {
    TrainOptions options = small_options();
    options.coarse.N_iters = 150;
    options.coarse.lrate_density = 0.5f;
    options.coarse.N_rand = options.fine.N_rand = 256;
    options.coarse.num_voxels = options.coarse.num_voxels_base = 20 * 20 * 20;
    options.fine.N_iters = 200;
    options.fine.num_voxels = options.fine.num_voxels_base = 32 * 32 * 32;
    options.fine.pg_scale = {50, 100};
    return options;
}

/// A few steps of each stage, with everything occupied.
TrainOptions few_steps() {
    TrainOptions options = tiny_options();
    options.coarse.N_iters = options.fine.N_iters = 10;
    options.fine.pg_scale = {6};
    options.bbox_thres = 1e-7f;
    options.deterministic = true;
    options.half_network = false;
    return options;
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double difference = 0, sum = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
        sum += double{a[i]} * a[i];
    }
    return std::sqrt(difference / sum);
}

std::optional<Device> gpu() {
    for (const DeviceInfo& info : list_devices()) {
        if (info.device.type == DeviceType::cuda) return info.device;
    }
    return std::nullopt;
}

TEST(RadianceTrain, ASmallSceneIsLearnt) {
    const Scene scene = test::analytic_scene(32, 20, 2, 0);
    std::vector<TrainStep> steps;
    const TrainResult result = train(scene, tiny_options(), {}, [&](const TrainStep& step) { steps.push_back(step); });
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.back().step, 350);
    EXPECT_GT(result.times.kept, 0);
    EXPECT_LE(result.times.kept, result.times.opaque);
    EXPECT_LE(result.times.opaque, result.times.in_mask);
    EXPECT_LE(result.times.in_mask, result.times.in_box);
    const double psnr = test_psnr(result.field, scene, {});
    std::printf("test PSNR %.2f dB, kept %.0f of %.0f samples, %.1f s\n", psnr, result.times.kept, result.times.in_box,
                steps.back().seconds);
    EXPECT_GT(psnr, 20);  // white everywhere has 9
}

TEST(RadianceTrain, ThreadsDoNotMatter) {
    const Scene scene = test::analytic_scene(24, 8, 0, 0);
    const int before = threads();
    set_threads(1);
    const Field one = train(scene, few_steps(), {}).field;
    set_threads(3);
    const Field three = train(scene, few_steps(), {}).field;
    set_threads(before);
    EXPECT_EQ(one.density, three.density);
    EXPECT_EQ(one.features, three.features);
    EXPECT_EQ(one.network.weight2, three.network.weight2);
}

TEST(RadianceTrain, ScenesThatCannotBeLearntAreRefused) {
    Scene scene = test::analytic_scene(16, 3, 0, 0);
    EXPECT_THROW(train(Scene{}, few_steps(), {}), Error);
    Scene no_depth = test::analytic_scene(16, 3, 0, 0);
    no_depth.far = 0;
    EXPECT_THROW(train(no_depth, few_steps(), {}), Error);
    scene.train.resize(1);  // nothing is seen by more than two
    EXPECT_THROW(train(scene, few_steps(), {}), Error);
}

TEST(RadianceTrainCuda, AgreesWithTheCpu) {
    const std::optional<Device> device = gpu();
    if (!device) GTEST_SKIP() << "no GPU";
    const Scene scene = test::analytic_scene(48, 12, 0, 0);
    std::vector<double> on_cpu, on_gpu;
    const Field cpu = train(scene, few_steps(), {}, [&](const TrainStep& s) { on_cpu.push_back(s.psnr); }).field;
    const Field cuda = train(scene, few_steps(), *device, [&](const TrainStep& s) { on_gpu.push_back(s.psnr); }).field;
    ASSERT_EQ(on_cpu.size(), on_gpu.size());
    for (size_t i = 0; i < on_cpu.size(); ++i) EXPECT_NEAR(on_cpu[i], on_gpu[i], 1e-3);
    EXPECT_EQ(cpu.brick, cuda.brick);
    const double density = relative_distance(cpu.density, cuda.density),
                 weight1 = relative_distance(cpu.network.weight1, cuda.network.weight1),
                 weight2 = relative_distance(cpu.network.weight2, cuda.network.weight2);
    std::printf("relative distances: density %.2g, weight1 %.2g, weight2 %.2g\n", density, weight1, weight2);
    EXPECT_LT(density, 1e-4);
    EXPECT_LT(weight1, 1e-4);
    EXPECT_LT(weight2, 1e-4);
}

TEST(RadianceTrainCuda, DeterministicTrainingRepeatsItself) {
    const std::optional<Device> device = gpu();
    if (!device) GTEST_SKIP() << "no GPU";
    const Scene scene = test::analytic_scene(48, 12, 0, 0);
    for (const bool half : {false, true}) {
        TrainOptions options = few_steps();
        options.half_network = half;
        const Field a = train(scene, options, *device).field, b = train(scene, options, *device).field;
        EXPECT_EQ(a.density, b.density);
        EXPECT_EQ(a.features, b.features);
        EXPECT_EQ(a.network.weight1, b.network.weight1);
    }
}

TEST(RadianceTrainCuda, LearnsAsTheCpuDoes) {
    const std::optional<Device> device = gpu();
    if (!device) GTEST_SKIP() << "no GPU";
    const Scene scene = test::analytic_scene(32, 20, 2, 0);
    const Field cpu = train(scene, tiny_options(), {}).field, cuda = train(scene, tiny_options(), *device).field;
    const double by_cpu = test_psnr(cpu, scene, {}), by_cuda = test_psnr(cuda, scene, *device);
    const double same_field = test_psnr(cuda, scene, {});
    std::printf("PSNR: CPU %.2f, CUDA %.2f, its field on the CPU %.2f dB\n", by_cpu, by_cuda, same_field);
    EXPECT_NEAR(by_cpu, by_cuda, 0.5);
    EXPECT_NEAR(same_field, by_cuda, 0.02);
}

/// Not a test of speed: it prints times where STIPPLE_TEST_VIEW_SIDE asks for a large scene.
TEST(RadianceTrainCuda, PublishedSettings) {
    const std::optional<Device> device = gpu();
    const char* side = std::getenv("STIPPLE_TEST_VIEW_SIDE");
    if (!device || !side) GTEST_SKIP() << "no GPU, or STIPPLE_TEST_VIEW_SIDE is not set";
    const Scene scene = test::analytic_scene(std::atoi(side), 100, 5, 0);
    for (const int64_t voxels : {160, 256}) {
        const TrainResult result = train(scene, parity_options(voxels), *device, [](const TrainStep& s) {
            if (s.step % 2500 == 0) std::printf("%s %ld: %.2f dB, %.2f s\n", s.stage, s.step, s.psnr, s.seconds);
        });
        const TrainTimes& t = result.times;
        std::printf(
            "%ld^3: box %.3f, coarse %.3f + %.3f, fine %.3f + %.3f, pack %.3f s; %.4f ms a step; %.3g bytes; "
            "samples %.0f %.0f %.0f %.0f\n",
            voxels, t.box, t.coarse_setup, t.coarse, t.fine_setup, t.fine, t.pack, t.ms_per_fine_step,
            static_cast<double>(t.peak_bytes), t.in_box, t.in_mask, t.opaque, t.kept);
        Renderer renderer(result.field, *device);
        for (int i = 0; i < 3; ++i) renderer.render(scene.test[0].camera);
        std::printf("test PSNR %.2f dB, %.2f ms a view\n", test_psnr(result.field, scene, *device),
                    1000 * renderer.seconds());
        EXPECT_GT(test_psnr(result.field, scene, *device), 25);
    }
}

}  // namespace
}  // namespace stipple::radiance
