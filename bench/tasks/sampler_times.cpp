// sampler_times WEIGHTS [cpu|cuda] [PRECISION] [REPEAT]: a learned sampler on batches of clouds that lie on the device.
//
// Clouds of 1024 points on a sphere, random. "network and matching" ends with the nearest input point of each proposal;
// "whole sample" has them distinct and completed by farthest point sampling. Nothing is copied to the host.

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "stipple/bench/timing.h"
#include "stipple/core/rng.h"
#include "stipple/tasks/network_sample.h"

namespace {

using namespace stipple;

Array<float, 3> random_spheres(int64_t clouds, int64_t points) {
    Array<float, 3> made({clouds, points, 3});
    const Rng rng(1, 0);
    for (int64_t i = 0; i < clouds * points; ++i) {
        double p[3], square = 0;
        for (int axis = 0; axis < 3; ++axis) {
            p[axis] = rng.normal(static_cast<uint64_t>(3 * i + axis));
            square += p[axis] * p[axis];
        }
        for (int axis = 0; axis < 3; ++axis)
            made.data()[3 * i + axis] = static_cast<float>(p[axis] / std::sqrt(square + 1e-30));
    }
    return made;
}

void print(int64_t batch, const char* work, const bench::Timing& timing) {
    fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.0f} |\n", batch, work, 1e3 * timing.best, 1e3 * timing.median,
               static_cast<double>(batch) / timing.best);
    std::fflush(stdout);
}

void run(const std::string& weights, const std::string& device_name, const std::string& precision, int repeat) {
    const Device device = parse_device(device_name);
    const bench::Budget budget{repeat, 0.5};
    fmt::print("{}, {}\n\n| clouds | work | best (ms) | median (ms) | clouds/s |\n|--:|---|--:|--:|--:|\n",
               to_string(device), precision);
    for (const int64_t batch : {32, 256, 1024}) {
        tasks::NetworkSampler sampler(
            tasks::load_model_or_engine(weights),
            {.device = device_name, .precision = engine::parse_precision(precision), .batch = batch, .points = 1024});
        const Array<float, 3> clouds = random_spheres(batch, 1024).to(device);
        const int64_t m = sampler.count();
        Array<int32_t, 1> indices({batch * m}, device);
        Array<float, 1> distances_sq({batch * m}, device);
        print(batch, "network and matching",
              bench::measure([&] { sampler.propose(clouds.view(), 0); }, device, budget));
        print(batch, "whole sample",
              bench::measure(
                  [&] {
                      const Array<int32_t, 2> proposals = sampler.propose(clouds.view(), 0);
                      sampler.choose(clouds.view(), proposals, m, indices.view(), distances_sq.view());
                  },
                  device, budget));
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: sampler_times WEIGHTS [cpu|cuda] [PRECISION] [REPEAT]\n", stderr);
        return 2;
    }
    try {
        run(argv[1], argc > 2 ? argv[2] : "cpu", argc > 3 ? argv[3] : "fp32", argc > 4 ? std::stoi(argv[4]) : 5);
    } catch (const stipple::Error& error) {
        fmt::print(stderr, "sampler_times: {}\n", error.what());
        return 1;
    }
}
