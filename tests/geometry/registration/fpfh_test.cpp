#include "stipple/geometry/fpfh.h"

#include <gtest/gtest.h>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/normals.h"
#include "stipple/geometry/registration/descriptor_matches.h"
#include "tests/geometry/registration/shapes.h"

namespace stipple::test {
namespace {

using geometry::fpfh;
using geometry::Vector3;

struct Described {
    PointCloud cloud;
    Array<float, 2> normals;
};
Described described(int64_t n) {
    Described made{lumpy_body(n, 3), Array<float, 2>({n, 3})};
    geometry::estimate_normals(made.cloud.positions.view(), made.normals.view(), {}, 12);
    geometry::orient_consistently(made.cloud.positions.view(), made.normals.view(), 12);
    return made;
}

Vector3 vector_at(const float* v) {
    return {v[0], v[1], v[2]};
}
double along(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Vector3 across(const Vector3& a, const Vector3& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// By the text of the paper, in float64, all pairs.
std::vector<double> slow_fpfh(const Described& scan, double radius) {
    const int64_t n = scan.cloud.size();
    const float *points = scan.cloud.positions.data(), *normals = scan.normals.data();
    const auto distance = [&](int64_t i, int64_t j) {
        double sum = 0;
        for (int axis = 0; axis < 3; ++axis) sum += std::pow(double{points[3 * i + axis]} - points[3 * j + axis], 2);
        return std::sqrt(sum);
    };
    const auto spread = [](std::vector<double>& histogram, int64_t at) {
        for (int64_t part = 0; part < 3; ++part) {
            double sum = 0;
            for (int64_t b = 0; b < 11; ++b) sum += histogram[at + part * 11 + b];
            for (int64_t b = 0; b < 11 && sum > 0; ++b) histogram[at + part * 11 + b] /= sum;
        }
    };
    const auto bin = [](double share) {
        return std::clamp<int64_t>(static_cast<int64_t>(std::floor(share * 11)), 0, 10);
    };
    std::vector<double> simple(static_cast<size_t>(33 * n), 0), found(static_cast<size_t>(33 * n), 0);
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
            if (i == j || distance(i, j) > radius) continue;
            Vector3 u = vector_at(normals + 3 * i), other = vector_at(normals + 3 * j), line;
            for (int axis = 0; axis < 3; ++axis)
                line[axis] = (double{points[3 * j + axis]} - points[3 * i + axis]) / distance(i, j);
            if (std::abs(along(u, line)) < std::abs(along(other, line))) {
                std::swap(u, other);
                for (double& number : line) number = -number;
            }
            Vector3 v = across(line, u);
            const double length = std::sqrt(along(v, v));
            for (double& number : v) number /= length;
            const Vector3 w = across(u, v);
            simple[33 * i + bin((along(v, other) + 1) / 2)] += 1;
            simple[33 * i + 11 + bin((along(u, line) + 1) / 2)] += 1;
            simple[33 * i + 22 + bin((std::atan2(along(w, other), along(u, other)) + M_PI) / (2 * M_PI))] += 1;
        }
        spread(simple, 33 * i);
    }
    for (int64_t i = 0; i < n; ++i) {
        double weights = 0;
        for (int64_t j = 0; j < n; ++j) {
            if (i == j || distance(i, j) > radius) continue;
            weights += 1 / distance(i, j);
            for (int64_t b = 0; b < 33; ++b) found[33 * i + b] += simple[33 * j + b] / distance(i, j);
        }
        for (int64_t b = 0; b < 33 && weights > 0; ++b)
            found[33 * i + b] = simple[33 * i + b] + found[33 * i + b] / weights;
        spread(found, 33 * i);
    }
    return found;
}

TEST(GeometryFpfh, IsThatOfThePaper) {
    const Described scan = described(300);
    const Array<float, 2> fast = fpfh(scan.cloud.positions.view(), scan.normals.view(), 0.5);
    const std::vector<double> slow = slow_fpfh(scan, 0.5);
    int64_t off = 0;
    // A number at the border of two bins may fall into either by rounding: few may differ, and by little.
    for (int64_t i = 0; i < 300 * 33; ++i) {
        off += std::abs(fast.data()[i] - slow[i]) > 1e-4;
        EXPECT_NEAR(fast.data()[i], slow[i], 0.05) << i;
    }
    EXPECT_LT(off, 100);
}

TEST(GeometryFpfh, StaysUnderMotionAndReversesWithTheNormals) {
    const Described scan = described(2000);
    const geometry::RigidTransform pose = any_pose(4, 3);
    const PointCloud moved = geometry::transformed(scan.cloud, pose);
    Array<float, 2> turned = scan.normals.clone(), reversed = scan.normals.clone();
    for (int64_t i = 0; i < 2000; ++i) {
        const Vector3 v = pose.rotate(vector_at(scan.normals.data() + 3 * i));
        for (int axis = 0; axis < 3; ++axis) {
            turned.data()[3 * i + axis] = static_cast<float>(v[axis]);
            reversed.data()[3 * i + axis] = -scan.normals.data()[3 * i + axis];
        }
    }
    const Array<float, 2> here = fpfh(scan.cloud.positions.view(), scan.normals.view(), 0.3),
                          there = fpfh(moved.positions.view(), turned.view(), 0.3),
                          round = fpfh(scan.cloud.positions.view(), reversed.view(), 0.3),
                          back = geometry::fpfh_reversed(round.view());
    double moved_off = 0, round_off = 0;
    for (int64_t i = 0; i < here.elements(); ++i) {
        moved_off += std::abs(here.data()[i] - there.data()[i]) / 2000;
        round_off += std::abs(here.data()[i] - back.data()[i]) / 2000;
    }
    EXPECT_LT(moved_off, 0.01);  // of 3 for each point
    EXPECT_LT(round_off, 0.01);
}

TEST(GeometryFpfh, NothingIsMadeOfNothing) {
    Array<float, 2> points({4, 3}), normals({4, 3});
    std::fill_n(points.data(), 12, 0.0f);
    std::fill_n(normals.data(), 12, 0.0f);
    points.data()[3] = 1;
    points.data()[6] = NAN;
    normals.data()[2] = normals.data()[8] = 1;
    const Array<float, 2> found = fpfh(points.view(), normals.view(), 2);
    for (int64_t i = 0; i < found.elements(); ++i) EXPECT_EQ(found.data()[i], 0);
    EXPECT_EQ(fpfh(View<const float, 2>(nullptr, {0, 3}), View<const float, 2>(nullptr, {0, 3}), 1).size(0), 0);
    EXPECT_THROW(fpfh(points.view(), normals.view(), 0), Error);
    EXPECT_THROW(fpfh(points.view(), normals.view(), NAN), Error);
    EXPECT_THROW(fpfh(points.view(), View<const float, 2>(nullptr, {0, 3}), 1), Error);
}

TEST(GeometryDescriptorMatches, AreThoseOfASlowSearch) {
    const Rng rng(9);
    Array<float, 2> a({70, 5}), b({90, 5});
    for (int64_t i = 0; i < a.elements(); ++i) a.data()[i] = rng.uniform(static_cast<uint64_t>(i));
    for (int64_t i = 0; i < b.elements(); ++i) b.data()[i] = rng.uniform(static_cast<uint64_t>(1000 + i));
    std::fill_n(a.data() + 5 * 7, 5, 0.0f);  // no descriptor
    const auto distance = [&](int64_t i, int64_t j) {
        double sum = 0;
        for (int c = 0; c < 5; ++c)
            sum += std::pow(std::sqrt(double{a.data()[5 * i + c]}) - std::sqrt(double{b.data()[5 * j + c]}), 2);
        return sum;
    };
    const std::vector<geometry::Match> matches = geometry::match_descriptors(a.view(), b.view(), 1000);
    std::vector<int64_t> of_source(70, 0), of_target(90, 0);
    bool was_mutual = true;
    for (const geometry::Match& match : matches) {
        bool best_forth = true, best_back = true;
        for (int64_t j = 0; j < 90; ++j)
            best_forth &= distance(match.source, j) >= distance(match.source, match.target);
        for (int64_t i = 0; i < 70; ++i)
            best_back &= i == 7 || distance(i, match.target) >= distance(match.source, match.target);
        EXPECT_TRUE(best_forth || best_back);
        EXPECT_EQ(match.is_mutual, best_forth && best_back);
        EXPECT_TRUE(was_mutual || !match.is_mutual) << "mutual ones come first";
        was_mutual = match.is_mutual;
        of_source[match.source] += best_forth;
        of_target[match.target] += best_back;
    }
    for (int64_t i = 0; i < 70; ++i) EXPECT_EQ(of_source[i], i == 7 ? 0 : 1) << i;
    for (int64_t j = 0; j < 90; ++j) EXPECT_EQ(of_target[j], 1) << j;
    EXPECT_EQ(geometry::match_descriptors(a.view(), b.view(), 10).size(), 10u);
}

}  // namespace
}  // namespace stipple::test
