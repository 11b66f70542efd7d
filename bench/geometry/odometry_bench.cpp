// Odometry on a simulated drive (tests/support/lidar_drive.h): drift by the protocol of KITTI, sweeps a second.
//
//   odometry_bench [SWEEPS [SEED [FOLDER]]]
//
// The rate is that of Odometry::add alone, by the wall clock. With FOLDER, which must exist, the sweeps are written
// there as PCD with times, and the poses as FOLDER/../truth.txt, for `stipple register FOLDER --sequence --truth`.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "stipple/core/parallel.h"
#include "stipple/geometry/odometry.h"
#include "stipple/io/format.h"
#include "stipple/io/text.h"
#include "stipple/tasks/sweep_poses.h"
#include "tests/support/lidar_drive.h"

namespace stipple {
namespace {

void write(const PointCloud& sweep, const std::string& path) {
    Mesh mesh;
    mesh.vertices = sweep.clone();
    mesh.triangles = Array<int32_t, 2>({0, 3});
    io::Warnings warnings;
    io::save(path, mesh, Overwrite::allow, {}, warnings);
}

void print(const char* name, const tasks::Drift& drift, double rate) {
    for (const tasks::DriftRow& row : drift.rows)
        fmt::print("| {} | {:.0f} | {} | {:.3f} | {:.4f} | |\n", name, row.length, row.segments, 100 * row.translation,
                   row.degrees);
    fmt::print("| {} | all | {} | {:.3f} | {:.4f} | {:.1f} |\n", name, drift.all.segments, 100 * drift.all.translation,
               drift.all.degrees, rate);
}

void run(int64_t sweeps, int64_t seed, const std::string& folder) {
    test::DriveOptions options;
    options.sweeps = static_cast<int>(sweeps);
    options.seed = static_cast<uint64_t>(seed);
    const test::LidarDrive drive(options);
    geometry::Odometry timed, plain({.deskew = false});
    std::vector<geometry::RigidTransform> poses, bent, truth;
    double seconds = 0, points = 0, least = 1, reach = 0, iterations = 0;
    int troubled = 0;
    for (int i = 0; i < options.sweeps; ++i) {
        const PointCloud sweep = drive.sweep(i);
        truth.push_back(drive.truth(i));
        points += static_cast<double>(sweep.size());
        if (!folder.empty()) {
            write(sweep, fmt::format("{}/{:06}.pcd", folder, i));
            continue;
        }
        const std::span<const double> times(sweep.attributes[0].as<double>().data(), static_cast<size_t>(sweep.size()));
        const auto begin = std::chrono::steady_clock::now();
        const geometry::SweepPose found = timed.add(sweep, times);
        seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        poses.push_back(found.pose);
        bent.push_back(plain.add(sweep).pose);
        troubled += found.trouble != geometry::SweepTrouble::none;
        iterations += found.iterations;
        if (found.used > 0 && i > 0) least = std::min(least, static_cast<double>(found.pairs) / found.used);
        reach = found.reach;
        if (i % 50 == 1)
            fmt::print(stderr, "sweep {}: {} points, {} used, {} pairs, reach {:.2f}, rmse {:.3f}, {} steps\n", i,
                       found.points, found.used, found.pairs, found.reach, found.rmse, found.iterations);
    }
    if (!folder.empty()) {
        std::FILE* file = std::fopen((folder + "/../truth.txt").c_str(), "w");
        if (!file) throw Error(ErrorCode::cannot_write, Place{folder}, "cannot write truth.txt beside it");
        std::fputs(tasks::to_kitti_poses(truth).c_str(), file);
        std::fclose(file);
        return;
    }
    const tasks::Drift drift = tasks::pose_drift(poses, truth);
    fmt::print(
        "{} sweeps of {:.0f} points, {:.0f} m; voxel {:.3f}, last reach {:.3f}, least share of pairs {:.2f}, "
        "{:.1f} steps, {} troubled; {} points in the map; end off by {:.3f} m, {:.3f} degrees; {} threads\n\n",
        options.sweeps, points / options.sweeps, drift.path, timed.options().voxel, reach, least,
        iterations / options.sweeps, troubled, timed.map_points(), drift.end_translation, drift.end_degrees, threads());
    fmt::print(
        "| | segments, m | number | translation, % | degrees in 100 m | sweeps/s |\n|---|--:|--:|--:|--:|--:|\n");
    print("with times", drift, options.sweeps / seconds);
    print("without", tasks::pose_drift(bent, truth), 0);
}

}  // namespace
}  // namespace stipple

int main(int argc, char** argv) {
    int64_t sweeps = 300, seed = 1;
    if (argc > 4 || (argc > 1 && (!stipple::io::parse_number(argv[1], sweeps) || sweeps < 2)) ||
        (argc > 2 && !stipple::io::parse_number(argv[2], seed))) {
        std::fputs("usage: odometry_bench [SWEEPS [SEED [FOLDER]]]\n", stderr);
        return 2;
    }
    try {
        stipple::run(sweeps, seed, argc > 3 ? argv[3] : "");
    } catch (const stipple::Error& error) {
        fmt::print(stderr, "odometry_bench: {}\n", error.what());
        return 1;
    }
}
