#include "stipple/geometry/winding_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "stipple/core/rng.h"
#include "stipple/geometry/winding/terms.h"
#include "tests/geometry/geometry.h"
#include "tests/support/not_finite.h"

namespace stipple::test {
namespace {

using geometry::point_areas;
using geometry::winding_number;
using geometry::WindingIndex;

constexpr double kPi = 3.14159265358979323846;

class GeometryWinding : public OnDevice {
protected:
    Array<float, 1> winding(const WindingIndex& index, const Array<float, 2>& queries, float accuracy = 2) const {
        const Array<float, 2> on_device = upload(queries);
        Array<float, 1> result({queries.size(0)}, device());
        winding_number(index, on_device.view(), result.view(), accuracy);
        return download(result);
    }
    Array<float, 1> winding(const Mesh& mesh, const Array<float, 2>& queries, float accuracy = 2) const {
        const Mesh on_device = upload(mesh);
        return winding(WindingIndex(on_device), queries, accuracy);
    }
};
STIPPLE_ON_EVERY_DEVICE(GeometryWinding);
class GeometryWindingOfTwoDevices : public GeometryWinding {};
STIPPLE_ON_EVERY_GPU(GeometryWindingOfTwoDevices);

/// The sum over all triangles, in double.
double exact_winding(const Mesh& mesh, const float* q) {
    double sum = 0;
    for (int64_t face = 0; face < mesh.faces(); ++face) {
        double v[3][3], length[3];
        for (int i = 0; i < 3; ++i) {
            const float* p = mesh.vertices.positions.data() + 3 * int64_t{mesh.triangles.data()[3 * face + i]};
            for (int axis = 0; axis < 3; ++axis) v[i][axis] = double{p[axis]} - q[axis];
            length[i] = std::hypot(v[i][0], v[i][1], v[i][2]);
        }
        const auto dot = [&](int a, int b) { return v[a][0] * v[b][0] + v[a][1] * v[b][1] + v[a][2] * v[b][2]; };
        const double volume = v[0][0] * (v[1][1] * v[2][2] - v[1][2] * v[2][1]) +
                              v[0][1] * (v[1][2] * v[2][0] - v[1][0] * v[2][2]) +
                              v[0][2] * (v[1][0] * v[2][1] - v[1][1] * v[2][0]);
        sum += 2 * std::atan2(volume, length[0] * length[1] * length[2] + dot(0, 1) * length[2] +
                                          dot(1, 2) * length[0] + dot(2, 0) * length[1]);
    }
    return sum / (4 * kPi);
}

Array<float, 2> rows_of(const std::vector<std::array<float, 3>>& rows) {
    Array<float, 2> array({static_cast<int64_t>(rows.size()), 3});
    for (size_t i = 0; i < rows.size(); ++i) std::copy(rows[i].begin(), rows[i].end(), array.data() + 3 * i);
    return array;
}

Mesh without_some_faces(const Mesh& mesh, int every) {
    std::vector<int32_t> kept;
    for (int64_t i = 0; i < mesh.faces(); ++i) {
        if (i / 16 % every != 0)
            kept.insert(kept.end(), mesh.triangles.data() + 3 * i, mesh.triangles.data() + 3 * i + 3);
    }
    const auto positions = mesh.vertices.positions.span();
    return make_mesh({positions.begin(), positions.end()}, kept);
}

Mesh with_flipped_faces(const Mesh& mesh, int every) {
    Mesh copy = mesh.clone();
    for (int64_t i = 0; i < copy.faces(); i += every)
        std::swap(copy.triangles.data()[3 * i], copy.triangles.data()[3 * i + 1]);
    return copy;
}

struct Shape {
    std::string name;
    Mesh mesh;
};

std::vector<Shape> shapes() {
    std::vector<Shape> all;
    all.push_back({"cube", cube()});
    all.push_back({"sphere", sphere(4)});
    all.push_back({"torus", wavy_torus(40, 60)});
    all.push_back({"open", without_some_faces(wavy_torus(40, 60), 5)});
    all.push_back({"flipped", with_flipped_faces(wavy_torus(40, 60), 7)});
    all.push_back({"soup", soup(1000)});
    all.push_back({"one face", soup(1)});
    all.push_back({"nine faces", soup(9)});
    all.push_back({"large", scaled(sphere(3), 1e15f)});
    all.push_back({"small", scaled(sphere(3), 1e-15f)});
    return all;
}

double winding_extent(const Mesh& mesh) {
    double extent = 0;
    for (float x : mesh.vertices.positions.span()) extent = std::max(extent, std::abs(double{x}));
    return extent;
}

TEST_P(GeometryWinding, EqualsTheSumOverAllTriangles) {
    for (const auto& [name, mesh] : shapes()) {
        const auto reach = static_cast<float>(1.5 * winding_extent(mesh));
        const Array<float, 2> queries = uniform_points(300, -reach, reach);
        const Mesh on_device = upload(mesh);
        const WindingIndex index(on_device);
        const Array<float, 1> exact = winding(index, queries, kInfinity), fast = winding(index, queries),
                              precise = winding(index, queries, 8);
        double worst_fast = 0;
        for (int64_t i = 0; i < queries.size(0); ++i) {
            const double truth = exact_winding(mesh, queries.data() + 3 * i);
            EXPECT_NEAR(exact.data()[i], truth, 2e-5) << name << " query " << i;  // float32 sums
            EXPECT_NEAR(precise.data()[i], truth, 3e-5) << name << " query " << i;
            worst_fast = std::max(worst_fast, std::abs(fast.data()[i] - truth));
        }
        EXPECT_LT(worst_fast, 1e-2) << name;  // what an expansion of order 2 leaves at twice the radius
    }
}

// Moments that were wrong or missing would leave a slower fall: 4 times without the last order.
TEST_P(GeometryWinding, TwiceTheAccuracyLeavesLessThanATenthOfTheError) {
    const Mesh mesh = without_some_faces(wavy_torus(60, 60), 4);
    const Array<float, 2> queries = uniform_points(400, -1.4f, 1.4f);
    const auto mean_error = [&](float accuracy) {
        const Array<float, 1> found = winding(mesh, queries, accuracy);
        double sum = 0;
        for (int64_t i = 0; i < 400; ++i)
            sum += std::abs(found.data()[i] - exact_winding(mesh, queries.data() + 3 * i));
        return sum / 400;
    };
    const double two = mean_error(2), four = mean_error(4);
    EXPECT_LT(two, 2e-3);
    EXPECT_LT(four, two / 10);
}

TEST_P(GeometryWinding, InsideIsOneAndOutsideIsNothing) {
    const Array<float, 2> queries = uniform_points(500, -1.2f, 1.2f);
    const Array<float, 1> found = winding(sphere(5), queries);
    for (int64_t i = 0; i < queries.size(0); ++i) {
        const float* q = queries.data() + 3 * i;
        const float r = std::hypot(q[0], q[1], q[2]);
        if (std::abs(r - 1) > 0.01f) {
            EXPECT_NEAR(found.data()[i], r < 1 ? 1 : 0, 5e-3) << i;
        }
    }
}

TEST_P(GeometryWinding, DuplicateFacesCountTwiceAndOppositeOnesNothing) {
    const Mesh one = sphere(3);
    std::vector<int32_t> twice(one.triangles.data(), one.triangles.data() + 3 * one.faces()), cancelled = twice;
    for (int64_t i = 0; i < one.faces(); ++i) {
        const int32_t* t = one.triangles.data() + 3 * i;
        twice.insert(twice.end(), {t[0], t[1], t[2]});
        cancelled.insert(cancelled.end(), {t[0], t[2], t[1]});
    }
    const std::vector<float> positions(one.vertices.positions.span().begin(), one.vertices.positions.span().end());
    const Array<float, 2> queries = uniform_points(200, -0.5f, 0.5f);
    const Array<float, 1> two = winding(make_mesh(positions, twice), queries);
    const Array<float, 1> none = winding(make_mesh(positions, cancelled), queries);
    for (int64_t i = 0; i < 200; ++i) {
        EXPECT_NEAR(two.data()[i], 2, 1e-2);
        EXPECT_NEAR(none.data()[i], 0, 1e-5);
    }
}

TEST_P(GeometryWinding, OnTheSurfaceItIsTheMeanOfBothSides) {
    // A face, a face's diagonal, an edge and a corner of the unit cube: a half, a half, a quarter, an eighth of space.
    const Array<float, 1> found = winding(
        cube(), rows_of({{0.25f, 0.5f, 0}, {0.5f, 0.5f, 1}, {0.5f, 0, 0}, {1, 1, 0.25f}, {0, 0, 0}, {1, 1, 1}}));
    const float expected[] = {0.5f, 0.5f, 0.25f, 0.25f, 0.125f, 0.125f};
    for (int i = 0; i < 6; ++i) EXPECT_NEAR(found.data()[i], expected[i], 1e-5) << i;

    const Mesh torus = wavy_torus(50, 50);
    for (float accuracy : {2.0f, kInfinity}) {
        const Array<float, 1> at_vertices = winding(torus, torus.vertices.positions, accuracy);
        for (float w : at_vertices.span()) {
            EXPECT_TRUE(std::isfinite(w));
            EXPECT_NEAR(w, 0.5, 0.2);
        }
    }
}

TEST_P(GeometryWinding, FarQueriesGoToNothing) {
    const Array<float, 1> found =
        winding(sphere(3), rows_of({{10, 0, 0}, {1e6f, 1e6f, 0}, {0, -1e20f, 0}, {3e38f, 3e38f, -3e38f}}));
    for (float w : found.span()) EXPECT_NEAR(w, 0, 1e-6);
    const Array<float, 1> small =
        winding(scaled(sphere(3), 1e-20f), rows_of({{0, 0, 0}, {3e38f, -3e38f, 0}, {1, 0, 0}}));
    EXPECT_NEAR(small.data()[0], 1, 5e-3);
    EXPECT_EQ(small.data()[1], 0);
    EXPECT_NEAR(small.data()[2], 0, 1e-6);
}

TEST_P(GeometryWinding, NonFiniteQueriesAndEmptyMeshes) {
    const Array<float, 2> queries = rows_of({{kNan, 0, 0}, {0, kInfinity, 0}, {0, 0, -kInfinity}, {0.5f, 0.5f, 0.5f}});
    const Array<float, 1> found = winding(cube(), queries);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(found.data()[i]));
    EXPECT_NEAR(found.data()[3], 1, 1e-5);
    const Mesh empty = make_mesh({}, {});
    const Array<float, 1> none = winding(empty, queries);
    EXPECT_TRUE(std::isnan(none.data()[0]));
    EXPECT_EQ(none.data()[3], 0);
    EXPECT_EQ(winding(cube(), Array<float, 2>({0, 3})).elements(), 0);
    const Mesh point = make_mesh({1, 1, 1}, {0, 0, 0});
    EXPECT_EQ(winding(point, queries).data()[3], 0);
}

/// Points on a unit sphere along a spiral, evenly spread.
struct Cloud {
    Array<float, 2> points, normals;
    Array<float, 1> areas;
};
Cloud sphere_cloud(int64_t n) {
    Cloud cloud{Array<float, 2>({n, 3}), Array<float, 2>({n, 3}), Array<float, 1>({n})};
    for (int64_t i = 0; i < n; ++i) {
        const double z = 1 - (2 * i + 1.0) / n, angle = i * kPi * (3 - std::sqrt(5.0)), r = std::sqrt(1 - z * z);
        const double p[3] = {r * std::cos(angle), r * std::sin(angle), z};
        for (int axis = 0; axis < 3; ++axis)
            cloud.points.data()[3 * i + axis] = cloud.normals.data()[3 * i + axis] = static_cast<float>(p[axis]);
        cloud.areas.data()[i] = static_cast<float>(4 * kPi / n);
    }
    return cloud;
}

double exact_winding(const Cloud& cloud, const float* q, double softening) {
    double sum = 0;
    for (int64_t i = 0; i < cloud.points.size(0); ++i) {
        double flux = 0, r_sq = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const double d = double{cloud.points.data()[3 * i + axis]} - q[axis];
            flux += d * cloud.normals.data()[3 * i + axis];
            r_sq += d * d;
        }
        const double area = cloud.areas.data()[i], h = softening * std::sqrt(area / kPi), s = r_sq / (h * h);
        const double kernel = s < 1 ? (35 - 42 * s + 15 * s * s) / (8 * h * h * h) : 1 / (r_sq * std::sqrt(r_sq));
        sum += area * flux * kernel;
    }
    return sum / (4 * kPi);
}

