#include "tests/geometry/broken_meshes.h"

#include <cmath>
#include <cstring>

#include "stipple/core/rng.h"

namespace stipple::test {
namespace {

using Point = std::array<float, 3>;
using Face = std::array<int32_t, 3>;

struct Soup {
    std::vector<Point> points;
    std::vector<Face> faces;

    int32_t add(Point p) {
        points.push_back(p);
        return static_cast<int32_t>(points.size()) - 1;
    }
};

/// A patch of n x m quads; place(u, v) with u, v in [0, 1].
template <class F>
void add_patch(Soup& soup, int n, int m, F place) {
    const auto first = static_cast<int32_t>(soup.points.size());
    for (int j = 0; j <= m; ++j)
        for (int i = 0; i <= n; ++i) soup.add(place(static_cast<double>(i) / n, static_cast<double>(j) / m));
    for (int j = 0; j < m; ++j) {
        for (int i = 0; i < n; ++i) {
            const int32_t a = first + j * (n + 1) + i, b = a + 1, c = b + n + 1, d = a + n + 1;
            soup.faces.insert(soup.faces.end(), {{a, b, c}, {a, c, d}});
        }
    }
}

Point at(double x, double y, double z) {
    return {static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)};
}

void add_sphere(Soup& soup, int n, double until) {
    add_patch(soup, 2 * n, n, [=](double u, double v) {
        const double phi = 2 * M_PI * u, theta = M_PI * until * v;
        return at(std::sin(theta) * std::cos(phi), std::sin(theta) * std::sin(phi), -std::cos(theta));
    });
}

void add_box(Soup& soup, int n) {
    for (int side = 0; side < 6; ++side) {
        add_patch(soup, n, n, [=](double u, double v) {
            double p[3];
            p[side / 2] = side % 2 == 0 ? -1 : 1;
            p[(side / 2 + 1) % 3] = 2 * u - 1;
            p[(side / 2 + 2) % 3] = 2 * v - 1;
            return at(p[0], 0.7 * p[1], 0.5 * p[2]);
        });
    }
}

void add_torus(Soup& soup, int n) {
    add_patch(soup, 2 * n, n, [](double u, double v) {
        const double a = 2 * M_PI * u, b = 2 * M_PI * v, r = 0.35 + 0.06 * std::sin(7 * a) * std::cos(5 * b);
        return at((1 + r * std::cos(b)) * std::cos(a), (1 + r * std::cos(b)) * std::sin(a), r * std::sin(b));
    });
}

void add_sheet(Soup& soup, int n, double z, double turn) {
    add_patch(soup, n, n, [=](double u, double v) {
        const double x = 1.6 * u - 0.8, y = 1.6 * v - 0.8;
        return at(std::cos(turn) * x - std::sin(turn) * y, std::sin(turn) * x + std::cos(turn) * y, z);
    });
}

void add_tetrahedron(Soup& soup, Point p, float size) {
    const int32_t a = soup.add(p), b = soup.add({p[0] + size, p[1], p[2]});
    const int32_t c = soup.add({p[0], p[1] + size, p[2]}), d = soup.add({p[0], p[1], p[2] + size});
    soup.faces.insert(soup.faces.end(), {{a, c, b}, {a, b, d}, {b, c, d}, {c, a, d}});
}

constexpr const char* kShapes[] = {"sphere", "cube", "torus", "bowl", "sheets", "tetrahedra"};

Soup make_shape(int shape, int n, const Rng& rng) {
    Soup soup;
    switch (shape) {
        case 0: add_sphere(soup, n, 1); break;
        case 1: add_box(soup, n / 2); break;
        case 2: add_torus(soup, n); break;
        case 3: add_sphere(soup, n, 0.6); break;
        case 4:
            add_sheet(soup, n, 0, 0);
            add_patch(soup, n, n, [](double u, double v) { return at(2 * u - 1, 0.3 * u, 2 * v - 1); });
            break;
        default:
            for (uint64_t i = 0; i < 20; ++i)
                add_tetrahedron(soup, {rng.uniform(4 * i), rng.uniform(4 * i + 1), rng.uniform(4 * i + 2)},
                                0.1f + 0.3f * rng.uniform(4 * i + 3));
    }
    return soup;
}

constexpr const char* kFaults[] = {"holes",       "flipped", "duplicated",  "collapsed", "slivers",
                                   "cut through", "loose",   "tiny pieces", "coplanar",  "noise"};

void add_fault(Soup& soup, int fault, const Rng& rng) {
    const size_t n = soup.faces.size();
    const auto some_point = [&](uint64_t i) {
        return at(2 * rng.uniform(i) - 1, 2 * rng.uniform(i + 1) - 1, 2 * rng.uniform(i + 2) - 1);
    };
    switch (fault) {
        case 0: {
            std::vector<Face> kept;
            for (size_t i = 0; i < n; ++i)
                if (i == 0 || rng.below(i, 12) != 0) kept.push_back(soup.faces[i]);
            soup.faces = kept;
            break;
        }
        case 1:
            for (size_t i = 0; i < n; ++i)
                if (rng.below(i, 4) == 0) std::swap(soup.faces[i][0], soup.faces[i][1]);
            break;
        case 2:
            for (size_t i = 0; i < n; ++i)
                if (rng.below(i, 5) == 0) soup.faces.push_back(soup.faces[i]);
            break;
        case 3:
            for (size_t i = 0; i < n; i += 7) {
                const Face f = soup.faces[i];
                soup.faces.push_back({f[0], f[0], f[1]});
                soup.faces.push_back({f[2], f[2], f[2]});
            }
            break;
        case 4:
            for (size_t i = 0; i < 12; ++i) {
                const Point a = some_point(8 * i), b = some_point(8 * i + 3);
                const Point c = {(a[0] + b[0]) / 2, (a[1] + b[1]) / 2, (a[2] + b[2]) / 2 + 1e-6f};
                const int32_t first = soup.add(a);
                soup.add(b), soup.add(c);
                soup.faces.push_back({first, first + 1, first + 2});
            }
            break;
        case 5: {
            const auto shift = static_cast<int32_t>(soup.points.size());
            for (int32_t i = 0; i < shift; ++i) {
                const Point p = soup.points[i];
                soup.add({p[2] + 0.3f, 0.8f * p[0], p[1] - 0.2f});
            }
            for (size_t i = 0; i < n; ++i) {
                const Face f = soup.faces[i];
                soup.faces.push_back({f[0] + shift, f[1] + shift, f[2] + shift});
            }
            break;
        }
        case 6:
            for (uint64_t i = 0; i < 50; ++i) soup.add(i % 5 == 0 ? Point{NAN, INFINITY, 0} : some_point(3 * i));
            break;
        case 7:
            for (uint64_t i = 0; i < 30; ++i) add_tetrahedron(soup, some_point(3 * i), 0.002f);
            break;
        case 8:
            add_sheet(soup, 4, 0.31, 0);
            add_sheet(soup, 5, 0.31, 0.5);
            add_sheet(soup, 1, 0.31, 1);
            break;
        default:
            for (size_t i = 0; i < soup.points.size(); ++i)
                for (int k = 0; k < 3; ++k) soup.points[i][k] += 0.02f * rng.normal(3 * i + k);
    }
}

}  // namespace

BrokenMesh broken_mesh(int number, int fineness) {
    const Rng rng(static_cast<uint64_t>(number), 77);
    const int shape = number % 6;
    Soup soup = make_shape(shape, fineness, Rng(static_cast<uint64_t>(number), 78));
    BrokenMesh broken = {kShapes[shape], {}};
    const uint32_t count = 1 + rng.below(0, 4);
    for (uint32_t i = 0; i < count; ++i) {
        // The first fault goes through all of them, the others are drawn.
        const int fault = i == 0 ? number / 6 % 10 : static_cast<int>(rng.below(i, 10));
        add_fault(soup, fault, Rng(static_cast<uint64_t>(number), 100 + i));
        broken.name += std::string(", ") + kFaults[fault];
    }
    broken.mesh.vertices = PointCloud(static_cast<int64_t>(soup.points.size()));
    broken.mesh.triangles = Array<int32_t, 2>({static_cast<int64_t>(soup.faces.size()), 3});
    std::memcpy(broken.mesh.vertices.positions.data(), soup.points.data(), soup.points.size() * sizeof(Point));
    std::memcpy(broken.mesh.triangles.data(), soup.faces.data(), soup.faces.size() * sizeof(Face));
    return broken;
}

}  // namespace stipple::test
