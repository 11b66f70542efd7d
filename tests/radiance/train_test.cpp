#include "stipple/radiance/train.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "stipple/core/parallel.h"
#include "stipple/metrics/image_quality.h"
#include "stipple/radiance/render.h"
#include "tests/radiance/short_training.h"
#include "tests/support/analytic_scene.h"
#include "tests/support/margin.h"

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

TEST(RadianceTrain, ASmallSceneIsLearnt) {
    const Scene scene = test::analytic_scene(32, 20, 2, test::trial());
    std::vector<TrainStep> steps;
    TrainOptions options = tiny_options();
    options.seed = test::trial();
    const TrainResult result = train(scene, options, {}, [&](const TrainStep& step) { steps.push_back(step); });
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.back().step, 350);
    EXPECT_GT(result.times.kept, 0);
    EXPECT_LE(result.times.kept, result.times.opaque);
    EXPECT_LE(result.times.opaque, result.times.in_mask);
    EXPECT_LE(result.times.in_mask, result.times.in_box);
    const double psnr = test_psnr(result.field, scene, {});
    std::printf("test PSNR %.2f dB, kept %.0f of %.0f samples, %.1f s\n", psnr, result.times.kept, result.times.in_box,
                steps.back().seconds);
    EXPECT_ABOVE(psnr, 20);  // white everywhere has 9
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
    expect_agreement(scene, few_steps(), *device);
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

/// gradient_test.cpp shows for the CPU that nodes without a gradient stay bit for bit: a GPU changes no others.
TEST(RadianceTrainCuda, NodesWithoutAGradientStayBitForBit) {
    const std::optional<Device> device = gpu();
    if (!device) GTEST_SKIP() << "no GPU";
    const Scene scene = test::analytic_scene(48, 12, 0, 0);
    const auto changed_by_last_step = [&](Device where) {
        TrainOptions options = few_steps();
        options.fine.N_rand = 8;
        options.fine.N_iters = 9;
        const Field before = train(scene, options, where).field;
        options.fine.N_iters = 10;
        const Field after = train(scene, options, where).field;
        EXPECT_EQ(before.brick, after.brick);
        std::vector<bool> changed(before.density.size());
        for (size_t i = 0; i < changed.size(); ++i) changed[i] = before.density[i] != after.density[i];
        return changed;
    };
    const std::vector<bool> by_cpu = changed_by_last_step({}), by_gpu = changed_by_last_step(*device);
    ASSERT_EQ(by_cpu.size(), by_gpu.size());
    int64_t both = 0, cpu_alone = 0, gpu_alone = 0;
    for (size_t i = 0; i < by_cpu.size(); ++i) {
        both += by_cpu[i] && by_gpu[i];
        cpu_alone += by_cpu[i] && !by_gpu[i];  // gradients below what deterministic sums keep
        gpu_alone += !by_cpu[i] && by_gpu[i];
    }
    std::printf("nodes changed by both %ld, CPU alone %ld, of %zu\n", both, cpu_alone, by_cpu.size());
    EXPECT_EQ(gpu_alone, 0);
    EXPECT_GT(both, 9 * cpu_alone);
    EXPECT_LT(both, static_cast<int64_t>(by_cpu.size() / 2));
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
