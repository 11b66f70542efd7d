#include "stipple/bench/data.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"

namespace stipple::bench {
namespace {

constexpr int kGrid = 224;
constexpr int64_t kGrain = 1 << 14;

struct Vec {
    double x = 0, y = 0, z = 0;
};
Vec operator-(Vec a, Vec b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}

Vec vertex(int i, int j) {
    const double step = 6.283185307179586476925 / kGrid, u = (i % kGrid) * step, v = (j % kGrid) * step;
    const double r = 0.35 + 0.06 * std::sin(7 * u) * std::cos(5 * v), ring = 1 + r * std::cos(v);
    return {ring * std::cos(u), ring * std::sin(u), r * std::sin(v) + 0.1 * std::sin(3 * u)};
}

struct Triangle {
    Vec a, b, c;
};

/// The mesh, and the summed areas of its triangles up to and with each.
struct Surface {
    std::vector<Triangle> triangles;
    std::vector<double> area;

    Surface() {
        double sum = 0;
        for (int i = 0; i < kGrid; ++i)
            for (int j = 0; j < kGrid; ++j) {
                const Vec p = vertex(i, j), q = vertex(i + 1, j), r = vertex(i + 1, j + 1), s = vertex(i, j + 1);
                for (const Triangle& t : {Triangle{p, q, r}, Triangle{p, r, s}}) {
                    const Vec e = t.b - t.a, f = t.c - t.a;
                    const Vec n = {e.y * f.z - e.z * f.y, e.z * f.x - e.x * f.z, e.x * f.y - e.y * f.x};
                    triangles.push_back(t);
                    area.push_back(sum += 0.5 * std::sqrt(n.x * n.x + n.y * n.y + n.z * n.z));
                }
            }
    }
};

const Surface& surface() {
    static const Surface one;
    return one;
}

void fill(float* points, int64_t n, uint64_t seed) {
    const Surface& mesh = surface();
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        const Rng rng(seed);
        for (int64_t i = begin; i < end; ++i) {
            const RandomBlock b = rng.block(static_cast<uint64_t>(i));
            const double where = (b.word[0] + 0.5) * 0x1p-32 * mesh.area.back();
            const auto found = std::upper_bound(mesh.area.begin(), mesh.area.end() - 1, where);
            const Triangle& t = mesh.triangles[static_cast<size_t>(found - mesh.area.begin())];
            const double root = std::sqrt(b.word[1] * 0x1p-32), share = b.word[2] * 0x1p-32;
            const double wa = 1 - root, wb = root * (1 - share), wc = root * share;
            points[3 * i] = static_cast<float>(wa * t.a.x + wb * t.b.x + wc * t.c.x);
            points[3 * i + 1] = static_cast<float>(wa * t.a.y + wb * t.b.y + wc * t.c.y);
            points[3 * i + 2] = static_cast<float>(wa * t.a.z + wb * t.b.z + wc * t.c.z);
        }
    });
}

}  // namespace

Mesh wavy_torus_mesh() {
    Mesh mesh;
    mesh.vertices = PointCloud(kGrid * kGrid);
    mesh.triangles = Array<int32_t, 2>({2 * kGrid * kGrid, 3});
    int32_t* corner = mesh.triangles.data();
    for (int i = 0; i < kGrid; ++i)
        for (int j = 0; j < kGrid; ++j) {
            const Vec p = vertex(i, j);
            float* place = mesh.vertices.positions.data() + 3 * (i * kGrid + j);
            place[0] = static_cast<float>(p.x), place[1] = static_cast<float>(p.y), place[2] = static_cast<float>(p.z);
            const int next_i = (i + 1) % kGrid, next_j = (j + 1) % kGrid;
            const int corners[] = {i * kGrid + j, next_i * kGrid + j,      next_i * kGrid + next_j,
                                   i * kGrid + j, next_i * kGrid + next_j, i * kGrid + next_j};
            corner = std::copy(std::begin(corners), std::end(corners), corner);
        }
    return mesh;
}

Array<float, 2> wavy_torus(int64_t n, uint64_t seed) {
    Array<float, 2> points({n, 3});
    fill(points.data(), n, seed);
    return points;
}

Array<float, 3> wavy_tori(int64_t clouds, int64_t n, uint64_t seed) {
    Array<float, 3> points({clouds, n, 3});
    for (int64_t i = 0; i < clouds; ++i)
        fill(points.data() + 3 * i * n, n, (seed << 32) + static_cast<uint64_t>(i) + 1);
    return points;
}

Array<float, 2> noisy_torus(int64_t n) {
    Array<float, 2> points = wavy_torus(n, 9);
    const Rng rng(10);
    for (int64_t i = 0; i < 3 * n; ++i) points.data()[i] += 0.02f * rng.normal(static_cast<uint64_t>(i));
    return points;
}

RayArrays random_rays(int64_t n) {
    RayArrays rays{Array<float, 2>({n, 3}), Array<float, 2>({n, 3})};
    const Rng rng(11);
    const double half[] = {1.3, 1.3, 0.5};
    for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<uint64_t>(8 * i);
        const double z = 2.0 * rng.uniform(at) - 1, angle = 6.283185307179586 * rng.uniform(at + 1);
        const double ring = std::sqrt(1 - z * z),
                     from[] = {3 * ring * std::cos(angle), 3 * ring * std::sin(angle), 3 * z};
        for (int axis = 0; axis < 3; ++axis) {
            const double to = half[axis] * (2.0 * rng.uniform(at + 2 + static_cast<uint64_t>(axis)) - 1);
            rays.origins.data()[3 * i + axis] = static_cast<float>(from[axis]);
            rays.directions.data()[3 * i + axis] = static_cast<float>(to - from[axis]);
        }
    }
    return rays;
}

Array<float, 2> unit_cube(int64_t n, uint64_t seed) {
    return uniform_rows(n, 3, seed);
}

Array<float, 2> uniform_rows(int64_t n, int64_t c, uint64_t seed) {
    Array<float, 2> rows({n, c});
    parallel_for(n * c, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) rows.data()[i] = Rng(seed).uniform(static_cast<uint64_t>(i));
    });
    return rows;
}

Array<int32_t, 2> uniform_neighbours(int64_t clouds, int64_t n, int64_t m, int64_t k, uint64_t seed) {
    Array<int32_t, 2> indices({clouds * m, k});
    parallel_for(indices.elements(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            indices.data()[i] =
                static_cast<int32_t>(Rng(seed).below(static_cast<uint64_t>(i), static_cast<uint32_t>(n)));
    });
    return indices;
}

}  // namespace stipple::bench
