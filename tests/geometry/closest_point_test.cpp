#include "stipple/geometry/closest_point.h"

#include <cmath>

#include "stipple/geometry/mesh_tree.h"
#include "tests/geometry/geometry.h"

namespace stipple::test {
namespace {

using geometry::ClosestPoints;
using geometry::MeshIndex;

struct Found {
    Array<float, 1> distances;
    Array<int32_t, 1> faces;
    Array<float, 2> barycentrics, points;
};

Found find(const MeshIndex& index, const Array<float, 2>& queries) {
    const int64_t m = queries.size(0);
    const Device device = index.device();
    Found found{Array<float, 1>({m}, device), Array<int32_t, 1>({m}, device), Array<float, 2>({m, 3}, device),
                Array<float, 2>({m, 3}, device)};
    geometry::closest_point(
        index, queries.view(),
        {found.distances.view(), found.faces.view(), found.barycentrics.view(), found.points.view()});
    return {download(found.distances), download(found.faces), download(found.barycentrics), download(found.points)};
}

using Point = std::array<long double, 3>;

long double dot(const Point& a, const Point& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Point minus(const Point& a, const Point& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

long double segment_distance(const Point& p, const Point& a, const Point& b) {
    const Point ab = minus(b, a), ap = minus(p, a);
    const long double length_sq = dot(ab, ab);
    const long double s = length_sq > 0 ? std::clamp(dot(ap, ab) / length_sq, 0.0L, 1.0L) : 0;
    const Point off = {ap[0] - s * ab[0], ap[1] - s * ab[1], ap[2] - s * ab[2]};
    return std::sqrt(dot(off, off));
}

/// By another way than the library's: the distance to the plane where the foot has positive weights (the solution of
/// the normal equations), else to the three edges.
long double triangle_distance(const Point& p, const std::array<Point, 3>& corner) {
    const auto& [a, b, c] = corner;
    long double best =
        std::min(segment_distance(p, a, b), std::min(segment_distance(p, b, c), segment_distance(p, c, a)));
    const Point e = minus(b, a), f = minus(c, a), q = minus(p, a);
    const long double ee = dot(e, e), ef = dot(e, f), ff = dot(f, f), eq = dot(e, q), fq = dot(f, q);
    const long double determinant = ee * ff - ef * ef;
    if (determinant > 0) {
        const long double v = (ff * eq - ef * fq) / determinant, w = (ee * fq - ef * eq) / determinant;
        if (v >= 0 && w >= 0 && v + w <= 1) {
            const Point off = {q[0] - v * e[0] - w * f[0], q[1] - v * e[1] - w * f[1], q[2] - v * e[2] - w * f[2]};
            best = std::min(best, std::sqrt(dot(off, off)));
        }
    }
    return best;
}

std::array<Point, 3> corners_of(const Mesh& mesh, int64_t face) {
    std::array<Point, 3> corner;
    for (int k = 0; k < 3; ++k) {
        const float* p = mesh.vertices.positions.data() + 3 * int64_t{mesh.triangles.data()[3 * face + k]};
        corner[k] = {p[0], p[1], p[2]};
    }
    return corner;
}

long double mesh_distance(const Mesh& mesh, const float* query) {
    long double best = std::numeric_limits<long double>::infinity();
    for (int64_t face = 0; face < mesh.faces(); ++face)
        best = std::min(best, triangle_distance({query[0], query[1], query[2]}, corners_of(mesh, face)));
    return best;
}

/// Every number of a result against the definition.
void expect_right(const Mesh& mesh, const Array<float, 2>& queries, const Found& found) {
    float size = 0;
    for (const float x : mesh.vertices.positions.span()) size = std::max(size, std::abs(x));
    for (int64_t i = 0; i < queries.size(0); ++i) {
        SCOPED_TRACE(testing::Message() << "query " << i);
        const float* q = queries.data() + 3 * i;
        const auto distance = static_cast<double>(mesh_distance(mesh, q));
        ASSERT_NEAR(found.distances.data()[i], distance, 1e-6 * distance + 1e-7 * 1e-6 * size);
        const int32_t face = found.faces.data()[i];
        ASSERT_TRUE(face >= 0 && face < mesh.faces());
        const auto corner = corners_of(mesh, face);
        EXPECT_NEAR(found.distances.data()[i], static_cast<double>(triangle_distance({q[0], q[1], q[2]}, corner)),
                    1e-6 * distance + 1e-13 * size);
        const float* weight = found.barycentrics.data() + 3 * i;
        double sum = 0;
        for (int k = 0; k < 3; ++k) {
            EXPECT_TRUE(weight[k] >= 0 && weight[k] <= 1) << weight[k];
            sum += weight[k];
        }
        EXPECT_NEAR(sum, 1, 2e-7);
        for (int axis = 0; axis < 3; ++axis) {
            const long double expected =
                weight[0] * corner[0][axis] + weight[1] * corner[1][axis] + weight[2] * corner[2][axis];
            EXPECT_NEAR(found.points.data()[3 * i + axis], static_cast<double>(expected), 4e-7 * size);
        }
        if (testing::Test::HasFailure()) return;
    }
}

class ClosestPoint : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(ClosestPoint);

TEST_P(ClosestPoint, AgreesWithTheDefinition) {
    const std::pair<const char*, Mesh> meshes[] = {
        {"cube", cube()},      {"sphere", sphere(3)},  {"torus", wavy_torus(40, 24)}, {"soup", soup(500)},
        {"one face", soup(1)}, {"two faces", soup(2)}, {"nine faces", soup(9)}};
    for (const auto& [name, mesh] : meshes) {
        SCOPED_TRACE(name);
        const MeshIndex index(upload(mesh));
        EXPECT_EQ(index.faces(), mesh.faces());
        for (const int64_t m : {0, 1, 2, 301}) {
            const Array<float, 2> queries = uniform_points(m, -1.5f, 1.5f);
            expect_right(mesh, queries, find(index, upload(queries)));
        }
    }
}

}  // namespace
}  // namespace stipple::test
