#include "stipple/geometry/closest_point.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "stipple/geometry/query/mesh_tree.h"
#include "stipple/io/format.h"
#include "tests/geometry/geometry.h"
#include "tests/support/allocation.h"
#include "tests/support/not_finite.h"
#include "tests/support/python.h"

namespace stipple::test {
namespace {

using geometry::ClosestPoints;
using geometry::MeshIndex;
using geometry::MeshView;

struct FoundPoints {
    Array<float, 1> distances;
    Array<int32_t, 1> faces;
    Array<float, 2> barycentrics, points;
};

FoundPoints find(const MeshIndex& index, const Array<float, 2>& host_queries) {
    const Device device = index.device();
    const Array<float, 2> queries = host_queries.to(device);
    const int64_t m = queries.size(0);
    FoundPoints found{Array<float, 1>({m}, device), Array<int32_t, 1>({m}, device), Array<float, 2>({m, 3}, device),
                      Array<float, 2>({m, 3}, device)};
    geometry::closest_point(
        index, queries.view(),
        {found.distances.view(), found.faces.view(), found.barycentrics.view(), found.points.view()});
    return {download(found.distances), download(found.faces), download(found.barycentrics), download(found.points)};
}

template <class Real>
using PointOf = std::array<Real, 3>;

template <class Real>
Real dot(const PointOf<Real>& a, const PointOf<Real>& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
template <class Real>
PointOf<Real> minus(const PointOf<Real>& a, const PointOf<Real>& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

template <class Real>
Real segment_distance(const PointOf<Real>& p, const PointOf<Real>& a, const PointOf<Real>& b) {
    const PointOf<Real> ab = minus(b, a), ap = minus(p, a);
    const Real length_sq = dot(ab, ab);
    const Real s = length_sq > 0 ? std::clamp<Real>(dot(ap, ab) / length_sq, 0, 1) : 0;
    const PointOf<Real> off = {ap[0] - s * ab[0], ap[1] - s * ab[1], ap[2] - s * ab[2]};
    return std::sqrt(dot(off, off));
}

/// By another way than the library's: the distance to the plane where the foot has positive weights (the solution of
/// the normal equations), else to the three edges.
template <class Real>
Real face_distance(const Mesh& mesh, int64_t face, const float* query) {
    PointOf<Real> corner[3];
    for (int k = 0; k < 3; ++k) {
        const float* at = mesh.vertices.positions.data() + 3 * int64_t{mesh.triangles.data()[3 * face + k]};
        corner[k] = {at[0], at[1], at[2]};
    }
    const PointOf<Real> p = {query[0], query[1], query[2]};
    const auto& [a, b, c] = corner;
    Real best = std::min(segment_distance(p, a, b), std::min(segment_distance(p, b, c), segment_distance(p, c, a)));
    const PointOf<Real> e = minus(b, a), f = minus(c, a), q = minus(p, a);
    const Real ee = dot(e, e), ef = dot(e, f), ff = dot(f, f), eq = dot(e, q), fq = dot(f, q);
    const Real determinant = ee * ff - ef * ef;
    if (determinant > 0) {
        const Real v = (ff * eq - ef * fq) / determinant, w = (ee * fq - ef * eq) / determinant;
        if (v >= 0 && w >= 0 && v + w <= 1) {
            const PointOf<Real> off = {q[0] - v * e[0] - w * f[0], q[1] - v * e[1] - w * f[1],
                                       q[2] - v * e[2] - w * f[2]};
            best = std::min(best, std::sqrt(dot(off, off)));
        }
    }
    return best;
}

/// Candidates in double, then those that may be the nearest in long double, which slivers need.
double mesh_distance(const Mesh& mesh, const float* query) {
    std::vector<double> rough(static_cast<size_t>(mesh.faces()));
    double least = std::numeric_limits<double>::infinity();
    for (int64_t face = 0; face < mesh.faces(); ++face)
        least = std::min(least, rough[face] = face_distance<double>(mesh, face, query));
    long double best = std::numeric_limits<long double>::infinity();
    for (int64_t face = 0; face < mesh.faces(); ++face) {
        if (rough[face] <= 1.001 * least) best = std::min(best, face_distance<long double>(mesh, face, query));
    }
    return static_cast<double>(best);
}

/// Every number of a result against the definition.
void expect_right(const Mesh& mesh, const Array<float, 2>& queries, const FoundPoints& found) {
    double size = 0;
    for (const float x : mesh.vertices.positions.span()) size = std::max(size, std::abs(double{x}));
    for (int64_t i = 0; i < queries.size(0); ++i) {
        SCOPED_TRACE(testing::Message() << "query " << i);
        const float* q = queries.data() + 3 * i;
        const double distance = mesh_distance(mesh, q), given = found.distances.data()[i];
        // A float's rounding, and that of coordinates of 24 bits in products of 53.
        ASSERT_NEAR(given, distance, 1e-7 * distance + 1e-12 * size);
        const int32_t face = found.faces.data()[i];
        ASSERT_TRUE(face >= 0 && face < mesh.faces());
        ASSERT_NEAR(given, static_cast<double>(face_distance<long double>(mesh, face, q)),
                    1e-7 * distance + 1e-12 * size);
        const float* weight = found.barycentrics.data() + 3 * i;
        double sum = 0;
        for (int k = 0; k < 3; ++k) {
            ASSERT_TRUE(weight[k] >= 0 && weight[k] <= 1) << weight[k];
            sum += weight[k];
        }
        ASSERT_NEAR(sum, 1, 2e-7);
        const float* point = found.points.data() + 3 * i;
        for (int axis = 0; axis < 3; ++axis) {
            double expected = 0;
            for (int k = 0; k < 3; ++k) {
                expected += double{weight[k]} *
                            mesh.vertices.positions.data()[3 * int64_t{mesh.triangles.data()[3 * face + k]} + axis];
            }
            ASSERT_NEAR(point[axis], expected, 4e-7 * size);
        }
        const double x = double{point[0]} - q[0], y = double{point[1]} - q[1], z = double{point[2]} - q[2];
        ASSERT_NEAR(std::sqrt(x * x + y * y + z * z), given, 1e-7 * distance + 2e-7 * size);
    }
}

bool same_bits(const FoundPoints& a, const FoundPoints& b) {
    const auto same = [](const auto& x, const auto& y) {
        return x.elements() == y.elements() &&
               (x.elements() == 0 || std::memcmp(x.data(), y.data(), x.elements() * sizeof(*x.data())) == 0);
    };
    return same(a.distances, b.distances) && same(a.faces, b.faces) && same(a.barycentrics, b.barycentrics) &&
           same(a.points, b.points);
}

class ClosestPoint : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(ClosestPoint);

TEST_P(ClosestPoint, AgreesWithTheDefinition) {
    const std::pair<const char*, Mesh> meshes[] = {
        {"cube", cube()},    {"sphere", sphere(3)},  {"torus", wavy_torus(40, 24)},
        {"soup", soup(500)}, {"one face", soup(1)},  {"four", soup(4)},
        {"five", soup(5)},   {"seventeen", soup(17)}};
    for (const auto& [name, mesh] : meshes) {
        SCOPED_TRACE(name);
        const MeshIndex index(upload(mesh));
        EXPECT_EQ(index.faces(), mesh.faces());
        EXPECT_EQ(index.device(), device());
        for (const int64_t m : {0, 1, 2, 301}) {
            const Array<float, 2> queries = uniform_points(m, -1.5f, 1.5f);
            ASSERT_NO_FATAL_FAILURE(expect_right(mesh, queries, find(index, queries)));
        }
    }
}

TEST_P(ClosestPoint, HugeAndTinyMeshesAreMeasuredAsWell) {
    for (const float factor : {1e-18f, 1e-11f, 1e-6f, 1e6f, 1e11f, 1e13f, 1e18f}) {
        SCOPED_TRACE(factor);
        const Mesh mesh = scaled(soup(200), factor);
        const Array<float, 2> queries = uniform_points(101, -0.5f * factor, 1.5f * factor);
        ASSERT_NO_FATAL_FAILURE(expect_right(mesh, queries, find(MeshIndex(upload(mesh)), queries)));
    }
}

TEST_P(ClosestPoint, FarQueriesAndFarMeshes) {
    Mesh mesh = sphere(2);
    Array<float, 2> queries = uniform_points(50, -1e7f, 1e7f);
    ASSERT_NO_FATAL_FAILURE(expect_right(mesh, queries, find(MeshIndex(upload(mesh)), queries)));
    for (float& x : mesh.vertices.positions.span()) x += 5e4f;  // vertices on a grid of 2^-8: slivers, points
    queries = uniform_points(200, 5e4f - 2, 5e4f + 2);
    ASSERT_NO_FATAL_FAILURE(expect_right(mesh, queries, find(MeshIndex(upload(mesh)), queries)));
}

TEST_P(ClosestPoint, OfFacesEquallyNearTheLowestIsTaken) {
    // Every face of a cube four times over, in four orders: queries are as near to copies, and on edges to neighbours.
    const Mesh once = cube();
    std::vector<float> positions(once.vertices.positions.span().begin(), once.vertices.positions.span().end());
    std::vector<int32_t> triangles;
    for (int copy = 0; copy < 4; ++copy) {
        for (int face = 0; face < 12; ++face) {
            const int from = (face * 5 + copy) % 12;
            for (int k = 0; k < 3; ++k) triangles.push_back(once.triangles.data()[3 * from + (k + copy) % 3]);
        }
    }
    const Mesh mesh = make_mesh(positions, triangles);
    Array<float, 2> queries({216, 3});
    for (int i = 0; i < 216; ++i) {  // a grid of halves: faces, edges, corners, inside
        queries.data()[3 * i] = 0.5f * static_cast<float>(i % 6) - 0.5f;
        queries.data()[3 * i + 1] = 0.5f * static_cast<float>(i / 6 % 6) - 0.5f;
        queries.data()[3 * i + 2] = 0.5f * static_cast<float>(i / 36) - 0.5f;
    }
    const FoundPoints found = find(MeshIndex(upload(mesh)), queries);
    for (int64_t i = 0; i < 216; ++i) {
        const float* q = queries.data() + 3 * i;
        int32_t lowest = -1;
        double best = 1e9;
        for (int32_t face = 0; face < 48; ++face) {  // numbers are halves: distances are exact
            const double distance = face_distance<double>(mesh, face, q);
            if (distance < best) best = distance, lowest = face;
        }
        EXPECT_EQ(found.faces.data()[i], lowest) << "query " << q[0] << " " << q[1] << " " << q[2];
        EXPECT_EQ(found.distances.data()[i], static_cast<float>(best));
    }
}

TEST_P(ClosestPoint, QueriesThatAreNowhereFindNothing) {
    Array<float, 2> queries = uniform_points(6000, -1, 1);  // enough to be sorted on any device
    for (int64_t i = 0; i < 6000; i += 5)
        queries.data()[3 * i + i % 3] = i % 2 ? kNan : (i % 4 ? kInfinity : -kInfinity);
    const Mesh mesh = sphere(2);
    const FoundPoints found = find(MeshIndex(upload(mesh)), queries);
    for (int64_t i = 0; i < 6000; ++i) {
        const float* weights = found.barycentrics.data() + 3 * i;
        if (i % 5 != 0) {
            EXPECT_GE(found.faces.data()[i], 0);
            continue;
        }
        EXPECT_EQ(found.distances.data()[i], kInfinity);
        EXPECT_EQ(found.faces.data()[i], -1);
        EXPECT_TRUE(weights[0] == 0 && weights[1] == 0 && weights[2] == 0);
        EXPECT_TRUE(std::isnan(found.points.data()[3 * i]));
    }
}

TEST_P(ClosestPoint, AMeshWithoutFacesIsFoundByNobody) {
    const Mesh mesh = make_mesh({0, 0, 0, 1, 1, 1}, {});
    const MeshIndex index(upload(mesh));
    EXPECT_EQ(index.faces(), 0);
    const FoundPoints found = find(index, uniform_points(5, 0, 1));
    for (int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(found.distances.data()[i], kInfinity);
        EXPECT_EQ(found.faces.data()[i], -1);
        EXPECT_TRUE(std::isnan(found.points.data()[3 * i + 2]));
    }
    EXPECT_EQ(find(MeshIndex(upload(make_mesh({}, {}))), uniform_points(1, 0, 1)).faces.data()[0], -1);
}

TEST_P(ClosestPoint, OutputsMayBeLeftOutAndQueriesMayHaveGaps) {
    const Mesh mesh = wavy_torus(30, 20);
    const MeshIndex index(upload(mesh));
    const Array<float, 2> queries = uniform_points(700, -1, 1);
    const FoundPoints all = find(index, queries);
    Array<float, 2> wide({700, 5});
    for (int64_t i = 0; i < 700; ++i) std::memcpy(wide.data() + 5 * i, queries.data() + 3 * i, 12);
    const Array<float, 2> on_device = upload(wide);
    const View<const float, 2> gaps(on_device.data(), {700, 3}, {5, 1}, device());
    Array<int32_t, 1> faces({700}, device());
    geometry::closest_point(index, gaps, {{}, faces.view(), {}, {}});
    EXPECT_EQ(0, std::memcmp(download(faces).data(), all.faces.data(), 700 * sizeof(int32_t)));
    Array<float, 2> points({700, 3}, device());
    geometry::closest_point(index, gaps, {{}, {}, {}, points.view()});
    EXPECT_EQ(0, std::memcmp(download(points).data(), all.points.data(), 700 * 3 * sizeof(float)));
    geometry::closest_point(index, gaps, {});
}

TEST_P(ClosestPoint, TheIndexOutlivesItsMeshAndCopiesShareIt) {
    std::optional<MeshIndex> index;
    const Array<float, 2> queries = uniform_points(100, -1, 1);
    FoundPoints before;
    {
        Mesh mesh = upload(sphere(3));
        const MeshIndex first(mesh);
        before = find(first, queries);
        index = first;
    }
    EXPECT_TRUE(same_bits(before, find(*index, queries)));
}

TEST_P(ClosestPoint, EveryEngineGivesTheSameBits) {
    if (!has_other_engine(device())) GTEST_SKIP() << "our own hierarchy alone answers here";
    // The hierarchy of our own on the CPU against whatever answers on this device.
    for (const Mesh& mesh : {wavy_torus(60, 40), soup(3000), cube()}) {
        const auto own = geometry::cpu::build(mesh, geometry::cpu::Engine::own);
        const Array<float, 2> queries = uniform_points(10000, -1.5f, 1.5f, 3);
        const FoundPoints found = find(MeshIndex(upload(mesh)), queries);
        for (int64_t i = 0; i < queries.size(0); ++i) {
            const geometry::NearestFace nearest = geometry::cpu::nearest_face(*own, queries.data() + 3 * i, -1);
            ASSERT_EQ(nearest.face, found.faces.data()[i]) << i;
            ASSERT_EQ(nearest.distance, found.distances.data()[i]) << i;
            float weights[3];
            geometry::write_barycentrics(nearest.place.v, nearest.place.w, weights);
            ASSERT_EQ(0, std::memcmp(weights, found.barycentrics.data() + 3 * i, sizeof(weights))) << i;
        }
    }
}

TEST_P(ClosestPoint, WrongUseIsRefused) {
    const MeshIndex index(upload(cube()));
    Array<float, 2> queries({4, 3}, device()), pairs({4, 2}, device()), points({4, 3}, device());
    Array<float, 1> distances({4}, device()), few({3}, device());
    const auto call = [&](View<const float, 2> q, const ClosestPoints& to) {
        return bad_argument_of([&] { geometry::closest_point(index, q, to); });
    };
    EXPECT_EQ(call(pairs.view(), {distances.view(), {}, {}, {}}),
              "closest_point: queries must be [m, 3] with adjacent coordinates, got [4, 2]");
    EXPECT_EQ(call({queries.data(), {2, 3}, {1, 2}, device()}, {}),
              "closest_point: queries must be [m, 3] with adjacent coordinates, got [2, 3]");
    EXPECT_EQ(call(queries.view(), {few.view(), {}, {}, {}}), "closest_point: distances must be [4], got [3]");
    EXPECT_EQ(call(queries.view(), {{}, {}, pairs.view(), {}}),
              "closest_point: barycentrics must be [4, 3], got [4, 2]");
    EXPECT_EQ(call(queries.view(), {{}, {}, {}, {points.data(), {4, 3}, {1, 4}, device()}}),
              "closest_point: points must be contiguous");
    const Device other{DeviceType::cuda, 7};
    EXPECT_EQ(call({queries.data(), {4, 3}, other}, {}),
              fmt::format("closest_point: points on {}, queries on cuda:7", device()));
    EXPECT_EQ(call(queries.view(), {{distances.data(), {4}, other}, {}, {}, {}}),
              fmt::format("closest_point: points on {}, distances on cuda:7", device()));
}

TEST(ClosestPointCpu, TheNumberOfThreadsChangesNothing) {
    const Mesh mesh = wavy_torus(80, 60);
    const Array<float, 2> queries = uniform_points(20000, -1.5f, 1.5f);
    expect_same_on_threads([&] {
        FoundPoints found = find(MeshIndex(mesh), queries);
        Array<float, 2> faces({queries.size(0), 1});
        for (int64_t i = 0; i < queries.size(0); ++i) faces.data()[i] = static_cast<float>(found.faces.data()[i]);
        std::vector<Array<float, 2>> all;
        all.push_back(std::move(found.barycentrics));
        all.push_back(std::move(found.points));
        all.push_back(std::move(faces));
        return all;
    });
}

TEST(ClosestPointCpu, MemoryStaysFlat) {
    const Mesh mesh = soup(64);
    const Array<float, 2> queries = uniform_points(300, 0, 1);
    find(MeshIndex(mesh), queries);
    const int64_t before = live_allocations();
    for (int i = 0; i < 300; ++i) find(MeshIndex(mesh), queries);
    EXPECT_EQ(live_allocations(), before);
    const MeshIndex index(mesh);
    const int64_t with_index = live_allocations();
    for (int i = 0; i < 400; ++i) find(index, queries);
    EXPECT_EQ(live_allocations(), with_index);
}

TEST(ClosestPointCpu, AgreesWithOpen3dOnARealMesh) {
    STIPPLE_NEEDS_DATA("upsample_dev/meshes/camel.off");
    const std::optional<std::string> file = data_file("upsample_dev/meshes/camel.off");
    io::Warnings warnings;
    const Mesh mesh = io::load_mesh(*file, {}, warnings);
    const Array<float, 2> queries = uniform_points(5000, -1, 1);
    const TemporaryFolder folder;
    const auto save = [&](const std::string& name, const auto& array, int64_t rows) {
        std::ofstream out(folder / name, std::ios::binary);
        out.write(reinterpret_cast<const char*>(array.data()), rows * 12);
    };
    save("v.bin", mesh.vertices.positions, mesh.vertices.size());
    save("f.bin", mesh.triangles, mesh.faces());
    save("q.bin", queries, queries.size(0));
    run_python(folder, R"(
import numpy as np, open3d as o3d
v = np.fromfile('v.bin', np.float32).reshape(-1, 3)
f = np.fromfile('f.bin', np.uint32).reshape(-1, 3)
q = np.fromfile('q.bin', np.float32).reshape(-1, 3)
scene = o3d.t.geometry.RaycastingScene()
scene.add_triangles(o3d.core.Tensor(v), o3d.core.Tensor(f))
scene.compute_distance(o3d.core.Tensor(q)).numpy().astype(np.float32).tofile('d.bin')
)");
    std::vector<float> theirs(5000);
    std::ifstream(folder / "d.bin", std::ios::binary).read(reinterpret_cast<char*>(theirs.data()), 20000);
    double diagonal = 0;
    const Bounds box = bounds_of(mesh.vertices);
    for (int axis = 0; axis < 3; ++axis) diagonal += std::pow(box.max[axis] - box.min[axis], 2);
    diagonal = std::sqrt(diagonal);
    const FoundPoints ours = find(MeshIndex(mesh), queries);
    for (int64_t i = 0; i < 5000; ++i)
        ASSERT_NEAR(ours.distances.data()[i], theirs[i], std::max(1e-5 * theirs[i], 1e-6 * diagonal)) << i;
}

}  // namespace
}  // namespace stipple::test