TEST_P(GeometryWinding, PointsEqualTheSumOverAllDipoles) {
    const Cloud cloud = sphere_cloud(3000);
    const auto points = upload(cloud.points), normals = upload(cloud.normals);
    const auto areas = upload(cloud.areas);
    const Array<float, 2> queries = uniform_points(400, -1.3f, 1.3f);
    for (float softening : {0.0f, 1.0f, 3.0f}) {
        const WindingIndex index(points.view(), normals.view(), areas.view(), softening);
        const Array<float, 1> exact = winding(index, queries, kInfinity), fast = winding(index, queries, 4);
        for (int64_t i = 0; i < queries.size(0); ++i) {
            const double truth = exact_winding(cloud, queries.data() + 3 * i, softening);
            const double tolerance = 2e-5 * (1 + std::abs(truth));
            EXPECT_NEAR(exact.data()[i], truth, tolerance) << i << " softening " << softening;
            EXPECT_NEAR(fast.data()[i], truth, 1e-3) << i << " softening " << softening;
        }
    }
}

TEST_P(GeometryWinding, PointsTellTheSideThatTheMeshDoes) {
    const Cloud cloud = sphere_cloud(20000);
    const auto points = upload(cloud.points), normals = upload(cloud.normals);
    const auto areas = upload(cloud.areas);
    const WindingIndex index(points.view(), normals.view(), areas.view());
    const Array<float, 2> queries = uniform_points(2000, -1.2f, 1.2f);
    const Array<float, 1> by_points = winding(index, queries), by_mesh = winding(sphere(5), queries);
    const double spacing = std::sqrt(4 * kPi / 20000);
    for (int64_t i = 0; i < queries.size(0); ++i) {
        const float* q = queries.data() + 3 * i;
        if (std::abs(std::hypot(q[0], q[1], q[2]) - 1) > 1.5 * spacing) {
            EXPECT_NEAR(by_points.data()[i], by_mesh.data()[i], 0.02) << i;
        }
    }
    const Array<float, 1> at_points = winding(index, cloud.points);
    for (float w : at_points.span()) EXPECT_NEAR(w, 0.5, 0.1);
}

