#include "stipple/geometry/sensor_view.h"

#include <gtest/gtest.h>

#include "stipple/geometry/mesh_index.h"
#include "stipple/geometry/primitives.h"
#include "stipple/geometry/thin_scan.h"
#include "tests/geometry/registration/shapes.h"
#include "tests/geometry/simulated_scans.h"

namespace stipple::test {
namespace {

using geometry::RigidTransform;
using geometry::SensorView;
using geometry::thin_scan;
using geometry::ThinScan;
using geometry::Vector3;

constexpr double kVoxel = 0.05;

Mesh some_room() {
    std::vector<Mesh> things;
    things.push_back(geometry::torus_mesh());
    things.push_back(geometry::cone_mesh());
    things.push_back(geometry::sphere_mesh());
    return furnished_room(things, 3);
}

/// What a camera at this place sees of the room, in its own coordinates.
PointCloud view_of(const Mesh& room, const Vector3& eye, const Vector3& at, RigidTransform* camera_to_world = nullptr) {
    DepthCamera camera;
    camera.noise = 0.002;
    const RigidTransform pose = look_at(eye, at, {0, 0, 1});
    if (camera_to_world) *camera_to_world = pose;
    return depth_scan(room, geometry::MeshIndex(room), pose, camera, 7);
}

TEST(GeometrySensorView, TheSensorIsKnownByWhatItCouldNotSee) {
    const Mesh room = some_room();
    const PointCloud scan = view_of(room, {1, 1, 1.5}, {3.5, 2.8, 0.8});
    const ThinScan own = thin_scan(scan, kVoxel);
    ASSERT_TRUE(own.sensor);
    // Normals point to it.
    for (int64_t i = 0; i < own.size(); ++i) {
        double dot = 0;
        for (int axis = 0; axis < 3; ++axis)
            dot += double{own.normals.data()[3 * i + axis]} * (own.points.data()[3 * i + axis] + own.origin[axis]);
        ASSERT_LE(dot, 0) << i;
    }
    // Coordinates of the world, and of the scan's middle: no sensor is at their origin.
    RigidTransform aside;
    aside.translation = {-2.5, 0.4, -1.6};
    EXPECT_FALSE(thin_scan(geometry::transformed(scan, aside), kVoxel).sensor);
    EXPECT_FALSE(thin_scan(lumpy_body(6000, 1), kVoxel).sensor);
    EXPECT_FALSE(thin_scan(PointCloud(0), kVoxel).sensor);
}

TEST(GeometrySensorView, OriginsOfCloudsDoNotMoveIt) {
    PointCloud scan = view_of(some_room(), {1, 1, 1.5}, {3.5, 2.8, 0.8}), far = scan.clone();
    far.origin = {10, -20, 3};
    for (int64_t i = 0; i < far.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            far.positions.data()[3 * i + axis] -= static_cast<float>(far.origin[axis] - scan.origin[axis]);
    const ThinScan thin = thin_scan(far, kVoxel);
    ASSERT_TRUE(thin.sensor);
    for (int axis = 0; axis < 3; ++axis) EXPECT_DOUBLE_EQ(thin.sensor->place()[axis], -far.origin[axis]);
}

TEST(GeometrySensorView, FreeIsWhatItSawThrough) {
    const ThinScan scan = thin_scan(view_of(some_room(), {1, 1, 1.5}, {3.5, 2.8, 0.8}), kVoxel);
    ASSERT_TRUE(scan.sensor);
    int64_t free_third = 0, measured = 0, free_own = 0, free_behind = 0;
    for (int64_t i = 0; i < scan.size(); ++i) {
        const float* p = scan.points.data() + 3 * i;
        const auto along = [&](double share) {
            const Vector3& o = scan.sensor->place();
            return scan.sensor->look_at(
                {o[0] + share * (p[0] - o[0]), o[1] + share * (p[1] - o[1]), o[2] + share * (p[2] - o[2])});
        };
        measured += along(0.33).is_measured;
        free_third += along(0.33).is_free;
        free_own += along(1).is_free;
        free_behind += along(1.3).is_free;
    }
    EXPECT_GT(measured, scan.size() * 8 / 10);
    EXPECT_GT(free_third, measured * 8 / 10);
    EXPECT_EQ(free_own, 0);
    EXPECT_EQ(free_behind, 0);
    EXPECT_FALSE(scan.sensor->look_at({0, 0, -2}).is_measured);  // behind the camera
    EXPECT_FALSE(scan.sensor->look_at(scan.sensor->place()).is_measured);
}

TEST(GeometrySensorView, WrongPosesLieInWhatWasSeenThrough) {
    const Mesh room = some_room();
    RigidTransform a, b;
    const ThinScan source = thin_scan(view_of(room, {1.2, 1, 1.5}, {3.5, 2.6, 0.8}, &a), kVoxel),
                   target = thin_scan(view_of(room, {1, 1, 1.5}, {3.5, 2.8, 0.8}, &b), kVoxel);
    const RigidTransform truth = geometry::inverse(b) * a;
    ASSERT_TRUE(target.sensor);
    EXPECT_LT(seen_through(source, target, truth), 0.01);
    RigidTransform nearer = truth;
    nearer.translation[2] -= 0.4;
    EXPECT_GT(seen_through(source, target, nearer), 0.3);
    EXPECT_DOUBLE_EQ(seen_through(source, target, nearer), seen_through(target, source, geometry::inverse(nearer)));
    // Without a sensor nothing is known.
    const ThinScan body = thin_scan(lumpy_body(4000, 1), kVoxel);
    EXPECT_EQ(seen_through(body, body, nearer), 0);
}

}  // namespace
}  // namespace stipple::test
