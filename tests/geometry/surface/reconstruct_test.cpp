#include "stipple/geometry/reconstruct.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "stipple/core/rng.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/components.h"
#include "stipple/geometry/mesh_distance.h"
#include "stipple/geometry/mesh_normals.h"
#include "stipple/geometry/mesh_parts.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/io/format.h"
#include "tests/geometry/geometry.h"
#include "tests/geometry/manifold.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using geometry::reconstruct_surface;
using geometry::ReconstructOptions;

struct Samples {
    Array<float, 2> points, normals;
};

/// n uniform points of a mesh with the normals of their faces, moved by noise.
Samples samples_of(const Mesh& mesh, int64_t n, float noise = 0) {
    geometry::SurfaceSamples samples = geometry::sample_surface(mesh, n, 5);
    Array<float, 2> of_faces({mesh.faces(), 3}), normals({n, 3});
    geometry::face_normals(mesh, of_faces.view());
    const Rng rng(6);
    for (int64_t i = 0; i < 3 * n; ++i) {
        normals.data()[i] = of_faces.data()[3 * samples.faces.data()[i / 3] + i % 3];
        samples.points.data()[i] += noise * rng.normal(i);
    }
    return {std::move(samples.points), std::move(normals)};
}

double mean_distance(const Mesh& from, const Mesh& to) {
    constexpr int64_t kSamples = 5000;
    const geometry::SurfaceSamples samples = geometry::sample_surface(from, kSamples, 7);
    Array<float, 1> distances({kSamples});
    geometry::ClosestPoints found;
    found.distances = distances.view();
    geometry::closest_point(geometry::MeshIndex(to), samples.points.view(), found);
    double sum = 0;
    for (float distance : distances.span()) sum += distance;
    return sum / kSamples;
}

int64_t euler_of(const Mesh& mesh) {
    return mesh.vertices.size() - mesh.faces() * 3 / 2 + mesh.faces();
}

TEST(GeometryReconstruct, SpheresAndToriComeBack) {
    struct Case {
        Mesh mesh;
        int64_t euler;
    };
    Case cases[] = {{sphere(5), 2}, {wavy_torus(120, 120), 0}};
    for (const auto& [mesh, euler] : cases) {
        const Samples samples = samples_of(mesh, 20000);
        const Mesh found = reconstruct_surface(samples.points.view(), samples.normals.view());
        EXPECT_EQ(not_closed_manifold(found), "");
        EXPECT_EQ(euler_of(found), euler);
        EXPECT_NEAR(volume_of(found) / volume_of(mesh), 1, 0.01);
        EXPECT_LT(mean_distance(mesh, found), 0.005);  // points are 0.025 apart
        EXPECT_LT(mean_distance(found, mesh), 0.005);
    }
}

/// The faces look outwards, or inwards as those of a cavity do.
Mesh box_between(std::array<float, 3> low, std::array<float, 3> high, bool inwards = false) {
    Mesh box = cube();
    for (int64_t i = 0; i < 3 * box.vertices.size(); ++i) {
        float& x = box.vertices.positions.data()[i];
        x = x > 0.5f ? high[i % 3] : low[i % 3];
    }
    if (inwards)
        for (int64_t f = 0; f < box.faces(); ++f)
            std::swap(box.triangles.data()[3 * f], box.triangles.data()[3 * f + 1]);
    return box;
}

Mesh both(const Mesh& a, const Mesh& b) {
    const Mesh* meshes[] = {&a, &b};
    return geometry::merge_meshes(meshes);
}

/// n points make a surface of the genus of the mesh whose parts are all there, in spacings.
void expect_sheets_kept(const std::string& name, const Mesh& mesh, int64_t n, double mean, double largest) {
    const Samples samples = samples_of(mesh, n);
    const Mesh found = reconstruct_surface(samples.points.view(), samples.normals.view());
    const double spacing = std::sqrt(geometry::surface_area(mesh) / static_cast<double>(n));
    EXPECT_EQ(not_closed_manifold(found), "") << name;
    EXPECT_EQ(euler_of(found), euler_of(mesh)) << name;
    EXPECT_NEAR(geometry::surface_area(found) / geometry::surface_area(mesh), 1, 0.06) << name;  // both sides
    for (const geometry::MeshDistance& d :
         {geometry::mesh_distance(mesh, found, 20000), geometry::mesh_distance(found, mesh, 20000)}) {
        EXPECT_LT(d.mean, mean * spacing) << name;
        EXPECT_LT(d.largest, largest * spacing) << name;
    }
}

