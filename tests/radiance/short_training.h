#pragma once
// Trainings of a few steps, and how far apart their results are.

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "stipple/radiance/train.h"

namespace stipple::radiance {

/// Seconds on two cores.
inline TrainOptions tiny_options() {
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
inline TrainOptions few_steps() {
    TrainOptions options = tiny_options();
    options.coarse.N_iters = options.fine.N_iters = 10;
    options.fine.pg_scale = {6};
    options.bbox_thres = 1e-7f;
    options.deterministic = true;
    options.half_network = false;
    return options;
}

inline double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double difference = 0, sum = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
        sum += double{a[i]} * a[i];
    }
    return std::sqrt(difference / sum);
}

inline std::optional<Device> gpu() {
    for (const DeviceInfo& info : list_devices()) {
        if (info.device.type == DeviceType::cuda) return info.device;
    }
    return std::nullopt;
}

/// CPU and GPU train alike: losses, and parameters by their relative distance.
inline void expect_agreement(const Scene& scene, const TrainOptions& options, Device device) {
    std::vector<double> on_cpu, on_gpu;
    const Field cpu = train(scene, options, {}, [&](const TrainStep& s) { on_cpu.push_back(s.psnr); }).field;
    const Field cuda = train(scene, options, device, [&](const TrainStep& s) { on_gpu.push_back(s.psnr); }).field;
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

}  // namespace stipple::radiance