TEST_P(GeometryWinding, NonFinitePointsAreLeftOut) {
    Cloud cloud = sphere_cloud(100), more = sphere_cloud(103);
    for (int i = 0; i < 103; ++i) {
        const int from = i - (i > 10) - (i > 20) - (i > 30);
        const bool bad = i == 10 || i == 20 || i == 30;
        for (int axis = 0; axis < 3 && !bad; ++axis) {
            more.points.data()[3 * i + axis] = cloud.points.data()[3 * from + axis];
            more.normals.data()[3 * i + axis] = cloud.normals.data()[3 * from + axis];
        }
        more.areas.data()[i] = cloud.areas.data()[0];
    }
    more.points.data()[30] = kInfinity;
    more.normals.data()[61] = kNan;
    more.areas.data()[30] = kNan;
    const Array<float, 2> queries = uniform_points(50, -1.3f, 1.3f);
    const auto index_of = [&](const Cloud& of) {
        const auto points = upload(of.points), normals = upload(of.normals);
        const auto areas = upload(of.areas);
        return WindingIndex(points.view(), normals.view(), areas.view());
    };
    const Array<float, 1> some = winding(index_of(more), queries), all = winding(index_of(cloud), queries);
    for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(some.data()[i], all.data()[i]);
}

TEST_P(GeometryWinding, AreasAreThoseOfASphere) {
    const Cloud cloud = sphere_cloud(5000);
    const auto points = upload(cloud.points);
    Array<float, 1> areas({5000}, device());
    point_areas(points.view(), areas.view());
    double sum = 0;
    const Array<float, 1> found = download(areas);
    for (float area : found.span()) {
        sum += area;
        EXPECT_NEAR(area * 5000 / (4 * kPi), 1, 0.35);
    }
    EXPECT_NEAR(sum / (4 * kPi), 1, 0.1);
}

