#pragma once
// Small scenes for the tests of the renderer.

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "stipple/core/rng.h"
#include "stipple/picture/figure.h"

namespace stipple::picture {

inline PointCloud cloud_of(const std::vector<std::array<float, 3>>& points) {
    PointCloud cloud(static_cast<int64_t>(points.size()));
    if (!points.empty()) std::memcpy(cloud.positions.data(), points.data(), points.size() * sizeof points[0]);
    return cloud;
}

template <class T>
void add_attribute(PointCloud& cloud, const char* name, int64_t components, const std::vector<T>& values) {
    Attribute attribute(name, dtype_of<T>, static_cast<int64_t>(values.size()) / components, components);
    std::memcpy(attribute.data(), values.data(), values.size() * sizeof(T));
    cloud.attributes.push_back(std::move(attribute));
}

inline PointCloud sphere_cloud(int64_t n, float radius, uint64_t seed = 1) {
    PointCloud cloud(n);
    const Rng rng(seed);
    for (int64_t i = 0; i < n; ++i) {
        const float z = 2 * rng.uniform(2 * i) - 1, angle = 6.2831853f * rng.uniform(2 * i + 1);
        const float ring = std::sqrt(1 - z * z);
        float* p = cloud.positions.data() + 3 * i;
        p[0] = radius * ring * std::cos(angle), p[1] = radius * ring * std::sin(angle), p[2] = radius * z;
    }
    return cloud;
}

inline Mesh mesh_of(const std::vector<std::array<float, 3>>& vertices,
                    const std::vector<std::array<int32_t, 3>>& faces) {
    Mesh mesh;
    mesh.vertices = cloud_of(vertices);
    mesh.triangles = Array<int32_t, 2>({static_cast<int64_t>(faces.size()), 3});
    if (!faces.empty()) std::memcpy(mesh.triangles.data(), faces.data(), faces.size() * sizeof faces[0]);
    return mesh;
}

/// A grid of squares in the plane x = 0, from -1 to 1 in y and z, that faces +x.
inline Mesh wall_mesh(int n) {
    std::vector<std::array<float, 3>> vertices;
    std::vector<std::array<int32_t, 3>> faces;
    for (int i = 0; i <= n; ++i)
        for (int j = 0; j <= n; ++j)
            vertices.push_back({0, 2.f * static_cast<float>(j) / static_cast<float>(n) - 1,
                                2.f * static_cast<float>(i) / static_cast<float>(n) - 1});
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            const int a = i * (n + 1) + j, b = a + 1, c = a + n + 1, d = c + 1;
            faces.push_back({a, b, d});
            faces.push_back({a, d, c});
        }
    return mesh_of(vertices, faces);
}

/// Seen from +x, y to the right, z up, without light: colours arrive as they are.
inline FigureStyle plain_style(int64_t side = 64) {
    FigureStyle style;
    style.panel_width = style.panel_height = side;
    style.viewpoint = {0, 0, UpAxis::z, Projection::orthographic};
    style.light = style.occlusion = 0;
    return style;
}

inline Rgb pixel(const Image& image, int64_t x, int64_t y) {
    const uint8_t* p = image.at(x, y);
    return {p[0], p[1], p[2]};
}

inline bool same_pixels(const Image& a, const Image& b) {
    return a.pixels.shape() == b.pixels.shape() &&
           std::memcmp(a.pixels.data(), b.pixels.data(), static_cast<size_t>(a.pixels.elements())) == 0;
}

/// Pixels within a rectangle that are not `background`.
inline int64_t drawn_in(const Image& image, int64_t x0, int64_t y0, int64_t width, int64_t height,
                        Rgb background = {255, 255, 255}) {
    int64_t count = 0;
    for (int64_t y = y0; y < y0 + height; ++y)
        for (int64_t x = x0; x < x0 + width; ++x) count += !(pixel(image, x, y) == background);
    return count;
}

inline const Rgb kWhite{255, 255, 255}, kRed{255, 0, 0}, kBlue{0, 0, 255};

}  // namespace stipple::picture
