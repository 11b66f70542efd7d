#include "stipple/geometry/rigid_transform.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "stipple/core/rng.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using namespace geometry;

RigidTransform some_transform(uint64_t seed, double angle) {
    const Rng rng(seed, 5);
    RigidTransform transform = rotation_about({rng.normal(0), rng.normal(1), rng.normal(2)}, angle);
    for (int i = 0; i < 3; ++i) transform.translation[i] = 10 * rng.normal(4 + i);
    return transform;
}

double pose_difference(const RigidTransform& a, const RigidTransform& b) {
    double most = 0;
    for (int i = 0; i < 3; ++i) {
        most = std::max(most, std::abs(a.translation[i] - b.translation[i]));
        for (int j = 0; j < 3; ++j) most = std::max(most, std::abs(a.rotation[i][j] - b.rotation[i][j]));
    }
    return most;
}

double determinant(const Matrix3& m) {
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

std::string message_of(ErrorCode code, const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code);
        return error.message();
    }
    return "";
}

Array<float, 2> moved_rows(const Array<float, 2>& points, const RigidTransform& transform) {
    Array<float, 2> moved({points.size(0), 3});
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float* p = points.data() + 3 * i;
        const Vector3 v = transform({p[0], p[1], p[2]});
        for (int axis = 0; axis < 3; ++axis) moved.data()[3 * i + axis] = static_cast<float>(v[axis]);
    }
    return moved;
}

TEST(GeometryRigidTransform, ProductsInversesAndAngles) {
    const RigidTransform a = some_transform(1, 0.7), b = some_transform(2, 2.9), none;
    const Vector3 x = {1, -2, 3}, together = (a * b)(x), apart = a(b(x));
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(together[i], apart[i], 1e-13);
    EXPECT_LT(pose_difference(inverse(a) * a, none), 1e-14);
    EXPECT_LT(pose_difference(b * inverse(b), none), 1e-14);
    for (const double angle : {0.0, 1e-12, 1e-6, 0.5, M_PI / 2, M_PI - 1e-6, M_PI - 1e-12, M_PI})
        EXPECT_NEAR(rotation_angle(some_transform(3, angle)), angle, 1e-15 + 3e-16 * angle) << angle;
    EXPECT_NEAR(rotation_angle(some_transform(3, -0.25)), 0.25, 1e-15);
    EXPECT_NEAR(rotation_angle(some_transform(3, 2 * M_PI - 0.25)), 0.25, 1e-15);
    const RigidTransform about = rotation_about({0, 0, 2}, M_PI / 2, {1, 0, 0});
    const Vector3 turned = about({2, 0, 5});
    EXPECT_NEAR(turned[0], 1, 1e-15);
    EXPECT_NEAR(turned[1], 1, 1e-15);
    EXPECT_NEAR(turned[2], 5, 1e-15);
}

TEST(GeometryRigidTransform, Quaternions) {
    for (const double angle : {0.0, 1e-9, 1.0, 3.0, M_PI}) {
        const RigidTransform transform = some_transform(4, angle);
        const std::array<double, 4> q = to_quaternion(transform);
        EXPECT_GE(q[0], 0);
        EXPECT_NEAR(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3], 1, 1e-15);
        EXPECT_LT(pose_difference(from_quaternion(q, transform.translation), transform), 1e-14) << angle;
    }
    // Of any length, and -q is q.
    EXPECT_LT(pose_difference(from_quaternion({2, 0, 0, 2}), rotation_about({0, 0, 1}, M_PI / 2)), 1e-15);
    EXPECT_LT(pose_difference(from_quaternion({-2, 0, 0, -2}), rotation_about({0, 0, 1}, M_PI / 2)), 1e-15);
    EXPECT_EQ(message_of(ErrorCode::bad_argument,
                         [] {
                             from_quaternion({0, 0, 0, 0});
                         }),
              "from_quaternion: a quaternion of length 0");
    EXPECT_EQ(message_of(ErrorCode::bad_argument,
                         [] {
                             rotation_about({0, 0, 0}, 1);
                         }),
              "rotation_about: an axis of length 0");
}

TEST(GeometryRigidTransform, TextReadsBackAsItWas) {
    for (uint64_t seed = 1; seed < 20; ++seed) {
        const RigidTransform transform = some_transform(seed, 0.1 * static_cast<double>(seed));
        EXPECT_LT(pose_difference(parse_transform(to_text(transform)), transform), 1e-15) << to_text(transform);
    }
    EXPECT_EQ(to_text({}), "1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n");
    const RigidTransform loose =
        parse_transform("# source to target\n0.99995,0.01, 0 1\r\n -0.01 0.99995 0 2\n0 0 1 3");
    EXPECT_NEAR(determinant(loose.rotation), 1, 1e-15);
    EXPECT_LT(pose_difference(inverse(loose) * loose, {}), 1e-14);
    EXPECT_EQ(loose.translation, (Vector3{1, 2, 3}));
}