// Walls and gaps that are narrower than the field of the points resolves: plates, a box with a wall around a cavity,
// two blocks with a gap between them.
TEST(GeometryReconstruct, ThinWallsAndGapsStay) {
    constexpr int64_t kPoints = 20000;
    const float plate = std::sqrt(2.0f / kPoints), shell = std::sqrt(12.0f / kPoints), pair = std::sqrt(6.2f / kPoints);
    for (const float t : {2.0f, 1.5f, 1.0f, 0.5f, 0.25f}) {
        const std::string text = " of " + std::to_string(t) + " spacings";
        expect_sheets_kept("a plate" + text, box_between({0, 0, 0}, {1, 1, t * plate}), kPoints, 0.1, 2);
        const float wall = t * shell, rest = 1 - wall;
        expect_sheets_kept(
            "a wall" + text,
            both(box_between({0, 0, 0}, {1, 1, 1}), box_between({wall, wall, wall}, {rest, rest, rest}, true)), kPoints,
            0.13, 1.8);
        if (t < 1) continue;  // narrower gaps may have a bridge at their rim
        expect_sheets_kept(
            "a gap" + text,
            both(box_between({0, 0, 0}, {1, 1, 0.3f}), box_between({0, 0, 0.3f + t * pair}, {1, 1, 0.6f + t * pair})),
            kPoints, 0.1, 1.5);
    }
}

// Both sides in one plane: only the field knows that they are no gap.
TEST(GeometryReconstruct, AMembraneHasTwoSides) {
    const Mesh top = box_between({0, 0, 0}, {1, 1, 0});
    const Samples samples = samples_of(top, 10000);
    const Mesh found = reconstruct_surface(samples.points.view(), samples.normals.view());
    EXPECT_EQ(not_closed_manifold(found), "");
    EXPECT_NEAR(geometry::surface_area(found), 2, 0.15);
    EXPECT_LT(geometry::mesh_distance(top, found, 20000).largest, 2 * 0.0141);
    EXPECT_LT(geometry::mesh_distance(found, top, 20000).largest, 2 * 0.0141);
    ReconstructOptions options;
    options.thinnest = 0;  // what has no volume has no surface
    EXPECT_LT(geometry::surface_area(reconstruct_surface(samples.points.view(), samples.normals.view(), options)), 1);
}

// Where no sheets are near each other nothing moves, and a few wrong normals make none.
TEST(GeometryReconstruct, OrdinarySurfacesAreLeftAlone) {
    Samples samples = samples_of(sphere(5), 20000);
    ReconstructOptions plain;
    plain.thinnest = 0;
    const auto same = [&] {
        return difference(reconstruct_surface(samples.points.view(), samples.normals.view()),
                          reconstruct_surface(samples.points.view(), samples.normals.view(), plain));
    };
    EXPECT_EQ(same(), "");
    for (int64_t i = 0; i < 20000; i += 1000)
        for (int axis = 0; axis < 3; ++axis) samples.normals.data()[3 * i + axis] *= -1;
    const Mesh found = reconstruct_surface(samples.points.view(), samples.normals.view());
    EXPECT_EQ(euler_of(found), 2);
    EXPECT_LT(geometry::mesh_distance(found, sphere(5), 20000).largest, 0.05);  // two spacings
}

TEST(GeometryReconstruct, NoiseIsAveraged) {
    const Mesh mesh = sphere(5);
    const Samples samples = samples_of(mesh, 20000, 0.01f);
    ReconstructOptions options;
    options.softening = 5;
    const Mesh found = reconstruct_surface(samples.points.view(), samples.normals.view(), options);
    EXPECT_EQ(not_closed_manifold(found), "");
    EXPECT_EQ(euler_of(found), 2);
    EXPECT_LT(mean_distance(found, mesh), 0.005);
}

