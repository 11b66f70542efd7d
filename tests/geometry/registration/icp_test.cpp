#include "stipple/geometry/icp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/geometry/scans.h"

namespace stipple::test {
namespace {

using namespace geometry;

/// A closed bumpy surface about 2 wide that no motion maps onto itself.
PointCloud bumpy(int64_t n, uint64_t seed = 1, double noise = 0) {
    PointCloud cloud(n);
    const Rng rng(seed), shake(seed, 1);
    for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<uint64_t>(3 * i);
        double v[3] = {rng.normal(at), rng.normal(at + 1), rng.normal(at + 2)};
        const double length = std::hypot(v[0], v[1], v[2]);
        for (double& number : v) number /= length;
        const double radius = 1 + 0.15 * std::sin(3 * v[0] + 1) * std::cos(4 * v[1]) + 0.2 * v[2] * v[0];
        const double stretch[3] = {1, 0.8, 0.6};
        for (int axis = 0; axis < 3; ++axis)
            cloud.positions.data()[3 * i + axis] = static_cast<float>(
                radius * stretch[axis] * v[axis] + noise * shake.normal(at + static_cast<uint64_t>(axis)));
    }
    return cloud;
}

RigidTransform motion(double degrees, double shift, uint64_t seed = 1) {
    const Rng rng(seed, 9);
    RigidTransform transform = rotation_about({rng.normal(0), rng.normal(1), rng.normal(2)}, degrees * M_PI / 180);
    Vector3 way = {rng.normal(4), rng.normal(5), rng.normal(6)};
    for (int i = 0; i < 3; ++i) transform.translation[i] = shift * way[i] / std::hypot(way[0], way[1], way[2]);
    return transform;
}

IcpOptions one_level(IcpMetric metric, double max_distance, int iterations = 100) {
    IcpOptions options;
    options.metric = metric;
    options.kernel = RobustKernel::none;
    options.levels = {{0, max_distance, iterations}};
    return options;
}

std::string bad_argument(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_argument);
        return error.message();
    }
    return "";
}

PointCloud part(const PointCloud& cloud, const std::function<bool(const float*)>& keep) {
    std::vector<int32_t> rows;
    for (int64_t i = 0; i < cloud.size(); ++i)
        if (keep(cloud.positions.data() + 3 * i)) rows.push_back(static_cast<int32_t>(i));
    return select(cloud, View<const int32_t, 1>(rows.data(), {static_cast<int64_t>(rows.size())}));
}

TEST(GeometryIcp, RecoversExactMotions) {
    const PointCloud target = bumpy(3000);
    for (const IcpMetric metric : {IcpMetric::point, IcpMetric::plane, IcpMetric::generalised})
        for (uint64_t seed = 1; seed <= 4; ++seed) {
            const RigidTransform truth = motion(8, 0.1, seed);
            const PointCloud source = transformed(target, inverse(truth));
            IcpOptions options = one_level(metric, 1, 300);
            options.change_tolerance = 0;
            const IcpResult found = icp(source, target, options);
            EXPECT_TRUE(found.converged());
            EXPECT_EQ(found.fitness, 1);
            // The source's coordinates are rounded to float32.
            EXPECT_LT(found.rmse, 1e-7);
            EXPECT_LT(displacement(source, found.transform, truth).most, 1e-7);
            EXPECT_EQ(found.undetermined, 0);
            EXPECT_EQ(found.iterations, static_cast<int>(found.history.size()));
        }
}

TEST(GeometryIcp, DefaultsFindOtherPointsOfTheSameSurface) {
    const PointCloud target = bumpy(20000, 1, 0.002), other = bumpy(15000, 2, 0.002);
    for (uint64_t seed = 1; seed <= 3; ++seed) {
        const RigidTransform truth = motion(10, 0.15, seed);
        const PointCloud source = transformed(other, inverse(truth));
        const IcpResult found = icp(source, target);
        EXPECT_TRUE(found.converged());
        EXPECT_LT(displacement(source, found.transform, truth).rms, 0.002);
        int level = 0;
        for (const IcpIteration& step : found.history) {
            EXPECT_GE(step.level, level);
            level = step.level;
        }
        EXPECT_EQ(level, 1);
    }
}

