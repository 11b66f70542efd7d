// Normals of clouds: against float64 covariances and Eigen's solver, on degenerate clouds, far from the origin.

#include "stipple/geometry/normals.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "stipple/core/rng.h"
#include "stipple/geometry/cloud/normals_eigen.h"
#include "tests/geometry/geometry.h"
#include "tests/support/not_finite.h"

namespace stipple::test {
namespace {

struct Normals {
    Array<float, 2> normals;
    Array<float, 1> curvatures;

    Eigen::Vector3d at(int64_t i) const {
        const float* n = normals.data() + 3 * i;
        return {n[0], n[1], n[2]};
    }
};

class GeometryNormals : public OnDevice {
protected:
    Normals normals_of(const Array<float, 2>& points, int k = 16, float radius = kInfinity) const {
        const Array<float, 2> there = upload(points);
        Array<float, 2> normals({points.size(0), 3}, device());
        Array<float, 1> curvatures({points.size(0)}, device());
        geometry::estimate_normals(there.view(), normals.view(), curvatures.view(), k, radius);
        return {download(normals), download(curvatures)};
    }
};
STIPPLE_ON_EVERY_DEVICE(GeometryNormals);
class GeometryNormalsOfTwoDevices : public GeometryNormals {};
STIPPLE_ON_EVERY_GPU(GeometryNormalsOfTwoDevices);

Eigen::Vector3d point_of(const Array<float, 2>& points, int64_t i) {
    const float* p = points.data() + 3 * i;
    return {p[0], p[1], p[2]};
}

Array<float, 2> cloud_of(const std::vector<Eigen::Vector3d>& points) {
    Array<float, 2> cloud({static_cast<int64_t>(points.size()), 3});
    for (size_t i = 0; i < points.size(); ++i)
        for (int axis = 0; axis < 3; ++axis) cloud.data()[3 * i + axis] = static_cast<float>(points[i][axis]);
    return cloud;
}

Eigen::Vector3d random_unit(const Rng& rng, uint64_t i) {
    return Eigen::Vector3d(rng.normal(3 * i), rng.normal(3 * i + 1), rng.normal(3 * i + 2)).normalized();
}

/// Neighbours by sorting all points, covariance about their mean in two passes, Eigen's solver.
Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> naive(const Array<float, 2>& points, int64_t of, int64_t k,
                                                     float radius) {
    std::vector<std::pair<float, int64_t>> near;
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float d = distance_sq(points.data() + 3 * i, points.data() + 3 * of);
        if (d <= radius * radius) near.push_back({d, i});
    }
    std::sort(near.begin(), near.end());
    near.resize(std::min(near.size(), static_cast<size_t>(k)));
    Eigen::Vector3d mean = Eigen::Vector3d::Zero();
    for (const auto& [d, i] : near) mean += point_of(points, i) - point_of(points, of);
    mean /= static_cast<double>(near.size());
    Eigen::Matrix3d covariance = Eigen::Matrix3d::Zero();
    for (const auto& [d, i] : near) {
        const Eigen::Vector3d x = point_of(points, i) - point_of(points, of) - mean;
        covariance += x * x.transpose();
    }
    return Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d>(covariance);
}

void expect_unit_and_sign(const Normals& found, int64_t i) {
    const Eigen::Vector3d n = found.at(i);
    EXPECT_NEAR(n.norm(), 1, 2e-7);
    Eigen::Index largest = 0;
    n.cwiseAbs().maxCoeff(&largest);
    EXPECT_GT(n[largest], 0);
}

void expect_none(const Normals& found, int64_t i) {
    EXPECT_EQ(found.at(i), Eigen::Vector3d::Zero()) << i;
    EXPECT_TRUE(std::isnan(found.curvatures.data()[i])) << i;
}

TEST_P(GeometryNormals, AreThoseOfEigensSolver) {
    for (const auto& [n, k, radius] : std::vector<std::tuple<int64_t, int, float>>{
             {3, 16, kInfinity}, {4, 4, kInfinity}, {777, 16, kInfinity}, {777, 3, kInfinity}, {777, 128, 0.3f}}) {
        const Array<float, 2> points = uniform_points(n, -1, 1, 5);
        const Normals found = normals_of(points, k, radius);
        int64_t compared = 0;
        for (int64_t i = 0; i < n; ++i) {
            const auto solver = naive(points, i, k, radius);
            const Eigen::Vector3d values = solver.eigenvalues();
            if (!(values[1] > 1e-6 * values[2])) continue;  // a line: its own test
            expect_unit_and_sign(found, i);
            EXPECT_NEAR(found.curvatures.data()[i], std::max(0.0, values[0]) / values.sum(), 1e-7);
            // An error e of the matrix turns the vector by e / gap.
            const double gap = (values[1] - values[0]) / values[2];
            if (gap < 1e-6) continue;
            const double off = found.at(i).cross(solver.eigenvectors().col(0)).norm();
            EXPECT_LT(off, 3e-7 + 1e-14 / gap) << i;
            ++compared;
        }
        EXPECT_GT(compared, n / 2);
    }
}

TEST_P(GeometryNormals, OfSpheresPointAlongTheRadius) {
    const Rng rng(3);
    std::vector<Eigen::Vector3d> points;
    for (uint64_t i = 0; i < 20000; ++i) points.push_back(random_unit(rng, i));
    const Normals found = normals_of(cloud_of(points));
    for (size_t i = 0; i < points.size(); ++i) {
        EXPECT_GT(std::fabs(found.at(static_cast<int64_t>(i)).dot(points[i])), 0.999);
        EXPECT_LT(found.curvatures.data()[i], 0.01);
    }
}

TEST_P(GeometryNormals, OfPlanesAreExactAnywhere) {
    // Multiples of 1/8 on the plane z = x + 2 y are exact in float32 about a coordinate of 500000 too.
    const Eigen::Vector3d normal = Eigen::Vector3d(-1, -2, 1).normalized() * -1;
    for (const Eigen::Vector3d& offset :
         {Eigen::Vector3d(0, 0, 0), Eigen::Vector3d(500000, 400000, 300000), Eigen::Vector3d(-262144, 0, 1)}) {
        std::vector<Eigen::Vector3d> points;
        const Rng rng(4);
        for (uint64_t i = 0; i < 3000; ++i) {
            const double x = rng.below(2 * i, 400) / 8.0, y = rng.below(2 * i + 1, 400) / 8.0;
            points.push_back(offset + Eigen::Vector3d(x, y, x + 2 * y));
        }
        const Normals found = normals_of(cloud_of(points));
        for (int64_t i = 0; i < 3000; ++i) {
            EXPECT_LT((found.at(i) - normal).norm(), 2e-7) << i;
            EXPECT_LT(found.curvatures.data()[i], 1e-12);
        }
    }
}

TEST_P(GeometryNormals, LinesAndPointsHaveNone) {
    std::vector<Eigen::Vector3d> points;
    for (int i = 0; i < 100; ++i) points.push_back(Eigen::Vector3d(1, 2, -3) * i);
    for (int i = 0; i < 40; ++i) points.push_back({1000, 0, 0});  // one place
    const Normals found = normals_of(cloud_of(points));
    for (int64_t i = 0; i < 140; ++i) expect_none(found, i);
    for (int64_t n : {1, 2}) {
        const Normals few = normals_of(uniform_points(n, 0, 1));
        for (int64_t i = 0; i < n; ++i) expect_none(few, i);
    }
    EXPECT_EQ(normals_of(Array<float, 2>({0, 3})).normals.size(0), 0);
}

TEST_P(GeometryNormals, NonFinitePointsAreNobodysNeighbours) {
    Array<float, 2> points = uniform_points(500, 0, 1, 9);
    for (int64_t i = 0; i < 500; ++i) points.data()[3 * i + 2] = 0.25f;  // a plane
    for (int64_t i = 0; i < 500; i += 7) points.data()[3 * i + i % 3] = i % 2 ? NAN : -kInfinity;
    const Normals found = normals_of(points);
    for (int64_t i = 0; i < 500; ++i) {
        if (i % 7 == 0)
            expect_none(found, i);
        else
            EXPECT_EQ(found.at(i), Eigen::Vector3d(0, 0, 1)) << i;
    }
    for (float& x : points.span()) x = NAN;
    const Normals none = normals_of(points);
    for (int64_t i = 0; i < 500; ++i) expect_none(none, i);
}

TEST_P(GeometryNormals, RadiusLeavesOutWhatIsBeyond) {
    // A plane of spacing 1, and a second at height 3: sixteen neighbours see both, those within 1.5 one alone.
    std::vector<Eigen::Vector3d> points;
    for (int i = 0; i < 200; ++i) points.push_back({i % 20 * 1.0, i / 20 * 1.0, 0});
    for (int i = 0; i < 200; ++i) points.push_back({i % 20 * 1.0, i / 20 * 1.0, 3});
    const Normals within = normals_of(cloud_of(points), 64, 1.5f);
    for (int64_t i = 0; i < 400; ++i) EXPECT_EQ(within.at(i), Eigen::Vector3d(0, 0, 1));
    const Normals corner = normals_of(cloud_of(points), 64, 1.0f);  // inclusive: a corner sees two others
    EXPECT_EQ(corner.at(0), Eigen::Vector3d(0, 0, 1));
    expect_none(normals_of(cloud_of(points), 64, 0.99f), 0);
    EXPECT_GT(normals_of(cloud_of(points), 64).curvatures.data()[105], 0.01);
}

TEST_P(GeometryNormals, AnyScale) {
    for (const float scale : {1e-18f, 1e-6f, 1e6f, 1e17f}) {
        Array<float, 2> points = uniform_points(300, -1, 1, 2), scaled = points.clone();
        for (float& x : scaled.span()) x *= scale;
        const Normals found = normals_of(scaled), want = normals_of(points);
        for (int64_t i = 0; i < 300; ++i) EXPECT_LT((found.at(i) - want.at(i)).norm(), 1e-4) << scale;
    }
}

TEST_P(GeometryNormalsOfTwoDevices, CpuAndCudaGiveTheSameBits) {
    Array<float, 2> points = uniform_points(20000, 0, 1, 8);
    for (int64_t i = 0; i < 20000; i += 3) points.data()[3 * i + 2] = 0.5f;
    const Normals there = normals_of(points);
    Array<float, 2> normals({20000, 3});
    Array<float, 1> curvatures({20000});
    geometry::estimate_normals(points.view(), normals.view(), curvatures.view());
    EXPECT_EQ(std::memcmp(normals.data(), there.normals.data(), 20000 * 12), 0);
    EXPECT_EQ(std::memcmp(curvatures.data(), there.curvatures.data(), 20000 * 4), 0);
}

TEST_P(GeometryNormals, TurnTowardsTheViewpoint) {
    const Rng rng(6);
    std::vector<Eigen::Vector3d> points;
    for (uint64_t i = 0; i < 2000; ++i) points.push_back(random_unit(rng, i));
    const Array<float, 2> cloud = cloud_of(points), there = upload(cloud);
    for (const bool inside : {true, false}) {
        Array<float, 2> normals = upload(normals_of(cloud).normals);
        const std::array<double, 3> viewpoint = {inside ? 0.0 : 1e6, 0, 0};
        geometry::orient_towards(there.view(), normals.view(), viewpoint);
        const Array<float, 2> turned = download(normals);
        for (int64_t i = 0; i < 2000; ++i) {
            const Eigen::Vector3d to = Eigen::Vector3d(viewpoint[0], 0, 0) - point_of(cloud, i);
            EXPECT_GE(point_of(turned, i).dot(to), 0) << i;
        }
    }
    // At right angles, without length and without a place: nothing changes.
    const Array<float, 2> odd = upload(cloud_of({{0, 0, 0}, {0, 0, 0}, {NAN, 0, 0}}));
    Array<float, 2> kept = upload(cloud_of({{-1, 0, 0}, {0, 0, 0}, {1, 0, 0}}));
    geometry::orient_towards(odd.view(), kept.view(), {0, 5, 0});
    const Array<float, 2> after = download(kept);
    EXPECT_EQ(after.data()[0], -1);
    EXPECT_FALSE(std::signbit(after.data()[3]));
    EXPECT_EQ(after.data()[6], 1);
}

TEST_P(GeometryNormals, TakeRowsWithGaps) {
    const Array<float, 2> points = uniform_points(400, 0, 1, 3);
    Array<float, 2> wide({400, 5});
    for (int64_t i = 0; i < 400; ++i) std::copy_n(points.data() + 3 * i, 3, wide.data() + 5 * i);
    const Array<float, 2> there = upload(wide);
    Array<float, 2> normals({400, 3}, device());
    geometry::estimate_normals(View<const float, 2>(there.data(), {400, 3}, {5, 1}, device()), normals.view(), {});
    const Array<float, 2> found = download(normals), want = normals_of(points).normals;
    EXPECT_EQ(std::memcmp(found.data(), want.data(), 400 * 12), 0);
}

TEST(GeometryNormalsThreads, DoNotMatter) {
    const Array<float, 2> points = uniform_points(5000, 0, 1);
    expect_same_on_threads([&] {
        Array<float, 2> normals({5000, 3}), curvatures({5000, 1});
        geometry::estimate_normals(points.view(), normals.view(), View<float, 1>(curvatures.data(), {5000}));
        std::vector<Array<float, 2>> out;
        out.push_back(std::move(normals));
        out.push_back(std::move(curvatures));
        return out;
    });
}

TEST(GeometryNormalsEigen, BothWaysAgreeAndJacobiIsRightWhereEigenvaluesMeet) {
    const Rng rng(12);
    for (uint64_t i = 0; i < 3000; ++i) {
        // Eigenvalues from equal to far apart, in random directions.
        Eigen::Matrix3d turn;
        turn.col(0) = random_unit(rng, 3 * i);
        turn.col(1) = turn.col(0).cross(random_unit(rng, 3 * i + 1)).normalized();
        turn.col(2) = turn.col(0).cross(turn.col(1));
        const Eigen::Vector3d values(std::pow(10.0, -12 * rng.uniform(7 * i + 100000)),
                                     std::pow(10.0, -4 * rng.uniform(7 * i + 1)), 1);
        const Eigen::Matrix3d m = turn * values.asDiagonal() * turn.transpose();
        const geometry::Symmetric3 symmetric = {m(0, 0), m(0, 1), m(0, 2), m(1, 1), m(1, 2), m(2, 2)};
        const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> solver(m);
        for (const auto& found :
             {geometry::least_direction(symmetric), geometry::detail::least_by_rotations(symmetric)}) {
            ASSERT_TRUE(found.exists);
            const Eigen::Vector3d v(found.x, found.y, found.z);
            const double least = solver.eigenvalues()[0], gap = solver.eigenvalues()[1] - least;
            EXPECT_NEAR(v.norm(), 1, 1e-14);
            EXPECT_LT((m * v - least * v).norm(), 1e-14) << values.transpose();
            EXPECT_LT(v.cross(solver.eigenvectors().col(0)).norm(), 1e-14 / gap) << values.transpose();
            EXPECT_NEAR(found.share, std::max(0.0, least) / solver.eigenvalues().sum(), 1e-14);
        }
    }
    EXPECT_TRUE(geometry::least_direction({1.0, 0.0, 0.0, 1.0, 0.0, 1.0}).exists);   // any direction will do
    EXPECT_FALSE(geometry::least_direction({1.0, 0.0, 0.0, 0.0, 0.0, 0.0}).exists);  // a line
    EXPECT_FALSE(geometry::least_direction({}).exists);                              // a point
}

TEST(GeometryNormalsErrors, NameTheFunctionAndWhatIsWrong) {
    const Array<float, 2> points = uniform_points(10, 0, 1);
    Array<float, 2> normals({10, 3}), short_normals({9, 3});
    Array<float, 1> curvatures({9});
    using geometry::estimate_normals;
    EXPECT_EQ(bad_argument_of([&] { estimate_normals(points.view(), normals.view(), {}, 2); }),
              "estimate_normals: k must be 3 to 128, got 2");
    EXPECT_EQ(bad_argument_of([&] { estimate_normals(points.view(), normals.view(), {}, 129); }),
              "estimate_normals: k must be 3 to 128, got 129");
    EXPECT_EQ(bad_argument_of([&] { estimate_normals(points.view(), normals.view(), {}, 16, 0); }),
              "estimate_normals: the radius must be above 0, got 0");
    EXPECT_EQ(bad_argument_of([&] { estimate_normals(points.view(), normals.view(), {}, 16, NAN); }),
              "estimate_normals: the radius must be above 0, got nan");
    EXPECT_EQ(bad_argument_of([&] { estimate_normals(points.view(), short_normals.view(), {}); }),
              "estimate_normals: normals must be [10, 3], got [9, 3]");
    EXPECT_EQ(bad_argument_of([&] { estimate_normals(points.view(), normals.view(), curvatures.view()); }),
              "estimate_normals: curvatures must be [10], got [9]");
    EXPECT_EQ(bad_argument_of([&] {
                  estimate_normals(View<const float, 2>(points.data(), {10, 2}), normals.view(), {});
              }),
              "estimate_normals: points must be [n, 3], got [10, 2]");
    EXPECT_EQ(bad_argument_of([&] { geometry::orient_towards(points.view(), short_normals.view(), {}); }),
              "orient_towards: normals must be [10, 3], got [9, 3]");
    EXPECT_EQ(bad_argument_of([&] {
                  geometry::orient_towards(points.view(), normals.view(), {0, NAN, 0});
              }),
              "orient_towards: the viewpoint is not finite");
}

}  // namespace
}  // namespace stipple::test
