// radiance_bench [--data FOLDER] [--voxels 256] [--steps 3000] [--side 800] [--path final]: trains for a moment, then
// prints for each part of a fine step its time, the bytes that it moves (stipple/radiance/cuda/step_bytes.h, with the
// numbers of samples and bricks of that step), their share of the bandwidth of a copy in the same run and, for the
// colour network, operations a second; then the time of a view and of a step on the CPU. Without --data the scene is
// procedural, with 100 photographs of side x side. Without a GPU there is the CPU's step alone.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "stipple/bench/timing.h"
#include "stipple/core/parallel.h"
#include "stipple/radiance/evaluate.h"
#include "stipple/radiance/train.h"
#include "tests/support/analytic_scene.h"

namespace {

using namespace stipple;

struct BenchOptions {
    std::string data;
    int64_t voxels = 256;
    int steps = 3000, side = 800;
    radiance::StepPath path = radiance::StepPath::final;
};

[[noreturn]] void stop_with_usage() {
    std::fprintf(stderr,
                 "radiance_bench [--data FOLDER] [--voxels 256] [--steps 3000] [--side 800] [--path final]\n"
                 "paths: reference, fused_adam, fused_rendering, per_ray_weights, final\n");
    std::exit(2);
}

int whole_number(const char* text, long least, long most) {
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < least || value > most) stop_with_usage();
    return static_cast<int>(value);
}

BenchOptions parse(int argc, char** argv) {
    BenchOptions options;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 >= argc) stop_with_usage();
        const std::string_view name = argv[i];
        if (name == "--data") {
            options.data = argv[i + 1];
        } else if (name == "--voxels") {
            options.voxels = whole_number(argv[i + 1], 16, 512);
        } else if (name == "--steps") {
            options.steps = whole_number(argv[i + 1], 100, 1000000);
        } else if (name == "--side") {
            options.side = whole_number(argv[i + 1], 16, 4096);
        } else if (name == "--path") {
            const std::optional<radiance::StepPath> path = radiance::step_path_by_name(argv[i + 1]);
            if (!path) stop_with_usage();
            options.path = *path;
        } else {
            stop_with_usage();
        }
    }
    return options;
}

/// The published settings, sooner: the grid has grown to its size after two fifths of the steps.
radiance::TrainOptions short_training(const BenchOptions& bench) {
    radiance::TrainOptions options = radiance::parity_options(bench.voxels);
    options.coarse.N_iters = std::max(50, bench.steps / 2);
    options.fine.N_iters = bench.steps;
    for (size_t i = 0; i < options.fine.pg_scale.size(); ++i) {
        options.fine.pg_scale[i] =
            std::max<int>(static_cast<int>(i) + 1, bench.steps * 2 / 5 * static_cast<int>(i + 1) /
                                                       static_cast<int>(options.fine.pg_scale.size()));
    }
    options.fine.refresh = std::max(2, bench.steps / 6);
    options.profile_steps = 100;
    options.path = bench.path;
    return options;
}

void print_parts(const std::vector<radiance::StepPart>& parts, double bandwidth) {
    std::printf("%-34s %10s %10s %9s %9s %9s\n", "part of a step", "ms", "MB", "GB/s", "of copy", "TFLOP/s");
    double milliseconds = 0, bytes = 0;
    const auto print = [&](const char* name, double ms, double moved, double operations) {
        std::printf("%-34s %10.4f", name, ms);
        if (moved > 0) {
            const double rate = moved / ms * 1e3;
            std::printf(" %10.2f %9.0f %8.0f%%", moved / 1e6, rate / 1e9, 100 * rate / bandwidth);
        } else {
            std::printf(" %10s %9s %9s", "-", "-", "-");
        }
        if (operations > 0) std::printf(" %9.1f", operations / ms / 1e9);
        std::printf("\n");
    };
    for (const radiance::StepPart& part : parts) {
        print(part.name.c_str(), part.milliseconds, part.bytes, part.operations);
        milliseconds += part.milliseconds;
        bytes += part.bytes;
    }
    print("all", milliseconds, bytes, 0);
}

/// The best of ten views of 800 x 800, after one.
void print_view(const radiance::Field& field, const radiance::Scene& scene, Device device) {
    radiance::Camera camera = (scene.test.empty() ? scene.train : scene.test)[0].camera;
    const float scale = 800.0f / static_cast<float>(camera.width);
    camera.fx *= scale, camera.fy *= scale, camera.cx *= scale, camera.cy *= scale;
    camera.height = static_cast<int32_t>(std::lround(static_cast<float>(camera.height) * scale));
    camera.width = 800;
    radiance::Renderer renderer(field, device);
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 11; ++i) {
        renderer.render(camera);
        if (i > 0) best = std::min(best, renderer.seconds());
    }
    std::printf("a view of %d x %d: %.2f ms, the best of 10\n", camera.width, camera.height, 1e3 * best);
}

void on_gpu(const BenchOptions& bench, const radiance::Scene& scene, const DeviceInfo& info) {
    const double bandwidth = bench::copy_bandwidth(info.device);
    std::printf("%s: a copy moves %.0f GB/s, read and written\n", info.name.c_str(), bandwidth / 1e9);
    const radiance::TrainOptions options = short_training(bench);
    const radiance::TrainResult trained = radiance::train(scene, options, info.device);
    const radiance::TrainTimes& t = trained.times;
    std::printf("path %s, %lld^3: %d + %d steps in %.2f s, %.3f ms a fine step, %.2f GB\n",
                radiance::name_of(options.path), static_cast<long long>(bench.voxels), options.coarse.N_iters,
                options.fine.N_iters, t.box + t.coarse_setup + t.coarse + t.fine_setup + t.fine + t.pack,
                t.ms_per_fine_step, static_cast<double>(t.peak_bytes) / 1e9);
    std::printf(
        "samples of the last step: %.0f in the box, %.0f in occupied space, %.0f opaque, %.0f with a colour\n\n",
        t.in_box, t.in_mask, t.opaque, t.kept);
    print_parts(trained.profile, bandwidth);
    std::printf("\n");
    print_view(trained.field, scene, info.device);
}

void on_cpu(const radiance::Scene& scene) {
    radiance::TrainOptions options = radiance::small_options();
    options.coarse.N_iters = 150;
    options.coarse.lrate_density = 0.5f;
    options.fine.N_iters = 20;
    options.fine.pg_scale = {};
    const radiance::TrainResult trained = radiance::train(scene, options, {});
    const radiance::TrainTimes& t = trained.times;
    std::printf(
        "CPU, %d threads, mode small (%d rays, 96^3): %.1f ms a fine step with %.0f colours, after %d coarse ones of "
        "%.1f ms\n",
        threads(), options.fine.N_rand, t.ms_per_fine_step, t.kept, options.coarse.N_iters,
        1e3 * t.coarse / options.coarse.N_iters);
}

}  // namespace

int main(int argc, char** argv) {
    const BenchOptions options = parse(argc, argv);
    try {
        const radiance::Scene scene =
            options.data.empty() ? test::analytic_scene(options.side, 100, 1, 0) : radiance::load_scene(options.data);
        for (const DeviceInfo& info : list_devices()) {
            if (info.device.type != DeviceType::cuda) continue;
            on_gpu(options, scene, info);
            break;
        }
        std::printf("\n");
        on_cpu(scene);
    } catch (const Error& error) {
        std::fprintf(stderr, "radiance_bench: %s\n", error.what());
        return 1;
    }
}
