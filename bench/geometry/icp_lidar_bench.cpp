// ICP beside small_gicp on a LiDAR pair of known pose, from clouds in memory to the pose: thinning, trees, normals and
// steps, on one thread.
//
//   icp_lidar_bench DATA [REPEAT [STARTS]]
//
// Starts are the true pose turned by up to 5 degrees about the source's mean and moved by up to 0.5 m, both uniform in
// size, in directions of a fixed seed. All programs take turns at every start; its time is the best of REPEAT, in
// seconds of processor time of the whole process, so that other programs on the machine do not count. Errors are those
// of T_truth^-1 T: length of the translation and geodesic angle.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>

#include "icp_lidar_peers.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/geometry/icp.h"
#include "stipple/io/text.h"
#include "tests/geometry/scans.h"

namespace stipple {
namespace {

using geometry::RigidTransform;

double processor_seconds() {
    timespec now = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

peer::Pose to_pose(const RigidTransform& transform) {
    peer::Pose pose = {};
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) pose[4 * i + j] = transform.rotation[i][j];
        pose[4 * i + 3] = transform.translation[i];
    }
    pose[15] = 1;
    return pose;
}

RigidTransform from_pose(const peer::Pose& pose) {
    RigidTransform transform;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) transform.rotation[i][j] = pose[4 * i + j];
        transform.translation[i] = pose[4 * i + 3];
    }
    return transform;
}

std::vector<RigidTransform> starts_of(const test::LidarPair& pair, int64_t count) {
    constexpr double kDegrees = 5, kMetres = 0.5;
    geometry::Vector3 mean = {};
    for (int64_t i = 0; i < pair.source.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            mean[axis] += pair.source.world(i, axis) / static_cast<double>(pair.source.size());
    std::vector<RigidTransform> starts;
    for (int64_t i = 0; i < count; ++i) {
        const Rng rng(static_cast<uint64_t>(i), 21);
        geometry::Vector3 axis, way;
        for (int k = 0; k < 3; ++k) {
            axis[k] = rng.normal(k);
            way[k] = rng.normal(4 + k);
        }
        const double length = std::hypot(way[0], way[1], way[2]);
        RigidTransform off = geometry::rotation_about(axis, kDegrees * rng.uniform(8) * M_PI / 180, pair.truth(mean));
        for (int k = 0; k < 3; ++k) off.translation[k] += kMetres * rng.uniform(9) * way[k] / length;
        starts.push_back(off * pair.truth);
    }
    return starts;
}

struct Row {
    std::string name;
    peer::LidarRun run;
    std::vector<double> seconds = {}, metres = {}, degrees = {};
};

/// The defaults of `stipple register` (tasks::RegisterOptions), or with another metric.
peer::LidarRun our_run(const test::LidarPair& pair, geometry::IcpMetric metric) {
    return [&pair, metric](const peer::Pose& start) {
        geometry::IcpOptions options;
        options.metric = metric;
        options.kernel = geometry::RobustKernel::cauchy;
        return to_pose(geometry::icp(pair.source, pair.target, options, from_pose(start)).transform);
    };
}

void run(const std::string& data, int64_t repeat, int64_t count) {
    set_threads(1);
    const test::LidarPair pair = test::lidar_pair(data);
    std::vector<Row> rows;
    rows.push_back({"stipple, plane", our_run(pair, geometry::IcpMetric::plane)});
    rows.push_back({"stipple, generalised", our_run(pair, geometry::IcpMetric::generalised)});
#ifdef STIPPLE_BENCH_SMALL_GICP
    const peer::LidarClouds clouds{pair.source.positions.data(), pair.source.size(), pair.target.positions.data(),
                                   pair.target.size()};
    rows.push_back({"small_gicp, plane", peer::small_gicp_run(clouds, true)});
    rows.push_back({"small_gicp, GICP", peer::small_gicp_run(clouds, false)});
#endif
    for (const RigidTransform& start : starts_of(pair, count))
        for (int64_t turn = 0; turn < repeat; ++turn)
            for (Row& row : rows) {
                const double begin = processor_seconds();
                const RigidTransform found = from_pose(row.run(to_pose(start)));
                const double seconds = processor_seconds() - begin;
                if (turn > 0) {
                    row.seconds.back() = std::min(row.seconds.back(), seconds);
                    continue;
                }
                const RigidTransform off = geometry::inverse(pair.truth) * found;
                row.seconds.push_back(seconds);
                row.metres.push_back(std::hypot(off.translation[0], off.translation[1], off.translation[2]));
                row.degrees.push_back(geometry::rotation_angle(off) * 180 / M_PI);
            }
    const auto mean = [](const std::vector<double>& numbers) {
        double sum = 0;
        for (const double number : numbers) sum += number;
        return sum / static_cast<double>(numbers.size());
    };
    const auto most = [](const std::vector<double>& numbers) {
        return *std::max_element(numbers.begin(), numbers.end());
    };
    fmt::print("{} and {} points, {} starts, best of {}\n\n", pair.source.size(), pair.target.size(), count, repeat);
    fmt::print(
        "| | mean ms | worst ms | off, mean m | worst m | mean degrees | worst degrees "
        "|\n|---|--:|--:|--:|--:|--:|--:|\n");
    for (const Row& row : rows)
        fmt::print("| {} | {:.1f} | {:.1f} | {:.4f} | {:.4f} | {:.4f} | {:.4f} |\n", row.name, 1000 * mean(row.seconds),
                   1000 * most(row.seconds), mean(row.metres), most(row.metres), mean(row.degrees), most(row.degrees));
}

}  // namespace
}  // namespace stipple

int main(int argc, char** argv) {
    int64_t repeat = 3, starts = 50;
    if (argc < 2 || argc > 4 || (argc > 2 && (!stipple::io::parse_number(argv[2], repeat) || repeat < 1)) ||
        (argc > 3 && (!stipple::io::parse_number(argv[3], starts) || starts < 1))) {
        std::fputs("usage: icp_lidar_bench DATA [REPEAT [STARTS]]\n", stderr);
        return 2;
    }
    try {
        stipple::run(argv[1], repeat, starts);
    } catch (const stipple::Error& error) {
        fmt::print(stderr, "icp_lidar_bench: {}\n", error.what());
        return 1;
    }
}