TEST(GeometryIcp, IdenticalCloudsStay) {
    const PointCloud cloud = bumpy(2000);
    for (const IcpMetric metric : {IcpMetric::point, IcpMetric::plane})
        for (const bool automatic : {false, true}) {
            IcpOptions options = one_level(metric, 0.5);
            if (automatic) options.levels.clear();
            const IcpResult found = icp(cloud, cloud, options);
            EXPECT_TRUE(found.converged());
            EXPECT_EQ(found.fitness, 1);
            EXPECT_LT(found.rmse, 1e-12);
            EXPECT_LT(displacement(cloud, found.transform, {}).most, 1e-12);
        }
}

TEST(GeometryIcp, PlainStepsAreThoseOfTheTextbook) {
    // Point-to-point without kernel: all pairs brute force, best_fit, again.
    const PointCloud target = bumpy(400, 1), source = transformed(bumpy(300, 2), motion(12, 0.1));
    RigidTransform naive;
    constexpr int kSteps = 8;
    for (int step = 0; step < kSteps; ++step) {
        Array<float, 2> from({source.size(), 3}), to({source.size(), 3});
        std::vector<double> weights;
        for (int64_t i = 0; i < source.size(); ++i) {
            const float* p = source.positions.data() + 3 * i;
            const Vector3 moved = naive({p[0], p[1], p[2]});
            int64_t nearest = 0;
            double least = INFINITY;
            for (int64_t j = 0; j < target.size(); ++j) {
                const float* q = target.positions.data() + 3 * j;
                const double d = std::hypot(q[0] - moved[0], q[1] - moved[1], q[2] - moved[2]);
                if (d < least) least = d, nearest = j;
            }
            std::copy_n(p, 3, from.data() + 3 * i);
            std::copy_n(target.positions.data() + 3 * nearest, 3, to.data() + 3 * i);
            weights.push_back(least <= 0.2 ? 1 : 0);
        }
        naive = best_fit(from.view(), to.view(), weights);
    }
    IcpOptions options = one_level(IcpMetric::point, 0.2, kSteps);
    options.motion_tolerance = options.change_tolerance = 0;
    const IcpResult found = icp(source, target, options);
    EXPECT_EQ(found.stop, IcpStop::iterations);
    EXPECT_FALSE(found.converged());
    EXPECT_EQ(found.iterations, kSteps);
    EXPECT_LT(displacement(source, found.transform, naive).most, 1e-12);
}

TEST(GeometryIcp, PointToPointNeverGetsWorse) {
    // With every point paired, each search and each fit lowers the sum of squares [Besl and McKay 1992].
    const PointCloud target = bumpy(1000, 1), source = transformed(bumpy(800, 2), motion(25, 0.3));
    const IcpResult found = icp(source, target, one_level(IcpMetric::point, 100, 60));
    for (size_t i = 1; i < found.history.size(); ++i)
        EXPECT_LE(found.history[i].rmse, found.history[i - 1].rmse * (1 + 1e-7)) << i;
    EXPECT_LE(found.rmse, found.history.back().rmse * (1 + 1e-12));  // equal but for the rounding of the sum
    EXPECT_EQ(found.fitness, 1);
}

TEST(GeometryIcp, APlaneLeavesThreeDirectionsOpenAndDoesNotMoveAlongThem) {
    PointCloud target(2500);
    for (int64_t i = 0; i < 2500; ++i) {
        target.positions.data()[3 * i] = static_cast<float>(i % 50) * 0.1f;
        target.positions.data()[3 * i + 1] = static_cast<float>(i / 50) * 0.1f;
        target.positions.data()[3 * i + 2] = 1;
    }
    RigidTransform off = rotation_about({1, 0, 0}, 0.02, {2.45, 2.45, 1});
    off.translation[2] += 0.07;
    const PointCloud source = transformed(target, off);
    const IcpResult found = icp(source, target, one_level(IcpMetric::plane, 1));
    EXPECT_TRUE(found.converged());
    EXPECT_EQ(found.undetermined, 3);
    EXPECT_LT(displacement(source, found.transform, inverse(off)).most, 1e-3);  // tilt and height, nothing else
    const Vector3 middle = {2.45, 2.45, 1.07}, moved = found.transform(middle);
    EXPECT_NEAR(moved[0], middle[0], 2e-3);
    EXPECT_NEAR(moved[1], middle[1], 2e-3);
    EXPECT_NEAR(moved[2], 1, 1e-6);
    const IcpResult both = icp(source, target, one_level(IcpMetric::generalised, 1));
    EXPECT_EQ(both.undetermined, 3);
    EXPECT_LT(displacement(source, both.transform, inverse(off)).most, 1e-3);
    // A ball may turn as it likes: it does not.
    PointCloud ball(4000);
    const Rng rng(3);
    for (int64_t i = 0; i < ball.size(); ++i) {
        float* p = ball.positions.data() + 3 * i;
        for (int axis = 0; axis < 3; ++axis) p[axis] = rng.normal(static_cast<uint64_t>(3 * i + axis));
        const float length = std::hypot(p[0], p[1], p[2]);
        for (int axis = 0; axis < 3; ++axis) p[axis] /= length;
    }
    Attribute normals("normal", DType::f32, ball.size(), 3);
    std::copy_n(ball.positions.data(), 3 * ball.size(), normals.as<float>().data());
    ball.attributes.push_back(std::move(normals));
    const IcpResult rolled = icp(transformed(ball, motion(0, 0.05)), ball, one_level(IcpMetric::plane, 1));
    EXPECT_EQ(rolled.undetermined, 3);
    EXPECT_LT(rotation_angle(rolled.transform), 0.02);
    EXPECT_NEAR(
        std::hypot(rolled.transform.translation[0], rolled.transform.translation[1], rolled.transform.translation[2]),
        0.05, 2e-3);
}

