#include "tests/geometry/geometry.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/geometry/query/mesh_tree.h"

namespace stipple::test {

Mesh make_mesh(const std::vector<float>& positions, const std::vector<int32_t>& triangles) {
    Mesh mesh;
    mesh.vertices = PointCloud(static_cast<int64_t>(positions.size()) / 3);
    mesh.triangles = Array<int32_t, 2>({static_cast<int64_t>(triangles.size()) / 3, 3});
    std::copy(positions.begin(), positions.end(), mesh.vertices.positions.data());
    std::copy(triangles.begin(), triangles.end(), mesh.triangles.data());
    return mesh;
}

Mesh wavy_torus(int64_t along, int64_t across) {
    constexpr double kTurn = 6.283185307179586;
    std::vector<float> positions;
    std::vector<int32_t> triangles;
    for (int64_t i = 0; i < along; ++i) {
        for (int64_t j = 0; j < across; ++j) {
            const double u = kTurn * static_cast<double>(i) / static_cast<double>(along);
            const double v = kTurn * static_cast<double>(j) / static_cast<double>(across);
            const double r = 0.35 + 0.06 * std::sin(7 * u) * std::cos(5 * v), ring = 1 + r * std::cos(v);
            positions.push_back(static_cast<float>(ring * std::cos(u)));
            positions.push_back(static_cast<float>(ring * std::sin(u)));
            positions.push_back(static_cast<float>(r * std::sin(v) + 0.1 * std::sin(3 * u)));
            const auto corner = [&](int64_t di, int64_t dj) {
                return static_cast<int32_t>((i + di) % along * across + (j + dj) % across);
            };
            for (const int32_t c : {corner(0, 0), corner(1, 0), corner(1, 1), corner(0, 0), corner(1, 1), corner(0, 1)})
                triangles.push_back(c);
        }
    }
    return make_mesh(positions, triangles);
}

Mesh sphere(int levels) {
    std::vector<float> positions = {1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1};
    std::vector<int32_t> triangles = {0, 2, 4, 2, 1, 4, 1, 3, 4, 3, 0, 4, 2, 0, 5, 1, 2, 5, 3, 1, 5, 0, 3, 5};
    for (int level = 0; level < levels; ++level) {
        std::map<std::pair<int32_t, int32_t>, int32_t> middles;
        const auto middle = [&](int32_t a, int32_t b) {
            const auto [found, is_new] = middles.emplace(std::minmax(a, b), static_cast<int32_t>(positions.size() / 3));
            if (is_new) {
                double m[3], length = 0;
                for (int axis = 0; axis < 3; ++axis) {
                    m[axis] = double{positions[3 * a + axis]} + positions[3 * b + axis];
                    length += m[axis] * m[axis];
                }
                for (const double x : m) positions.push_back(static_cast<float>(x / std::sqrt(length)));
            }
            return found->second;
        };
        std::vector<int32_t> finer;
        for (size_t i = 0; i < triangles.size(); i += 3) {
            const int32_t a = triangles[i], b = triangles[i + 1], c = triangles[i + 2];
            const int32_t ab = middle(a, b), bc = middle(b, c), ca = middle(c, a);
            for (const int32_t corner : {a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca}) finer.push_back(corner);
        }
        triangles = std::move(finer);
    }
    return make_mesh(positions, triangles);
}

Mesh cube() {
    std::vector<float> positions;
    for (int i = 0; i < 8; ++i) {
        for (int axis = 0; axis < 3; ++axis) positions.push_back(static_cast<float>(i >> axis & 1));
    }
    return make_mesh(positions, {0, 2, 1, 1, 2, 3, 4, 5, 6, 5, 7, 6, 0, 1, 4, 1, 5, 4,
                                 2, 6, 3, 3, 6, 7, 0, 4, 2, 2, 4, 6, 1, 3, 5, 3, 7, 5});
}

Mesh soup(int64_t n, uint64_t seed) {
    const Rng rng(seed, 77);
    std::vector<float> positions;
    std::vector<int32_t> triangles;
    for (int64_t i = 0; i < n; ++i) {
        float corner[3][3];
        const uint64_t first = 32 * static_cast<uint64_t>(i);
        const float size = std::pow(10.0f, -2.5f * rng.uniform(first + 12));
        for (int axis = 0; axis < 3; ++axis) {
            const float center = rng.uniform(first + axis);
            for (int k = 0; k < 3; ++k)
                corner[k][axis] = center + size * (rng.uniform(first + 3 + 3 * k + axis) - 0.5f);
            if (i % 8 == 1) {  // a sliver: the third corner is almost on the opposite edge
                const float along = rng.uniform(first + 13);
                corner[2][axis] = corner[0][axis] + along * (corner[1][axis] - corner[0][axis]) +
                                  1e-5f * size * (rng.uniform(first + 14 + axis) - 0.5f);
            }
            if (i % 8 == 3) corner[2][axis] = corner[i % 16 == 3 ? 0 : 1][axis];
            if (i % 16 == 3) corner[1][axis] = corner[0][axis];
        }
        const auto base = static_cast<int32_t>(positions.size() / 3);
        if (i % 8 == 5) {
            for (int k = 0; k < 3; ++k) triangles.push_back(triangles[triangles.size() - 3]);
            continue;
        }
        for (int k = 0; k < 3; ++k) {
            positions.insert(positions.end(), corner[k], corner[k] + 3);
            triangles.push_back(base + k);
        }
    }
    return make_mesh(positions, triangles);
}

Mesh scaled(const Mesh& mesh, float factor) {
    Mesh copy = mesh.clone();
    for (float& x : copy.vertices.positions.span()) x *= factor;
    return copy;
}

Array<float, 2> uniform_points(int64_t n, float low, float high, uint64_t seed) {
    Array<float, 2> points({n, 3});
    const Rng rng(seed, 55);
    for (int64_t i = 0; i < 3 * n; ++i) points.data()[i] = low + (high - low) * rng.uniform(i);
    return points;
}

bool has_other_engine(Device device) {
    return device.type == DeviceType::cuda || geometry::cpu::build(cube())->embree;
}

}  // namespace stipple::test
