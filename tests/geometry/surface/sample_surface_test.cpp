#include "stipple/geometry/sample_surface.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "stipple/core/rng.h"
#include "stipple/geometry/mesh_normals.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/poisson_disk.h"
#include "tests/geometry/mesh_shapes.h"

namespace stipple::test {
namespace {

using geometry::interpolate;
using geometry::sample_surface;
using geometry::sample_surface_poisson;
using geometry::SurfaceSamples;

/// Equal bit for bit.
bool same(const SurfaceSamples& a, const SurfaceSamples& b) {
    return values_of(a.points) == values_of(b.points) && values_of(a.faces) == values_of(b.faces) &&
           values_of(a.barycentrics) == values_of(b.barycentrics);
}

/// Every sample lies where its face and barycentrics say, within the rounding of float32.
void expect_on_mesh(const Mesh& mesh, const SurfaceSamples& samples) {
    for (int64_t i = 0; i < samples.faces.size(0); ++i) {
        const float* b = samples.barycentrics.data() + 3 * i;
        double sum = 0, place[3] = {};
        for (int c = 0; c < 3; ++c) {
            ASSERT_GE(b[c], 0);
            ASSERT_LE(b[c], 1);
            sum += b[c];
            const int32_t vertex = mesh.triangles.view()(samples.faces.data()[i], c);
            for (int axis = 0; axis < 3; ++axis)
                place[axis] += double{b[c]} * mesh.vertices.positions.view()(vertex, axis);
        }
        ASSERT_NEAR(sum, 1, 2e-7);
        for (int axis = 0; axis < 3; ++axis)
            ASSERT_NEAR(samples.points.data()[3 * i + axis], place[axis], 2e-7 * (1 + std::abs(place[axis])));
    }
}

/// A soup of 40 faces whose areas span five orders of magnitude.
Mesh uneven_mesh() {
    std::vector<std::array<float, 3>> places;
    std::vector<std::array<int32_t, 3>> faces;
    for (int f = 0; f < 40; ++f) {
        const auto size = static_cast<float>(std::pow(10.0, -static_cast<double>(f % 6) / 2.0));
        const auto at = static_cast<float>(f), v = static_cast<float>(3 * f);
        places.insert(places.end(), {{at, 0, 0}, {at + size, 0, size / 3}, {at, size, 0}});
        faces.push_back({static_cast<int32_t>(v), static_cast<int32_t>(v) + 1, static_cast<int32_t>(v) + 2});
    }
    return mesh_of(places, faces);
}

TEST(GeometrySampleSurface, ChoosesFacesByArea) {
    const Mesh mesh = uneven_mesh();
    const int64_t n = 1'000'000;
    const SurfaceSamples samples = sample_surface(mesh, n, 5);
    expect_on_mesh(mesh, samples);
    std::vector<double> counts(40, 0);
    for (const int32_t face : samples.faces.span()) ++counts[face];
    Array<float, 1> areas({40});
    geometry::face_areas(mesh, areas.view());
    const double total = std::accumulate(areas.data(), areas.data() + 40, 0.0);
    double chi_sq = 0;
    for (int f = 0; f < 40; ++f) {
        const double expected = areas.data()[f] / total * n;
        ASSERT_GT(expected, 0.5);
        chi_sq += (counts[f] - expected) * (counts[f] - expected) / expected;
    }
    EXPECT_LT(chi_sq, 72.1);  // 39 degrees of freedom: above by chance once in a thousand seeds
    EXPECT_GT(chi_sq, 15.1);  // and below as often: stratified samples would be
}

TEST(GeometrySampleSurface, IsUniformWithinAFace) {
    const Mesh mesh = mesh_of({{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {{0, 1, 2}});
    const int64_t n = 400'000;
    const SurfaceSamples samples = sample_surface(mesh, n, 9);
    // Of barycentrics of uniform points: mean 1/3, variance 1/18, covariance -1/36.
    double mean[3] = {}, square[3] = {}, product = 0;
    for (int64_t i = 0; i < n; ++i) {
        const float* b = samples.barycentrics.data() + 3 * i;
        for (int c = 0; c < 3; ++c) mean[c] += b[c] / double(n), square[c] += double{b[c]} * b[c] / double(n);
        product += double{b[0]} * b[1] / double(n);
    }
    const double error = 5 / std::sqrt(double(n)) * 0.25;  // five standard errors of numbers that spread by 1/4
    for (int c = 0; c < 3; ++c) {
        EXPECT_NEAR(mean[c], 1.0 / 3, error);
        EXPECT_NEAR(square[c] - mean[c] * mean[c], 1.0 / 18, error);
    }
    EXPECT_NEAR(product - mean[0] * mean[1], -1.0 / 36, error);
    // In 64 cells of equal area.
    std::vector<int64_t> cells(64, 0);
    for (int64_t i = 0; i < n; ++i) {
        const float* b = samples.barycentrics.data() + 3 * i;
        const double r = 1 - b[0], s = r > 0 ? b[1] / r : 0;  // r^2 and s are uniform
        ++cells[std::min(7, static_cast<int>(8 * r * r)) * 8 + std::min(7, static_cast<int>(8 * s))];
    }
    double chi_sq = 0;
    for (const int64_t count : cells) chi_sq += std::pow(double(count) - n / 64.0, 2) / (n / 64.0);
    EXPECT_LT(chi_sq, 103.4);  // 63 degrees of freedom, one in a thousand
}

TEST(GeometrySampleSurface, MomentsOfASphere) {
    const Mesh mesh = geometry::sphere_mesh(2, 5);
    const int64_t n = 200'000;
    const SurfaceSamples samples = sample_surface(mesh, n, 3);
    double mean[3] = {}, square[3] = {};
    for (int64_t i = 0; i < n; ++i)
        for (int axis = 0; axis < 3; ++axis) {
            const double v = samples.points.data()[3 * i + axis];
            mean[axis] += v / double(n), square[axis] += v * v / double(n);
        }
    for (int axis = 0; axis < 3; ++axis) {
        EXPECT_NEAR(mean[axis], 0, 5 * 2 / std::sqrt(3.0 * n));
        EXPECT_NEAR(square[axis], 4.0 / 3, 0.012);  // radius^2 / 3: the mesh lies 0.1 % inside, five standard errors
    }
}

TEST(GeometrySampleSurface, IsAFunctionOfSeedAndIndex) {
    const Mesh mesh = wavy_torus(24);
    const auto [one, three] = on_threads([&] { return sample_surface(mesh, 20'011, 7); });
    EXPECT_TRUE(same(one, three));
    EXPECT_FALSE(same(one, sample_surface(mesh, 20'011, 8)));
    const SurfaceSamples fewer = sample_surface(mesh, 1001, 7);
    EXPECT_TRUE(std::equal(fewer.points.span().begin(), fewer.points.span().end(), one.points.data()));
    const auto [poisson_one, poisson_three] = on_threads([&] { return sample_surface_poisson(mesh, 500, 7); });
    EXPECT_TRUE(same(poisson_one, poisson_three));
}

TEST(GeometrySampleSurface, NeverChoosesFacesWithoutArea) {
    // A point, a segment, three places on a line, a face of area, and the same again at the end.
    const Mesh mesh = mesh_of({{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {0, 3, 0}},
                              {{0, 0, 0}, {0, 1, 1}, {0, 1, 2}, {0, 1, 3}, {2, 1, 0}, {3, 3, 3}, {0, 3, 2}, {1, 1, 0}});
    const SurfaceSamples samples = sample_surface(mesh, 5000, 1);
    for (const int32_t face : samples.faces.span()) EXPECT_TRUE(face == 3 || face == 6) << face;
}

TEST(GeometrySampleSurface, EdgesOfTheRangeOfFloats) {
    for (const float size : {1e-38f, 1e-20f, 1e19f, 1e38f}) {
        const Mesh mesh = mesh_of({{0, 0, 0}, {size, 0, 0}, {0, size, 0}, {0, 0, size}}, {{0, 1, 2}, {0, 2, 3}});
        const SurfaceSamples samples = sample_surface(mesh, 1000, 1);
        const auto first = std::count(samples.faces.data(), samples.faces.data() + 1000, 0);
        EXPECT_NEAR(static_cast<double>(first), 500, 80) << size;
        for (const float v : samples.points.span()) ASSERT_TRUE(v >= 0 && v <= size);
    }
}

TEST(GeometrySampleSurface, ManyFacesOfVeryDifferentSize) {
    // One face has half of the area; the other half is spread over 200 000.
    const int64_t m = 200'001;
    Mesh mesh;
    mesh.vertices = PointCloud(3 * m);
    mesh.triangles = Array<int32_t, 2>({m, 3});
    std::iota(mesh.triangles.data(), mesh.triangles.data() + 3 * m, 0);
    for (int64_t f = 0; f < m; ++f) {
        const float size = f == 77'777 ? std::sqrt(200'000.0f) : 1;
        const float places[9] = {0, 0, 0, size, 0, 0, 0, size, 0};
        std::copy_n(places, 9, mesh.vertices.positions.data() + 9 * f);
    }
    const SurfaceSamples samples = sample_surface(mesh, 100'000, 2);
    int64_t large = 0;
    double sum = 0;
    for (const int32_t face : samples.faces.span()) {
        large += face == 77'777;
        if (face != 77'777) sum += face;
    }
    EXPECT_NEAR(static_cast<double>(large), 50'000, 5 * 158);
    EXPECT_NEAR(sum / static_cast<double>(100'000 - large), 100'000, 5 * 57'735 / std::sqrt(50'000.0));
}

TEST(GeometrySampleSurface, NoSamplesAndNoArea) {
    const Mesh torus = wavy_torus(8);
    const Mesh flat = mesh_of({{0, 0, 0}, {1, 0, 0}, {2, 0, 0}}, {{0, 1, 2}});
    const Mesh empty = mesh_of({}, {});
    for (const Mesh* mesh : {&torus, &flat, &empty}) {
        EXPECT_EQ(sample_surface(*mesh, 0, 1).points.size(0), 0);
        EXPECT_EQ(sample_surface_poisson(*mesh, 0, 1).points.size(0), 0);
    }
    EXPECT_EQ(bad_argument_of([&] { sample_surface(flat, 1, 1); }), "sample_surface: the mesh of 1 faces has no area");
    EXPECT_EQ(bad_argument_of([&] { sample_surface_poisson(empty, 1, 1); }),
              "sample_surface_poisson: the mesh of 0 faces has no area");
    EXPECT_EQ(bad_argument_of([&] { sample_surface(torus, -1, 1); }), "sample_surface: -1 samples");
    EXPECT_EQ(bad_argument_of([&] { sample_surface_poisson(torus, 10, 1, 0.9); }),
              "sample_surface_poisson: oversampling 0.9 of 10 samples; at least 1, at most 715827882 candidates");
    EXPECT_EQ(bad_argument_of([&] { sample_surface_poisson(torus, 1 << 30, 1, 5); }),
              "sample_surface_poisson: oversampling 5 of 1073741824 samples; at least 1, at most 715827882 candidates");
    EXPECT_EQ(bad_argument_of([&] { sample_surface_poisson(torus, 10, 1, NAN); }),
              "sample_surface_poisson: oversampling nan of 10 samples; at least 1, at most 715827882 candidates");
    const geometry::MeshView elsewhere(torus.vertices.positions.view(),
                                       View<const int32_t, 2>(torus.triangles.data(), {1, 3}, {DeviceType::cuda, 0}));
    EXPECT_EQ(bad_argument_of([&] { sample_surface(elsewhere, 1, 1); }),
              "sample_surface: works on the CPU, the mesh is on cuda:0");
}

/// The smallest distance between two samples, in double.
double smallest_spacing(const SurfaceSamples& samples) {
    const int64_t n = samples.points.size(0);
    Array<int32_t, 2> indices({n, 2});
    Array<float, 2> distances({n, 2});
    ops::knn(ops::PointIndex(samples.points.view()), samples.points.view(), indices.view(), distances.view());
    double smallest = std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) smallest = std::min(smallest, std::sqrt(double{distances.data()[2 * i + 1]}));
    return smallest;
}

TEST(GeometrySampleSurfacePoisson, GivesTheExactCountFarApart) {
    const Mesh shapes[] = {
        wavy_torus(64),        geometry::sphere_mesh(3, 4),     geometry::cube_mesh(1, 2, 3), geometry::cylinder_mesh(),
        geometry::cone_mesh(), geometry::torus_mesh(1e-4, 2e-5)};
    for (size_t shape = 0; shape < std::size(shapes); ++shape) {
        const Mesh& mesh = shapes[shape];
        const double area = geometry::surface_area(mesh);
        for (const int64_t n : {101, 1000, 4000}) {
            const SurfaceSamples samples = sample_surface_poisson(mesh, n, static_cast<uint64_t>(n) + shape);
            ASSERT_EQ(samples.points.size(0), n);
            expect_on_mesh(mesh, samples);
            // The densest packing of discs on a plane of this area has this distance between its middles.
            const double largest = 2 * std::sqrt(area / (2 * std::sqrt(3.0) * static_cast<double>(n)));
            EXPECT_GE(smallest_spacing(samples), 0.7 * largest) << "shape " << shape << ", " << n << " samples";
        }
    }
}

TEST(GeometrySampleSurfacePoisson, CoversTheSurface) {
    const Mesh mesh = wavy_torus(64);
    const int64_t n = 2000;
    const SurfaceSamples samples = sample_surface_poisson(mesh, n, 4), dense = sample_surface(mesh, 50'000, 5);
    Array<int32_t, 2> indices({50'000, 1});
    Array<float, 2> dist_sq({50'000, 1});
    ops::knn(ops::PointIndex(samples.points.view()), dense.points.view(), indices.view(), dist_sq.view());
    const double hole = std::sqrt(double{*std::max_element(dist_sq.data(), dist_sq.data() + 50'000)});
    const double radius = ops::poisson_disk_radius_of_area(geometry::surface_area(mesh), n);
    EXPECT_LT(hole, 2 * radius);  // one more sample could be put no further from all than the largest spacing
}

TEST(GeometrySampleSurfacePoisson, FewSamplesAndLittleOversampling) {
    const Mesh mesh = geometry::cube_mesh();
    for (const int64_t n : {1, 2, 3, 7})
        for (const double oversampling : {1.0, 1.01, 5.0}) {
            const SurfaceSamples samples = sample_surface_poisson(mesh, n, 3, oversampling);
            EXPECT_EQ(samples.faces.size(0), n);
            expect_on_mesh(mesh, samples);
        }
    // Two sheets at one place: half of the samples' room is taken by the other side. The count is exact all the same.
    const Mesh sheets = geometry::cube_mesh(1, 1, 1e-6);
    EXPECT_EQ(sample_surface_poisson(sheets, 777, 1).faces.size(0), 777);
}

TEST(GeometrySampleSurface, InterpolatesValuesOfVertices) {
    const Mesh mesh = wavy_torus(20);
    const SurfaceSamples samples = sample_surface(mesh, 3001, 2);
    EXPECT_EQ(values_of(interpolate(mesh, samples, mesh.vertices.positions.view())), values_of(samples.points));
    // A linear function of the place is met to rounding; a constant exactly.
    Array<float, 2> values({mesh.vertices.size(), 2});
    for (int64_t v = 0; v < mesh.vertices.size(); ++v) {
        const float* p = mesh.vertices.positions.data() + 3 * v;
        values.view()(v, 0) = 3 * p[0] - 2 * p[1] + p[2] + 5;
        values.view()(v, 1) = 0.1f;
    }
    const Array<float, 2> found = interpolate(mesh, samples, values.view());
    for (int64_t i = 0; i < 3001; ++i) {
        const float* p = samples.points.data() + 3 * i;
        EXPECT_NEAR(found.view()(i, 0), 3 * p[0] - 2 * p[1] + p[2] + 5, 3e-6);
        EXPECT_EQ(found.view()(i, 1), 0.1f);
    }
}

TEST(GeometrySampleSurface, InterpolationWithoutAFaceIsNaN) {
    const Mesh mesh = mesh_of({{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {{0, 1, 2}});
    const int32_t faces[] = {0, -1, 1};
    const float barycentrics[] = {0.5f, 0.25f, 0.25f, 0, 0, 0, 1, 0, 0};
    const View<const float, 2> b(barycentrics, {2, 3});
    const auto positions = mesh.vertices.positions.view();
    const Array<float, 2> found = interpolate(mesh, View<const int32_t, 1>(faces, {2}), b, positions);
    EXPECT_EQ(found.view()(0, 0), 0.25f);
    for (int axis = 0; axis < 3; ++axis) EXPECT_TRUE(std::isnan(found.view()(1, axis)));
    EXPECT_EQ(bad_argument_of([&] { interpolate(mesh, View<const int32_t, 1>(faces, {3}), b, positions); }),
              "interpolate: barycentrics must be [3, 3], got [2, 3]");
    EXPECT_EQ(bad_argument_of([&] {
                  interpolate(mesh, View<const int32_t, 1>(faces, {3}), View<const float, 2>(barycentrics, {3, 3}),
                              positions);
              }),
              "interpolate: row 2 has face 1 of 1");
    EXPECT_EQ(bad_argument_of([&] { interpolate(mesh, View<const int32_t, 1>(faces, {2}), b, positions.slice(0, 2)); }),
              "interpolate: 2 rows of values for 3 vertices");
}

TEST(GeometrySampleSurface, CloudsCarryTheAttributes) {
    Mesh mesh = mesh_of({{0, 0, 0}, {4, 0, 0}, {0, 4, 0}, {4, 4, 0}}, {{0, 1, 2}, {3, 2, 1}});
    mesh.vertices.origin = {500'000, 4'000'000, 100};
    Attribute normal("normal", DType::f32, 4, 3), color("color", DType::u8, 4, 3), label("label", DType::u8, 4, 1),
        weight("weight", DType::f64, 4, 1), part("part", DType::i32, 2, 1), face_label("label", DType::u16, 2, 1);
    for (int v = 0; v < 4; ++v) {
        const float n[3] = {v == 0 ? 1.0f : 0.0f, 0, v == 0 ? 0.0f : 1.0f};
        for (int c = 0; c < 3; ++c) {
            normal.as<float>()(v, c) = n[c];
            color.as<uint8_t>()(v, c) = static_cast<uint8_t>(80 * v + c);
        }
        label.as<uint8_t>()(v, 0) = static_cast<uint8_t>(10 + v);
        weight.as<double>()(v, 0) = mesh.vertices.positions.view()(v, 0) / 3.0;
    }
    for (int f = 0; f < 2; ++f) {
        part.as<int32_t>()(f, 0) = 100 + f;
        face_label.as<uint16_t>()(f, 0) = static_cast<uint16_t>(7 + f);
    }
    for (Attribute* a : {&normal, &color, &label, &weight}) mesh.vertices.attributes.push_back(std::move(*a));
    mesh.face_attributes.push_back(std::move(part));
    mesh.face_attributes.push_back(std::move(face_label));

    const SurfaceSamples samples = sample_surface(mesh, 500, 1);
    const PointCloud cloud = cloud_of_samples(mesh, sample_surface(mesh, 500, 1));
    validate(cloud);
    EXPECT_EQ(cloud.origin, mesh.vertices.origin);
    EXPECT_EQ(values_of(cloud.positions), values_of(samples.points));
    ASSERT_EQ(cloud.attributes.size(), 6u);
    for (int64_t i = 0; i < 500; ++i) {
        const int32_t face = samples.faces.data()[i];
        const float* b = samples.barycentrics.data() + 3 * i;
        const int32_t* t = mesh.triangles.data() + 3 * face;
        double length = 0, blended = 0;
        for (int c = 0; c < 3; ++c) {
            length += std::pow(find(cloud.attributes, "normal")->value(i, c), 2);
            blended += b[c] * 80.0 * t[c];
        }
        EXPECT_NEAR(length, 1, 1e-6);
        EXPECT_NEAR(find(cloud.attributes, "color")->value(i, 0), blended, 0.5001);
        EXPECT_EQ(find(cloud.attributes, "label")->value(i), 10 + t[std::max_element(b, b + 3) - b]);
        EXPECT_NEAR(find(cloud.attributes, "weight")->value(i), samples.points.data()[3 * i] / 3.0, 1e-6);
        EXPECT_EQ(find(cloud.attributes, "part")->value(i), 100 + face);
        EXPECT_EQ(find(cloud.attributes, "face_label")->value(i), 7 + face);
    }
}

}  // namespace
}  // namespace stipple::test
