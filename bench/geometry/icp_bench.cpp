// ICP beside its peers, on the same points in the same run: best of N, all taking turns.
//
//   icp_bench [REPEAT]
//
// Source: 100,000 points of the wavy torus turned by 5 degrees about z, moved by (0.02, -0.015, 0.01), with noise of
// 0.002; target: 100,000 other points of it; pairs up to 0.1; 30 steps without early stop, one level, no kernel. Trees
// are built within the clock; normals (point-to-plane) are given to all. The residual is that of the found pose in
// float64, by one search for all.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "icp_peers.h"
#include "stipple/bench/data.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/geometry/icp.h"
#include "stipple/geometry/normals.h"
#include "stipple/io/text.h"

namespace {

using namespace stipple;
using Clock = std::chrono::steady_clock;

struct Scene {
    PointCloud source, target;  // the target with normals
};

Scene make_scene() {
    Scene scene;
    scene.target.positions = bench::wavy_torus(100'000, 1);
    scene.source.positions = bench::wavy_torus(100'000, 2);
    geometry::RigidTransform off = geometry::rotation_about({0, 0, 1}, 5 * M_PI / 180);
    off.translation = {0.02, -0.015, 0.01};
    scene.source = geometry::transformed(scene.source, off);
    const Rng rng(11);
    for (int64_t i = 0; i < 3 * scene.source.size(); ++i)
        scene.source.positions.data()[i] += 0.002f * rng.normal(static_cast<uint64_t>(i));
    Attribute normals("normal", DType::f32, scene.target.size(), 3);
    geometry::estimate_normals(scene.target.positions.view(), normals.as<float>(), {}, 16);
    scene.target.attributes.push_back(std::move(normals));
    return scene;
}

geometry::IcpOptions options_of(bool plane, int iterations) {
    geometry::IcpOptions options;
    options.metric = plane ? geometry::IcpMetric::plane : geometry::IcpMetric::point;
    options.kernel = geometry::RobustKernel::none;
    options.levels = {{0, 0.1, iterations}};
    options.motion_tolerance = options.change_tolerance = 0;
    return options;
}

/// RMS distance of the pairs that a pose leaves.
double residual(const Scene& scene, const peer::IcpOutcome& outcome) {
    geometry::RigidTransform pose;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) pose.rotation[i][j] = outcome.transform[4 * i + j];
        pose.translation[i] = outcome.transform[4 * i + 3];
    }
    return geometry::icp(scene.source, scene.target, options_of(false, 0), pose).rmse;
}

peer::IcpRun our_icp(const Scene& scene, bool plane) {
    return [&scene, plane](int threads) {
        set_threads(threads);
        const geometry::IcpResult found = geometry::icp(scene.source, scene.target, options_of(plane, 30));
        peer::IcpOutcome outcome;
        for (int i = 0; i < 3; ++i) {
            for (int j = 0; j < 3; ++j) outcome.transform[4 * i + j] = found.transform.rotation[i][j];
            outcome.transform[4 * i + 3] = found.transform.translation[i];
        }
        outcome.transform[15] = 1;
        return outcome;
    };
}

void compare(const Scene& scene, bool plane, int repeat) {
    const Attribute* normals = find(scene.target.attributes, "normal");
    [[maybe_unused]] peer::IcpJob job{scene.source.positions.data(), scene.source.size(), scene.target.positions.data(),
                                      scene.target.size(), plane ? normals->as<float>().data() : nullptr};
    struct Row {
        const char* name;
        peer::IcpRun run;
        double best[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
        double rmse = 0;
    };
    std::vector<Row> rows;
    rows.push_back({"stipple", our_icp(scene, plane)});
#ifdef STIPPLE_BENCH_OPEN3D
    rows.push_back({"Open3D", peer::open3d_icp(job)});
#endif
#ifdef STIPPLE_BENCH_PCL
    rows.push_back({"PCL", peer::pcl_icp(job)});
#endif
    for (int i = 0; i < repeat; ++i)
        for (int threads : {1, 2})
            for (Row& row : rows) {
                const auto begin = Clock::now();
                const peer::IcpOutcome outcome = row.run(threads);
                const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
                row.best[threads - 1] = std::min(row.best[threads - 1], seconds);
                set_threads(2);
                row.rmse = residual(scene, outcome);
            }
    fmt::print(
        "\n### ICP, {}, 100k points, 30 steps\n\n| | 1 thread s | 2 threads s | ratio | rmse "
        "|\n|---|---|---|---|---|\n",
        plane ? "point-to-plane" : "point-to-point");
    for (const Row& row : rows)
        fmt::print("| {} | {:.3f} | {:.3f} | {:.1f} / {:.1f} | {:.7f} |\n", row.name, row.best[0], row.best[1],
                   row.best[0] / rows[0].best[0], row.best[1] / rows[0].best[1], row.rmse);
}

}  // namespace

int main(int argc, char** argv) {
    int64_t repeat = 5;
    if (argc > 2 || (argc == 2 && !io::parse_number(argv[1], repeat))) {
        std::fputs("usage: icp_bench [REPEAT]\n", stderr);
        return 2;
    }
    const Scene scene = make_scene();
    compare(scene, false, static_cast<int>(repeat));
    compare(scene, true, static_cast<int>(repeat));
}
