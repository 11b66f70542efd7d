#include "tests/geometry/simulated_scans.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/rng.h"
#include "stipple/geometry/cast_rays.h"
#include "stipple/geometry/icp.h"
#include "stipple/geometry/primitives.h"
#include "stipple/geometry/thin_scan.h"
#include "stipple/ops/knn.h"
#include "tests/geometry/registration/shapes.h"

namespace stipple::test {
namespace {

using geometry::RigidTransform;
using geometry::Vector3;

constexpr double kRadians = M_PI / 180;

Vector3 unit_of(Vector3 v) {
    const double length = std::hypot(v[0], v[1], v[2]);
    for (double& number : v) number /= length;
    return v;
}
Vector3 cross_of(const Vector3& a, const Vector3& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// Numbers for one purpose, one after the other.
class Dice {
public:
    Dice(uint64_t seed, uint64_t stream) : rng_(seed, stream) {}
    double uniform(double low, double high) { return low + (high - low) * rng_.uniform(at_++); }
    int below(int bound) { return static_cast<int>(rng_.below(at_++, static_cast<uint32_t>(bound))); }
    Vector3 direction() {
        at_ += 8;
        return unit_of({rng_.normal(2 * at_), rng_.normal(2 * at_ + 1), rng_.normal(2 * at_ + 2)});
    }

private:
    Rng rng_;
    uint64_t at_ = 0;
};

Mesh placed(const Mesh& mesh, double scale, const RigidTransform& pose) {
    Mesh moved = mesh.clone();
    moved.vertices.attributes.clear();
    for (int64_t i = 0; i < moved.vertices.size(); ++i) {
        float* p = moved.vertices.positions.data() + 3 * i;
        const Vector3 q = pose({scale * p[0], scale * p[1], scale * p[2]});
        for (int axis = 0; axis < 3; ++axis) p[axis] = static_cast<float>(q[axis]);
    }
    return moved;
}

RigidTransform upright(double x, double y, double z, double turn) {
    RigidTransform pose = geometry::rotation_about({0, 0, 1}, turn);
    pose.translation = {x, y, z};
    return pose;
}

/// A box on the ground of `at`, edges x, y, z.
Mesh block(double x, double y, double z, const RigidTransform& at) {
    RigidTransform lifted;
    lifted.translation = {0, 0, z / 2};
    return placed(geometry::cube_mesh(x, y, z), 1, at * lifted);
}

void add_table(std::vector<Mesh>& parts, Dice& dice, const RigidTransform& at) {
    const double x = dice.uniform(0.8, 1.6), y = dice.uniform(0.6, 0.9), z = dice.uniform(0.6, 0.8);
    RigidTransform top;
    top.translation = {0, 0, z - 0.04};
    parts.push_back(block(x, y, 0.04, at * top));
    for (const double i : {-1.0, 1.0})
        for (const double j : {-1.0, 1.0}) {
            RigidTransform leg;
            leg.translation = {i * (x / 2 - 0.05), j * (y / 2 - 0.05), 0};
            parts.push_back(block(0.05, 0.05, z - 0.04, at * leg));
        }
}

void add_shelf(std::vector<Mesh>& parts, Dice& dice, const RigidTransform& at) {
    const double x = dice.uniform(0.6, 1.2), z = dice.uniform(1, 2), y = 0.3;
    for (const double side : {-1.0, 1.0}) {
        RigidTransform board;
        board.translation = {side * x / 2, 0, 0};
        parts.push_back(block(0.03, y, z, at * board));
    }
    const int boards = 3 + dice.below(3);
    for (int i = 0; i < boards; ++i) {
        RigidTransform board;
        board.translation = {0, 0, z * i / boards};
        parts.push_back(block(x, y, 0.03, at * board));
        for (double along = -x / 2 + 0.05; along < x / 2 - 0.1;) {  // books
            const double width = dice.uniform(0.04, 0.25);
            RigidTransform book = board;
            book.translation[0] = along + width / 2;
            book.translation[2] += 0.03;
            if (dice.uniform(0, 1) < 0.7)
                parts.push_back(block(width, dice.uniform(0.15, 0.28), dice.uniform(0.1, 0.28), at * book));
            along += width + dice.uniform(0, 0.1);
        }
    }
}

/// Share of the source's points that the target has too, at the true pose.
double overlap_of(const PointCloud& source, const PointCloud& target, const RigidTransform& truth) {
    if (source.size() == 0 || target.size() == 0) return 0;
    const double near = std::max(0.015 * geometry::rms_radius(source), 3 * geometry::median_spacing(target));
    const PointCloud moved = geometry::transformed(source, truth);
    Array<float, 2> queries({moved.size(), 3}), distances_sq({moved.size(), 1});
    for (int64_t i = 0; i < moved.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            queries.data()[3 * i + axis] = static_cast<float>(moved.world(i, axis) - target.origin[axis]);
    Array<int32_t, 2> indices({moved.size(), 1});
    const ops::PointIndex index(ops::Clouds(target.positions.view()));
    ops::knn(index, queries.view(), indices.view(), distances_sq.view());
    int64_t count = 0;
    for (int64_t i = 0; i < moved.size(); ++i) count += distances_sq.data()[i] <= near * near;
    return static_cast<double>(count) / static_cast<double>(moved.size());
}

}  // namespace

RigidTransform look_at(const Vector3& eye, const Vector3& at, const Vector3& up) {
    const Vector3 z = unit_of({at[0] - eye[0], at[1] - eye[1], at[2] - eye[2]});
    const Vector3 x = unit_of(cross_of(z, up)), y = cross_of(z, x);
    RigidTransform pose;
    for (int row = 0; row < 3; ++row) pose.rotation[row] = {x[row], y[row], z[row]};
    pose.translation = eye;
    return pose;
}

PointCloud depth_scan(const Mesh& mesh, const geometry::MeshIndex& index, const RigidTransform& camera_to_world,
                      const DepthCamera& camera, uint64_t seed) {
    const int64_t n = int64_t{camera.width} * camera.height;
    Array<float, 2> origins({n, 3}), directions({n, 3});
    std::vector<Vector3> rays(static_cast<size_t>(n));
    const double focal = 0.5 * camera.width / std::tan(0.5 * camera.view_degrees * kRadians);
    for (int64_t i = 0; i < n; ++i) {
        const double u = (static_cast<double>(i % camera.width) + 0.5 - 0.5 * camera.width) / focal;
        const double v = (static_cast<double>(i / camera.width) + 0.5 - 0.5 * camera.height) / focal;
        rays[i] = {u, v, 1};  // so that t is the depth
        const Vector3 way = camera_to_world.rotate(rays[i]);
        for (int axis = 0; axis < 3; ++axis) {
            origins.data()[3 * i + axis] = static_cast<float>(camera_to_world.translation[axis]);
            directions.data()[3 * i + axis] = static_cast<float>(way[axis]);
        }
    }
    Array<float, 1> depths({n});
    Array<int32_t, 1> faces({n});
    geometry::first_hit(index, {origins.view(), directions.view()}, {depths.view(), faces.view(), {}});
    const Rng rng(seed, 31);
    const double phase_u = 6 * rng.uniform(1), phase_v = 6 * rng.uniform(2);
    std::vector<float> places;
    for (int64_t i = 0; i < n; ++i) {
        if (faces.data()[i] < 0 || depths.data()[i] > camera.most_depth) continue;
        const int32_t* corner = mesh.triangles.data() + 3 * int64_t{faces.data()[i]};
        const auto vertex = [&](int c) -> Vector3 {
            const float* p = mesh.vertices.positions.data() + 3 * int64_t{corner[c]};
            return {p[0], p[1], p[2]};
        };
        const Vector3 a = vertex(0), b = vertex(1), c = vertex(2);
        const Vector3 normal =
            cross_of({b[0] - a[0], b[1] - a[1], b[2] - a[2]}, {c[0] - a[0], c[1] - a[1], c[2] - a[2]});
        const Vector3 way = camera_to_world.rotate(rays[i]);
        const double cosine =
            std::abs(normal[0] * way[0] + normal[1] * way[1] + normal[2] * way[2]) /
            std::max(1e-30, std::hypot(normal[0], normal[1], normal[2]) * std::hypot(way[0], way[1], way[2]));
        if (cosine < camera.least_cosine) continue;
        double depth = depths.data()[i];
        const auto at = static_cast<uint64_t>(8 * i + 64);
        const bool has_right = (i + 1) % camera.width != 0 && faces.data()[i + 1] >= 0;
        if (has_right && std::abs(depths.data()[i + 1] - depth) > 0.05 * depth && rng.uniform(at) < camera.flying)
            depth += rng.uniform(at + 1) * (depths.data()[i + 1] - depth);
        const double deviation = camera.noise + camera.noise_sq * depth * depth;
        // Half of the noise is of each pixel, half bends the surface slowly, as that of real sensors does.
        depth +=
            deviation * (rng.normal(at + 2) + std::sin(4 * rays[i][0] + phase_u) * std::sin(4 * rays[i][1] + phase_v));
        for (const double part : rays[i]) places.push_back(static_cast<float>(depth * part));
    }
    PointCloud cloud(static_cast<int64_t>(places.size() / 3));
    std::copy(places.begin(), places.end(), cloud.positions.data());
    if (cloud.size() == 0 || camera.dust == 0) return cloud;
    const Bounds bounds = bounds_of(cloud);
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const auto at = static_cast<uint64_t>(8 * (i + n) + 64);
        if (rng.uniform(at) >= camera.dust) continue;
        for (int axis = 0; axis < 3; ++axis)
            cloud.positions.data()[3 * i + axis] =
                static_cast<float>(bounds.min[axis] + rng.uniform(at + 1 + static_cast<uint64_t>(axis)) *
                                                          (bounds.max[axis] - bounds.min[axis]));
    }
    return cloud;
}

Mesh joined(const std::vector<Mesh>& meshes) {
    int64_t vertices = 0, faces = 0;
    for (const Mesh& mesh : meshes) {
        vertices += mesh.vertices.size();
        faces += mesh.faces();
    }
    Mesh all;
    all.vertices = PointCloud(vertices);
    all.triangles = Array<int32_t, 2>({faces, 3});
    int64_t vertex = 0, face = 0;
    for (const Mesh& mesh : meshes) {
        std::copy_n(mesh.vertices.positions.data(), 3 * mesh.vertices.size(),
                    all.vertices.positions.data() + 3 * vertex);
        for (int64_t i = 0; i < 3 * mesh.faces(); ++i)
            all.triangles.data()[3 * face + i] = mesh.triangles.data()[i] + static_cast<int32_t>(vertex);
        vertex += mesh.vertices.size();
        face += mesh.faces();
    }
    return all;
}

Mesh furnished_room(const std::vector<Mesh>& meshes, uint64_t seed) {
    Dice dice(seed, 32);
    const double x = dice.uniform(4, 6), y = dice.uniform(3.2, 5);
    std::vector<Mesh> parts;
    parts.push_back(block(x, y, 2.6, {}));
    // Furniture along the walls.
    for (int wall = 0; wall < 4; ++wall)
        for (int i = 0; i < 3; ++i) {
            const bool is_long = wall % 2 == 0;
            const double length = is_long ? x : y, depth = is_long ? y : x;
            const double along = dice.uniform(-0.4, 0.4) * length, turn = wall * M_PI / 2;
            const RigidTransform at =
                geometry::rotation_about({0, 0, 1}, turn) * upright(along, depth / 2 - 0.35, 0, M_PI);
            const int what = dice.below(4);
            if (what == 0)
                parts.push_back(block(dice.uniform(0.5, 1.2), dice.uniform(0.35, 0.6), dice.uniform(0.5, 2), at));
            else if (what == 1)
                add_shelf(parts, dice, at);
            else if (what == 2)
                add_table(parts, dice, at);
        }
    add_table(parts, dice, upright(dice.uniform(-1, 1), dice.uniform(-0.7, 0.7), 0, dice.uniform(0, 3)));
    for (int i = 0; i < 14 && !meshes.empty(); ++i) {
        const Mesh& mesh = meshes[static_cast<size_t>(dice.below(static_cast<int>(meshes.size())))];
        const double scale = dice.uniform(0.12, 0.45), height = dice.below(2) ? scale * 0.7 : 0.75 + scale * 0.7;
        RigidTransform pose = geometry::rotation_about(dice.direction(), dice.uniform(0, 3));
        pose.translation = {dice.uniform(-0.45, 0.45) * x, dice.uniform(-0.45, 0.45) * y, height};
        parts.push_back(placed(mesh, scale, pose));
    }
    return joined(parts);
}

SimulatedPair view_pair(const Mesh& source, const Mesh& target, bool is_related, double degrees, uint64_t seed) {
    Dice dice(seed, 33);
    DepthCamera camera;
    camera.width = camera.height = 140;
    camera.noise = dice.uniform(0.0005, 0.006);
    camera.dust = dice.below(3) == 0 ? 0.015 : 0;
    const double distance = dice.uniform(2.5, 5);
    camera.view_degrees = 2 * std::asin(std::min(0.95, 1.02 / distance)) / kRadians;
    const Vector3 first = dice.direction();
    const RigidTransform away = geometry::rotation_about(cross_of(first, dice.direction()), degrees * kRadians);
    const Vector3 second = away.rotate(first);
    const auto camera_at = [&](const Vector3& way) {
        return look_at({distance * way[0], distance * way[1], distance * way[2]}, {}, dice.direction());
    };
    const RigidTransform from = camera_at(first), to = camera_at(second);
    SimulatedPair pair;
    pair.is_related = is_related;
    pair.source = depth_scan(source, geometry::MeshIndex(source), from, camera, seed * 2);
    pair.target = depth_scan(target, geometry::MeshIndex(target), to, camera, seed * 2 + 1);
    const RigidTransform any = any_pose(seed, 2);
    pair.world = geometry::inverse(to);
    pair.truth = geometry::inverse(to) * from * geometry::inverse(any);
    pair.source = geometry::transformed(pair.source, any);
    if (is_related) pair.overlap = overlap_of(pair.source, pair.target, pair.truth);
    return pair;
}

SimulatedPair room_pair(const Mesh& source_room, const Mesh& target_room, bool is_related, int frames, double degrees,
                        double metres, bool any_start, uint64_t seed) {
    Dice dice(seed, 34);
    DepthCamera camera;  // of the first Kinect's kind
    camera.width = 200;
    camera.height = 150;
    camera.noise = 0.0012;
    camera.noise_sq = 0.0019;
    camera.most_depth = 4.5;
    const Bounds bounds = bounds_of(source_room.vertices), other = bounds_of(target_room.vertices);
    double x[2], y[2];  // half of what both rooms share, less than an arm from the walls
    for (int side = 0; side < 2; ++side) {
        x[side] = (side ? 1 : -1) * (std::min(bounds.max[0], other.max[0]) - 0.7);
        y[side] = (side ? 1 : -1) * (std::min(bounds.max[1], other.max[1]) - 0.7);
    }
    const Vector3 start = {dice.uniform(x[0], x[1]), dice.uniform(y[0], y[1]), dice.uniform(1.2, 1.7)};
    // Towards the middle, so that more than a wall is seen.
    const double yaw = std::atan2(-start[1], -start[0]) + dice.uniform(-0.7, 0.7), pitch = dice.uniform(-0.4, -0.05);
    const double turn = (dice.below(2) ? 1 : -1) * degrees * kRadians, heading = dice.uniform(0, 2 * M_PI);
    const auto fragment = [&](const Mesh& room, const geometry::MeshIndex& index, double yaw_first, const Vector3& eye,
                              uint64_t noise, RigidTransform& frame) {
        std::vector<float> places;
        for (int i = 0; i < frames; ++i) {
            const double along = frames > 1 ? static_cast<double>(i) / (frames - 1) : 0;
            const double angle = yaw_first + along * 20 * kRadians;
            const Vector3 at = {eye[0] + 0.3 * along * std::cos(heading), eye[1] + 0.3 * along * std::sin(heading),
                                eye[2]};
            const RigidTransform pose =
                look_at(at, {at[0] + std::cos(angle), at[1] + std::sin(angle), at[2] + std::tan(pitch)}, {0, 0, 1});
            if (i == 0) frame = pose;
            const RigidTransform local = geometry::inverse(frame) * pose;
            const PointCloud seen = depth_scan(room, index, pose, camera, noise + static_cast<uint64_t>(i));
            for (int64_t p = 0; p < seen.size(); ++p) {
                const Vector3 q = local({seen.world(p, 0), seen.world(p, 1), seen.world(p, 2)});
                for (const double number : q) places.push_back(static_cast<float>(number));
            }
        }
        PointCloud cloud(static_cast<int64_t>(places.size() / 3));
        std::copy(places.begin(), places.end(), cloud.positions.data());
        return cloud;
    };
    const double way = dice.uniform(0, 2 * M_PI);
    const Vector3 moved = {std::clamp(start[0] + metres * std::cos(way), x[0], x[1]),
                           std::clamp(start[1] + metres * std::sin(way), y[0], y[1]),
                           start[2] + dice.uniform(-0.1, 0.1)};
    SimulatedPair pair;
    pair.is_related = is_related;
    RigidTransform from, to;
    pair.source = fragment(source_room, geometry::MeshIndex(source_room), yaw, start, 100 * seed, from);
    pair.target = fragment(target_room, geometry::MeshIndex(target_room), yaw + turn, moved, 100 * seed + 50, to);
    const RigidTransform any = any_start ? any_pose(seed, 2) : RigidTransform{};
    pair.world = geometry::inverse(to);
    pair.truth = geometry::inverse(to) * from * geometry::inverse(any);
    pair.source = geometry::transformed(pair.source, any);
    if (is_related) pair.overlap = overlap_of(pair.source, pair.target, pair.truth);
    return pair;
}

}  // namespace stipple::test