TEST(GeometryReconstruct, HolesAreClosed) {
    const Mesh mesh = sphere(5);
    const Samples all = samples_of(mesh, 20000);
    std::vector<float> points, normals;
    for (int64_t i = 0; i < all.points.size(0); ++i) {
        if (all.points.data()[3 * i + 2] > 0.9f) continue;  // without its cap
        points.insert(points.end(), all.points.data() + 3 * i, all.points.data() + 3 * i + 3);
        normals.insert(normals.end(), all.normals.data() + 3 * i, all.normals.data() + 3 * i + 3);
    }
    const auto n = static_cast<int64_t>(points.size()) / 3;
    const Mesh found =
        reconstruct_surface(View<const float, 2>(points.data(), {n, 3}), View<const float, 2>(normals.data(), {n, 3}));
    EXPECT_EQ(not_closed_manifold(found), "");
    EXPECT_EQ(euler_of(found), 2);
    EXPECT_LT(mean_distance(found, mesh), 0.01);
}

// Whatever comes in, what comes out is closed: an open sheet, points and normals without sense, few points.
TEST(GeometryReconstruct, AlwaysClosed) {
    const Rng rng(8);
    int64_t faces = 0;
    for (int round = 0; round < 12; ++round) {
        const int64_t n = round % 3 == 0 ? 4 : round % 3 == 1 ? 50 : 2000;
        Array<float, 2> points({n, 3}), normals({n, 3});
        for (int64_t i = 0; i < 3 * n; ++i) {
            points.data()[i] = rng.uniform(10000 * round + i) * (round < 6 || i % 3 < 2 ? 1.0f : 1e-3f);
            normals.data()[i] = round < 6 ? points.data()[i] - 0.5f : static_cast<float>(i % 3 == 2);
        }
        ReconstructOptions options;
        options.resolution = round % 2 == 0 ? 0 : 40;
        const Mesh found = reconstruct_surface(points.view(), normals.view(), options);
        EXPECT_EQ(not_closed_manifold(found), "") << "round " << round;
        faces += found.faces();
    }
    EXPECT_GT(faces, 10000);
}

TEST(GeometryReconstruct, ResolutionScaleAndPlace) {
    const Mesh mesh = sphere(4);
    const Samples samples = samples_of(mesh, 5000);
    ReconstructOptions options;
    options.resolution = 20;
    const Mesh coarse = reconstruct_surface(samples.points.view(), samples.normals.view(), options);
    options.resolution = 60;
    const Mesh fine = reconstruct_surface(samples.points.view(), samples.normals.view(), options);
    EXPECT_NEAR(static_cast<double>(fine.faces()) / static_cast<double>(coarse.faces()), 9, 1);
    Samples moved{samples.points.clone(), samples.normals.clone()};
    for (int64_t i = 0; i < 15000; ++i) {
        moved.points.data()[i] = moved.points.data()[i] * 1024 + (i % 3 == 0 ? 65536.0f : 0);
        moved.normals.data()[i] *= 7;
    }
    const Mesh far = reconstruct_surface(moved.points.view(), moved.normals.view(), options);
    EXPECT_EQ(not_closed_manifold(far), "");
    EXPECT_NEAR(volume_of(far) / volume_of(fine) * 0x1p-30, 1, 1e-3);
    double sum = 0;
    for (int64_t i = 0; i < far.vertices.size(); ++i) sum += far.vertices.world(i, 0);
    EXPECT_NEAR(sum / static_cast<double>(far.vertices.size()), 65536, 10);
}

TEST(GeometryReconstruct, SmallPartsMayBeLeftOut) {
    const Samples large = samples_of(sphere(4), 6000), small = samples_of(scaled(sphere(3), 0.1f), 300);
    Array<float, 2> points({6300, 3}), normals({6300, 3});
    for (int64_t i = 0; i < 3 * 6300; ++i) {
        const bool first = i < 3 * 6000;
        points.data()[i] = first ? large.points.data()[i] : small.points.data()[i - 18000] + 2;
        normals.data()[i] = first ? large.normals.data()[i] : small.normals.data()[i - 18000];
    }
    ReconstructOptions options;
    EXPECT_EQ(geometry::connected_components(reconstruct_surface(points.view(), normals.view(), options)).size(), 2);
    options.min_component = 0.1;
    const Mesh one = reconstruct_surface(points.view(), normals.view(), options);
    EXPECT_EQ(geometry::connected_components(one).size(), 1);
    EXPECT_EQ(not_closed_manifold(one), "");
}

