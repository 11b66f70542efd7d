// The parts of watertight(): which voxels a triangle touches, which are outside, the surface between.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/geometry/mesh/triangle_voxels.h"
#include "stipple/geometry/mesh_check.h"
#include "stipple/geometry/watertight/shell_cleanup.h"

namespace stipple {

bool operator==(const Vec3d& a, const Vec3d& b) {
    return a.x == b.x && a.y == b.y && a.z == b.z;
}

}  // namespace stipple

namespace stipple::test {
namespace {

using geometry::ShellVoxels;
using geometry::TrianglePlaces;
using Voxel = std::array<int32_t, 3>;

std::set<Voxel> visited(const TrianglePlaces& places, double margin) {
    std::set<Voxel> voxels;
    geometry::visit_touched_voxels(places, margin, [&](int32_t x, int32_t y, int32_t z) {
        EXPECT_TRUE(voxels.insert({x, y, z}).second) << "twice";
    });
    return voxels;
}

/// Whether a triangle touches a box, by clipping it with the six sides.
bool touches(const TrianglePlaces& places, const Voxel& voxel, double margin) {
    std::vector<std::array<double, 3>> polygon(places.begin(), places.end());
    for (int side = 0; side < 6 && !polygon.empty(); ++side) {
        const int k = side / 2;
        const double sign = side % 2 == 0 ? 1 : -1;
        const double limit = side % 2 == 0 ? voxel[k] - margin : -(voxel[k] + 1 + margin);
        std::vector<std::array<double, 3>> kept;
        for (size_t i = 0; i < polygon.size(); ++i) {
            const std::array<double, 3>&p = polygon[i], &q = polygon[(i + 1) % polygon.size()];
            const double a = sign * p[k] - limit, b = sign * q[k] - limit;
            if (a >= 0) kept.push_back(p);
            if ((a < 0) == (b < 0)) continue;
            std::array<double, 3> cut = {};
            for (int j = 0; j < 3; ++j) cut[j] = p[j] + a / (a - b) * (q[j] - p[j]);
            cut[k] = sign * limit;
            kept.push_back(cut);
        }
        polygon = kept;
    }
    return !polygon.empty();
}

TEST(TriangleVoxels, AreThoseThatClippingFinds) {
    const Rng rng(5);
    uint64_t draw = 0;
    for (int trial = 0; trial < 400; ++trial) {
        const double size = trial % 4 == 0 ? 1 : trial % 4 == 1 ? 3 : 8;
        TrianglePlaces places;
        for (auto& p : places)
            for (double& x : p) x = 2 + size * rng.uniform(draw++);
        if (trial % 7 == 1) places[2] = places[1];                           // a segment
        if (trial % 7 == 2) places[1] = places[2] = places[0];               // a point
        if (trial % 7 == 3) places[0][2] = places[1][2] = places[2][2] = 4;  // between two layers
        if (trial % 7 == 4)
            for (int k = 0; k < 3; ++k) places[2][k] = (places[0][k] + places[1][k]) / 2 + 1e-7;  // a sliver
        if (trial % 7 == 5)
            for (auto& p : places) p = {std::round(p[0]), std::round(p[1]), std::round(p[2])};
        const std::set<Voxel> found = visited(places, 0.01);
        EXPECT_FALSE(found.empty());
        for (int32_t z = 0; z < 12; ++z)
            for (int32_t y = 0; y < 12; ++y)
                for (int32_t x = 0; x < 12; ++x) {
                    const Voxel voxel = {x, y, z};
                    ASSERT_GE(found.count(voxel), touches(places, voxel, 0.01 - 1e-6)) << trial;
                    ASSERT_LE(found.count(voxel), touches(places, voxel, 0.01 + 1e-6)) << trial;
                }
    }
}

/// Voxels of which about one in `one_in` is touched, none on the border.
ShellVoxels random_voxels(std::array<int32_t, 3> size, uint32_t one_in, uint64_t seed) {
    ShellVoxels voxels;
    voxels.size = size;
    const Rng rng(seed);
    uint64_t draw = 0;
    for (int32_t z = 0; z < size[2]; ++z)
        for (int32_t y = 0; y < size[1]; ++y)
            for (int32_t x = 0; x < size[0]; ++x) {
                geometry::ShellBlock block;
                bool any = false;
                for (int i = 0; i < 512; ++i) {
                    const int32_t at[3] = {8 * x + i % 8, 8 * y + i / 8 % 8, 8 * z + i / 64};
                    bool border = false;
                    for (int k = 0; k < 3; ++k) border |= at[k] == 0 || at[k] == 8 * size[k] - 1;
                    if (border || rng.below(draw++, one_in) != 0) continue;
                    block.touched[i / 64] |= uint64_t{1} << (i % 64);
                    any = true;
                }
                voxels.slots.push_back(any ? static_cast<int32_t>(voxels.blocks.size()) : ShellVoxels::kEnclosed);
                if (any) voxels.blocks.push_back(block);
            }
    return voxels;
}

enum class What { touched, outside };
bool is(const ShellVoxels& voxels, What what, Voxel at) {
    const int32_t slot = voxels.slot(at[0] >> 3, at[1] >> 3, at[2] >> 3);
    if (slot < 0) return what == What::outside && slot == ShellVoxels::kOutside;
    const auto& block = voxels.blocks[static_cast<size_t>(slot)];
    const auto& words = what == What::touched ? block.touched : block.outside;
    return words[at[2] & 7] >> (8 * (at[1] & 7) + (at[0] & 7)) & 1;
}

template <class F>
void for_each_voxel(const ShellVoxels& voxels, F f) {
    for (int32_t z = 0; z < 8 * voxels.size[2]; ++z)
        for (int32_t y = 0; y < 8 * voxels.size[1]; ++y)
            for (int32_t x = 0; x < 8 * voxels.size[0]; ++x) f(Voxel{x, y, z});
}

TEST(ShellVoxels, OutsideIsWhatAPlainSearchReaches) {
    for (uint32_t one_in : {2, 3, 4, 700}) {
        ShellVoxels voxels = random_voxels({3, 2, 3}, one_in, one_in);
        std::set<Voxel> reached = {{0, 0, 0}};
        std::vector<Voxel> work = {{0, 0, 0}};
        while (!work.empty()) {
            const Voxel at = work.back();
            work.pop_back();
            for (int i = 0; i < 6; ++i) {
                Voxel next = at;
                next[i / 2] += i % 2 * 2 - 1;
                const int k = i / 2;
                if (next[k] < 0 || next[k] >= 8 * voxels.size[k] || is(voxels, What::touched, next)) continue;
                if (reached.insert(next).second) work.push_back(next);
            }
        }
        geometry::reach_from_outside(voxels);
        for_each_voxel(voxels, [&](Voxel at) {
            ASSERT_EQ(is(voxels, What::outside, at), reached.count(at) == 1) << at[0] << " " << at[1] << " " << at[2];
        });
    }
}

/// Hollow balls of many sizes, one over the other, each with a hole of its own width; all blocks have bits.
ShellVoxels punctured_balls(std::array<int32_t, 3> size, uint64_t seed) {
    ShellVoxels voxels = random_voxels(size, 1, 0);
    for (auto& block : voxels.blocks) block.touched = {};
    const Rng rng(seed);
    for (uint64_t ball = 0; ball < 6; ++ball) {
        double middle[3], way[3], length = 0;
        for (int k = 0; k < 3; ++k) {
            middle[k] = 8 * size[k] * (0.3 + 0.4 * rng.uniform(16 * ball + k));
            way[k] = rng.normal(16 * ball + 4 + k);
            length += way[k] * way[k];
        }
        const double radius = 4 + 8 * rng.uniform(16 * ball + 8), opening = 0.7 + 0.3 * rng.uniform(16 * ball + 9);
        for_each_voxel(voxels, [&](Voxel at) {
            double d[3], along = 0;
            for (int k = 0; k < 3; ++k) d[k] = at[k] + 0.5 - middle[k], along += d[k] * way[k] / std::sqrt(length);
            const double distance = std::hypot(d[0], d[1], d[2]);
            if (std::abs(distance - radius) > 0.9 || along > opening * radius) return;
            const int32_t slot = voxels.slot(at[0] >> 3, at[1] >> 3, at[2] >> 3);
            voxels.blocks[slot].touched[at[2] & 7] |= uint64_t{1} << (8 * (at[1] & 7) + (at[0] & 7));
        });
    }
    return voxels;
}

TEST(ShellVoxels, WhatIsOutsideForAWidthIsOutsideForASmallerOne) {
    int64_t closed = 0;
    for (uint64_t seed = 0; seed < 8; ++seed) {
        ShellVoxels voxels = punctured_balls({5, 6, 5}, seed);
        geometry::reach_from_outside(voxels);
        std::vector<ShellVoxels> by_width = {voxels};
        for (double width : {0.5, 1.75, 3.0, 4.5, 6.0, 9.0, 14.0, 30.0}) {
            geometry::reach_through_gaps(voxels, width);
            by_width.push_back(voxels);
        }
        for_each_voxel(voxels, [&](Voxel at) {
            for (size_t i = 1; i < by_width.size(); ++i) {
                const bool now = is(by_width[i], What::outside, at), before = is(by_width[i - 1], What::outside, at);
                ASSERT_TRUE(!now || (before && !is(voxels, What::touched, at))) << seed << " " << i;
                closed += before && !now;
            }
        });
    }
    EXPECT_GT(closed, 10000);
}

Mesh to_mesh(const geometry::ShellMesh& shell) {
    Mesh mesh;
    mesh.vertices = PointCloud(static_cast<int64_t>(shell.positions.size()));
    for (size_t i = 0; i < 3 * shell.positions.size(); ++i)
        mesh.vertices.positions.data()[i] = static_cast<float>(shell.positions[i / 3][i % 3]);
    mesh.triangles = Array<int32_t, 2>({static_cast<int64_t>(shell.triangles.size()), 3});
    std::memcpy(mesh.triangles.data(), shell.triangles.data(), shell.triangles.size() * 12);
    return mesh;
}

// Noise of voxels has every arrangement around a corner, and every way in which surface meets itself.
TEST(ShellSurface, IsTheBoundaryOfAnyVoxels) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
        const uint32_t one_in = seed % 4 == 3 ? 300 : 2 + static_cast<uint32_t>(seed % 4);
        ShellVoxels voxels = random_voxels({2, 3, 2}, one_in, seed);
        seed % 2 == 0 ? geometry::reach_everything(voxels) : geometry::reach_from_outside(voxels);
        int64_t solid = 0, exposed = 0;
        for_each_voxel(voxels, [&](Voxel at) {
            if (is(voxels, What::outside, at)) return;
            ++solid;
            for (int i = 0; i < 6; ++i) {
                Voxel next = at;
                next[i / 2] += i % 2 * 2 - 1;
                exposed += is(voxels, What::outside, next);
            }
        });
        const geometry::ShellSurface surface = geometry::extract_surface(voxels);
        const Mesh mesh = to_mesh(geometry::place_surface(surface, voxels));
        const geometry::MeshCheck check = geometry::check_mesh(mesh);
        EXPECT_TRUE(check.is_watertight(mesh)) << seed << ": " << check.nonmanifold_edges << " edges";
        EXPECT_EQ(check.unreferenced_vertices, 0);
        EXPECT_EQ(check.duplicate_faces, 0);
        EXPECT_NEAR(check.volume, static_cast<double>(solid), 1e-6);
        EXPECT_NEAR(check.area, static_cast<double>(exposed), 1e-6);
        for (uint8_t lid : surface.lid) ASSERT_EQ(lid, 0);
    }
}