TEST(GeometryIcp, ALineTurnsTheShortestWay) {
    PointCloud target(100), source(100);
    for (int64_t i = 0; i < 100; ++i) {
        const float x = static_cast<float>(i) * 0.1f;
        const float to[3] = {x, 0, 0}, from[3] = {x, 0.05f * x, 0};
        std::copy_n(to, 3, target.positions.data() + 3 * i);
        std::copy_n(from, 3, source.positions.data() + 3 * i);
    }
    const IcpResult found = icp(source, target, one_level(IcpMetric::point, 5));
    EXPECT_EQ(found.undetermined, 1);
    EXPECT_NEAR(rotation_angle(found.transform), std::atan(0.05), 1e-3);
}

TEST(GeometryIcp, TooFewPairsEndWithTheStart) {
    const PointCloud cloud = bumpy(500);
    const RigidTransform far = motion(5, 100), near = motion(5, 0.01);
    for (const IcpMetric metric : {IcpMetric::point, IcpMetric::plane}) {
        const IcpOptions options = one_level(metric, 0.5);
        const auto expect_start = [](const IcpResult& found, const RigidTransform& start) {
            EXPECT_EQ(found.stop, IcpStop::too_few);
            EXPECT_FALSE(found.converged());
            EXPECT_EQ(found.iterations, 0);
            EXPECT_EQ(found.fitness, 0);
            EXPECT_EQ(found.rmse, 0);
            EXPECT_LT(rotation_angle(inverse(start) * found.transform), 1e-15);
            EXPECT_EQ(found.transform.translation, start.translation);
        };
        expect_start(icp(cloud, cloud, options, far), far);
        expect_start(icp(PointCloud(0), cloud, options, near), near);
        expect_start(icp(cloud, PointCloud(0), options, near), near);
        expect_start(icp(PointCloud(0), PointCloud(0), {}, near), near);
        PointCloud nowhere(3);
        for (float& number : nowhere.positions.span()) number = NAN;
        expect_start(icp(nowhere, cloud, options, near), near);
        expect_start(icp(cloud, nowhere, {}, near), near);
        const IcpResult two =
            icp(part(cloud, [&](const float* p) { return p < cloud.positions.data() + 6; }), cloud, options);
        EXPECT_EQ(two.stop, IcpStop::too_few);
        EXPECT_EQ(two.pairs, 2);
        EXPECT_EQ(two.fitness, 1);
        EXPECT_EQ(two.transform, RigidTransform{});
    }
}

TEST(GeometryIcp, NonFinitePointsDoNotCount) {
    const PointCloud target = bumpy(2000, 1), source = transformed(bumpy(1500, 2), motion(5, 0.05));
    const auto with_gaps = [](const PointCloud& cloud) {
        PointCloud more(cloud.size() + 3);
        for (float& number : more.positions.span()) number = NAN;
        std::copy_n(cloud.positions.data(), 3 * cloud.size(), more.positions.data() + 3);
        more.positions.data()[3 * (cloud.size() + 1)] = INFINITY;
        return more;
    };
    for (const bool automatic : {false, true}) {
        IcpOptions options = one_level(IcpMetric::plane, 0.5);
        if (automatic) options.levels.clear();
        const IcpResult plain = icp(source, target, options), gaps = icp(with_gaps(source), with_gaps(target), options);
        EXPECT_EQ(gaps.fitness, plain.fitness);
        EXPECT_EQ(gaps.pairs, plain.pairs);
        EXPECT_LT(displacement(source, gaps.transform, plain.transform).most, 1e-9);
    }
}