TEST_P(GeometryWinding, AreasOfFewPoints) {
    const auto areas_of = [&](const Array<float, 2>& host, int k) {
        const auto points = upload(host);
        Array<float, 1> areas({host.size(0)}, device());
        point_areas(points.view(), areas.view(), k);
        const Array<float, 1> found = download(areas);
        return std::vector<float>(found.span().begin(), found.span().end());
    };
    EXPECT_EQ(areas_of(Array<float, 2>({0, 3}), 16), std::vector<float>{});
    EXPECT_EQ(areas_of(rows_of({{1, 2, 3}}), 16), std::vector<float>{0});
    EXPECT_EQ(areas_of(rows_of({{1, 2, 3}, {1, 2, 3}}), 1), (std::vector<float>{0, 0}));
    const std::vector<float> found = areas_of(rows_of({{0, 0, 0}, {1, 0, 0}, {0, 2, 0}, {kNan, 0, 0}}), 16);
    EXPECT_NEAR(found[0], kPi * 4 / 2, 1e-5);
    EXPECT_NEAR(found[1], kPi * 5 / 2, 1e-5);
    EXPECT_EQ(found[3], 0);
}

TEST_P(GeometryWinding, AreasOfAThinWallCountOneSide) {
    constexpr int64_t kPoints = 4000;  // at random on both sides of a unit square
    Array<float, 2> host_points = uniform_points(kPoints, 0, 1), host_normals({kPoints, 3});
    for (int64_t i = 0; i < kPoints; ++i) {
        const float sign = i % 2 == 0 ? 1.0f : -1.0f;
        host_points.data()[3 * i + 2] = 1e-4f * sign;
        const float normal[] = {0, 0, sign};
        std::copy(normal, normal + 3, host_normals.data() + 3 * i);
    }
    const auto points = upload(host_points), normals = upload(host_normals);
    const auto sum_of = [](const Array<float, 1>& areas) {
        const Array<float, 1> found = download(areas);
        return std::accumulate(found.span().begin(), found.span().end(), 0.0);
    };
    Array<float, 1> areas({kPoints}, device());
    point_areas(points.view(), areas.view());
    EXPECT_NEAR(sum_of(areas), 1, 0.1);
    point_areas(points.view(), normals.view(), areas.view());
    EXPECT_NEAR(sum_of(areas), 2, 0.2);
}

