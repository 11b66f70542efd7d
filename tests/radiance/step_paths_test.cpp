// The step-by-step paths against the CPU's and the GPU's own way: the same parameters after the same steps.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "stipple/core/half.h"
#include "stipple/radiance/cuda/reference/backend.h"
#include "tests/radiance/host_executor.h"
#include "tests/support/analytic_scene.h"
#include "tests/support/devices.h"

namespace stipple::radiance {
namespace {

constexpr StepPath kSteppedPaths[] = {StepPath::reference, StepPath::fused_adam, StepPath::fused_rendering,
                                      StepPath::per_ray_weights};

/// Ten steps of each stage, and the grid grows once.
TrainOptions ten_steps(int rays) {
    TrainOptions options = small_options();
    options.coarse.N_iters = options.fine.N_iters = 10;
    options.coarse.N_rand = options.fine.N_rand = rays;
    options.coarse.lrate_density = 0.5f;
    options.coarse.num_voxels = options.coarse.num_voxels_base = 20 * 20 * 20;
    options.fine.num_voxels = options.fine.num_voxels_base = 24 * 24 * 24;
    options.fine.pg_scale = {6};
    options.fine.refresh = 8;
    options.bbox_thres = 1e-7f;
    options.deterministic = true;
    options.half_network = false;
    return options;
}

double distance_of(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double difference = 0, sum = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
        sum += double{a[i]} * a[i];
    }
    return std::sqrt(difference / sum);
}

std::vector<float> features_of(const Field& field) {
    std::vector<float> values;
    for (const uint16_t bits : field.features) values.push_back(half_to_float(bits));
    return values;
}

void expect_alike(const TrainResult& a, const TrainResult& b, const std::string& what) {
    SCOPED_TRACE(what);
    EXPECT_EQ(a.field.brick, b.field.brick);
    ASSERT_EQ(a.field.occupied.size(), b.field.occupied.size());
    int64_t others = 0;  // nodes at the threshold may fall either side
    for (size_t i = 0; i < a.field.occupied.size(); ++i) {
        others += std::popcount(a.field.occupied[i] ^ b.field.occupied[i]);
    }
    EXPECT_LE(others, 3);
    const ColourNetwork &m = a.field.network, &n = b.field.network;
    const std::pair<const char*, double> distances[] = {
        {"density", distance_of(a.field.density, b.field.density)},
        {"features", distance_of(features_of(a.field), features_of(b.field))},  // half precision
        {"weight1", distance_of(m.weight1, n.weight1)},
        {"bias1", distance_of(m.bias1, n.bias1)},
        {"weight2", distance_of(m.weight2, n.weight2)},
        {"bias2", distance_of(m.bias2, n.bias2)},
        {"weight3", distance_of(m.weight3, n.weight3)},
        {"bias3", distance_of(m.bias3, n.bias3)}};
    for (const auto& [name, distance] : distances) {
        EXPECT_LT(distance, std::string(name) == "features" ? 5e-4 : 1e-4) << name;
        std::printf("%s %s %.2g\n", what.c_str(), name, distance);
    }
    EXPECT_NEAR(a.times.in_box, b.times.in_box, 1e-4 * a.times.in_box);
    EXPECT_NEAR(a.times.in_mask, b.times.in_mask, 1e-3 * a.times.in_mask);
    EXPECT_NEAR(a.times.opaque, b.times.opaque, 1e-3 * a.times.opaque);
    EXPECT_NEAR(a.times.kept, b.times.kept, 1e-3 * a.times.kept);
}

std::string name_of_path(StepPath path) {
    return name_of(path);
}

TrainResult by_loops(const Scene& scene, const TrainOptions& options,
                     const std::function<void(const TrainStep&)>& report = {}) {
    reference::ReferenceBackend<reference::HostExecutor> backend(std::make_unique<reference::HostExecutor>(), scene,
                                                                 options, make_cpu_backend(scene));
    return train_on(backend, scene, options, Device{}, report);
}

TEST(RadianceStepPaths, AgreeWithTheCpu) {
    const Scene scene = test::analytic_scene(24, 8, 0, 0);
    TrainOptions options = ten_steps(40);
    std::vector<double> expected;
    const TrainResult cpu = train(scene, options, {}, [&](const TrainStep& s) { expected.push_back(s.psnr); });
    for (const StepPath path : kSteppedPaths) {
        options.path = path;
        std::vector<double> found;
        expect_alike(cpu, by_loops(scene, options, [&](const TrainStep& s) { found.push_back(s.psnr); }),
                     name_of_path(path));
        ASSERT_EQ(found.size(), expected.size());
        for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-3);
    }
}

