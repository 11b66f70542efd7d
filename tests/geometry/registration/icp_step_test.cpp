#include "stipple/geometry/registration/icp_step.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>

#include "stipple/core/rng.h"
#include "stipple/geometry/registration/icp_cloud.h"

namespace stipple::test {
namespace {

using namespace geometry;

/// A wavy sheet with a step, so that all directions are determined.
PointCloud stepped_sheet(int64_t n, uint64_t seed) {
    PointCloud cloud(n);
    const Rng rng(seed);
    for (int64_t i = 0; i < n; ++i) {
        const double x = rng.uniform(static_cast<uint64_t>(2 * i)), y = rng.uniform(static_cast<uint64_t>(2 * i + 1));
        const double z = 0.2 * std::sin(5 * x) * std::cos(4 * y) + (x > 0.6 ? 0.15 : 0);
        const double places[3] = {x, y, z};
        for (int axis = 0; axis < 3; ++axis)
            cloud.positions.data()[3 * i + axis] =
                static_cast<float>(places[axis] + 0.002 * rng.normal(static_cast<uint64_t>(3 * i + axis) + 1'000'000));
    }
    return cloud;
}

/// The step as the papers write it: every pair's own inverse covariance, one by one.
struct NaiveIcpStep {
    Eigen::Matrix<double, 6, 6> matrix = Eigen::Matrix<double, 6, 6>::Zero();
    Eigen::Matrix<double, 6, 1> right = Eigen::Matrix<double, 6, 1>::Zero();
    int64_t used = 0;
};

NaiveIcpStep naive_icp_step(const StepInput& input, const RigidTransform& present, const IcpOptions& options) {
    NaiveIcpStep step;
    const Vector3 center = present(input.mean);
    for (int64_t rank = 0; rank < input.pairs.size(); ++rank) {
        const int32_t slot = input.pairs.slot(rank);
        if (slot < 0) continue;
        const Vector3 moved = present(input.pairs.source(rank));
        Eigen::Vector3d gap, at, normal;
        for (int axis = 0; axis < 3; ++axis) {
            gap[axis] = input.target.at(slot, axis) - moved[axis];
            at[axis] = moved[axis] - center[axis];
            normal[axis] = input.normals[slot][axis];
        }
        if (normal.isZero()) continue;
        Eigen::Matrix3d measure = normal * normal.transpose();
        if (options.metric == IcpMetric::generalised) {
            const auto& own = input.source_normals[rank];
            const Vector3 turned = present.rotate({own[0], own[1], own[2]});
            const Eigen::Vector3d b(turned[0], turned[1], turned[2]);
            const Eigen::Matrix3d sum =
                2 * Eigen::Matrix3d::Identity() - (1 - 1e-3) * (normal * normal.transpose() + b * b.transpose());
            measure = 2e-3 * sum.inverse();
        }
        const double residual = std::sqrt(gap.dot(measure * gap));
        const double weight = kernel_weight(options.kernel, residual, options.kernel_scale);
        if (weight == 0) continue;
        ++step.used;
        Eigen::Matrix<double, 3, 6> jacobian;
        jacobian << 0, at[2], -at[1], 1, 0, 0, -at[2], 0, at[0], 0, 1, 0, at[1], -at[0], 0, 0, 0, 1;
        step.matrix += weight * jacobian.transpose() * measure * jacobian;
        step.right += weight * jacobian.transpose() * measure * gap;
    }
    return step;
}

TEST(GeometryIcpStep, SumsAreThoseOfEveryPairByItself) {
    const auto source = icp_cloud(stepped_sheet(5003, 1), 0, 10), target = icp_cloud(stepped_sheet(6000, 2), 0, 10);
    RigidTransform present = rotation_about({1, 2, 3}, 0.03, {0.5, 0.5, 0});
    present.translation[2] += 0.01;
    Pairs pairs(target->points, source->points.tree().leaves, 0.04f);
    pairs.update(present);
    std::vector<std::array<float, 3>> own = source->normals;
    own[3] = {};  // a point without a direction
    const StepInput input{pairs, target->points, target->normals, own, source->extent.mean, source->extent.radius};
    for (const IcpMetric metric : {IcpMetric::plane, IcpMetric::generalised})
        for (const RobustKernel kernel : {RobustKernel::none, RobustKernel::huber, RobustKernel::tukey,
                                          RobustKernel::cauchy, RobustKernel::geman_mcclure}) {
            SCOPED_TRACE(fmt::format("metric {}, kernel {}", static_cast<int>(metric), static_cast<int>(kernel)));
            IcpOptions options;
            options.metric = metric;
            options.kernel = kernel;
            options.kernel_scale = 0.006;
            const Step step = icp_step(input, present, options);
            const NaiveIcpStep naive = naive_icp_step(input, present, options);
            EXPECT_EQ(step.used, naive.used);
            EXPECT_GT(step.used, 1000);
            EXPECT_EQ(step.undetermined, 0);
            const double scale = naive.matrix.cwiseAbs().maxCoeff();
            for (int i = 0; i < 6; ++i)
                for (int j = 0; j < 6; ++j)
                    EXPECT_NEAR(step.information[i][j], naive.matrix(i, j), 1e-6 * scale) << i << j;
            // The shift that the equations ask for; the rest of the motion is a turn about the center.
            const Eigen::Matrix<double, 6, 1> x = naive.matrix.ldlt().solve(naive.right);
            const Vector3 after = step.motion(step.center);
            for (int axis = 0; axis < 3; ++axis)
                EXPECT_NEAR(after[axis] - step.center[axis], x[3 + axis], 1e-6 * x.norm() + 1e-9);
            EXPECT_NEAR(rotation_angle(step.motion), x.head<3>().norm(), 1e-6 * x.norm() + 1e-9);
        }
}

TEST(GeometryIcpStep, TheMediansScaleComesFromAllOrFromAnEvenShare) {
    // Tukey's kernel cuts off 4.685 deviations: the count of pairs that are left tells the scale.
    for (const int64_t n : {900, 40'000}) {
        const auto source = icp_cloud(stepped_sheet(n, 1), 0, 0), target = icp_cloud(stepped_sheet(n, 2), 0, 10);
        Pairs pairs(target->points, source->points.tree().leaves, 0.2f);
        pairs.update({});
        const StepInput input{pairs, target->points, target->normals, {}, source->extent.mean, source->extent.radius};
        std::vector<double> residuals;
        for (int64_t rank = 0; rank < pairs.size(); ++rank) {
            const int32_t slot = pairs.slot(rank);
            if (slot < 0) continue;
            double along = 0;
            for (int axis = 0; axis < 3; ++axis)
                along += target->normals[slot][axis] * (target->points.at(slot, axis) - pairs.source(rank)[axis]);
            residuals.push_back(std::abs(along));
        }
        std::sort(residuals.begin(), residuals.end());
        const double scale = 4.685 * 1.4826 * residuals[residuals.size() / 2];
        const auto below = [&](double limit) {
            return std::lower_bound(residuals.begin(), residuals.end(), limit) - residuals.begin();
        };
        const Step step = icp_step(input, {}, {.metric = IcpMetric::plane, .kernel = RobustKernel::tukey});
        EXPECT_GE(step.used, below(0.9 * scale));
        EXPECT_LE(step.used, below(1.1 * scale));
    }
}

TEST(GeometryIcpCloud, EveryFewPointsAreThoseOfTheOrder) {
    const auto cloud = icp_cloud(stepped_sheet(1000, 3), 0, 0);
    const ops::cpu::Leaves& all = cloud->points.tree().leaves;
    for (const int64_t stride : {1, 2, 3, 7, 16, 100, 999, 1000, 5000}) {
        const ops::cpu::Leaves some = every(all, stride);
        ASSERT_EQ(some.size, (1000 + stride - 1) / stride);
        for (int64_t i = 0; i < some.size; ++i) {
            const int64_t from = i * stride;
            EXPECT_EQ(some.indices_at(i / 16)[i % 16], all.indices_at(from / 16)[from % 16]);
            for (int axis = 0; axis < 3; ++axis)
                EXPECT_EQ(some.at(i / 16)[axis * 16 + i % 16], all.at(from / 16)[axis * 16 + from % 16]);
        }
        for (int64_t i = some.size; i < some.count() * 16; ++i) EXPECT_EQ(some.at(i / 16)[i % 16], INFINITY);
    }
    EXPECT_EQ(every(icp_cloud(PointCloud(0), 0, 0)->points.tree().leaves, 4).size, 0);
}

TEST(GeometryIcpCloud, ExtentsAreMeanAndSpread) {
    PointCloud cloud = stepped_sheet(3000, 4);
    for (int64_t i = 0; i < cloud.size(); ++i) cloud.positions.data()[3 * i] += 4096;
    cloud.positions.data()[0] = NAN;
    cloud.positions.data()[3 * 77 + 2] = INFINITY;
    double mean[3] = {}, spread = 0, count = 0;
    for (const bool second : {false, true})
        for (int64_t i = 0; i < cloud.size(); ++i) {
            if (i == 0 || i == 77) continue;
            const float* p = cloud.positions.data() + 3 * i;
            if (!second) ++count;
            for (int axis = 0; axis < 3; ++axis) {
                if (second)
                    spread += (p[axis] - mean[axis] / count) * (p[axis] - mean[axis] / count);
                else
                    mean[axis] += p[axis];
            }
        }
    const Extent extent = extent_of(cloud.positions.view());
    for (int axis = 0; axis < 3; ++axis) EXPECT_NEAR(extent.mean[axis], mean[axis] / count, 1e-9);
    EXPECT_NEAR(extent.radius, std::sqrt(spread / count), 1e-9);
    EXPECT_EQ(extent_of(PointCloud(0).positions.view()).radius, 0);
}

}  // namespace
}  // namespace stipple::test
