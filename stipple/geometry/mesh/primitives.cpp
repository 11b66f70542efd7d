#include "stipple/geometry/primitives.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <vector>

namespace stipple::geometry {
namespace {

constexpr int64_t kMostSegments = 10'000'000;

void require_size(const char* who, const char* what, double size) {
    STIPPLE_REQUIRE(size > 0 && std::isfinite(static_cast<float>(size)), "{}: {} {}", who, what, size);
}

void require_segments(const char* who, int64_t segments) {
    STIPPLE_REQUIRE(segments >= 3 && segments <= kMostSegments, "{}: {} segments, not 3 to {}", who, segments,
                    kMostSegments);
}

/// A mesh that grows.
struct Builder {
    std::vector<float> positions;
    std::vector<int32_t> corners;

    int32_t vertex(double x, double y, double z) {
        for (const double v : {x, y, z}) positions.push_back(static_cast<float>(v));
        return static_cast<int32_t>(positions.size() / 3) - 1;
    }
    void face(int64_t a, int64_t b, int64_t c) {
        for (const int64_t v : {a, b, c}) corners.push_back(static_cast<int32_t>(v));
    }
    Mesh finish() const {
        Mesh mesh;
        mesh.vertices = PointCloud(static_cast<int64_t>(positions.size() / 3));
        std::copy(positions.begin(), positions.end(), mesh.vertices.positions.data());
        mesh.triangles = Array<int32_t, 2>({static_cast<int64_t>(corners.size() / 3), 3});
        std::copy(corners.begin(), corners.end(), mesh.triangles.data());
        return mesh;
    }
};

double angle_of(int64_t i, int64_t segments) {
    return 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(segments);
}

/// A circle at height z, anticlockwise seen from above; the index of its first vertex.
int32_t circle(Builder& builder, double radius, double z, int64_t segments) {
    const auto first = static_cast<int32_t>(builder.positions.size() / 3);
    for (int64_t i = 0; i < segments; ++i)
        builder.vertex(radius * std::cos(angle_of(i, segments)), radius * std::sin(angle_of(i, segments)), z);
    return first;
}

}  // namespace

Mesh sphere_mesh(double radius, int subdivisions) {
    require_size("sphere_mesh", "radius", radius);
    STIPPLE_REQUIRE(subdivisions >= 0 && subdivisions <= 10, "sphere_mesh: {} subdivisions, not 0 to 10", subdivisions);
    using Point = std::array<double, 3>;
    const double g = std::numbers::phi;
    std::vector<Point> points = {{-1, g, 0},  {1, g, 0},  {-1, -g, 0}, {1, -g, 0}, {0, -1, g},  {0, 1, g},
                                 {0, -1, -g}, {0, 1, -g}, {g, 0, -1},  {g, 0, 1},  {-g, 0, -1}, {-g, 0, 1}};
    std::vector<std::array<int32_t, 3>> faces = {{0, 11, 5}, {0, 5, 1},  {0, 1, 7},   {0, 7, 10}, {0, 10, 11},
                                                 {1, 5, 9},  {5, 11, 4}, {11, 10, 2}, {10, 7, 6}, {7, 1, 8},
                                                 {3, 9, 4},  {3, 4, 2},  {3, 2, 6},   {3, 6, 8},  {3, 8, 9},
                                                 {4, 9, 5},  {2, 4, 11}, {6, 2, 10},  {8, 6, 7},  {9, 8, 1}};
    const auto on_sphere = [](Point p) {
        const double length = std::sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
        return Point{p[0] / length, p[1] / length, p[2] / length};
    };
    for (Point& p : points) p = on_sphere(p);
    for (int level = 0; level < subdivisions; ++level) {
        std::map<std::array<int32_t, 2>, int32_t> middles;
        const auto middle = [&](int32_t a, int32_t b) {
            const auto [at, is_new] =
                middles.try_emplace(std::array{std::min(a, b), std::max(a, b)}, static_cast<int32_t>(points.size()));
            const Point p = points[a], q = points[b];
            if (is_new) points.push_back(on_sphere({p[0] + q[0], p[1] + q[1], p[2] + q[2]}));
            return at->second;
        };
        std::vector<std::array<int32_t, 3>> finer;
        finer.reserve(4 * faces.size());
        for (const auto& [a, b, c] : faces) {
            const int32_t ab = middle(a, b), bc = middle(b, c), ca = middle(c, a);
            finer.insert(finer.end(), {{a, ab, ca}, {b, bc, ab}, {c, ca, bc}, {ab, bc, ca}});
        }
        faces = std::move(finer);
    }
    Builder builder;
    for (const Point& p : points) builder.vertex(radius * p[0], radius * p[1], radius * p[2]);
    for (const auto& [a, b, c] : faces) builder.face(a, b, c);
    return builder.finish();
}

Mesh cube_mesh(double x, double y, double z) {
    for (const double edge : {x, y, z}) require_size("cube_mesh", "edge", edge);
    Builder builder;
    for (int v = 0; v < 8; ++v)  // bits of v: high in x, y, z
        builder.vertex(v & 1 ? x / 2 : -x / 2, v & 2 ? y / 2 : -y / 2, v & 4 ? z / 2 : -z / 2);
    constexpr int kSides[6][4] = {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}};
    for (const auto& s : kSides) builder.face(s[0], s[1], s[2]), builder.face(s[0], s[2], s[3]);
    return builder.finish();
}

