// Consistent orientation: closed and open shapes, thin ones, noise, and the data sets where they are there.

#include <cmath>
#include <cstring>

#include "stipple/core/rng.h"
#include "stipple/geometry/cloud/orient_normals_votes.h"
#include "stipple/geometry/normals.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/io/format.h"
#include "tests/geometry/geometry.h"

namespace stipple::test {
namespace {

struct Sampled {
    Array<float, 2> points, truth;  // truth: normals of the faces
};

Sampled sampled(const Mesh& mesh, int64_t n, float noise = 0) {
    geometry::SurfaceSamples samples = geometry::sample_surface(mesh, n, 1);
    Sampled out{std::move(samples.points), Array<float, 2>({n, 3})};
    for (int64_t i = 0; i < n; ++i) {
        double e[2][3];
        const int32_t* corner = mesh.triangles.data() + 3 * samples.faces.data()[i];
        for (int axis = 0; axis < 3; ++axis)
            for (int side = 0; side < 2; ++side)
                e[side][axis] = double{mesh.vertices.positions.data()[3 * corner[side + 1] + axis]} -
                                mesh.vertices.positions.data()[3 * corner[0] + axis];
        for (int axis = 0; axis < 3; ++axis) {
            const int y = (axis + 1) % 3, z = (axis + 2) % 3;
            out.truth.data()[3 * i + axis] = static_cast<float>(e[0][y] * e[1][z] - e[0][z] * e[1][y]);
        }
    }
    const Rng rng(5);
    for (int64_t i = 0; i < 3 * n; ++i) out.points.data()[i] += noise * rng.normal(static_cast<uint64_t>(i));
    return out;
}

Array<float, 2> oriented(const Array<float, 2>& points, int k = 16) {
    Array<float, 2> normals({points.size(0), 3});
    geometry::estimate_normals(points.view(), normals.view(), {}, k);
    geometry::orient_consistently(points.view(), normals.view(), k);
    return normals;
}

/// Percent of normals on the side of the true one.
double right(const Array<float, 2>& normals, const Array<float, 2>& truth) {
    int64_t count = 0;
    for (int64_t i = 0; i < normals.size(0); ++i) {
        double cosine = 0;
        for (int axis = 0; axis < 3; ++axis)
            cosine += double{normals.data()[3 * i + axis]} * truth.data()[3 * i + axis];
        count += cosine > 0;
    }
    return 100.0 * static_cast<double>(count) / static_cast<double>(normals.size(0));
}

double right_on(const Mesh& mesh, int64_t n, float noise = 0) {
    const Sampled shape = sampled(mesh, n, noise);
    return right(oriented(shape.points), shape.truth);
}

Mesh moved(Mesh mesh, float x, float y, float z) {
    for (int64_t i = 0; i < mesh.vertices.size(); ++i) {
        mesh.vertices.positions.data()[3 * i] += x;
        mesh.vertices.positions.data()[3 * i + 1] += y;
        mesh.vertices.positions.data()[3 * i + 2] += z;
    }
    return mesh;
}

/// A box of this size about the origin.
Mesh box(float x, float y, float z) {
    Mesh mesh = cube();
    for (int64_t i = 0; i < 8; ++i) {
        const float size[3] = {x, y, z};
        for (int axis = 0; axis < 3; ++axis) {
            float& at = mesh.vertices.positions.data()[3 * i + axis];
            at = (at - 0.5f) * size[axis];
        }
    }
    return mesh;
}

TEST(GeometryOrientNormals, SphereAndTorusPointOutwards) {
    EXPECT_EQ(right_on(sphere(4), 8000), 100);
    EXPECT_EQ(right_on(wavy_torus(64, 64), 20000), 100);
    EXPECT_EQ(right_on(moved(sphere(4), 5000, -3000, 100), 8000), 100);
}

TEST(GeometryOrientNormals, EachPartOnItsOwn) {
    const Sampled a = sampled(sphere(4), 4000), b = sampled(moved(sphere(4), 2.5f, 0, 0), 6000);
    Array<float, 2> points({10000, 3}), truth({10000, 3});
    for (const auto& [whole, first, second] :
         {std::tuple{&points, &a.points, &b.points}, std::tuple{&truth, &a.truth, &b.truth}}) {
        std::copy_n(first->data(), 12000, whole->data());
        std::copy_n(second->data(), 18000, whole->data() + 12000);
    }
    EXPECT_EQ(right(oriented(points), truth), 100);
}

TEST(GeometryOrientNormals, EdgesCornersAndThinPlates) {
    EXPECT_GT(right_on(box(1, 1, 1), 20000), 99.9);
    // 20000 points on an area of 2: one every 0.01. Of plates thinner than two of these, 16 neighbours tell no normal.
    EXPECT_GT(right_on(box(1, 1, 0.05f), 20000), 99.8);
    EXPECT_GT(right_on(box(1, 1, 0.03f), 20000), 99.8);
}

TEST(GeometryOrientNormals, NoiseOfHalfTheSpacing) {
    // 20000 points on the torus, area about 13: one every 0.026.
    EXPECT_GT(right_on(wavy_torus(64, 64), 20000, 0.005f), 99.5);
    EXPECT_GT(right_on(wavy_torus(64, 64), 20000, 0.013f), 99);
}

TEST(GeometryOrientNormals, OpenPlanesAgree) {
    Array<float, 2> points = uniform_points(3000, 0, 1, 2);
    for (int64_t i = 0; i < 3000; ++i) points.data()[3 * i + 2] = 0.2f * points.data()[3 * i];
    Array<float, 2> normals({3000, 3});
    geometry::estimate_normals(points.view(), normals.view(), {});
    const Rng rng(3);
    for (int64_t i = 0; i < 3000; ++i)
        if (rng.below(static_cast<uint64_t>(i), 2))
            for (int axis = 0; axis < 3; ++axis) normals.data()[3 * i + axis] *= -1;
    geometry::orient_consistently(points.view(), normals.view());
    for (int64_t i = 0; i < 3000; ++i) EXPECT_GT(normals.data()[3 * i + 2], 0.9f) << i;
}

TEST(GeometryOrientNormals, ResultDoesNotDependOnTheSignsItGets) {
    const Sampled torus = sampled(wavy_torus(48, 48), 6000);
    const Array<float, 2> want = oriented(torus.points);
    Array<float, 2> normals = want.clone();
    for (int64_t i = 0; i < 6000; i += 2)
        for (int axis = 0; axis < 3; ++axis) normals.data()[3 * i + axis] *= -1;
    geometry::orient_consistently(torus.points.view(), normals.view());
    EXPECT_EQ(std::memcmp(normals.data(), want.data(), 6000 * 12), 0);
}

TEST(GeometryOrientNormals, WhatHasNoNormalStaysAndTakesNoPart) {
    Sampled shape = sampled(sphere(4), 5000);
    Array<float, 2> normals({5000, 3});
    for (int64_t i = 0; i < 5000; i += 11) shape.points.data()[3 * i] = NAN;
    geometry::estimate_normals(shape.points.view(), normals.view(), {});
    normals.data()[3 * 7] = NAN;
    for (int axis = 0; axis < 3; ++axis) normals.data()[3 * 8 + axis] = 0;
    geometry::orient_consistently(shape.points.view(), normals.view());
    EXPECT_TRUE(std::isnan(normals.data()[3 * 7]));
    for (int64_t i = 0; i < 5000; ++i) {
        if (i == 7) continue;
        double cosine = 0;
        for (int axis = 0; axis < 3; ++axis)
            cosine += double{normals.data()[3 * i + axis]} * shape.truth.data()[3 * i + axis];
        if (i % 11 == 0 || i == 8) {
            for (int axis = 0; axis < 3; ++axis) {
                EXPECT_EQ(normals.data()[3 * i + axis], 0);
                EXPECT_FALSE(std::signbit(normals.data()[3 * i + axis]));
            }
        } else {
            EXPECT_GT(cosine, 0) << i;
        }
    }
}

TEST(GeometryOrientNormals, FewPoints) {
    for (const int64_t n : {0, 1, 2, 3, 5}) {
        const Array<float, 2> points = uniform_points(n, 0, 1);
        Array<float, 2> normals({n, 3});
        for (int64_t i = 0; i < n; ++i) {
            const float down[3] = {0, 0, i % 2 ? 1.0f : -1.0f};
            std::copy_n(down, 3, normals.data() + 3 * i);
        }
        geometry::orient_consistently(points.view(), normals.view());
        for (int64_t i = 0; i < n; ++i) EXPECT_EQ(std::fabs(normals.data()[3 * i + 2]), 1);
    }
    Array<float, 2> same({50, 3}), normals({50, 3});  // one place: still nothing to divide by
    for (float& x : same.span()) x = 2;
    for (int64_t i = 0; i < 150; ++i) normals.data()[i] = i % 3 == 2 ? (i % 2 ? 1.0f : -1.0f) : 0.0f;
    geometry::orient_consistently(same.view(), normals.view());
    for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(normals.data()[3 * i + 2], 1);
}

TEST(GeometryOrientNormals, ThreadsDoNotMatter) {
    const Sampled shape = sampled(box(1, 1, 0.03f), 9000);
    expect_same_on_threads([&] {
        std::vector<Array<float, 2>> out;
        out.push_back(oriented(shape.points));
        return out;
    });
}

TEST(GeometryOrientNormals, ShapesOfTheDataSet) {
    // Sheets thinner than about two spacings are a matter of chance; casting, m32 and m60 have many (faces that
    // coincide, fins, tail feathers): 98.6, 97.7 and 98.7 of 100 at 100,000 points.
    for (const auto& [name, least] : std::vector<std::pair<std::string, double>>{
             {"kitten", 99.9}, {"chair", 99.9}, {"camel", 99}, {"elk", 99.5}, {"genus3", 99.9}, {"m60", 97}}) {
        const std::string file = "upsample_dev/meshes/" + name + ".off";
        STIPPLE_NEEDS_DATA(file);
        io::Warnings warnings;
        EXPECT_GE(right_on(io::load(*data_file(file), {}, warnings), 50000), least) << name;
    }
}

TEST(GeometryOrientNormals, NameWhatIsWrong) {
    const Array<float, 2> points = uniform_points(10, 0, 1);
    Array<float, 2> normals({10, 3}), few({9, 3});
    using geometry::orient_consistently;
    EXPECT_EQ(bad_argument_of([&] { orient_consistently(points.view(), few.view()); }),
              "orient_consistently: normals must be [10, 3], got [9, 3]");
    EXPECT_EQ(bad_argument_of([&] { orient_consistently(points.view(), normals.view(), 2); }),
              "orient_consistently: k must be 3 to 128, got 2");
    const Device gpu{DeviceType::cuda, 0};
    EXPECT_EQ(bad_argument_of([&] {
                  orient_consistently(View<const float, 2>(points.data(), {10, 3}, gpu),
                                      View<float, 2>(normals.data(), {10, 3}, gpu));
              }),
              "orient_consistently: points on cuda:0; it runs on the CPU");
}

TEST(GeometryOrientVotes, SumsOutweighSingleEdges) {
    // Two pairs joined by one strong edge against three weaker ones that agree with each other.
    const std::vector<geometry::Vote> votes = {{0, 1, 10}, {2, 3, 10}, {0, 2, 5}, {0, 3, -3}, {1, 2, -3}, {1, 3, -3}};
    const geometry::Signs signs = geometry::settle(4, votes);
    EXPECT_EQ(signs.parts, 1);
    EXPECT_EQ(signs.sign[0], signs.sign[1]);
    EXPECT_EQ(signs.sign[2], signs.sign[3]);
    EXPECT_NE(signs.sign[0], signs.sign[2]);
}

TEST(GeometryOrientVotes, KeepsEveryVoteThatCanBeKeptAndFindsTheParts) {
    // Votes made from hidden signs: all can be kept, in every part.
    const Rng rng(8);
    constexpr int32_t kNodes = 3000, kParts = 3;
    std::vector<geometry::Vote> votes;
    const auto hidden = [&](int32_t node) { return rng.below(static_cast<uint64_t>(node), 2) ? 1 : -1; };
    for (int32_t i = kParts; i < kNodes; ++i) {
        for (int32_t step = 1; step <= 4 && i >= step * kParts; ++step) {
            const int32_t j = i - step * kParts;  // the same modulo kParts
            const float size = 0.1f + rng.uniform(static_cast<uint64_t>(10000 + 4 * i + step));
            votes.push_back({j, i, size * static_cast<float>(hidden(i) * hidden(j))});
        }
    }
    const geometry::Signs signs = geometry::settle(kNodes, votes);
    EXPECT_EQ(signs.parts, kParts);
    for (const geometry::Vote& vote : votes) {
        EXPECT_GT(vote.weight * static_cast<float>(signs.sign[vote.a] * signs.sign[vote.b]), 0);
        EXPECT_EQ(signs.part[vote.a], signs.part[vote.b]);
    }
    EXPECT_EQ(geometry::settle(0, {}).parts, 0);
    EXPECT_EQ(geometry::settle(2, {}).parts, 2);
}

}  // namespace
}  // namespace stipple::test