TEST_P(GeometryWindingOfTwoDevices, DevicesAgree) {
    const Mesh mesh = without_some_faces(wavy_torus(120, 120), 6);
    const Array<float, 2> queries = uniform_points(20000, -1.4f, 1.4f);
    Array<float, 1> on_cpu({queries.size(0)});
    winding_number(WindingIndex(mesh), queries.view(), on_cpu.view());
    const Array<float, 1> here = winding(mesh, queries);
    for (int64_t i = 0; i < queries.size(0); ++i) EXPECT_NEAR(here.data()[i], on_cpu.data()[i], 1e-5) << i;
}

TEST_P(GeometryWinding, MistakesAreNamed) {
    const Mesh mesh = upload(cube());
    const WindingIndex index(mesh);
    const Array<float, 2> queries({4, 3}, device()), wide({4, 4}, device());
    Array<float, 1> four({4}, device()), three({3}, device());
    EXPECT_EQ(bad_argument_of([&] { winding_number(index, wide.view(), four.view()); }),
              "winding_number: queries must be [n, 3] without gaps, got [4, 4]");
    EXPECT_EQ(bad_argument_of([&] { winding_number(index, queries.view(), three.view()); }),
              "winding_number: winding must be [4], got [3]");
    EXPECT_EQ(bad_argument_of([&] { winding_number(index, queries.view(), four.view(), 0); }),
              "winding_number: the accuracy must be above 0, got 0");
    EXPECT_EQ(bad_argument_of([&] { winding_number(index, queries.view(), four.view(), kNan); }),
              "winding_number: the accuracy must be above 0, got nan");
    EXPECT_EQ(bad_argument_of([&] { WindingIndex(queries.view(), wide.view(), four.view()); }),
              "WindingIndex: normals must be [4, 3], got [4, 4]");
    EXPECT_EQ(bad_argument_of([&] { WindingIndex(queries.view(), queries.view(), three.view()); }),
              "WindingIndex: areas must be [4], got [3]");
    EXPECT_EQ(bad_argument_of([&] { WindingIndex(queries.view(), queries.view(), four.view(), -1); }),
              "WindingIndex: the softening must be at least 0, got -1");
    EXPECT_EQ(bad_argument_of([&] { point_areas(queries.view(), three.view()); }),
              "point_areas: areas must be [4], got [3]");
    EXPECT_EQ(bad_argument_of([&] { point_areas(queries.view(), wide.view(), four.view()); }),
              "point_areas: normals must be [4, 3], got [4, 4]");
    EXPECT_EQ(bad_argument_of([&] { point_areas(queries.view(), four.view(), 0); }),
              "point_areas: k must be 1 to 127, got 0");
    Mesh broken = cube();
    broken.triangles.data()[2] = 8;
    const Mesh broken_there = upload(broken);
    EXPECT_EQ(bad_argument_of([&] { WindingIndex index_of_broken(broken_there); }),
              "WindingIndex: face 0 has vertex 8 of 8");
}

TEST(GeometryWindingCpu, ThreadsDoNotMatter) {
    expect_same_on_threads([] {
        const Mesh mesh = wavy_torus(100, 100);
        const Array<float, 2> queries = uniform_points(5000, -1.3f, 1.3f);
        std::vector<Array<float, 2>> results;
        results.emplace_back(std::array<int64_t, 2>{5000, 1});
        winding_number(WindingIndex(mesh), queries.view(), View<float, 1>(results[0].data(), {5000}));
        return results;
    });
}

TEST(GeometryWindingCpu, TheAngleIsThatOfTheLibrary) {
    EXPECT_EQ(geometry::fast_atan2(0, 0), 0);
    for (int i = -1000; i <= 1000; ++i) {
        const double angle = kPi * i / 1000;
        for (double r : {1e-30, 1e-3, 1.0, 1e30}) {
            const auto y = static_cast<float>(r * std::sin(angle)), x = static_cast<float>(r * std::cos(angle));
            const double truth = std::atan2(y, x);
            EXPECT_NEAR(geometry::fast_atan2(y, x), truth, 3e-7 * std::max(std::abs(truth), 1e-30))
                << angle << " " << r;
        }
    }
}

}  // namespace
}  // namespace stipple::test