// Whatever vertices have met: what is left is a manifold of the same kind.
TEST(ShellCleanup, KeepsTheTopology) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
        ShellVoxels voxels = random_voxels({2, 2, 2}, seed % 3 == 2 ? 40 : 3, seed);
        geometry::reach_everything(voxels);
        geometry::ShellMesh shell = geometry::place_surface(geometry::extract_surface(voxels), voxels);
        const geometry::MeshCheck before = geometry::check_mesh(to_mesh(shell));
        for (Vec3d& p : shell.positions)
            for (int k = 0; k < 3; ++k) p[k] = seed % 2 == 0 ? 3 * std::floor(p[k] / 3) : p[k] * 0.05;
        const size_t vertices = shell.positions.size();
        geometry::collapse_short_edges(shell, 0.06);
        EXPECT_LT(shell.positions.size(), vertices);
        const Mesh mesh = to_mesh(shell);
        const geometry::MeshCheck after = geometry::check_mesh(mesh);
        EXPECT_TRUE(after.is_watertight(mesh)) << seed;
        EXPECT_EQ(after.unreferenced_vertices, 0);
        EXPECT_EQ(after.duplicate_faces, 0);
        EXPECT_EQ(after.components, before.components);
        EXPECT_EQ(after.euler, before.euler);
    }
}

TEST(ShellSurface, ThreadsDoNotMatter) {
    ShellVoxels voxels = random_voxels({4, 4, 4}, 3, 8);
    geometry::reach_everything(voxels);
    const int before = threads();
    set_threads(1);
    const geometry::ShellSurface one = geometry::extract_surface(voxels);
    set_threads(3);
    const geometry::ShellSurface three = geometry::extract_surface(voxels);
    set_threads(before);
    EXPECT_EQ(one.places, three.places);
    EXPECT_EQ(one.quads, three.quads);
    EXPECT_EQ(one.triangles, three.triangles);
    EXPECT_GT(one.triangles.size(), 0u);
}

}  // namespace
}  // namespace stipple::test
