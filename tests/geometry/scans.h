#pragma once
// Real scans with known poses, for the tests and the study of registration.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "stipple/core/rng.h"
#include "stipple/geometry/rigid_transform.h"
#include "stipple/io/format.h"
#include "stipple/io/text.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {

/// A range scan and its published pose, scan to model.
struct Scan {
    std::string name;
    PointCloud cloud;
    geometry::RigidTransform pose;
};

inline PointCloud load_scan(const std::string& path) {
    io::Warnings warnings;
    return io::load_cloud(path, {}, warnings);
}

/// The ten range scans of the Stanford bunny, in the order of bun.conf. Metres.
inline std::vector<Scan> bunny_scans(const std::string& data) {
    const std::string folder = data + "/scans/bunny/", conf = read_file(folder + "bun.conf");
    std::vector<Scan> scans;
    std::string_view rest = conf;
    while (!rest.empty()) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        if (io::next_word(line) != "bmesh") continue;
        Scan scan;
        scan.name = io::next_word(line);
        double numbers[7] = {};  // tx ty tz qx qy qz qw
        for (double& number : numbers) io::parse_number(io::next_word(line), number);
        // The published rotations are those of the conjugate quaternion.
        scan.pose = geometry::from_quaternion({numbers[6], -numbers[3], -numbers[4], -numbers[5]},
                                              {numbers[0], numbers[1], numbers[2]});
        scan.cloud = load_scan(folder + scan.name);
        scans.push_back(std::move(scan));
    }
    return scans;
}

/// All scans but one, in their published poses, in one cloud.
inline PointCloud other_scans(const std::vector<Scan>& scans, size_t one) {
    std::vector<float> places;
    for (size_t i = 0; i < scans.size(); ++i) {
        if (i == one) continue;
        const PointCloud moved = geometry::transformed(scans[i].cloud, scans[i].pose);
        for (int64_t p = 0; p < moved.size(); ++p)
            for (int axis = 0; axis < 3; ++axis) places.push_back(static_cast<float>(moved.world(p, axis)));
    }
    PointCloud all(static_cast<int64_t>(places.size() / 3));
    std::copy(places.begin(), places.end(), all.positions.data());
    return all;
}

/// The scan's pose turned by `degrees` about the posed scan's mean and moved by `distance`, in directions of the seed.
inline geometry::RigidTransform perturbed(const Scan& scan, double degrees, double distance, uint64_t seed) {
    geometry::Vector3 mean = {};
    for (int64_t i = 0; i < scan.cloud.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            mean[axis] += scan.cloud.world(i, axis) / static_cast<double>(scan.cloud.size());
    const Rng rng(seed, 77);
    geometry::Vector3 axis, way;
    for (int i = 0; i < 3; ++i) {
        axis[i] = rng.normal(i);
        way[i] = rng.normal(4 + i);
    }
    const double length = std::hypot(way[0], way[1], way[2]);
    geometry::RigidTransform off = geometry::rotation_about(axis, degrees * M_PI / 180, scan.pose(mean));
    for (int i = 0; i < 3; ++i) off.translation[i] += distance * way[i] / length;
    return off * scan.pose;
}

/// How far the points of a cloud are apart in two poses.
struct Displacement {
    double rms = 0, most = 0;
};
inline Displacement displacement(const PointCloud& cloud, const geometry::RigidTransform& a,
                                 const geometry::RigidTransform& b) {
    Displacement found;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const geometry::Vector3 place = {cloud.world(i, 0), cloud.world(i, 1), cloud.world(i, 2)}, p = a(place),
                                q = b(place);
        const double distance = std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
        found.rms += distance * distance / static_cast<double>(cloud.size());
        found.most = std::max(found.most, distance);
    }
    found.rms = std::sqrt(found.rms);
    return found;
}

struct LidarPair {
    PointCloud source, target;
    geometry::RigidTransform truth;  // source to target
};
inline LidarPair lidar_pair(const std::string& data) {
    const std::string folder = data + "/scans/lidar_pair/";
    return {load_scan(folder + "source.ply"), load_scan(folder + "target.ply"),
            geometry::parse_transform(read_file(folder + "T_target_source.txt"))};
}

}  // namespace stipple::test
