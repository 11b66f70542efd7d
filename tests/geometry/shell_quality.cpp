#include "tests/geometry/shell_quality.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/rng.h"
#include "stipple/geometry/cast_rays.h"
#include "stipple/geometry/closest_point.h"

namespace stipple::test {
namespace {

using geometry::MeshIndex;
using geometry::MeshView;
using Point = std::array<double, 3>;

struct Sample {
    Point place, normal;
};

Point corner(const MeshView& mesh, int64_t face, int i) {
    const float* p = mesh.vertices.data() + 3 * int64_t{mesh.triangles.data()[3 * face + i]};
    return {p[0], p[1], p[2]};
}

std::vector<Sample> samples_of(const MeshView& mesh, int64_t wanted) {
    std::vector<double> area{0};
    std::vector<Point> normals;
    for (int64_t f = 0; f < mesh.faces(); ++f) {
        const Point a = corner(mesh, f, 0), b = corner(mesh, f, 1), c = corner(mesh, f, 2);
        const Point u = {b[0] - a[0], b[1] - a[1], b[2] - a[2]}, v = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
        const Point n = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
        const double length = std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
        area.push_back(area.back() + length);
        normals.push_back(length > 0 ? Point{n[0] / length, n[1] / length, n[2] / length} : Point{0, 0, 1});
    }
    std::vector<Sample> samples;
    const Rng rng(9);
    for (int64_t i = 0; i < wanted && area.back() > 0; ++i) {
        const double at = (static_cast<double>(i) + rng.uniform(3 * i)) / static_cast<double>(wanted) * area.back();
        const int64_t f =
            std::clamp<int64_t>(std::upper_bound(area.begin(), area.end(), at) - area.begin() - 1, 0, mesh.faces() - 1);
        double u = rng.uniform(3 * i + 1), v = rng.uniform(3 * i + 2);
        if (u + v > 1) u = 1 - u, v = 1 - v;
        const Point a = corner(mesh, f, 0), b = corner(mesh, f, 1), c = corner(mesh, f, 2);
        Sample sample = {{}, normals[f]};
        for (int k = 0; k < 3; ++k) sample.place[k] = a[k] + u * (b[k] - a[k]) + v * (c[k] - a[k]);
        samples.push_back(sample);
    }
    const int64_t every = std::max<int64_t>(1, 3 * mesh.faces() / std::max<int64_t>(wanted, 1));
    for (int64_t i = 0; i < 3 * mesh.faces(); i += every)
        samples.push_back({corner(mesh, i / 3, static_cast<int>(i % 3)), normals[i / 3]});
    return samples;
}

Array<float, 2> to_array(const std::vector<Point>& points) {
    Array<float, 2> array({static_cast<int64_t>(points.size()), 3});
    for (size_t i = 0; i < 3 * points.size(); ++i) array.data()[i] = static_cast<float>(points[i / 3][i % 3]);
    return array;
}

std::vector<float> distances_to(const MeshIndex& index, const std::vector<Point>& points) {
    Array<float, 1> distances({static_cast<int64_t>(points.size())});
    geometry::ClosestPoints found;
    found.distances = distances.view();
    geometry::closest_point(index, to_array(points).view(), found);
    return {distances.span().begin(), distances.span().end()};
}

/// The six axes, eight corners and twelve edges of a cube.
std::vector<Point> directions() {
    std::vector<Point> all;
    for (int i = 0; i < 27; ++i) {
        const Point d = {i % 3 - 1.0, i / 3 % 3 - 1.0, i / 9 - 1.0};
        const double length = std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
        if (length > 0) all.push_back({d[0] / length, d[1] / length, d[2] / length});
    }
    return all;
}

std::vector<Point> visible_points(const MeshIndex& index, const std::vector<Sample>& samples, double radius) {
    const std::vector<Point> around = directions();
    std::vector<Point> centres;
    std::vector<size_t> of;
    for (size_t i = 0; i < samples.size(); ++i) {
        std::vector<Point> ways = around;
        const Point n = samples[i].normal;
        ways.insert(ways.end(), {n, {-n[0], -n[1], -n[2]}});
        for (const Point& way : ways) {
            Point c;
            for (int k = 0; k < 3; ++k) c[k] = samples[i].place[k] + radius * way[k];
            centres.push_back(c);
            of.push_back(i);
        }
    }
    const std::vector<float> room = distances_to(index, centres);
    std::vector<Point> origins, ways;
    std::vector<size_t> ray_of;
    for (size_t i = 0; i < centres.size(); ++i) {
        if (room[i] < 0.999 * radius) continue;
        for (const Point& way : around) {
            origins.push_back(centres[i]);
            ways.push_back(way);
            ray_of.push_back(of[i]);
        }
    }
    const Array<float, 2> from = to_array(origins), along = to_array(ways);
    Array<uint8_t, 1> hit({static_cast<int64_t>(origins.size())});
    geometry::any_hit(index, {from.view(), along.view()}, hit.view());
    std::vector<uint8_t> seen(samples.size());
    for (size_t i = 0; i < ray_of.size(); ++i) seen[ray_of[i]] |= !hit.data()[i];
    std::vector<Point> visible;
    for (size_t i = 0; i < samples.size(); ++i)
        if (seen[i]) visible.push_back(samples[i].place);
    return visible;
}

}  // namespace

ShellFit measure_fit(const MeshView& input, const MeshView& output, double radius, int64_t samples) {
    const MeshIndex input_index(input), output_index(output);
    ShellFit fit;
    std::vector<Point> points;
    for (const Sample& sample : samples_of(output, samples)) points.push_back(sample.place);
    for (int64_t v = 0; v < output.vertices.size(0); ++v) {
        const float* p = output.vertices.data() + 3 * v;
        points.push_back({p[0], p[1], p[2]});
    }
    for (float d : distances_to(input_index, points)) fit.from_output = std::max(fit.from_output, double{d});
    const std::vector<Sample> of_input = samples_of(input, samples);
    const std::vector<Point> visible = visible_points(input_index, of_input, radius);
    for (float d : distances_to(output_index, visible)) fit.from_visible = std::max(fit.from_visible, double{d});
    fit.visible = static_cast<int64_t>(visible.size());
    fit.samples = static_cast<int64_t>(of_input.size());
    return fit;
}

}  // namespace stipple::test