TEST(GeometryIcp, KernelsAndTrimmingWithstandOutliers) {
    // A third of the source is elsewhere, to one side.
    const PointCloud target = bumpy(6000, 1);
    PointCloud source = bumpy(3000, 2);
    const Rng rng(4);
    for (int64_t i = 0; i < 1000; ++i) {
        float* p = source.positions.data() + 3 * i;
        p[0] += 0.25f + 0.3f * rng.uniform(static_cast<uint64_t>(2 * i));
        p[2] += 0.2f * rng.uniform(static_cast<uint64_t>(2 * i + 1));
    }
    const RigidTransform truth = motion(4, 0.05);
    source = transformed(source, inverse(truth));
    const auto error = [&](IcpMetric metric, RobustKernel kernel, double scale, double trim) {
        IcpOptions options = one_level(metric, 1, 200);
        options.kernel = kernel;
        options.kernel_scale = scale;
        options.trim = trim;
        return displacement(source, icp(source, target, options).transform, truth).rms;
    };
    for (const IcpMetric metric : {IcpMetric::point, IcpMetric::plane}) {
        const double plain = error(metric, RobustKernel::none, 0, 1);
        EXPECT_GT(plain, 0.03);
        EXPECT_LT(error(metric, RobustKernel::none, 0, 0.6), plain / 5);
        EXPECT_LT(error(metric, RobustKernel::huber, 0, 1), plain / 2);
        for (const RobustKernel kernel : {RobustKernel::tukey, RobustKernel::cauchy, RobustKernel::geman_mcclure}) {
            EXPECT_LT(error(metric, kernel, 0, 1), plain / 3) << static_cast<int>(kernel);
            EXPECT_LT(error(metric, kernel, 0.05, 1), plain / 3) << static_cast<int>(kernel);
        }
    }
    EXPECT_LT(error(IcpMetric::plane, RobustKernel::tukey, 0, 1), 0.003);
}

TEST(GeometryIcp, KernelWeights) {
    for (const RobustKernel kernel : {RobustKernel::none, RobustKernel::huber, RobustKernel::tukey,
                                      RobustKernel::cauchy, RobustKernel::geman_mcclure}) {
        EXPECT_EQ(kernel_weight(kernel, 0, 0.5), 1);
        EXPECT_EQ(kernel_weight(kernel, -0.3, 0.5), kernel_weight(kernel, 0.3, 0.5));
        for (double r = 0; r < 3; r += 0.1)
            EXPECT_LE(kernel_weight(kernel, r + 0.1, 0.5), kernel_weight(kernel, r, 0.5));
    }
    EXPECT_EQ(kernel_weight(RobustKernel::none, 9, 0.5), 1);
    EXPECT_EQ(kernel_weight(RobustKernel::huber, 2, 0.5), 0.25);
    EXPECT_EQ(kernel_weight(RobustKernel::tukey, 0.25, 0.5), 0.5625);
    EXPECT_EQ(kernel_weight(RobustKernel::tukey, 0.5, 0.5), 0);
    EXPECT_EQ(kernel_weight(RobustKernel::cauchy, 1, 0.5), 0.2);
    EXPECT_NEAR(kernel_weight(RobustKernel::geman_mcclure, 1, 0.5), 0.04, 1e-16);
}

