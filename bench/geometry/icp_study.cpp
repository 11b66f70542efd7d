// icp_study DATA [SEEDS]: how near ICP with its defaults comes to known poses, on scans of the folder DATA/scans.
//
// bunny: each of the ten range scans against the other nine in their published poses, from poses that are off by 10
// degrees about the scan's mean and by 10 mm, in a random direction for each seed. The error is the displacement of the
// scan's points between the found and the published pose. lidar pair: from identity against the ground truth.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

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

void study_bunny(const std::string& data, int seeds) {
    const std::vector<test::Scan> scans = test::bunny_scans(data);
    fmt::print(
        "| scan | points | RMS median mm | RMS max mm | point max mm | fitness | steps | s "
        "|\n|---|---|---|---|---|---|---|---|\n");
    double worst = 0;
    for (size_t i = 0; i < scans.size(); ++i) {
        const PointCloud others = test::other_scans(scans, i);
        const geometry::IcpTarget target(others);
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
    const geometry::IcpResult found = geometry::icp(pair.source, pair.target);
    const geometry::RigidTransform off = geometry::inverse(pair.truth) * found.transform;
    fmt::print("lidar pair: {:.4f} m, {:.4f} degrees off; fitness {:.3f}, rmse {:.3f} m, {} steps, {:.2f} s\n",
               std::hypot(off.translation[0], off.translation[1], off.translation[2]),
               geometry::rotation_angle(off) * 180 / M_PI, found.fitness, found.rmse, found.iterations,
               seconds_since(begin));
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
    } catch (const stipple::Error& error) {
        fmt::print(stderr, "icp_study: {}\n", error.what());
        return 1;
    }
}
