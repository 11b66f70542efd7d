#include "stipple/geometry/cast_rays.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stipple/core/rng.h"
#include "stipple/geometry/query/mesh_tree.h"
#include "tests/geometry/geometry.h"
#include "tests/support/allocation.h"
#include "tests/support/not_finite.h"

namespace stipple::test {
namespace {

using geometry::AllHits;
using geometry::MeshIndex;
using geometry::Rays;

struct HostRays {
    Array<float, 2> origins, directions;
    float t_near = 0, t_far = std::numeric_limits<float>::infinity();

    int64_t size() const { return origins.size(0); }
};

struct FoundHits {
    Array<float, 1> t;
    Array<int32_t, 1> faces;
    Array<float, 2> barycentrics;
    Array<uint8_t, 1> any;
    AllHits all;
};

FoundHits cast(const MeshIndex& index, const HostRays& rays) {
    const int64_t m = rays.size();
    const Device device = index.device();
    const Array<float, 2> origins = rays.origins.to(device), directions = rays.directions.to(device);
    const Rays view = {origins.view(), directions.view(), rays.t_near, rays.t_far};
    Array<float, 1> t({m}, device);
    Array<int32_t, 1> faces({m}, device);
    Array<float, 2> barycentrics({m, 3}, device);
    Array<uint8_t, 1> any({m}, device);
    geometry::first_hit(index, view, {t.view(), faces.view(), barycentrics.view()});
    geometry::any_hit(index, view, any.view());
    return {download(t), download(faces), download(barycentrics), download(any), geometry::all_hits(index, view)};
}

/// Rays towards points of a box from a sphere about it.
HostRays random_rays(int64_t m, float radius, float box, uint64_t seed = 1) {
    HostRays rays{Array<float, 2>({m, 3}), Array<float, 2>({m, 3})};
    const Rng rng(seed, 3);
    for (int64_t i = 0; i < m; ++i) {
        float from[3], length = 0;
        for (int axis = 0; axis < 3; ++axis) {
            from[axis] = rng.normal(6 * i + axis);
            length += from[axis] * from[axis];
        }
        for (int axis = 0; axis < 3; ++axis) {
            const float start = radius * from[axis] / std::sqrt(length);
            rays.origins.data()[3 * i + axis] = start;
            rays.directions.data()[3 * i + axis] = box * (2 * rng.uniform(6 * i + 3 + axis) - 1) - start;
        }
    }
    return rays;
}

using RayPoint = std::array<double, 3>;
RayPoint minus(const RayPoint& a, const RayPoint& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
RayPoint cross(const RayPoint& a, const RayPoint& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double dot(const RayPoint& a, const RayPoint& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
RayPoint row(const Array<float, 2>& rows, int64_t i) {
    const float* p = rows.data() + 3 * i;
    return {p[0], p[1], p[2]};
}

/// By Cramer's rule, another way than the library's. `inside` is the lowest weight: > 0 well inside, < 0 well outside.
struct Met {
    double t, inside;
    RayPoint weights;
};
Met meet(const Mesh& mesh, const HostRays& rays, int64_t ray, int64_t face) {
    const int32_t* corner = mesh.triangles.data() + 3 * face;
    const RayPoint a = row(mesh.vertices.positions, corner[0]), b = row(mesh.vertices.positions, corner[1]),
                   c = row(mesh.vertices.positions, corner[2]);
    const RayPoint o = row(rays.origins, ray), d = row(rays.directions, ray);
    const RayPoint e = minus(b, a), f = minus(c, a), s = minus(o, a), h = cross(d, f), q = cross(s, e);
    const double determinant = dot(e, h);
    const double v = dot(s, h) / determinant, w = dot(d, q) / determinant;
    return {dot(f, q) / determinant, std::min(1 - v - w, std::min(v, w)), {1 - v - w, v, w}};
}

/// first, any and all against each other and against the definition; rays within 1e-9 of an edge may go either way.
void expect_right(const Mesh& mesh, const HostRays& rays, const FoundHits& found) {
    ASSERT_EQ(static_cast<int64_t>(found.all.offsets.size()), rays.size() + 1);
    int64_t hits = 0;
    for (int64_t i = 0; i < rays.size(); ++i) {
        SCOPED_TRACE(testing::Message() << "ray " << i);
        const int64_t begin = found.all.offsets[i], end = found.all.offsets[i + 1];
        std::vector<int32_t> faces(found.all.faces.begin() + begin, found.all.faces.begin() + end);
        std::sort(faces.begin(), faces.end());
        ASSERT_EQ(std::adjacent_find(faces.begin(), faces.end()), faces.end()) << "a face twice";
        for (int64_t face = 0; face < mesh.faces(); ++face) {
            const Met met = meet(mesh, rays, i, face);
            const bool reported = std::binary_search(faces.begin(), faces.end(), static_cast<int32_t>(face));
            const bool near_end = std::abs(met.t - rays.t_near) < 1e-6 || std::abs(met.t - rays.t_far) < 1e-6;
            const bool in_range = met.t >= rays.t_near && met.t <= rays.t_far;
            if (!near_end && in_range && met.inside > 1e-5) {
                ASSERT_TRUE(reported) << "face " << face << " t " << met.t;
            }
            if (met.inside < -1e-5 || (!in_range && !near_end)) {
                ASSERT_FALSE(reported) << "face " << face << " t " << met.t;
            }
        }
        for (int64_t k = begin; k < end; ++k) {
            if (k > begin) {
                ASSERT_TRUE(found.all.t[k - 1] < found.all.t[k] ||
                            (found.all.t[k - 1] == found.all.t[k] && found.all.faces[k - 1] < found.all.faces[k]));
            }
            const Met met = meet(mesh, rays, i, found.all.faces[k]);
            ASSERT_NEAR(found.all.t[k], met.t, 1e-6 * std::abs(met.t) + 1e-9);
            for (int corner = 0; corner < 3; ++corner)
                ASSERT_NEAR(found.all.barycentrics[k][corner], std::clamp(met.weights[corner], 0.0, 1.0), 1e-5);
        }
        ASSERT_EQ(found.any.data()[i], end > begin ? 1 : 0);
        const float* weights = found.barycentrics.data() + 3 * i;
        if (begin == end) {
            ASSERT_EQ(found.faces.data()[i], -1);
            ASSERT_EQ(found.t.data()[i], std::numeric_limits<float>::infinity());
            ASSERT_TRUE(weights[0] == 0 && weights[1] == 0 && weights[2] == 0);
            continue;
        }
        ++hits;
        ASSERT_EQ(found.t.data()[i], found.all.t[begin]);
        ASSERT_EQ(found.faces.data()[i], found.all.faces[begin]);
        ASSERT_EQ(0, std::memcmp(weights, found.all.barycentrics[begin].data(), 3 * sizeof(float)));
    }
    EXPECT_TRUE(rays.size() < 100 || rays.t_near == rays.t_far || hits > 0) << "rays that hit nothing prove nothing";
}

class CastRays : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(CastRays);

TEST_P(CastRays, AgreesWithTheDefinition) {
    const std::pair<const char*, Mesh> meshes[] = {
        {"cube", cube()},
        {"sphere", sphere(3)},
        {"torus", wavy_torus(40, 24)},
        {"soup", soup(500)},
        {"one face", make_mesh({-1, -1, 0, 1, -1, 0.25f, 0, 1, 0.5f}, {0, 1, 2})},
        {"nine faces", soup(9)}};
    for (const auto& [name, mesh] : meshes) {
        SCOPED_TRACE(name);
        const MeshIndex index(upload(mesh));
        for (const int64_t m : {0, 1, 2, 1501}) {
            HostRays rays = random_rays(m, 3, 1);
            expect_right(mesh, rays, cast(index, rays));
            if (testing::Test::HasFailure()) return;
        }
    }
}

TEST_P(CastRays, ARangeOfTLimitsTheHits) {
    const Mesh mesh = wavy_torus(40, 24);
    const MeshIndex index(upload(mesh));
    HostRays rays = random_rays(700, 3, 1);
    for (const auto& [t_near, t_far] : {std::pair{0.7f, 0.9f}, {0.0f, 0.8f}, {0.9f, kInfinity}, {0.5f, 0.5f}}) {
        rays.t_near = t_near;
        rays.t_far = t_far;
        ASSERT_NO_FATAL_FAILURE(expect_right(mesh, rays, cast(index, rays)));
    }
    // The ends belong to the range: a ray of length 1 from a face to the one opposite.
    const MeshIndex box(upload(cube()));
    HostRays across{Array<float, 2>({1, 3}), Array<float, 2>({1, 3})};
    std::copy_n(std::array{0.3f, 0.6f, 0.0f}.begin(), 3, across.origins.data());
    std::copy_n(std::array{0.0f, 0.0f, 1.0f}.begin(), 3, across.directions.data());
    across.t_far = 1;
    const FoundHits found = cast(box, across);
    ASSERT_EQ(found.all.t, (std::vector<float>{0, 1}));
    EXPECT_FALSE(std::signbit(found.all.t[0]));
    EXPECT_EQ(found.t.data()[0], 0);
}

TEST_P(CastRays, TCountsInLengthsOfTheDirection) {
    const Mesh mesh = sphere(3);
    const MeshIndex index(upload(mesh));
    const HostRays rays = random_rays(500, 3, 1);
    const FoundHits once = cast(index, rays);
    for (const float factor : {1e-37f, 1e-30f, 1e-10f, 0.5f, 1e10f, 1e36f}) {
        SCOPED_TRACE(factor);
        HostRays longer{rays.origins.clone(), rays.directions.clone()};
        for (float& x : longer.directions.span()) x *= factor;
        const FoundHits found = cast(index, longer);
        int64_t hits = 0;
        for (int64_t i = 0; i < rays.size(); ++i) {
            if ((found.faces.data()[i] >= 0) != (once.faces.data()[i] >= 0)) continue;  // at the very silhouette
            if (once.faces.data()[i] < 0) continue;
            ++hits;
            EXPECT_NEAR(found.t.data()[i] * factor, once.t.data()[i], 1e-5 * once.t.data()[i]);
        }
        EXPECT_GT(hits, 100);
    }
}

TEST_P(CastRays, NoRaySlipsThroughEdgesAndVertices) {
    // From the inside of a closed mesh towards its vertices and points of its edges: something is hit, every time.
    for (const Mesh& mesh : {cube(), sphere(0), sphere(4)}) {
        const float inside[3] = {mesh.faces() == 12 ? 0.5f : 0.0f, mesh.faces() == 12 ? 0.5f : 0.0f,
                                 mesh.faces() == 12 ? 0.5f : 0.0f};
        const int64_t m = 5 * mesh.faces() * 3;
        HostRays rays{Array<float, 2>({m, 3}), Array<float, 2>({m, 3})};
        const Rng rng(5, 1);
        for (int64_t i = 0; i < m; ++i) {
            const int64_t corner = i / 5, face = corner / 3;
            const auto a = row(mesh.vertices.positions, mesh.triangles.data()[corner]);
            const auto b = row(mesh.vertices.positions, mesh.triangles.data()[3 * face + (corner + 1) % 3]);
            const float along[5] = {0, 0.5f, 0.25f, rng.uniform(2 * i), 1 / 3.0f};
            for (int axis = 0; axis < 3; ++axis) {
                const auto target = static_cast<float>(a[axis] + along[i % 5] * (b[axis] - a[axis]));
                // Origins near the middle, so that directions are not all symmetric.
                const float start = inside[axis] + (i % 2 ? 0.1f * (rng.uniform(3 * i + axis) - 0.5f) : 0);
                rays.origins.data()[3 * i + axis] = start;
                rays.directions.data()[3 * i + axis] = target - start;
            }
        }
        const FoundHits found = cast(MeshIndex(upload(mesh)), rays);
        for (int64_t i = 0; i < m; ++i) {
            ASSERT_GE(found.faces.data()[i], 0) << "ray " << i << " of " << mesh.faces() << " faces";
            ASSERT_EQ(found.any.data()[i], 1);
            ASSERT_NEAR(found.t.data()[i], 1, 1e-5);
            ASSERT_GE(found.all.offsets[i + 1], found.all.offsets[i] + 1);
        }
    }
}

TEST_P(CastRays, ARayThroughAVertexHitsTheFacesThatMeetThereOnceEach) {
    // Down the axis of a pyramid whose tip is at a round place: all its faces.
    std::vector<float> positions = {0, 0, 1};
    std::vector<int32_t> triangles;
    for (int i = 0; i < 4; ++i) {
        positions.insert(positions.end(), {i < 2 ? 1.0f : -1.0f, i == 0 || i == 3 ? 1.0f : -1.0f, 0});
        for (const int corner : {0, 1 + i, 1 + (i + 1) % 4}) triangles.push_back(corner);
    }
    HostRays rays{Array<float, 2>({1, 3}), Array<float, 2>({1, 3})};
    std::copy_n(std::array{0.0f, 0.0f, 3.0f}.begin(), 3, rays.origins.data());
    std::copy_n(std::array{0.0f, 0.0f, -1.0f}.begin(), 3, rays.directions.data());
    const FoundHits found = cast(MeshIndex(upload(make_mesh(positions, triangles))), rays);
    EXPECT_EQ(found.all.faces, (std::vector<int32_t>{0, 1, 2, 3}));
    EXPECT_EQ(found.all.t, (std::vector<float>{2, 2, 2, 2}));
    EXPECT_EQ(found.faces.data()[0], 0);
    EXPECT_EQ(found.barycentrics.data()[0], 1);
}

TEST_P(CastRays, OfDuplicateFacesTheLowestIsTaken) {
    const Mesh once = sphere(2);
    std::vector<int32_t> triangles;
    const int64_t n = once.faces();
    for (int copy = 0; copy < 3; ++copy) {
        for (int64_t i = 0; i < n; ++i) {
            const int64_t face = (i * 37 + copy * 11) % n;  // 37 has no common factor with a power of two
            for (int k = 0; k < 3; ++k) triangles.push_back(once.triangles.data()[3 * face + k]);
        }
    }
    const std::vector<float> positions(once.vertices.positions.span().begin(), once.vertices.positions.span().end());
    const Mesh mesh = make_mesh(positions, triangles);
    const HostRays rays = random_rays(3000, 3, 0.7f);
    const FoundHits found = cast(MeshIndex(upload(mesh)), rays);
    ASSERT_NO_FATAL_FAILURE(expect_right(mesh, rays, found));
    int64_t hits = 0;
    for (int64_t i = 0; i < rays.size(); ++i) {
        const int64_t count = found.all.offsets[i + 1] - found.all.offsets[i];
        ASSERT_EQ(count % 3, 0) << "every face is there three times";
        if (count == 0) continue;
        ++hits;
        EXPECT_LT(found.faces.data()[i], n) << "a copy before its original";
    }
    EXPECT_GT(hits, 1000);
}

TEST_P(CastRays, RaysThatAreNoRaysHitNothing) {
    const Mesh mesh = sphere(2);
    HostRays rays = random_rays(5000, 3, 0.3f);  // all hit; enough to be sorted on any device
    for (int64_t i = 0; i < 5000; i += 4) {
        float* d = rays.directions.data() + 3 * i;
        float* o = rays.origins.data() + 3 * i;
        switch (i / 4 % 4) {
            case 0: d[0] = d[1] = d[2] = 0; break;
            case 1: d[i % 3] = kNan; break;
            case 2: o[i % 3] = kInfinity; break;
            case 3: d[i % 3] = -kInfinity; break;
        }
    }
    const FoundHits found = cast(MeshIndex(upload(mesh)), rays);
    for (int64_t i = 0; i < 5000; ++i) {
        const bool hits = i % 4 != 0;
        ASSERT_EQ(found.faces.data()[i] >= 0, hits) << i;
        ASSERT_EQ(found.any.data()[i], hits ? 1 : 0);
        ASSERT_EQ(found.all.offsets[i + 1] > found.all.offsets[i], hits);
        ASSERT_EQ(std::isfinite(found.t.data()[i]), hits);
    }
}

TEST_P(CastRays, AMeshWithoutFacesIsHitByNothing) {
    const MeshIndex index(upload(make_mesh({0, 0, 0}, {})));
    const FoundHits found = cast(index, random_rays(3, 3, 1));
    EXPECT_EQ(found.all.offsets, (std::vector<int64_t>{0, 0, 0, 0}));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(found.faces.data()[i] == -1 && found.any.data()[i] == 0);
}

TEST_P(CastRays, HugeAndTinyMeshesAreHitAsWell) {
    for (const float factor : {1e-15f, 1e-11f, 1e-6f, 1e6f, 1e11f, 1e15f}) {
        SCOPED_TRACE(factor);
        const Mesh mesh = scaled(sphere(3), factor);
        HostRays rays = random_rays(400, 3, 1);
        for (float& x : rays.origins.span()) x *= factor;
        for (float& x : rays.directions.span()) x *= factor;
        ASSERT_NO_FATAL_FAILURE(expect_right(mesh, rays, cast(MeshIndex(upload(mesh)), rays)));
    }
}

TEST_P(CastRays, CameraRaysGoTheSameWayAsSingleOnes) {
    // In rows of pixels: cast in groups where that pays. One at a time they must hit the same.
    const Mesh mesh = wavy_torus(60, 40);
    const MeshIndex index(upload(mesh));
    const int64_t side = 48;
    HostRays rays{Array<float, 2>({side * side, 3}), Array<float, 2>({side * side, 3})};
    for (int64_t i = 0; i < side * side; ++i) {
        std::copy_n(std::array{0.0f, 0.0f, 2.6f}.begin(), 3, rays.origins.data() + 3 * i);
        float* d = rays.directions.data() + 3 * i;
        d[0] = 0.6f * (2 * static_cast<float>(i % side) / static_cast<float>(side - 1) - 1);
        d[1] = 0.6f * (2 * static_cast<float>(i / side) / static_cast<float>(side - 1) - 1);
        d[2] = -1;
    }
    const FoundHits together = cast(index, rays);
    ASSERT_NO_FATAL_FAILURE(expect_right(mesh, rays, together));
    for (int64_t i = 0; i < side * side; i += 7) {
        HostRays one{Array<float, 2>({1, 3}), Array<float, 2>({1, 3})};
        std::copy_n(rays.origins.data() + 3 * i, 3, one.origins.data());
        std::copy_n(rays.directions.data() + 3 * i, 3, one.directions.data());
        const FoundHits single = cast(index, one);
        ASSERT_EQ(single.any.data()[0], together.any.data()[i]);
        ASSERT_EQ(single.all.faces.size(), static_cast<size_t>(together.all.offsets[i + 1] - together.all.offsets[i]));
        if (single.any.data()[0]) {
            ASSERT_NEAR(single.t.data()[0], together.t.data()[i], 1e-6);
        }
    }
}

TEST_P(CastRays, EveryEngineGivesTheSameBits) {
    if (!has_other_engine(device())) GTEST_SKIP() << "our own hierarchy alone answers here";
    for (const Mesh& mesh : {wavy_torus(60, 40), soup(2000)}) {
        const auto own = geometry::cpu::build(mesh, geometry::cpu::Engine::own);
        const HostRays rays = random_rays(6000, 3, 1, 9);
        const FoundHits found = cast(MeshIndex(upload(mesh)), rays);
        for (int64_t i = 0; i < rays.size(); ++i) {
            geometry::cpu::Ray ray{{}, {}, 0, std::numeric_limits<float>::max()};
            std::copy_n(rays.origins.data() + 3 * i, 3, ray.origin);
            std::copy_n(rays.directions.data() + 3 * i, 3, ray.direction);
            geometry::FirstHit hit;
            bool any = false;
            geometry::cpu::first_hits(*own, &ray, 1, false, &hit);
            geometry::cpu::any_hits(*own, &ray, 1, false, &any);
            ASSERT_EQ(any, hit.face >= 0);
            ASSERT_EQ(hit.face, found.faces.data()[i]) << i;
            ASSERT_EQ(hit.t, found.t.data()[i]) << i;
            if (hit.face < 0) continue;
            float weights[3];
            geometry::write_barycentrics(hit.v, hit.w, weights);
            ASSERT_EQ(0, std::memcmp(weights, found.barycentrics.data() + 3 * i, sizeof(weights))) << i;
            std::vector<geometry::cpu::RayHit> all;
            geometry::cpu::all_hits(*own, ray, all);
            ASSERT_EQ(static_cast<int64_t>(all.size()), found.all.offsets[i + 1] - found.all.offsets[i]);
        }
    }
}

TEST_P(CastRays, RaysAtVerticesAndEdgesGoTheSameWayInEveryEngine) {
    if (!has_other_engine(device())) GTEST_SKIP() << "our own hierarchy alone answers here";
    // The worst rays: at corners and edges, many of them at a silhouette, from near, far and round places.
    for (const Mesh& mesh : {sphere(4), wavy_torus(60, 40), cube()}) {
        const int64_t m = 12000;
        HostRays rays{Array<float, 2>({m, 3}), Array<float, 2>({m, 3})};
        const Rng rng(11, 1);
        for (int64_t i = 0; i < m; ++i) {
            const int64_t face = rng.below(9 * i, static_cast<uint32_t>(mesh.faces()));
            const int32_t* corner = mesh.triangles.data() + 3 * face;
            const auto a = row(mesh.vertices.positions, corner[i % 3]),
                       b = row(mesh.vertices.positions, corner[(i + 1) % 3]);
            const float along = i % 4 == 0 ? 0 : i % 4 == 1 ? 0.5f : rng.uniform(9 * i + 1);
            const float far = i % 5 == 0 ? 100.0f : i % 5 == 1 ? 0.1f : 3.0f;
            for (int axis = 0; axis < 3; ++axis) {
                float start = far * rng.normal(9 * i + 2 + axis);
                if (i % 7 == 0) start = 0.25f * std::round(4 * start);
                rays.origins.data()[3 * i + axis] = start;
                rays.directions.data()[3 * i + axis] =
                    static_cast<float>(a[axis] + along * (b[axis] - a[axis])) - start;
            }
        }
        const auto own = geometry::cpu::build(mesh, geometry::cpu::Engine::own);
        const FoundHits found = cast(MeshIndex(upload(mesh)), rays);
        int64_t unlike = 0;
        for (int64_t i = 0; i < m; ++i) {
            geometry::cpu::Ray ray{{}, {}, 0, std::numeric_limits<float>::max()};
            std::copy_n(rays.origins.data() + 3 * i, 3, ray.origin);
            std::copy_n(rays.directions.data() + 3 * i, 3, ray.direction);
            geometry::FirstHit hit;
            geometry::cpu::first_hits(*own, &ray, 1, false, &hit);
            unlike += hit.face != found.faces.data()[i] || hit.t != found.t.data()[i];
        }
        // Embree may overlook a face that a ray meets at a corner and all but edge-on: seen once in 800000 such rays.
        EXPECT_LE(unlike, device().type == DeviceType::cpu ? 1 : 0);
    }
}

TEST_P(CastRays, WrongUseIsRefused) {
    const MeshIndex index(upload(cube()));
    Array<float, 2> rows({4, 3}, device()), pairs({4, 2}, device());
    Array<float, 1> t({4}, device()), few({3}, device());
    Array<uint8_t, 1> any({3}, device());
    const Rays good{rows.view(), rows.view()};
    const auto first = [&](const Rays& rays, const geometry::RayHits& hits) {
        return bad_argument_of([&] { geometry::first_hit(index, rays, hits); });
    };
    EXPECT_EQ(first({pairs.view(), rows.view()}, {}),
              "first_hit: origins must be [m, 3] with adjacent coordinates, got [4, 2]");
    EXPECT_EQ(first({rows.view(), {rows.data(), {3, 3}, device()}}, {}), "first_hit: 4 origins and 3 directions");
    EXPECT_EQ(first({rows.view(), rows.view(), -1, 1}, {}), "first_hit: t from -1 to 1");
    EXPECT_EQ(first({rows.view(), rows.view(), 2, 1}, {}), "first_hit: t from 2 to 1");
    EXPECT_EQ(first({rows.view(), rows.view(), kNan, 1}, {}), "first_hit: t from nan to 1");
    EXPECT_EQ(first(good, {few.view(), {}, {}}), "first_hit: t must be [4], got [3]");
    EXPECT_EQ(first(good, {{}, {}, pairs.view()}), "first_hit: barycentrics must be [4, 3], got [4, 2]");
    EXPECT_EQ(bad_argument_of([&] { geometry::any_hit(index, good, any.view()); }),
              "any_hit: hit must be [4], got [3]");
    const Device other{DeviceType::cuda, 7};
    EXPECT_EQ(bad_argument_of([&] {
                  geometry::all_hits(index, {rows.view(), {rows.data(), {4, 3}, other}});
              }),
              fmt::format("all_hits: points on {}, directions on cuda:7", device()));
}

TEST(CastRaysCpu, TheNumberOfThreadsChangesNothing) {
    const Mesh mesh = soup(4000);  // with duplicate faces
    const HostRays rays = random_rays(20000, 2, 1);
    expect_same_on_threads([&] {
        FoundHits found = cast(MeshIndex(mesh), rays);
        Array<float, 2> rest({rays.size(), 3});
        for (int64_t i = 0; i < rays.size(); ++i) {
            rest.data()[3 * i] = found.t.data()[i];
            rest.data()[3 * i + 1] = static_cast<float>(found.faces.data()[i]);
            rest.data()[3 * i + 2] = found.any.data()[i];
        }
        Array<float, 2> all({static_cast<int64_t>(found.all.t.size()), 2});
        for (int64_t i = 0; i < all.size(0); ++i) {
            all.data()[2 * i] = found.all.t[i];
            all.data()[2 * i + 1] = static_cast<float>(found.all.faces[i]);
        }
        std::vector<Array<float, 2>> results;
        results.push_back(std::move(found.barycentrics));
        results.push_back(std::move(rest));
        results.push_back(std::move(all));
        return results;
    });
}

TEST(CastRaysCpu, MemoryStaysFlat) {
    const MeshIndex index(soup(64));
    const HostRays rays = random_rays(200, 2, 1);
    cast(index, rays);
    const int64_t before = live_allocations();
    for (int i = 0; i < 2000; ++i) cast(index, rays);
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace stipple::test