TEST(GeometryRigidTransform, BadTextIsNamed) {
    const auto error = [](const std::string& text) {
        return message_of(ErrorCode::bad_file, [&] { parse_transform(text); });
    };
    EXPECT_EQ(error(""), "a transform has 16 numbers (or 12), found 0");
    EXPECT_EQ(error("1 0 0"), "a transform has 16 numbers (or 12), found 3");
    EXPECT_EQ(error("1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1 7"), "a transform has 16 numbers (or 12), found more");
    EXPECT_EQ(error("1 0 0 x"), "expected a number of a transform, found \"x\"");
    EXPECT_EQ(error("1 0 0 0 0 1 0 0 0 0 1 0 0 0 1 1"), "the last row of a transform must be 0 0 0 1");
    EXPECT_EQ(error("1 0 0 nan 0 1 0 0 0 0 1 0"), "the translation of a transform is not finite");
    EXPECT_EQ(error("2 0 0 0 0 1 0 0 0 0 1 0"), "not a rigid transform: not a rotation, R R^T differs from 1 by 3");
    EXPECT_EQ(error("1 0 0 0 0 1 0 0 0 0 -1 0"), "not a rigid transform: a reflection, not a rotation");
    EXPECT_EQ(error("1 0 0 0 0 inf 0 0 0 0 1 0"), "a number of a transform is not finite");
}

TEST(GeometryRigidTransform, CloudsMoveWithTheirOriginsNormalsAndGaps) {
    Mesh mesh = random_cloud(1000);
    PointCloud& cloud = mesh.vertices;
    add_normals(cloud);
    add_colors(cloud);
    cloud.origin = {500000, 4000000, 120};
    cloud.positions.data()[3 * 7] = NAN;
    RigidTransform transform = rotation_about({0.1, 0.2, 1}, 0.3, {500000.5, 4000000.5, 120});
    for (int i = 0; i < 3; ++i) transform.translation[i] += 12.5 * (i + 1);
    const PointCloud moved = transformed(cloud, transform);
    ASSERT_EQ(moved.size(), cloud.size());
    for (int64_t i = 0; i < cloud.size(); ++i) {
        if (i == 7) continue;
        const Vector3 wanted = transform({cloud.world(i, 0), cloud.world(i, 1), cloud.world(i, 2)});
        // float32 positions of a cloud about 1 wide, and the rounding of float64 at four million.
        for (int axis = 0; axis < 3; ++axis) EXPECT_NEAR(moved.world(i, axis), wanted[axis], 1e-6) << i;
    }
    EXPECT_TRUE(std::isnan(moved.positions.data()[3 * 7]));
    const float* before = find(cloud.attributes, "normal")->as<float>().data() + 3 * 20;
    const float* after = find(moved.attributes, "normal")->as<float>().data() + 3 * 20;
    const Vector3 turned = transform.rotate({before[0], before[1], before[2]});
    for (int axis = 0; axis < 3; ++axis) EXPECT_EQ(after[axis], static_cast<float>(turned[axis]));
    EXPECT_TRUE(*find(moved.attributes, "color") == *find(cloud.attributes, "color"));
    EXPECT_EQ(transformed(PointCloud(0), transform).size(), 0);
    // Local motions and back.
    const RigidTransform local = between_origins(transform, cloud.origin, moved.origin);
    EXPECT_LT(pose_difference(in_world(local, cloud.origin, moved.origin), transform), 2e-9);
    EXPECT_LT(std::abs(local.translation[0]) + std::abs(local.translation[1]), 200);
}

TEST(GeometryBestFit, FindsTheMotion) {
    const Array<float, 2> points = std::move(random_cloud(500).vertices.positions);
    for (const double angle : {0.0, 0.3, 2.0, M_PI}) {
        const RigidTransform truth = some_transform(6, angle);
        const RigidTransform fit = best_fit(points.view(), moved_rows(points, truth).view());
        EXPECT_LT(pose_difference(fit, truth), 1e-6) << angle;  // coordinates of 10 in float32
        EXPECT_NEAR(determinant(fit.rotation), 1, 1e-14);
    }
}

