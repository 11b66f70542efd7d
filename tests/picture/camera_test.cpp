#include "stipple/picture/camera.h"

#include <gtest/gtest.h>

#include "tests/picture/scene.h"

namespace stipple::picture {
namespace {

struct Frame {
    double left = 1e30, right = -1e30, top = 1e30, bottom = -1e30;
};

Frame frame_of(const Camera& camera, const PointCloud& cloud) {
    Frame frame;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const float* p = cloud.positions.data() + 3 * i;
        const Projected at = camera.project({p[0], p[1], p[2]}, camera.offset_of(cloud));
        EXPECT_GT(at.depth, kNear);
        frame.left = std::min(frame.left, at.x);
        frame.right = std::max(frame.right, at.x);
        frame.top = std::min(frame.top, at.y);
        frame.bottom = std::max(frame.bottom, at.y);
    }
    return frame;
}

Camera fit(const Viewpoint& viewpoint, const PointCloud& cloud, double width, double height, double margin) {
    const PointCloud* clouds[] = {&cloud};
    return fit_camera(viewpoint, clouds, width, height, margin);
}

TEST(Camera, FitsEveryPointBetweenTheMarginsAndTouchesThem) {
    PointCloud cloud = sphere_cloud(5000, 3);
    for (int64_t i = 0; i < cloud.size(); ++i) cloud.positions.data()[3 * i] *= 2.5f;
    for (Projection projection : {Projection::orthographic, Projection::perspective})
        for (UpAxis up : {UpAxis::z, UpAxis::y})
            for (double azimuth : {0.0, 35.0, 200.0})
                for (double elevation : {-90.0, 0.0, 22.0, 90.0}) {
                    Viewpoint viewpoint{azimuth, elevation, up, projection};
                    const Frame frame = frame_of(fit(viewpoint, cloud, 300, 200, 10), cloud);
                    EXPECT_GE(frame.left, 10 - 1e-6);
                    EXPECT_LE(frame.right, 290 + 1e-6);
                    EXPECT_GE(frame.top, 10 - 1e-6);
                    EXPECT_LE(frame.bottom, 190 + 1e-6);
                    const double across = frame.right - frame.left, down = frame.bottom - frame.top;
                    EXPECT_TRUE(across > 279 || down > 179) << across << " x " << down;
                }
}

/// Random clouds of many shapes: thick and flat, with heavy tails, far from the origin, few and many points.
PointCloud random_shape(const Rng& rng, int64_t n) {
    PointCloud cloud(n);
    float size[3];
    for (int axis = 0; axis < 3; ++axis) size[axis] = std::pow(10.f, -3 * rng.uniform(static_cast<uint64_t>(axis)));
    const float tail = 1 + 2 * rng.uniform(3);
    for (int64_t i = 0; i < n; ++i)
        for (int axis = 0; axis < 3; ++axis) {
            const float u = 2 * rng.uniform(static_cast<uint64_t>(10 + 3 * i + axis)) - 1;
            // Most points in the middle and a few outside, as the distances of a scanner are.
            cloud.positions.data()[3 * i + axis] = size[axis] * std::copysign(std::pow(std::abs(u), tail * tail), u);
        }
    cloud.origin = {1000.0 * rng.uniform(4), 0, -500000.0 * rng.uniform(5)};
    return cloud;
}

TEST(Camera, EveryPointIsInThePictureFromEverywhere) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
        const Rng rng(seed);
        const PointCloud cloud =
            random_shape(rng, 1 + static_cast<int64_t>(rng.below(6, seed % 10 == 0 ? 120'000 : 3000)));
        Viewpoint viewpoint;
        viewpoint.azimuth = 360 * rng.uniform(7);
        viewpoint.elevation = 180 * rng.uniform(8) - 90;
        viewpoint.up = seed % 2 ? UpAxis::y : UpAxis::z;
        viewpoint.projection = seed % 3 ? Projection::perspective : Projection::orthographic;
        const double width = 50 + 2000 * rng.uniform(9), height = 50 + 1000 * rng.uniform(1000000);
        const double margin = 0.04 * std::min(width, height);
        const Frame frame = frame_of(fit(viewpoint, cloud, width, height, margin), cloud);
        EXPECT_GE(frame.left, margin - 1e-6) << seed;
        EXPECT_LE(frame.right, width - margin + 1e-6) << seed;
        EXPECT_GE(frame.top, margin - 1e-6) << seed;
        EXPECT_LE(frame.bottom, height - margin + 1e-6) << seed;
    }
}

TEST(Camera, FarPointsOfALargeCloudAreNotMissed) {
    // One point in 200000, a diagonal away: a sample of the points would hardly have it.
    PointCloud cloud = sphere_cloud(200'000, 1);
    cloud.positions.data()[3 * 77'777 + 1] = 3;
    const Frame frame = frame_of(fit({}, cloud, 100, 100, 5), cloud);
    EXPECT_GE(frame.left, 5 - 1e-6);
    EXPECT_LE(frame.right, 95 + 1e-6);
}

TEST(Camera, MostPointsInOnePlaceDoNotHideTheOthers) {
    PointCloud cloud = sphere_cloud(10'000, 1);
    for (int64_t i = 0; i < 3 * 9'950; ++i) cloud.positions.data()[i] = 0;  // as scanners write what they missed
    const Frame frame = frame_of(fit({}, cloud, 100, 100, 5), cloud);
    EXPECT_GE(frame.left, 5 - 1e-6);
    EXPECT_LE(frame.right, 95 + 1e-6);
}

TEST(Camera, LooksFromWhereItSays) {
    const PointCloud cloud = cloud_of({{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}});
    const Camera front = fit({0, 0, UpAxis::z, Projection::perspective}, cloud, 100, 100, 5);
    EXPECT_LT(front.project({1, 0, 0}).depth, front.project({-1, 0, 0}).depth);
    EXPECT_GT(front.project({0, 1, 0}).x, 50);  // y to the right
    EXPECT_LT(front.project({0, 0, 1}).y, 50);  // z up
    const Camera y_up = fit({0, 0, UpAxis::y, Projection::perspective}, cloud, 100, 100, 5);
    EXPECT_LT(y_up.project({0, 0, 1}).depth, y_up.project({0, 0, -1}).depth);
    EXPECT_GT(y_up.project({1, 0, 0}).x, 50);
    EXPECT_LT(y_up.project({0, 1, 0}).y, 50);
}

TEST(Camera, StrayPointsDoNotShrinkThePicture) {
    PointCloud cloud = sphere_cloud(10'000, 1);
    const double usual = frame_of(fit({}, cloud, 100, 100, 0), cloud).right;
    for (int k = 0; k < 3; ++k) cloud.positions.data()[30 + k] = 1e6f;
    const Camera camera = fit({}, cloud, 100, 100, 0);
    const Projected left = camera.project({0, -1, 0}), right = camera.project({0, 1, 0});
    EXPECT_GT(std::abs(right.x - left.x), 0.4 * usual);
}

TEST(Camera, LargeCloudsInAFixedOrderAreSampledEvenly) {
    // Even points near by, odd points far away: a step of two would see one kind only.
    PointCloud cloud = sphere_cloud(400'000, 1);
    for (int64_t i = 1; i < cloud.size(); i += 2) cloud.positions.data()[3 * i + 1] += 10;
    const Frame frame = frame_of(fit({0, 0, UpAxis::z, Projection::orthographic}, cloud, 100, 100, 5), cloud);
    EXPECT_NEAR(frame.left, 5, 1);
    EXPECT_NEAR(frame.right, 95, 1);
}

TEST(Camera, CroppedIsAnEnlargedPart) {
    const PointCloud cloud = sphere_cloud(100, 1);
    const Camera camera = fit({}, cloud, 200, 200, 5), part = camera.cropped(40, 60, 3);
    const Projected a = camera.project({0.2, 0.3, 0.1}), b = part.project({0.2, 0.3, 0.1});
    EXPECT_NEAR(b.x, (a.x - 40) * 3, 1e-9);
    EXPECT_NEAR(b.y, (a.y - 60) * 3, 1e-9);
    EXPECT_EQ(a.depth, b.depth);
}

TEST(Camera, NothingToSeeIsStillACamera) {
    const float nan = std::nanf("");
    for (const PointCloud& cloud : {cloud_of({}), cloud_of({{nan, 0, 0}}), cloud_of({{5, 5, 5}, {5, 5, 5}})})
        for (Projection projection : {Projection::orthographic, Projection::perspective}) {
            const Camera camera = fit({35, 20, UpAxis::z, projection}, cloud, 100, 100, 5);
            const double middle = cloud.size() == 2 ? 5 : 0;
            const Projected at = camera.project({middle, middle, middle});
            EXPECT_NEAR(at.x, 50, 1e-6);
            EXPECT_NEAR(at.y, 50, 1e-6);
            EXPECT_GT(at.depth, kNear);
        }
    EXPECT_THROW(fit({std::nan("")}, cloud_of({}), 100, 100, 5), Error);
}

TEST(Camera, EveryUpAxisPointsUp) {
    const PointCloud cloud = cloud_of({{0, 0, 0}, {1, 2, 3}, {-2, 1, 0.5f}});
    for (const std::string& name : up_axis_names()) {
        Viewpoint viewpoint;
        viewpoint.azimuth = 20, viewpoint.elevation = 10;
        viewpoint.up = up_axis_by_name(name);
        const Camera camera = fit(viewpoint, cloud, 100, 80, 5);
        const double along[3] = {camera.up.x, camera.up.y, camera.up.z};
        EXPECT_NEAR(along[axis_of(viewpoint.up)], (name[0] == '-' ? -1 : 1) * std::cos(10 * 3.14159265358979 / 180),
                    1e-9)
            << name;
        // Right-handed: nothing is mirrored.
        EXPECT_NEAR(dot(cross(camera.right, camera.up), camera.forward), -1, 1e-9) << name;
    }
    EXPECT_THROW(up_axis_by_name("w"), Error);
}

TEST(Camera, FlatContentIsSeenFromHigherUpAndAcross) {
    PointCloud ground(4000), ball(4000);
    const Rng rng(5);
    for (int64_t i = 0; i < ground.size(); ++i) {
        float *g = ground.positions.data() + 3 * i, *b = ball.positions.data() + 3 * i;
        // 60 by 20 by 1, its longer side turned by 30 degrees.
        const float u = 60 * rng.uniform(static_cast<uint64_t>(6 * i)),
                    v = 20 * rng.uniform(static_cast<uint64_t>(6 * i + 1));
        g[0] = 0.8660254f * u - 0.5f * v, g[1] = 0.5f * u + 0.8660254f * v;
        g[2] = rng.uniform(static_cast<uint64_t>(6 * i + 2));
        for (int c = 0; c < 3; ++c) b[c] = rng.uniform(static_cast<uint64_t>(6 * i + 3 + c));
    }
    const Camera low = fit({}, ball, 300, 200, 5), high = fit({}, ground, 300, 200, 5);
    EXPECT_NEAR(-low.forward.z, std::sin(22 * 3.14159265358979 / 180), 1e-9);
    EXPECT_GT(-high.forward.z, std::sin(50 * 3.14159265358979 / 180));
    EXPECT_GT(std::abs(dot(high.right, Vec3d{0.8660254, 0.5, 0})), std::cos(15 * 3.14159265358979 / 180));
    Viewpoint given;
    given.azimuth = 35, given.elevation = 22;
    EXPECT_NEAR(-fit(given, ground, 300, 200, 5).forward.z, -low.forward.z, 1e-9);
}

TEST(Camera, AimIsInTheMiddleAndAnEyeStaysWhereItIs) {
    PointCloud cloud(500);
    for (int64_t i = 0; i < 3 * cloud.size(); ++i)
        cloud.positions.data()[i] = 10 * Rng(6).uniform(static_cast<uint64_t>(i));
    cloud.origin = {1000, 2000, 0};
    Viewpoint viewpoint;
    viewpoint.aim = {{1002, 2009, 3}};
    viewpoint.zoom = 4;
    for (const Projection projection : {Projection::perspective, Projection::orthographic}) {
        viewpoint.projection = projection;
        const Camera camera = fit(viewpoint, cloud, 120, 90, 5);
        const Projected at = camera.project({2, 9, 3}, camera.offset_of(cloud));
        EXPECT_NEAR(at.x, 60, 1e-6);
        EXPECT_NEAR(at.y, 45, 1e-6);
    }
    Viewpoint inside;
    inside.eye = {{1005, 2005, 5}};
    inside.aim = {{1010, 2005, 5}};
    const Camera camera = fit(inside, cloud, 120, 90, 5);
    EXPECT_NEAR(camera.eye.x + camera.origin[0], 1005, 1e-9);
    EXPECT_NEAR(camera.forward.x, 1, 1e-9);
    const Projected ahead = camera.project({10, 5, 5}, camera.offset_of(cloud));
    EXPECT_NEAR(ahead.x, 60, 1e-6);
    EXPECT_NEAR(ahead.y, 45, 1e-6);
    EXPECT_GT(ahead.depth, 0);
    EXPECT_LT(camera.project({0, 5, 5}, camera.offset_of(cloud)).depth, 0);
    inside.eye = {{NAN, 0, 0}};
    EXPECT_THROW(fit(inside, cloud, 120, 90, 5), Error);
}

}  // namespace
}  // namespace stipple::picture
