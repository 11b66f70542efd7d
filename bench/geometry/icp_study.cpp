// icp_study DATA [SEEDS]: how near ICP with the defaults of `stipple register` comes to known poses, and what these
// defaults were chosen by.
//
// made scans: metrics and cells on LiDAR scans of made-up places, from poses up to 5 degrees and 0.3 m an axis off.
// halves: metrics and kernels on random halves of the points of DATA/scans/lidar_pair; how far the found poses are from
// each other, which asks for no truth.
// bunny: each of the ten range scans against the other nine in their published poses, from poses that are off by 10
// degrees about the scan's mean and by 10 mm, in a random direction for each seed. The error is the displacement of the
// scan's points between the found and the published pose. lidar pair: from identity against the ground truth.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "lidar_scene.h"
#include "stipple/core/rng.h"
#include "stipple/geometry/icp.h"
#include "stipple/io/format.h"
#include "stipple/io/text.h"
#include "tests/geometry/scans.h"

namespace stipple {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// As tasks::RegisterOptions has it.
geometry::IcpOptions defaults() {
    geometry::IcpOptions options;
    options.metric = geometry::IcpMetric::generalised;
    options.kernel = geometry::RobustKernel::cauchy;
    return options;
}

struct PoseOff {
    double metres = 0, degrees = 0;
};

PoseOff between(const geometry::RigidTransform& a, const geometry::RigidTransform& b) {
    const geometry::RigidTransform off = geometry::inverse(a) * b;
    return {std::hypot(off.translation[0], off.translation[1], off.translation[2]),
            geometry::rotation_angle(off) * 180 / M_PI};
}

constexpr std::pair<geometry::IcpMetric, const char*> kMetrics[] = {{geometry::IcpMetric::plane, "plane"},
                                                                    {geometry::IcpMetric::generalised, "generalised"}};

void study_made() {
    constexpr uint64_t kScenes = 12, kFirst = 100;
    struct Case {
        bench::MadePair pair;
        geometry::RigidTransform start;
        double radius;
    };
    std::vector<Case> cases;
    for (uint64_t i = 0; i < kScenes; ++i) {
        bench::MadePair pair = bench::made_pair(kFirst + i);
        const Rng rng(i, 33);
        geometry::RigidTransform off = geometry::rotation_about(
            {rng.normal(0), rng.normal(1), rng.normal(2)}, rng.uniform(8) * 5 * M_PI / 180, pair.truth.translation);
        for (int k = 0; k < 3; ++k) off.translation[k] += 0.3 * (2 * rng.uniform(static_cast<uint64_t>(4 + k)) - 1);
        const geometry::RigidTransform start = off * pair.truth;
        const double radius = geometry::rms_radius(pair.target);
        cases.push_back({std::move(pair), start, radius});
    }
    fmt::print(
        "| metric | last cells | mean m | worst m | mean degrees | worst degrees |\n|---|---|--:|--:|--:|--:|\n");
    for (const auto& [metric, name] : kMetrics)
        for (const double cells : {24.0, 32.0, 48.0, 64.0, 128.0}) {
            PoseOff sum, worst;
            for (const Case& one : cases) {
                geometry::IcpOptions options = defaults();
                options.metric = metric;
                options.levels = geometry::automatic_levels(one.radius);
                for (geometry::IcpLevel& level : options.levels) level.voxel = one.radius / cells;
                const PoseOff off = between(
                    one.pair.truth, geometry::icp(one.pair.source, one.pair.target, options, one.start).transform);
                sum.metres += off.metres / kScenes;
                sum.degrees += off.degrees / kScenes;
                worst = {std::max(worst.metres, off.metres), std::max(worst.degrees, off.degrees)};
            }
            fmt::print("| {} | R/{:.0f} | {:.4f} | {:.4f} | {:.4f} | {:.4f} |\n", name, cells, sum.metres, worst.metres,
                       sum.degrees, worst.degrees);
            std::fflush(stdout);
        }
    fmt::print("\n");
}

PointCloud half_of(const PointCloud& cloud, uint64_t seed) {
    const Rng rng(seed, 3);
    std::vector<int32_t> rows;
    for (int64_t i = 0; i < cloud.size(); ++i)
        if (rng.uniform(static_cast<uint64_t>(i)) < 0.5f) rows.push_back(static_cast<int32_t>(i));
    return select(cloud, View<const int32_t, 1>(rows.data(), {static_cast<int64_t>(rows.size())}));
}

void study_halves(const std::string& data) {
    constexpr uint64_t kHalves = 10;
    const test::LidarPair pair = test::lidar_pair(data);
    constexpr std::pair<geometry::RobustKernel, const char*> kKernels[] = {
        {geometry::RobustKernel::tukey, "tukey"},
        {geometry::RobustKernel::geman_mcclure, "geman-mcclure"},
        {geometry::RobustKernel::cauchy, "cauchy"},
        {geometry::RobustKernel::huber, "huber"},
        {geometry::RobustKernel::none, "none"}};
    fmt::print("| metric | kernel | apart, RMS m | RMS degrees | steps |\n|---|---|--:|--:|--:|\n");
    for (const auto& [metric, name] : kMetrics)
        for (const auto& [kernel, kernel_name] : kKernels) {
            geometry::IcpOptions options = defaults();
            options.metric = metric;
            options.kernel = kernel;
            std::vector<geometry::RigidTransform> poses;
            double metres_sq = 0, degrees_sq = 0, pairs = 0, steps = 0;
            for (uint64_t i = 0; i < kHalves; ++i) {
                const geometry::IcpResult found =
                    geometry::icp(half_of(pair.source, 2 * i), half_of(pair.target, 2 * i + 1), options);
                steps += static_cast<double>(found.iterations) / kHalves;
                for (const geometry::RigidTransform& other : poses) {
                    const PoseOff off = between(other, found.transform);
                    metres_sq += off.metres * off.metres;
                    degrees_sq += off.degrees * off.degrees;
                    ++pairs;
                }
                poses.push_back(found.transform);
            }
            fmt::print("| {} | {} | {:.4f} | {:.4f} | {:.0f} |\n", name, kernel_name, std::sqrt(metres_sq / pairs),
                       std::sqrt(degrees_sq / pairs), steps);
            std::fflush(stdout);
        }
    fmt::print("\n");
}

void study_bunny(const std::string& data, int seeds) {
    const std::vector<test::Scan> scans = test::bunny_scans(data);
    fmt::print(
        "| scan | points | RMS median mm | RMS max mm | point max mm | fitness | steps | s "
        "|\n|---|---|---|---|---|---|---|---|\n");
    double worst = 0;
    for (size_t i = 0; i < scans.size(); ++i) {
        const PointCloud others = test::other_scans(scans, i);
        const geometry::IcpTarget target(others, defaults());
        std::vector<double> rms;
        double most = 0, fitness = 1, steps = 0, seconds = 0;
        for (int seed = 0; seed < seeds; ++seed) {
            const geometry::RigidTransform start = test::perturbed(scans[i], 10, 0.01, static_cast<uint64_t>(seed));
            const auto begin = Clock::now();
            const geometry::IcpResult found = geometry::icp(scans[i].cloud, target, start);
            seconds += seconds_since(begin) / seeds;
            const test::Displacement off = test::displacement(scans[i].cloud, found.transform, scans[i].pose);
            rms.push_back(1000 * off.rms);
            most = std::max(most, 1000 * off.most);
            fitness = std::min(fitness, found.fitness);
            steps += static_cast<double>(found.iterations) / seeds;
        }
        std::sort(rms.begin(), rms.end());
        worst = std::max(worst, rms.back());
        fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.3f} | {:.2f} | {:.0f} | {:.2f} |\n", scans[i].name,
                   scans[i].cloud.size(), rms[rms.size() / 2], rms.back(), most, fitness, steps, seconds);
        std::fflush(stdout);
    }
    fmt::print("worst: {:.3f} mm\n\n", worst);
}

void study_lidar(const std::string& data) {
    const test::LidarPair pair = test::lidar_pair(data);
    const auto begin = Clock::now();
    const geometry::IcpResult found = geometry::icp(pair.source, pair.target, defaults());
    const double seconds = seconds_since(begin);
    const PoseOff off = between(pair.truth, found.transform);
    fmt::print("lidar pair: {:.4f} m, {:.4f} degrees off; fitness {:.3f}, rmse {:.3f} m, {} steps, {:.3f} s\n\n",
               off.metres, off.degrees, found.fitness, found.rmse, found.iterations, seconds);
}

}  // namespace
}  // namespace stipple

int main(int argc, char** argv) {
    int64_t seeds = 10;
    if (argc < 2 || (argc > 2 && !stipple::io::parse_number(argv[2], seeds))) {
        std::fputs("usage: icp_study DATA [SEEDS]\n", stderr);
        return 2;
    }
    try {
        stipple::study_lidar(argv[1]);
        stipple::study_bunny(argv[1], static_cast<int>(seeds));
        stipple::study_made();
        stipple::study_halves(argv[1]);
    } catch (const stipple::Error& error) {
        fmt::print(stderr, "icp_study: {}\n", error.what());
        return 1;
    }
}