/// Sums of floats instead of integers; random backgrounds, jitter, and photographs of which parts are unknown.
TEST(RadianceStepPaths, FollowTheRulesOfDrawing) {
    Scene scene = test::analytic_scene(24, 6, 0, 0);
    scene.alpha_is_unknown = true;
    TrainOptions options = ten_steps(40);
    options.jitter = true;
    options.background = Background::random;
    options.fine.N_iters = 3;
    options.fine.pg_scale = {};
    const TrainResult cpu = train(scene, options, {});
    for (const StepPath path : {StepPath::reference, StepPath::per_ray_weights}) {
        options.path = path;
        expect_alike(cpu, by_loops(scene, options), name_of_path(path));
    }
}

TEST(RadianceStepPaths, AreRefusedWhereTheyAreNot) {
    const Scene scene = test::analytic_scene(16, 3, 0, 0);
    TrainOptions options = ten_steps(40);
    options.path = StepPath::reference;
    EXPECT_NE(test::bad_argument_of([&] { train(scene, options, {}); }).find("CUDA alone"), std::string::npos);
    options.fine.weight_tv_density = 1e-5f;
    EXPECT_NE(test::bad_argument_of([&] { by_loops(scene, options); }).find("total variation"), std::string::npos);
}

class RadianceStepPathsCuda : public test::OnDevice {};
STIPPLE_ON_EVERY_GPU(RadianceStepPathsCuda);

TEST_P(RadianceStepPathsCuda, AgreeWithTheFinalOneAndTheCpu) {
    const Scene scene = test::analytic_scene(48, 12, 0, 0);
    TrainOptions options = ten_steps(256);
    const TrainResult cpu = train(scene, options, {}), expected = train(scene, options, device());
    for (const StepPath path : kSteppedPaths) {
        options.path = path;
        const TrainResult found = train(scene, options, device());
        expect_alike(expected, found, name_of_path(path) + " and final");
        expect_alike(cpu, found, name_of_path(path) + " and CPU");
    }
}

/// The same bits where that is asked for.
TEST_P(RadianceStepPathsCuda, RepeatThemselves) {
    const Scene scene = test::analytic_scene(48, 12, 0, 0);
    TrainOptions options = ten_steps(256);
    for (const StepPath path : kSteppedPaths) {
        options.path = path;
        const Field a = train(scene, options, device()).field, b = train(scene, options, device()).field;
        EXPECT_EQ(a.density, b.density);
        EXPECT_EQ(a.features, b.features);
        EXPECT_EQ(a.network.weight1, b.network.weight1);
    }
}

/// Sums of floats in any order: they learn as well, and tell what their parts cost.
TEST_P(RadianceStepPathsCuda, LearnAndTellTheirParts) {
    const Scene scene = test::analytic_scene(48, 20, 0, 0);
    TrainOptions options = ten_steps(256);
    options.deterministic = false;
    options.coarse.N_iters = 150;
    options.fine.N_iters = 200;
    options.fine.pg_scale = {50, 100};
    options.fine.refresh = 200;
    options.bbox_thres = 1e-3f;
    options.profile_steps = 5;
    double expected = 0;
    train(scene, options, device(), [&](const TrainStep& s) { expected = s.psnr; });
    for (const StepPath path : kSteppedPaths) {
        options.path = path;
        double found = 0;
        const TrainResult result = train(scene, options, device(), [&](const TrainStep& s) { found = s.psnr; });
        EXPECT_NEAR(found, expected, 0.5);
        EXPECT_GT(result.times.peak_bytes, 0);
        double sum = 0;
        for (const StepPart& part : result.profile) {
            EXPECT_GE(part.milliseconds, 0) << part.name;
            sum += part.milliseconds;
        }
        EXPECT_GT(sum, 0);
        EXPECT_GT(result.profile.size(), path == StepPath::reference ? 40u : 20u);
        std::printf("%s: %.2f dB beside %.2f, %zu parts, %.3f ms a step\n", name_of_path(path).c_str(), found, expected,
                    result.profile.size(), sum);
    }
}

}  // namespace
}  // namespace stipple::radiance