TEST(GeometryIcp, OriginsLoseNothing) {
    const PointCloud near_target = bumpy(4000, 1);
    const RigidTransform truth = motion(6, 0.08);
    const PointCloud near_source = transformed(near_target, inverse(truth));
    // The same points at different places of the world, one relative to another origin than the other.
    PointCloud target = near_target.clone(), source = near_source.clone();
    target.origin = {500000, 4000000, 250};
    source.origin = {499990, 4000016, 245};
    RigidTransform start;
    start.translation = {10, -16, 5};
    for (const IcpMetric metric : {IcpMetric::point, IcpMetric::plane}) {
        IcpOptions options = one_level(metric, 1, 300);
        options.change_tolerance = 0;
        const IcpResult found = icp(source, target, options, start);
        EXPECT_TRUE(found.converged());
        EXPECT_EQ(found.fitness, 1);
        EXPECT_LT(found.rmse, 1e-7);
        double most = 0;
        for (int64_t i = 0; i < source.size(); ++i) {
            const Vector3 moved = found.transform({source.world(i, 0), source.world(i, 1), source.world(i, 2)});
            for (int axis = 0; axis < 3; ++axis) most = std::max(most, std::abs(moved[axis] - target.world(i, axis)));
        }
        EXPECT_LT(most, 2e-7);  // float64 at four million resolves 1e-9
        for (int axis = 0; axis < 3; ++axis) EXPECT_NEAR(found.center[axis], target.origin[axis], 0.2);
    }
}

TEST(GeometryIcp, ThreadsDoNotMatter) {
    const PointCloud target = bumpy(90000, 1), source = transformed(bumpy(70000, 2, 0.01), motion(7, 0.1));
    for (const IcpMetric metric : {IcpMetric::point, IcpMetric::plane, IcpMetric::generalised}) {
        IcpOptions options;
        options.metric = metric;
        options.trim = 0.9;
        const int before = threads();
        set_threads(1);
        const IcpResult one = icp(source, target, options);
        set_threads(3);
        const IcpResult three = icp(source, target, options);
        set_threads(before);
        EXPECT_EQ(one.transform, three.transform);
        EXPECT_EQ(one.information, three.information);
        EXPECT_EQ(one.rmse, three.rmse);
        ASSERT_EQ(one.history.size(), three.history.size());
        for (size_t i = 0; i < one.history.size(); ++i) {
            EXPECT_EQ(one.history[i].rmse, three.history[i].rmse);
            EXPECT_EQ(one.history[i].searched, three.history[i].searched);
        }
    }
}

TEST(GeometryIcp, APreparedTargetServesManySources) {
    const PointCloud target = bumpy(3000, 1);
    const IcpTarget prepared(target);
    EXPECT_EQ(prepared.options().levels.size(), 2u);
    for (uint64_t seed = 1; seed <= 2; ++seed) {
        const PointCloud source = transformed(bumpy(2000, 2), motion(6, 0.1, seed));
        EXPECT_EQ(icp(source, prepared).transform, icp(source, target).transform);
    }
}

TEST(GeometryIcp, NormalsOfTheTargetAreUsed) {
    // Normals that all point along z let the source slide in x and y, whatever its shape.
    PointCloud target = bumpy(2000, 1);
    const PointCloud source = target.clone();
    RigidTransform start;
    start.translation = {0.05, 0, 0.03};
    Attribute normals("normal", DType::f32, target.size(), 3);
    for (int64_t i = 0; i < target.size(); ++i) {
        const float up[3] = {0, 0, i < 1000 ? 2.0f : -1.0f};  // of any length
        std::copy_n(up, 3, normals.as<float>().data() + 3 * i);
    }
    target.attributes.push_back(std::move(normals));
    EXPECT_EQ(icp(source, target, one_level(IcpMetric::plane, 0.5), start).undetermined, 3);
    std::fill_n(find(target.attributes, "normal")->as<float>().data(), 3 * target.size(), 0.0f);
    const IcpResult none = icp(source, target, one_level(IcpMetric::plane, 0.5), start);
    EXPECT_EQ(none.stop, IcpStop::too_few);
    EXPECT_EQ(icp(source, target, one_level(IcpMetric::point, 0.5), start).undetermined, 0);
}

