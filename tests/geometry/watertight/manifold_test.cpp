#include "tests/geometry/manifold.h"

#include <gtest/gtest.h>

#include "tests/geometry/geometry.h"

namespace stipple::test {
namespace {

// The judge of other tests must be able to say no.
TEST(GeometryManifoldCheck, NamesWhatIsWrong) {
    EXPECT_EQ(not_closed_manifold(cube()), "");
    EXPECT_NEAR(volume_of(cube()), 1, 1e-12);
    const std::vector<float> places(3 * 9, 0);
    const auto verdict = [&](const std::vector<int32_t>& triangles) {
        return not_closed_manifold(make_mesh(places, triangles));
    };
    const std::vector<int32_t> tetrahedron = {0, 2, 1, 0, 1, 3, 1, 2, 3, 2, 0, 3};
    EXPECT_EQ(verdict(tetrahedron), "");
    EXPECT_EQ(verdict({0, 2, 1, 0, 1, 3, 1, 2, 3}), "an edge has one face");
    EXPECT_EQ(verdict({0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 2, 3}), "two faces run along an edge one way");
    EXPECT_EQ(verdict({0, 0, 1}), "a face has a vertex twice");
    std::vector<int32_t> touching = tetrahedron;  // a second one that shares vertex 0
    for (int32_t v : tetrahedron) touching.push_back(v == 0 ? 0 : v + 3);
    EXPECT_EQ(verdict(touching), "the faces of a vertex are not one fan");
    const Mesh sheet = make_mesh(places, {0, 1, 2, 0, 2, 3});
    EXPECT_EQ(not_manifold(sheet, [](int32_t, int32_t) { return true; }), "");
    const Mesh two_sheets = make_mesh(places, {0, 1, 2, 0, 3, 4});
    EXPECT_EQ(not_manifold(two_sheets, [](int32_t, int32_t) { return true; }), "the faces of a vertex are not one fan");
}

}  // namespace
}  // namespace stipple::test
