// Virtual scans: what stations see of a mesh is on it, in sight of them, and ends where sight does.

#include "stipple/learn/upsampling/virtual_scan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/primitives.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/learn/upsampling/surface_patches.h"

namespace stipple::learn {
namespace {

Vec3d row(View<const float, 2> rows, int64_t i) {
    return {rows(i, 0), rows(i, 1), rows(i, 2)};
}

double area_of(const Mesh& mesh) {
    double area = 0;
    const View<const float, 2> vertices = mesh.vertices.positions.view();
    for (int64_t f = 0; f < mesh.faces(); ++f) {
        const int32_t* corner = mesh.triangles.data() + 3 * f;
        area += 0.5 * length(cross(row(vertices, corner[1]) - row(vertices, corner[0]),
                                   row(vertices, corner[2]) - row(vertices, corner[0])));
    }
    return area;
}

/// Whether a mesh has been seen beside itself.
bool is_twice(const VirtualScan& scan, const Mesh& mesh) {
    return scan.scene.vertices.size() >= 2 * mesh.vertices.size();
}

TEST(VirtualScan, SeesTheSideOfASphereThatFacesIt) {
    const Mesh ball = geometry::sphere_mesh(1, 4);
    int64_t checked = 0;
    for (uint64_t seed = 0; seed < 12; ++seed) {
        const VirtualScan scan = scan_virtually(ball, Rng(seed));
        ASSERT_GE(scan.places.size(), 1u);
        ASSERT_LE(scan.places.size(), 3u);
        ASSERT_EQ(scan.stations.size(), static_cast<size_t>(scan.surface.faces()));
        if (is_twice(scan, ball)) continue;
        const View<const float, 2> vertices = scan.surface.vertices.positions.view();
        for (int64_t f = 0; f < scan.surface.faces(); ++f) {
            Vec3d middle;
            for (int corner = 0; corner < 3; ++corner)
                middle = middle + (1.0 / 3) * row(vertices, scan.surface.triangles.data()[3 * f + corner]);
            if (std::abs(length(middle) - 1) > 0.01) continue;  // of the plane that it may stand on
            const Vec3d to = scan.places[static_cast<size_t>(scan.stations[static_cast<size_t>(f)])] - middle;
            // A face of the mesh is flat and may look past the horizon of the sphere by a tenth.
            EXPECT_GT(dot(unit(to), middle), -0.1);
            ++checked;
        }
    }
    EXPECT_GT(checked, 1000);
}

TEST(VirtualScan, EndsWhereSightDoes) {
    const Mesh ball = geometry::sphere_mesh(1, 4);
    const double whole = area_of(ball);
    int open = 0;
    for (uint64_t seed = 0; seed < 12; ++seed) {
        const VirtualScan scan = scan_virtually(ball, Rng(seed));
        const double seen = area_of(scan.surface);
        EXPECT_LT(seen, area_of(scan.scene) + 1e-3);
        open += seen < 0.9 * whole;
    }
    EXPECT_GE(open, 3);
    // The same for the same numbers, another for others.
    const VirtualScan a = scan_virtually(ball, Rng(1)), b = scan_virtually(ball, Rng(1)),
                      c = scan_virtually(ball, Rng(2));
    EXPECT_TRUE(std::equal(a.surface.vertices.positions.span().begin(), a.surface.vertices.positions.span().end(),
                           b.surface.vertices.positions.span().begin(), b.surface.vertices.positions.span().end()));
    EXPECT_NE(area_of(a.surface), area_of(c.surface));
}

/// Whether some place of the unit sphere is not seen, although all around it, 0.3 away, is.
bool has_hole(const Mesh& seen) {
    if (seen.faces() == 0) return false;
    const geometry::MeshIndex index(seen);
    const auto distance = [&](const Vec3d& at) {
        Array<float, 2> place({1, 3});
        for (int axis = 0; axis < 3; ++axis) place.data()[axis] = static_cast<float>(at[axis]);
        Array<float, 1> found({1});
        geometry::closest_point(index, place.view(), {found.view(), {}, {}, {}});
        return found.data()[0];
    };
    constexpr int kPlaces = 600;
    for (int i = 0; i < kPlaces; ++i) {
        const double z = 1 - (2 * i + 1.0) / kPlaces, turn = 2.399963 * i, r = std::sqrt(1 - z * z);
        const Vec3d at{r * std::cos(turn), r * std::sin(turn), z};
        if (distance(at) < 0.03) continue;
        const Vec3d u = unit(cross(at, std::abs(at.x) < 0.6 ? Vec3d{1, 0, 0} : Vec3d{0, 1, 0})), v = cross(at, u);
        bool is_around = true;
        for (int k = 0; k < 12 && is_around; ++k)
            is_around = distance(unit(at + 0.3 * std::cos(k * 0.5236) * u + 0.3 * std::sin(k * 0.5236) * v)) < 0.03;
        if (is_around) return true;
    }
    return false;
}

TEST(VirtualScan, SomeSeeTwoSheetsAndSomeHaveDarkPlaces) {
    const Mesh ball = geometry::sphere_mesh(1, 4);
    int twice = 0, dark = 0;
    for (uint64_t seed = 0; seed < 24; ++seed) {
        const VirtualScan scan = scan_virtually(ball, Rng(seed));
        twice += is_twice(scan, ball);
        dark += !is_twice(scan, ball) && has_hole(scan.surface);
    }
    EXPECT_GE(twice, 1);
    EXPECT_LE(twice, 12);
    EXPECT_GE(dark, 2);
    EXPECT_LE(dark, 14);
}

TEST(VirtualScan, ErrorsLieAlongTheRays) {
    const Mesh cube = geometry::cube_mesh(1, 1, 1);
    int64_t mixed = 0;
    for (uint64_t seed = 0; seed < 6; ++seed) {
        const VirtualScan scan = scan_virtually(cube, Rng(seed));
        const geometry::SurfaceSamples samples = geometry::sample_surface(scan.surface, 2000, seed);
        const ScanErrors errors = scan_errors(scan, samples.points.view(), samples.faces.view(), Rng(seed, 1));
        for (int64_t i = 0; i < 2000; ++i) {
            const Vec3d place =
                scan.places[static_cast<size_t>(scan.stations[static_cast<size_t>(samples.faces.data()[i])])];
            const Vec3d to = unit(place - row(samples.points.view(), i)), noise = row(errors.noise.view(), i),
                        jump = row(errors.mixed.view(), i);
            EXPECT_NEAR(dot(unit(noise), to), 1, 1e-4);
            EXPECT_GT(length(noise), 0.2);
            EXPECT_LT(length(noise), 8);
            if (length(jump) == 0) continue;
            EXPECT_NEAR(std::abs(dot(unit(jump), to)), 1, 1e-3);
            ++mixed;
        }
    }
    EXPECT_GT(mixed, 0);
    EXPECT_LT(mixed, 6000);
}

TEST(VirtualScan, ShapesBesideTheirMeshes) {
    std::vector<Mesh> meshes;
    meshes.push_back(geometry::sphere_mesh(1, 3));
    meshes.push_back(geometry::torus_mesh(1, 0.4, 24, 16));
    const SurfaceSet set = make_surfaces(std::move(meshes), {"ball", "ring"}, {.samples = 512, .scans = 2, .seed = 4},
                                         ProgressMode::never);
    ASSERT_EQ(set.shapes.size(), 6u);
    EXPECT_EQ(set.train.size(), 6u);
    for (const SurfaceShape& shape : set.shapes) {
        const bool is_scan = shape.name.find("scan") != std::string::npos;
        const geometry::MeshIndex index(shape.mesh);
        for (const SurfacePool& pool : shape.pools) {
            EXPECT_EQ(pool.noise.size(0), is_scan ? 512 : 0);
            Array<float, 1> distances({512});
            geometry::closest_point(index, pool.points.view(), {distances.view(), {}, {}, {}});
            for (const float distance : distances.span()) EXPECT_LT(distance, 1e-5f);
        }
    }
    // A noisy cloud of a scan lies beside its surface, a clean one on it.
    PatchOptions options;
    options.samples = 512, options.cloud_min = options.cloud_max = 128, options.queries = options.truth = 64;
    PatchScratch scratch;
    Array<float, 2> points({64, 3}), queries({64, 3}), truth({64, 3});
    const SurfaceShape& scan = set.shapes[1];
    const geometry::MeshIndex index(scan.mesh);
    const auto off = [&](double noise) {
        PatchPlan plan{.shape = 1, .cloud = 128, .sampling = PatchSampling::random};
        plan.scan_noise = noise;
        const PatchFrame frame =
            make_patch(scan, options, plan, {1, 0, 0}, {points.view(), queries.view(), truth.view()}, scratch);
        Array<float, 2> places({64, 3});
        for (int64_t i = 0; i < 64; ++i)
            for (int axis = 0; axis < 3; ++axis) {
                double x = frame.centre[static_cast<size_t>(axis)];
                for (int k = 0; k < 3; ++k)
                    x += double{frame.scale} * frame.rotation[static_cast<size_t>(3 * k + axis)] *
                         points.data()[3 * i + k];
                places.data()[3 * i + axis] = static_cast<float>(x);
            }
        Array<float, 1> distances({64});
        geometry::closest_point(index, places.view(), {distances.view(), {}, {}, {}});
        double sum = 0;
        for (const float distance : distances.span()) sum += distance / 64;
        return sum;
    };
    EXPECT_LT(off(0), 1e-4);
    EXPECT_GT(off(0.02), 2e-3);
}

}  // namespace
}  // namespace stipple::learn