TEST(GeometryBestFit, NothingNearbyIsBetter) {
    const Array<float, 2> from = std::move(random_cloud(40, 1).vertices.positions),
                          to = std::move(random_cloud(40, 2).vertices.positions);
    std::vector<double> weights;
    for (int i = 0; i < 40; ++i) weights.push_back(0.1 + i % 5);
    const auto cost = [&](const RigidTransform& transform) {
        double sum = 0;
        for (int i = 0; i < 40; ++i) {
            const float *p = from.data() + 3 * i, *q = to.data() + 3 * i;
            const Vector3 v = transform({p[0], p[1], p[2]});
            for (int axis = 0; axis < 3; ++axis) sum += weights[i] * (v[axis] - q[axis]) * (v[axis] - q[axis]);
        }
        return sum;
    };
    const RigidTransform fit = best_fit(from.view(), to.view(), weights);
    const double least = cost(fit);
    for (int i = 0; i < 6; ++i)
        for (const double step : {-1e-3, 1e-3}) {
            RigidTransform other = fit;
            if (i < 3) {
                other.translation[i] += step;
            } else {
                Vector3 axis = {};
                axis[i - 3] = 1;
                other = rotation_about(axis, step, {0.5, 0.5, 0.5}) * fit;
            }
            EXPECT_GT(cost(other), least);
        }
    // Of many random rotations about the means none is better: the least is the global one.
    for (uint64_t seed = 0; seed < 200; ++seed) {
        RigidTransform other = some_transform(seed, 0.016 * static_cast<double>(seed)) * fit;
        other.translation = {};
        Vector3 mean_from = {}, mean_to = {};
        double total = 0;
        for (int i = 0; i < 40; ++i) {
            total += weights[i];
            for (int axis = 0; axis < 3; ++axis) {
                mean_from[axis] += weights[i] * from.data()[3 * i + axis];
                mean_to[axis] += weights[i] * to.data()[3 * i + axis];
            }
        }
        for (int axis = 0; axis < 3; ++axis) mean_from[axis] /= total, mean_to[axis] /= total;
        const Vector3 at = other(mean_from);
        for (int axis = 0; axis < 3; ++axis) other.translation[axis] = mean_to[axis] - at[axis];
        EXPECT_GE(cost(other), least - 1e-12);
    }
}

TEST(GeometryBestFit, NeverReflects) {
    const Array<float, 2> points = std::move(random_cloud(100).vertices.positions);
    Array<float, 2> mirrored = points.clone();
    for (int64_t i = 0; i < 100; ++i) mirrored.data()[3 * i] *= -1;
    EXPECT_NEAR(determinant(best_fit(points.view(), mirrored.view()).rotation), 1, 1e-14);
    Array<float, 2> flat = points.clone();  // in a plane a reflection and a turn do the same
    for (int64_t i = 0; i < 100; ++i) flat.data()[3 * i + 2] = 0;
    const RigidTransform truth = some_transform(7, 1.0);
    EXPECT_LT(pose_difference(best_fit(flat.view(), moved_rows(flat, truth).view()), truth), 1e-6);
}

TEST(GeometryBestFit, WeightsGapsAndFewPoints) {
    Array<float, 2> from = std::move(random_cloud(50).vertices.positions);
    const RigidTransform truth = some_transform(8, 0.5);
    Array<float, 2> to = moved_rows(from, truth);
    std::vector<double> weights(50, 2.0);
    to.data()[3 * 4] = 1000;
    weights[4] = 0;
    to.data()[3 * 9 + 1] = NAN;
    from.data()[3 * 11 + 2] = INFINITY;
    EXPECT_LT(pose_difference(best_fit(from.view(), to.view(), weights), truth), 1e-6);
    // A line: the shortest turn. One place: no turn. Nothing: nothing.
    Array<float, 2> line({3, 3}), up({3, 3});
    for (int i = 0; i < 9; ++i) line.data()[i] = up.data()[i] = 0;
    for (int i = 0; i < 3; ++i) line.data()[3 * i] = up.data()[3 * i + 2] = static_cast<float>(i);
    EXPECT_LT(pose_difference(best_fit(line.view(), up.view()), rotation_about({0, 1, 0}, -M_PI / 2)), 1e-14);
    const RigidTransform one = best_fit(line.view().slice(1, 2), up.view().slice(1, 2));
    EXPECT_EQ(one, (RigidTransform{RigidTransform{}.rotation, {-1, 0, 1}}));
    EXPECT_EQ(best_fit(line.view().slice(0, 0), up.view().slice(0, 0)), RigidTransform{});
    const auto error = [&](View<const float, 2> a, View<const float, 2> b, std::vector<double> w) {
        return message_of(ErrorCode::bad_argument, [&] { best_fit(a, b, w); });
    };
    EXPECT_EQ(error(line.view(), up.view().slice(0, 2), {}), "best_fit: 3 points against 2");
    EXPECT_EQ(error(line.view(), up.view(), {1, 2}), "best_fit: 2 weights for 3 pairs");
    EXPECT_EQ(error(line.view(), up.view(), {1, -2, 1}), "best_fit: weight 1 is -2");
    EXPECT_EQ(error({line.data(), {4, 2}}, up.view(), {}), "best_fit: from must be [n, 3], got [4, 2]");
}

}  // namespace
}  // namespace stipple::test