TEST(GeometryReconstruct, ThreadsDoNotMatter) {
    const Samples samples = samples_of(wavy_torus(40, 40), 5000);
    const Samples thin = samples_of(box_between({0, 0, 0}, {1, 1, 0.01f}), 5000);
    expect_same_on_threads([&] {
        Mesh mesh = reconstruct_surface(samples.points.view(), samples.normals.view());
        std::vector<Array<float, 2>> results;
        results.push_back(std::move(mesh.vertices.positions));
        results.push_back(reconstruct_surface(thin.points.view(), thin.normals.view()).vertices.positions.clone());
        return results;
    });
}

// A fifth of the points for which the same bound is promised.
TEST(GeometryReconstruct, RealShapes) {
    STIPPLE_NEEDS_DATA("upsample_dev/meshes");
    const std::optional<std::string> folder = data_file("upsample_dev/meshes");
    int shapes = 0;
    for (const auto& file : std::filesystem::directory_iterator(*folder)) {
        io::Warnings warnings;
        const Mesh mesh = io::load_mesh(file.path().string(), {}, warnings);
        const Samples samples = samples_of(mesh, 20000);
        const Mesh found = reconstruct_surface(samples.points.view(), samples.normals.view());
        const Bounds bounds = bounds_of(mesh.vertices);
        const double diagonal =
            std::hypot(bounds.max[0] - bounds.min[0], bounds.max[1] - bounds.min[1], bounds.max[2] - bounds.min[2]);
        EXPECT_EQ(not_closed_manifold(found), "") << file.path();
        EXPECT_LT(mean_distance(mesh, found), 0.003 * diagonal) << file.path();
        EXPECT_LT(mean_distance(found, mesh), 0.003 * diagonal) << file.path();
        ++shapes;
    }
    EXPECT_EQ(shapes, 14);
}

TEST(GeometryReconstruct, MistakesAreNamed) {
    Samples samples = samples_of(sphere(3), 100);
    const auto message = [&](int64_t n, const ReconstructOptions& options = {}) {
        return bad_argument_of([&] {
            reconstruct_surface(samples.points.view().slice(0, n), samples.normals.view().slice(0, n), options);
        });
    };
    EXPECT_EQ(message(0), "reconstruct_surface: 0 of 0 points are finite with a normal, at least 4 are needed");
    EXPECT_EQ(message(1), "reconstruct_surface: 1 of 1 points are finite with a normal, at least 4 are needed");
    ReconstructOptions options;
    options.resolution = -1;
    EXPECT_EQ(message(100, options), "resolution must be 0 to 1048576, got -1");
    options.resolution = 0;
    options.k = 0;
    EXPECT_EQ(message(100, options), "area_k must be 1 to 127, got 0");
    options.k = 16;
    options.softening = -1;
    EXPECT_EQ(message(100, options), "softening must be from 0, got -1");
    options.softening = 2;
    options.accuracy = 0;
    EXPECT_EQ(message(100, options), "accuracy must be above 0, got 0");
    options.accuracy = 2;
    options.thinnest = 3;
    EXPECT_EQ(message(100, options), "thinnest must be 0 to 2, got 3");
    options.thinnest = 2;
    options.min_component = 2;
    EXPECT_EQ(message(100, options), "min_component must be 0 to 1, got 2");
    EXPECT_EQ(bad_argument_of([&] { reconstruct_surface(samples.points.view(), samples.normals.view().slice(0, 9)); }),
              "reconstruct_surface: points [100, 3] and normals [9, 3] must be [n, 3] without gaps");
    for (float& x : samples.normals.span()) x = -x;
    EXPECT_EQ(message(100), "reconstruct_surface: the normals point inwards");
    for (float& x : samples.points.span()) x = 1;
    EXPECT_EQ(message(100), "reconstruct_surface: half of the points lie in one place");
    for (float& x : samples.normals.span()) x = 0;
    samples.points.data()[0] = NAN;
    EXPECT_EQ(message(100), "reconstruct_surface: 0 of 100 points are finite with a normal, at least 4 are needed");
}

}  // namespace
}  // namespace stipple::test
