// scan_study DATA [TURNS] [bunny|lidar] [PART/PARTS] [global]: registration of real scans from any pose, against known
// poses.
//
// bunny: every two of the ten range scans of which at least 30 % of one lie within 2 mm of the other in the published
// poses; the source turned TURNS times about its middle at random (fixed seed). A result is right within 1 mm (RMS of
// the source's points) and 1 degree of the published pose; believed when its verdict is good, written when it is not
// failed. lidar: the pair from 36 yaws, right within 0.1 m and 0.5 degrees. "24 starts" is ICP from the turns of a
// cube, middles laid on each other, and the best by confidence. CPU seconds of all threads. 2/14 studies every
// fourteenth pair of the bunny from the third on; with global that method alone.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "stipple/io/text.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/register.h"
#include "tests/geometry/registration/shapes.h"
#include "tests/geometry/scans.h"

namespace stipple {
namespace {

using geometry::RigidTransform;
using geometry::Vector3;

double cpu_seconds() {
    std::timespec time = {};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double share_within(const PointCloud& source, const PointCloud& target, const RigidTransform& pose, double distance) {
    const PointCloud moved = geometry::transformed(source, pose);
    Array<float, 2> queries({moved.size(), 3}), distances_sq({moved.size(), 1});
    for (int64_t i = 0; i < moved.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            queries.data()[3 * i + axis] = static_cast<float>(moved.world(i, axis) - target.origin[axis]);
    Array<int32_t, 2> indices({moved.size(), 1});
    const ops::PointIndex index(ops::Clouds(target.positions.view()));
    ops::knn(index, queries.view(), indices.view(), distances_sq.view());
    int64_t count = 0;
    for (int64_t i = 0; i < moved.size(); ++i) count += distances_sq.data()[i] <= distance * distance;
    return static_cast<double>(count) / static_cast<double>(moved.size());
}

Vector3 middle_of_box(const PointCloud& cloud) {
    const Bounds bounds = bounds_of(cloud);
    Vector3 middle = {};
    for (int axis = 0; axis < 3; ++axis) middle[axis] = (bounds.min[axis] + bounds.max[axis]) / 2;
    return middle;
}

/// ICP from the 24 turns of a cube, a coarse level each; then all levels from the best.
tasks::Registration from_many_starts(const PointCloud& source, const PointCloud& target) {
    const Vector3 from = middle_of_box(source), to = middle_of_box(target);
    tasks::RegisterOptions options;
    const double radius = geometry::rms_radius(target);
    options.icp.levels = {{radius / 16, radius / 2, 30}};
    double best = -1;
    RigidTransform start;
    const int orders[6][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {1, 0, 2}, {2, 1, 0}};
    for (int order = 0; order < 6; ++order)
        for (int signs = 0; signs < 8; ++signs) {
            const bool is_odd = order >= 3, is_mirror = (signs & 1) ^ (signs >> 1 & 1) ^ (signs >> 2 & 1);
            if (is_odd != is_mirror) continue;
            options.initial.emplace();
            options.initial->rotation = {};
            for (int row = 0; row < 3; ++row)
                options.initial->rotation[row][orders[order][row]] = signs >> row & 1 ? -1 : 1;
            const Vector3 turned = (*options.initial)(from);
            for (int axis = 0; axis < 3; ++axis) options.initial->translation[axis] = to[axis] - turned[axis];
            const tasks::Registration found = tasks::register_clouds(source, target, options);
            if (found.trust.confidence <= best) continue;
            best = found.trust.confidence;
            start = found.found.transform;
        }
    options.icp.levels.clear();
    options.initial = start;
    return tasks::register_clouds(source, target, options);
}

struct Tally {
    int runs = 0, right = 0, believed_right = 0, believed_wrong = 0, written_right = 0, written_wrong = 0;
    double worst_rms = 0, worst_degrees = 0, seconds = 0;

    void add(const tasks::Registration& found, const tasks::PoseError& error, double most_rms, double most_degrees,
             double took) {
        const bool is_right = error.rms <= most_rms && error.degrees <= most_degrees;
        const bool is_believed = found.verdict.state == geometry::RegistrationState::good;
        const bool is_written = found.verdict.state != geometry::RegistrationState::failed;
        ++runs;
        right += is_right;
        written_right += is_right && is_written;
        written_wrong += !is_right && is_written;
        believed_right += is_right && is_believed;
        believed_wrong += !is_right && is_believed;
        if (is_believed) {
            worst_rms = std::max(worst_rms, error.rms);
            worst_degrees = std::max(worst_degrees, error.degrees);
        }
        seconds += took;
    }
    void add(const Tally& other) {
        runs += other.runs;
        right += other.right;
        believed_right += other.believed_right;
        believed_wrong += other.believed_wrong;
        written_right += other.written_right;
        written_wrong += other.written_wrong;
        worst_rms = std::max(worst_rms, other.worst_rms);
        worst_degrees = std::max(worst_degrees, other.worst_degrees);
        seconds += other.seconds;
    }
    void print(const std::string& name, double overlap, const char* method, double unit) const {
        fmt::print("| {} | {:.0f} % | {} | {} | {} | {} | {} | {} | {} | {:.3f} | {:.2f} | {:.2f} |\n", name,
                   100 * overlap, method, runs, right, believed_right, written_right, believed_wrong, written_wrong,
                   worst_rms * unit, worst_degrees, seconds / std::max(runs, 1));
        std::fflush(stdout);
    }
};

void print_heading(const char* unit) {
    fmt::print(
        "| pair | overlap | method | runs | right | right and believed | right and written | wrong and believed | "
        "wrong and written | worst believed, {} | degrees | CPU s "
        "|\n|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        unit);
}

constexpr const char* kNames[] = {"global", "auto", "24 starts"};

tasks::Registration run_method(int method, const PointCloud& source, const PointCloud& target) {
    if (method == 2) return from_many_starts(source, target);
    tasks::RegisterOptions options;
    options.method = method == 0 ? tasks::RegisterMethod::global : tasks::RegisterMethod::automatic;
    return tasks::register_clouds(source, target, options);
}

void study_pair(const std::string& name, double overlap, const test::Scan& source, const test::Scan& target, int turns,
                int methods, Tally (&all)[3]) {
    const RigidTransform truth = geometry::inverse(target.pose) * source.pose;
    for (int method = 0; method < methods; ++method) {
        Tally tally;
        // The baseline and auto, which is global when a scan is turned, are told by fewer.
        const int runs = method == 0 ? turns : std::max(1, turns / 10);
        for (int turn = 0; turn < runs; ++turn) {
            const RigidTransform any = test::any_pose(static_cast<uint64_t>(1000 + turn), 0.1);
            const PointCloud turned = geometry::transformed(source.cloud, any);
            const double begin = cpu_seconds();
            const tasks::Registration found = run_method(method, turned, target.cloud);
            const double took = cpu_seconds() - begin;
            tally.add(found, tasks::pose_error(found.found.transform, truth * geometry::inverse(any), turned), 0.001, 1,
                      took);
        }
        tally.print(name, overlap, kNames[method], 1000);
        all[method].add(tally);
    }
}

void study_bunny(const std::string& data, int turns, int64_t part, int64_t parts, int methods) {
    const std::vector<test::Scan> scans = test::bunny_scans(data);
    print_heading("mm");
    Tally all[3];
    int64_t pair = 0;
    for (size_t i = 0; i < scans.size(); ++i)
        for (size_t j = 0; j < i; ++j) {
            const RigidTransform truth = geometry::inverse(scans[j].pose) * scans[i].pose;
            const double overlap =
                std::max(share_within(scans[i].cloud, scans[j].cloud, truth, 0.002),
                         share_within(scans[j].cloud, scans[i].cloud, geometry::inverse(truth), 0.002));
            if (overlap < 0.3 || pair++ % parts != part) continue;
            const auto stem = [](const std::string& file) { return file.substr(0, file.size() - 4); };
            study_pair(stem(scans[i].name) + " on " + stem(scans[j].name), overlap, scans[i], scans[j], turns, methods,
                       all);
        }
    for (int method = 0; method < methods; ++method) all[method].print("all", 0, kNames[method], 1000);
}

void study_lidar(const std::string& data, int turns, int methods) {
    const test::LidarPair pair = test::lidar_pair(data);
    print_heading("m");
    for (int method = 0; method < methods; ++method) {
        Tally tally;
        for (int turn = 0; turn < (method == 2 ? std::max(1, turns / 10) : turns); ++turn) {
            const RigidTransform any = geometry::rotation_about({0, 0, 1}, 2 * M_PI * turn / turns);
            const PointCloud turned = geometry::transformed(pair.source, any);
            const double begin = cpu_seconds();
            const tasks::Registration found = run_method(method, turned, pair.target);
            const double took = cpu_seconds() - begin;
            // The scan's extent would count turns as metres: what is measured is where the sensor is.
            tasks::PoseError error =
                tasks::pose_error(found.found.transform, pair.truth * geometry::inverse(any), turned);
            error.rms = error.translation;
            tally.add(found, error, 0.1, 0.5, took);
        }
        tally.print("lidar pair", 0, kNames[method], 1);
    }
}

}  // namespace
}  // namespace stipple

int main(int argc, char** argv) {
    int64_t turns = 100, part = 0, parts = 1;
    const std::string_view what = argc > 3 ? argv[3] : "bunny", share = argc > 4 ? argv[4] : "0/1";
    const size_t slash = std::min(share.find('/'), share.size() - 1);
    const int methods = argc > 5 && std::string_view(argv[5]) == "global" ? 1 : 3;
    if (argc < 2 || (argc > 5 && methods == 3) || (argc > 2 && !stipple::io::parse_number(argv[2], turns)) ||
        turns < 1 || (what != "bunny" && what != "lidar") || !stipple::io::parse_number(share.substr(0, slash), part) ||
        !stipple::io::parse_number(share.substr(slash + 1), parts) || part < 0 || part >= parts) {
        std::fputs("usage: scan_study DATA [TURNS] [bunny|lidar] [PART/PARTS] [global]\n", stderr);
        return 2;
    }
    try {
        if (what == "bunny")
            stipple::study_bunny(argv[1], static_cast<int>(turns), part, parts, methods);
        else
            stipple::study_lidar(argv[1], static_cast<int>(turns), methods);
    } catch (const stipple::Error& error) {
        fmt::print(stderr, "scan_study: {}\n", error.what());
        return 1;
    }
}
