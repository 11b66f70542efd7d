#include "stipple/geometry/signed_distance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/geometry/geometry.h"
#include "tests/support/not_finite.h"

namespace stipple::test {
namespace {

using geometry::ClosestPoints;
using geometry::is_inside;
using geometry::MeshIndex;
using geometry::signed_distance;
using geometry::WindingIndex;

class GeometrySignedDistance : public OnDevice {
protected:
    Array<float, 1> distances(const Mesh& mesh, const Array<float, 2>& queries) const {
        const Mesh there = upload(mesh);
        const Array<float, 2> asked = upload(queries);
        Array<float, 1> found({queries.size(0)}, device());
        ClosestPoints outputs;
        outputs.distances = found.view();
        signed_distance(MeshIndex(there), WindingIndex(there), asked.view(), outputs);
        return download(found);
    }
    Array<uint8_t, 1> inside(const Mesh& mesh, const Array<float, 2>& queries) const {
        const Mesh there = upload(mesh);
        const Array<float, 2> asked = upload(queries);
        Array<uint8_t, 1> found({queries.size(0)}, device());
        is_inside(WindingIndex(there), asked.view(), found.view());
        return download(found);
    }
};
STIPPLE_ON_EVERY_DEVICE(GeometrySignedDistance);

/// Of the box [0, 1]^3.
float box_distance(const float* q) {
    float outside = 0, inside = -kInfinity;
    for (int axis = 0; axis < 3; ++axis) {
        const float beyond = std::max(-q[axis], q[axis] - 1);
        outside += std::max(beyond, 0.0f) * std::max(beyond, 0.0f);
        inside = std::max(inside, beyond);
    }
    return inside > 0 ? std::sqrt(outside) : inside;
}

TEST_P(GeometrySignedDistance, IsThatOfABox) {
    const Array<float, 2> queries = uniform_points(2000, -0.5f, 1.5f);
    const Array<float, 1> found = distances(cube(), queries);
    const Array<uint8_t, 1> sides = inside(cube(), queries);
    int64_t within = 0;
    for (int64_t i = 0; i < queries.size(0); ++i) {
        const float expected = box_distance(queries.data() + 3 * i);
        EXPECT_NEAR(found.data()[i], expected, 1e-6) << i;
        EXPECT_EQ(sides.data()[i], expected < 0) << i;
        within += sides.data()[i];
    }
    EXPECT_NEAR(static_cast<double>(within), 250, 60);  // an eighth of the space
}

TEST_P(GeometrySignedDistance, SurvivesHolesAndDuplicateFaces) {
    const Mesh whole = sphere(5);
    std::vector<int32_t> corners;
    for (int64_t i = 0; i < whole.faces();
         ++i) {  // one in forty is missing, one in forty is there twice, reversed once
        const int32_t* t = whole.triangles.data() + 3 * i;
        if (i % 40 != 0) corners.insert(corners.end(), t, t + 3);
        if (i % 40 == 1) corners.insert(corners.end(), {t[0], t[1], t[2], t[0], t[2], t[1]});
    }
    const auto positions = whole.vertices.positions.span();
    const Mesh messy = make_mesh({positions.begin(), positions.end()}, corners);
    const Array<float, 2> queries = uniform_points(3000, -1.2f, 1.2f);
    const Array<float, 1> found = distances(messy, queries);
    for (int64_t i = 0; i < queries.size(0); ++i) {
        const float* q = queries.data() + 3 * i;
        const float expected = std::hypot(q[0], q[1], q[2]) - 1;
        if (std::abs(expected) < 0.05f) continue;  // an edge is that long: at a hole the side is open
        EXPECT_NEAR(found.data()[i], expected, 0.02) << i;
    }
}

TEST_P(GeometrySignedDistance, FillsTheOtherOutputsAsClosestPointDoes) {
    const Mesh there = upload(sphere(3));
    const MeshIndex index(there);
    const Array<float, 2> asked = upload(uniform_points(200, -1.2f, 1.2f));
    Array<float, 1> plain({200}, device()), with_sign({200}, device());
    Array<int32_t, 1> faces({200}, device()), same_faces({200}, device());
    ClosestPoints outputs;
    outputs.distances = plain.view();
    outputs.faces = faces.view();
    closest_point(index, asked.view(), outputs);
    outputs.distances = with_sign.view();
    outputs.faces = same_faces.view();
    signed_distance(index, WindingIndex(there), asked.view(), outputs);
    const auto a = download(plain), b = download(with_sign);
    const auto f = download(faces), g = download(same_faces);
    for (int64_t i = 0; i < 200; ++i) {
        EXPECT_EQ(a.data()[i], std::abs(b.data()[i]));
        EXPECT_EQ(f.data()[i], g.data()[i]);
    }
}

TEST_P(GeometrySignedDistance, NonFiniteQueriesAndEmptyMeshes) {
    Array<float, 2> queries({3, 3});
    const float rows[] = {kNan, 0, 0, 0.5f, 0.5f, 0.5f, 0, kInfinity, 0};
    std::copy(rows, rows + 9, queries.data());
    const Array<float, 1> found = distances(cube(), queries);
    EXPECT_EQ(found.data()[0], kInfinity);
    EXPECT_NEAR(found.data()[1], -0.5, 1e-6);
    EXPECT_EQ(found.data()[2], kInfinity);
    const Array<uint8_t, 1> sides = inside(cube(), queries);
    EXPECT_EQ(std::vector<uint8_t>(sides.data(), sides.data() + 3), (std::vector<uint8_t>{0, 1, 0}));
    const Array<float, 1> none = distances(make_mesh({}, {}), queries);
    for (float distance : none.span()) EXPECT_EQ(distance, kInfinity);
    EXPECT_EQ(distances(cube(), Array<float, 2>({0, 3})).elements(), 0);
}

TEST_P(GeometrySignedDistance, MistakesAreNamed) {
    const Mesh there = upload(cube());
    const MeshIndex index(there);
    const WindingIndex winding(there);
    const Array<float, 2> queries({4, 3}, device()), wide({4, 2}, device());
    Array<uint8_t, 1> sides({3}, device());
    EXPECT_EQ(bad_argument_of([&] { signed_distance(index, winding, queries.view(), {}); }),
              "signed_distance: distances must be [4], got [0]");
    EXPECT_EQ(bad_argument_of([&] { signed_distance(index, winding, wide.view(), {}); }),
              "signed_distance: queries must be [n, 3] without gaps, got [4, 2]");
    EXPECT_EQ(bad_argument_of([&] { is_inside(winding, queries.view(), sides.view()); }),
              "is_inside: inside must be [4], got [3]");
}

TEST(GeometrySignedDistanceCpu, ThreadsDoNotMatter) {
    expect_same_on_threads([] {
        const Mesh mesh = wavy_torus(60, 60);
        const Array<float, 2> queries = uniform_points(3000, -1.3f, 1.3f);
        std::vector<Array<float, 2>> results;
        results.emplace_back(std::array<int64_t, 2>{3000, 1});
        ClosestPoints outputs;
        outputs.distances = View<float, 1>(results[0].data(), {3000});
        signed_distance(MeshIndex(mesh), WindingIndex(mesh), queries.view(), outputs);
        return results;
    });
}

}  // namespace
}  // namespace stipple::test
