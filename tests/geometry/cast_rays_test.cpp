#include "stipple/geometry/cast_rays.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/geometry/geometry.h"
#include "tests/support/allocation.h"

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

struct Found {
    Array<float, 1> t;
    Array<int32_t, 1> faces;
    Array<float, 2> barycentrics;
    Array<uint8_t, 1> any;
    AllHits all;
};

Found cast(const MeshIndex& index, const HostRays& rays) {
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

using Point = std::array<double, 3>;
Point minus(const Point& a, const Point& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
Point cross(const Point& a, const Point& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double dot(const Point& a, const Point& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Point row(const Array<float, 2>& rows, int64_t i) {
    const float* p = rows.data() + 3 * i;
    return {p[0], p[1], p[2]};
}

/// By Cramer's rule, another way than the library's. `inside` is the lowest weight: > 0 well inside, < 0 well outside.
struct Met {
    double t, inside;
    Point weights;
};
Met meet(const Mesh& mesh, const HostRays& rays, int64_t ray, int64_t face) {
    const int32_t* corner = mesh.triangles.data() + 3 * face;
    const Point a = row(mesh.vertices.positions, corner[0]), b = row(mesh.vertices.positions, corner[1]),
                c = row(mesh.vertices.positions, corner[2]);
    const Point o = row(rays.origins, ray), d = row(rays.directions, ray);
    const Point e = minus(b, a), f = minus(c, a), s = minus(o, a), h = cross(d, f), q = cross(s, e);
    const double determinant = dot(e, h);
    const double v = dot(s, h) / determinant, w = dot(d, q) / determinant;
    return {dot(f, q) / determinant, std::min(1 - v - w, std::min(v, w)), {1 - v - w, v, w}};
}

/// first, any and all against each other and against the definition; rays within 1e-9 of an edge may go either way.
void expect_right(const Mesh& mesh, const HostRays& rays, const Found& found) {
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
    EXPECT_TRUE(rays.size() < 100 || hits > 0) << "rays that hit nothing prove nothing";
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

}  // namespace
}  // namespace stipple::test