Mesh cylinder_mesh(double radius, double height, int64_t segments) {
    require_size("cylinder_mesh", "radius", radius);
    require_size("cylinder_mesh", "height", height);
    require_segments("cylinder_mesh", segments);
    Builder builder;
    const int32_t low = circle(builder, radius, -height / 2, segments);
    const int32_t high = circle(builder, radius, height / 2, segments);
    const int32_t bottom = builder.vertex(0, 0, -height / 2), top = builder.vertex(0, 0, height / 2);
    for (int64_t i = 0; i < segments; ++i) {
        const int64_t next = (i + 1) % segments;
        builder.face(low + i, low + next, high + next);
        builder.face(low + i, high + next, high + i);
        builder.face(bottom, low + next, low + i);
        builder.face(top, high + i, high + next);
    }
    return builder.finish();
}

Mesh cone_mesh(double radius, double height, int64_t segments) {
    require_size("cone_mesh", "radius", radius);
    require_size("cone_mesh", "height", height);
    require_segments("cone_mesh", segments);
    Builder builder;
    const int32_t low = circle(builder, radius, -height / 2, segments);
    const int32_t bottom = builder.vertex(0, 0, -height / 2), tip = builder.vertex(0, 0, height / 2);
    for (int64_t i = 0; i < segments; ++i) {
        const int64_t next = (i + 1) % segments;
        builder.face(low + i, low + next, tip);
        builder.face(bottom, low + next, low + i);
    }
    return builder.finish();
}

Mesh torus_mesh(double major, double minor, int64_t around, int64_t across) {
    require_size("torus_mesh", "major radius", major);
    require_size("torus_mesh", "minor radius", minor);
    STIPPLE_REQUIRE(minor < major, "torus_mesh: the minor radius {} is not below the major {}", minor, major);
    require_segments("torus_mesh", around);
    require_segments("torus_mesh", across);
    STIPPLE_REQUIRE(around <= kMostSegments / across, "torus_mesh: {} by {} segments", around, across);
    Builder builder;
    for (int64_t i = 0; i < around; ++i) {
        for (int64_t j = 0; j < across; ++j) {
            const double u = angle_of(i, around), v = angle_of(j, across), r = major + minor * std::cos(v);
            builder.vertex(r * std::cos(u), r * std::sin(u), minor * std::sin(v));
        }
    }
    for (int64_t i = 0; i < around; ++i) {
        for (int64_t j = 0; j < across; ++j) {
            const int64_t next_i = (i + 1) % around, next_j = (j + 1) % across;
            const int64_t a = i * across + j, b = next_i * across + j, c = next_i * across + next_j,
                          d = i * across + next_j;
            builder.face(a, b, c);
            builder.face(a, c, d);
        }
    }
    return builder.finish();
}

}  // namespace stipple::geometry