TEST(GeometryIcp, InformationIsTheNormalMatrix) {
    // Identical clouds: every pair is a point and itself, at the identity.
    PointCloud cloud = bumpy(300);
    Attribute normals("normal", DType::f32, cloud.size(), 3);
    std::copy_n(cloud.positions.data(), 3 * cloud.size(), normals.as<float>().data());
    cloud.attributes.push_back(std::move(normals));
    for (const IcpMetric metric : {IcpMetric::point, IcpMetric::plane}) {
        const IcpResult found = icp(cloud, cloud, one_level(metric, 0.1));
        double naive[6][6] = {};
        for (int64_t i = 0; i < cloud.size(); ++i) {
            const float* p = cloud.positions.data() + 3 * i;
            const double a[3] = {p[0] - found.center[0], p[1] - found.center[1], p[2] - found.center[2]};
            const double length = std::hypot(p[0], p[1], p[2]);
            for (int axis = 0; axis < 3; ++axis) {
                double n[3] = {axis == 0 ? 1.0 : 0, axis == 1 ? 1.0 : 0, axis == 2 ? 1.0 : 0};
                if (metric == IcpMetric::plane)
                    for (int j = 0; j < 3; ++j) n[j] = p[j] / length;
                const double row[6] = {
                    a[1] * n[2] - a[2] * n[1], a[2] * n[0] - a[0] * n[2], a[0] * n[1] - a[1] * n[0], n[0], n[1], n[2]};
                for (int j = 0; j < 6; ++j)
                    for (int k = 0; k < 6; ++k) naive[j][k] += row[j] * row[k];
                if (metric == IcpMetric::plane) break;
            }
        }
        for (int j = 0; j < 6; ++j)
            for (int k = 0; k < 6; ++k) EXPECT_NEAR(found.information[j][k], naive[j][k], 1e-4) << j << k;
    }
}

TEST(GeometryIcp, PairsEndAtTheGreatestDistance) {
    const PointCloud cloud = bumpy(1000);
    IcpOptions options = one_level(IcpMetric::point, 0.05, 0);
    RigidTransform start;
    start.translation[0] = 0.06;
    const IcpResult found = icp(cloud, cloud, options, start);
    int64_t pairs = 0;
    double sum = 0;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        double least = INFINITY;
        for (int64_t j = 0; j < cloud.size(); ++j) {
            const float *p = cloud.positions.data() + 3 * i, *q = cloud.positions.data() + 3 * j;
            least = std::min(least, std::hypot(p[0] + 0.06 - q[0], p[1] - q[1], p[2] - q[2]));
        }
        if (least > 0.05) continue;
        ++pairs;
        sum += least * least;
    }
    EXPECT_GT(pairs, 100);
    EXPECT_LT(pairs, 1000);
    EXPECT_EQ(found.pairs, pairs);
    EXPECT_NEAR(found.rmse, std::sqrt(sum / static_cast<double>(pairs)), 1e-9);
    EXPECT_EQ(found.iterations, 0);
    EXPECT_EQ(found.transform.translation, start.translation);
}

TEST(GeometryIcp, WrongOptionsAreNamed) {
    const PointCloud cloud = bumpy(10);
    const auto error = [&](const std::function<void(IcpOptions&)>& change) {
        IcpOptions options = one_level(IcpMetric::point, 1);
        change(options);
        return bad_argument([&] { icp(cloud, cloud, options); });
    };
    EXPECT_EQ(error([](IcpOptions& o) { o.trim = 0; }), "icp: trim must be above 0, to 1, got 0");
    EXPECT_EQ(error([](IcpOptions& o) { o.trim = NAN; }), "icp: trim must be above 0, to 1, got nan");
    EXPECT_EQ(error([](IcpOptions& o) { o.kernel_scale = -1; }), "icp: the kernel's scale must be from 0, got -1");
    EXPECT_EQ(error([](IcpOptions& o) { o.levels[0].voxel = -1; }), "icp: a level's cells must be from 0, got -1");
    EXPECT_EQ(error([](IcpOptions& o) { o.levels[0].max_distance = 0; }),
              "icp: a level's greatest distance must be above 0, got 0");
    EXPECT_EQ(error([](IcpOptions& o) { o.levels[0].iterations = -1; }), "icp: -1 iterations");
    for (const double share : {0.0, -1.0, 1.5, static_cast<double>(NAN)})
        EXPECT_TRUE(error([=](IcpOptions& o) {
                        o.levels[0].share = share;
                    }).starts_with("icp: a level's share of the points must be above 0, to 1, got"));
    EXPECT_EQ(error([](IcpOptions& o) { o.normal_neighbours = 2; }), "icp: normals take 3 to 128 neighbours, got 2");
    EXPECT_EQ(error([](IcpOptions& o) { o.motion_tolerance = -1; }),
              "icp: tolerances must be from 0, got -1 and 1e-06");
    EXPECT_EQ(bad_argument([] { automatic_levels(0); }), "automatic_levels: the radius must be above 0, got 0");
}

}  // namespace
}  // namespace stipple::test
