#include "tests/metrics/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "stipple/core/rng.h"

namespace stipple::test {

PointCloud cloud_of(std::initializer_list<float> values) {
    PointCloud cloud(static_cast<int64_t>(values.size()) / 3);
    std::copy(values.begin(), values.end(), cloud.positions.data());
    return cloud;
}

PointCloud cube_cloud(int64_t n, uint64_t seed) {
    PointCloud cloud(n);
    const Rng rng(seed, 1);
    for (int64_t i = 0; i < 3 * n; ++i) cloud.positions.data()[i] = rng.uniform(i) - 0.5f;
    return cloud;
}

PointCloud sphere_cloud(int64_t n, uint64_t seed) {
    PointCloud cloud(n);
    const Rng rng(seed, 2);
    for (int64_t i = 0; i < n; ++i) {
        double p[3], length = 0;
        for (int axis = 0; axis < 3; ++axis) {
            p[axis] = rng.normal(3 * i + axis);
            length += p[axis] * p[axis];
        }
        for (int axis = 0; axis < 3; ++axis)
            cloud.positions.data()[3 * i + axis] = static_cast<float>(p[axis] / std::sqrt(length));
    }
    return cloud;
}

namespace {

Mesh mesh_of(const std::vector<Double3>& places, const std::vector<std::array<int32_t, 3>>& faces) {
    Mesh mesh;
    mesh.vertices = PointCloud(static_cast<int64_t>(places.size()));
    for (size_t i = 0; i < places.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            mesh.vertices.positions.data()[3 * i + axis] = static_cast<float>(places[i][axis]);
    mesh.triangles = Array<int32_t, 2>({static_cast<int64_t>(faces.size()), 3});
    for (size_t i = 0; i < faces.size(); ++i)
        std::copy(faces[i].begin(), faces[i].end(), mesh.triangles.data() + 3 * i);
    return mesh;
}

Double3 middle(const Double3& a, const Double3& b) {
    Double3 m = {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
    const double length = std::sqrt(m[0] * m[0] + m[1] * m[1] + m[2] * m[2]);
    for (double& x : m) x /= length;
    return m;
}

}  // namespace

Mesh sphere_mesh(int depth) {
    std::vector<Double3> places = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
    std::vector<std::array<int32_t, 3>> faces = {{0, 2, 4}, {2, 1, 4}, {1, 3, 4}, {3, 0, 4},
                                                 {2, 0, 5}, {1, 2, 5}, {3, 1, 5}, {0, 3, 5}};
    for (int level = 0; level < depth; ++level) {
        std::vector<std::array<int32_t, 3>> finer;
        for (const auto& [a, b, c] : faces) {  // midpoints of neighbours are there twice: nobody minds
            const auto first = static_cast<int32_t>(places.size());
            const Double3 ab = middle(places[a], places[b]), bc = middle(places[b], places[c]),
                          ca = middle(places[c], places[a]);
            places.insert(places.end(), {ab, bc, ca});
            finer.insert(finer.end(), {{a, first, first + 2},
                                       {first, b, first + 1},
                                       {first + 2, first + 1, c},
                                       {first, first + 1, first + 2}});
        }
        faces = finer;
    }
    return mesh_of(places, faces);
}

Mesh square_mesh(int n) {
    std::vector<Double3> places;
    std::vector<std::array<int32_t, 3>> faces;
    for (int y = 0; y <= n; ++y)
        for (int x = 0; x <= n; ++x) places.push_back({2.0 * x / n - 1, 2.0 * y / n - 1, 0});
    for (int32_t y = 0; y < n; ++y)
        for (int32_t x = 0; x < n; ++x) {
            const int32_t at = y * (n + 1) + x;
            faces.push_back({at, at + 1, at + n + 2});
            faces.push_back({at, at + n + 2, at + n + 1});
        }
    return mesh_of(places, faces);
}

metrics::Points points_of(const PointCloud& cloud) {
    return metrics::in_frame(cloud, {});
}

std::vector<Double3> world_of(const PointCloud& cloud) {
    std::vector<Double3> points(static_cast<size_t>(cloud.size()));
    for (int64_t i = 0; i < cloud.size(); ++i)
        for (int axis = 0; axis < 3; ++axis) points[i][axis] = cloud.world(i, axis);
    return points;
}

std::vector<Double3> brute_unit_sphere(std::vector<Double3> points) {
    Double3 mean = {};
    for (const Double3& p : points)
        for (int axis = 0; axis < 3; ++axis) mean[axis] += p[axis] / static_cast<double>(points.size());
    double radius = 0;
    for (Double3& p : points) {
        for (int axis = 0; axis < 3; ++axis) p[axis] -= mean[axis];
        radius = std::max(radius, std::sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]));
    }
    for (Double3& p : points)
        for (double& x : p) x /= radius;
    return points;
}

std::vector<double> brute_nearest(const std::vector<Double3>& a, const std::vector<Double3>& b) {
    std::vector<double> squared;
    for (const Double3& p : a) {
        double least = std::numeric_limits<double>::infinity();
        for (const Double3& q : b) {
            const double x = p[0] - q[0], y = p[1] - q[1], z = p[2] - q[2];
            least = std::min(least, x * x + y * y + z * z);
        }
        squared.push_back(least);
    }
    return squared;
}

double brute_mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

double brute_max(const std::vector<double>& values) {
    return *std::max_element(values.begin(), values.end());
}

namespace {

double distance_to_triangle(const Double3& p, const Double3& a, const Double3& b, const Double3& c) {
    const auto minus = [](const Double3& u, const Double3& v) {
        return Double3{u[0] - v[0], u[1] - v[1], u[2] - v[2]};
    };
    const auto dot = [](const Double3& u, const Double3& v) { return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]; };
    const auto to = [&](double v, double w) {
        Double3 off;
        for (int i = 0; i < 3; ++i) off[i] = p[i] - (a[i] + v * (b[i] - a[i]) + w * (c[i] - a[i]));
        return std::sqrt(dot(off, off));
    };
    const Double3 ab = minus(b, a), ac = minus(c, a), ap = minus(p, a), bp = minus(p, b), cp = minus(p, c);
    const double d1 = dot(ab, ap), d2 = dot(ac, ap);
    if (d1 <= 0 && d2 <= 0) return to(0, 0);
    const double d3 = dot(ab, bp), d4 = dot(ac, bp);
    if (d3 >= 0 && d4 <= d3) return to(1, 0);
    const double vc = d1 * d4 - d3 * d2;
    if (vc <= 0 && d1 >= 0 && d3 <= 0) return to(d1 / (d1 - d3), 0);
    const double d5 = dot(ab, cp), d6 = dot(ac, cp);
    if (d6 >= 0 && d5 <= d6) return to(0, 1);
    const double vb = d5 * d2 - d1 * d6;
    if (vb <= 0 && d2 >= 0 && d6 <= 0) return to(0, d2 / (d2 - d6));
    const double va = d3 * d6 - d5 * d4;
    if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0) {
        const double w = (d4 - d3) / ((d4 - d3) + (d5 - d6));
        return to(1 - w, w);
    }
    return to(vb / (va + vb + vc), vc / (va + vb + vc));
}

}  // namespace

double brute_to_mesh(const Double3& p, const Mesh& mesh) {
    double least = std::numeric_limits<double>::infinity();
    for (int64_t f = 0; f < mesh.faces(); ++f) {
        Double3 corner[3];
        for (int k = 0; k < 3; ++k)
            for (int axis = 0; axis < 3; ++axis)
                corner[k][axis] = mesh.vertices.world(mesh.triangles.data()[3 * f + k], axis);
        least = std::min(least, distance_to_triangle(p, corner[0], corner[1], corner[2]));
    }
    return least;
}

}  // namespace stipple::test
