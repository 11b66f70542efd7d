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

/// A ball of `radius` that rolls straight on from a centre.
struct Path {
    size_t sample;
    Point from, way;
    double t;
};

/// Of the paths that start free, those that stay free until `far`.
std::vector<Path> escaping(const MeshIndex& index, std::vector<Path> paths, double radius, double far) {
    std::vector<Path> out;
    while (!paths.empty()) {
        std::vector<Point> centres;
        for (const Path& p : paths)
            centres.push_back({p.from[0] + p.t * p.way[0], p.from[1] + p.t * p.way[1], p.from[2] + p.t * p.way[2]});
        const std::vector<float> room = distances_to(index, centres);
        std::vector<Path> going;
        for (size_t i = 0; i < paths.size(); ++i) {
            if (room[i] < 0.999 * radius) continue;
            Path& p = paths[i];
            p.t += std::max(room[i] - radius, 0.1 * radius);
            (p.t > far ? out : going).push_back(p);
        }
        paths.swap(going);
    }
    return out;
}

/// Rays that meet nothing, of those from the free places by which a ball touches each sample.
std::vector<Path> lines_of_sight(const MeshIndex& index, const std::vector<Sample>& samples, double radius) {
    const std::vector<Point> around = directions();
    std::vector<Path> touching;
    std::vector<Point> centres;
    for (size_t i = 0; i < samples.size(); ++i) {
        std::vector<Point> ways = around;
        const Point n = samples[i].normal;
        ways.insert(ways.begin(), {n, {-n[0], -n[1], -n[2]}});
        for (const Point& way : ways) {
            Point c;
            for (int k = 0; k < 3; ++k) c[k] = samples[i].place[k] + radius * way[k];
            centres.push_back(c);
            touching.push_back({i, c, way, 0});
        }
    }
    const std::vector<float> room = distances_to(index, centres);
    constexpr int kCentres = 2;  // of one sample
    std::vector<int> centres_of(samples.size());
    std::vector<Path> paths;
    std::vector<Point> origins, ways;
    for (size_t i = 0; i < touching.size(); ++i) {
        if (room[i] < 0.999 * radius || centres_of[touching[i].sample]++ >= kCentres) continue;
        for (const Point& way : around) {
            paths.push_back({touching[i].sample, touching[i].from, way, 0});
            origins.push_back(touching[i].from);
            ways.push_back(way);
        }
    }
    const Array<float, 2> from = to_array(origins), along = to_array(ways);
    Array<uint8_t, 1> hit({static_cast<int64_t>(origins.size())});
    geometry::any_hit(index, {from.view(), along.view()}, hit.view());
    std::vector<Path> free;
    for (size_t i = 0; i < paths.size(); ++i)
        if (!hit.data()[i]) free.push_back(paths[i]);
    return free;
}

std::vector<Point> visible_points(const MeshIndex& index, const std::vector<Sample>& samples, double radius) {
    constexpr int kTries = 4;  // lines of sight of one sample; more would find few more samples
    std::vector<Path> tried;
    std::vector<int> tries(samples.size());
    for (const Path& path : lines_of_sight(index, samples, radius))
        if (tries[path.sample]++ < kTries) tried.push_back(path);
    double far = 0;
    for (const Sample& sample : samples)
        for (double x : sample.place) far = std::max(far, 4 * std::abs(x) + 2 * radius);
    std::vector<uint8_t> seen(samples.size());
    for (const Path& path : escaping(index, tried, radius, far)) seen[path.sample] = 1;
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
    for (int64_t f = 0; f < output.faces(); ++f) {
        const Point a = corner(output, f, 0), b = corner(output, f, 1), c = corner(output, f, 2);
        points.push_back({(a[0] + b[0] + c[0]) / 3, (a[1] + b[1] + c[1]) / 3, (a[2] + b[2] + c[2]) / 3});
    }
    for (float d : distances_to(input_index, points)) fit.from_output = std::max(fit.from_output, double{d});
    const std::vector<Sample> of_input = samples_of(input, samples);
    const std::vector<Point> visible = visible_points(input_index, of_input, radius);
    for (float d : distances_to(output_index, visible)) fit.from_visible = std::max(fit.from_visible, double{d});
    fit.visible = static_cast<int64_t>(visible.size());
    fit.samples = static_cast<int64_t>(of_input.size());
    return fit;
}

namespace {

/// Whether the ends of an edge are on different sides of a face's plane, farther from it than rounding could bring
/// them.
bool passes_through(const MeshView& mesh, int64_t face, const Point& from, const Point& way) {
    const Point a = corner(mesh, face, 0), b = corner(mesh, face, 1), c = corner(mesh, face, 2);
    const Point u = {b[0] - a[0], b[1] - a[1], b[2] - a[2]}, v = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
    const Point n = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
    double before = 0, along = 0, n_sq = 0, way_sq = 0;
    for (int k = 0; k < 3; ++k) {
        before += n[k] * (from[k] - a[k]);
        along += n[k] * way[k];
        n_sq += n[k] * n[k];
        way_sq += way[k] * way[k];
    }
    const double least = 1e-3 * std::sqrt(n_sq * way_sq);
    return std::min(before, before + along) < -least && std::max(before, before + along) > least;
}

}  // namespace

int64_t crossing_edges(const MeshView& mesh) {
    const int32_t* t = mesh.triangles.data();
    std::vector<std::pair<int32_t, int32_t>> edges;
    std::vector<Point> origins, ways;
    for (int64_t i = 0; i < 3 * mesh.faces(); ++i) {
        const int32_t a = t[i], b = t[i / 3 * 3 + (i + 1) % 3];
        if (a > b) continue;
        const float *p = mesh.vertices.data() + 3 * int64_t{a}, *q = mesh.vertices.data() + 3 * int64_t{b};
        if (p[0] == q[0] && p[1] == q[1] && p[2] == q[2]) continue;
        edges.push_back({a, b});
        origins.push_back({p[0], p[1], p[2]});
        ways.push_back({double{q[0]} - p[0], double{q[1]} - p[1], double{q[2]} - p[2]});
    }
    const Array<float, 2> from = to_array(origins), along = to_array(ways);
    const geometry::AllHits hits = geometry::all_hits(MeshIndex(mesh), {from.view(), along.view(), 0, 1});
    int64_t crossing = 0;
    for (size_t i = 0; i < edges.size(); ++i) {
        bool crosses = false;
        for (int64_t h = hits.offsets[i]; h < hits.offsets[i + 1]; ++h) {
            const int32_t* f = t + 3 * int64_t{hits.faces[h]};
            bool shares = false;
            for (int k = 0; k < 3; ++k) shares |= f[k] == edges[i].first || f[k] == edges[i].second;
            crosses |= !shares && passes_through(mesh, hits.faces[h], origins[i], ways[i]);
        }
        crossing += crosses;
    }
    return crossing;
}

}  // namespace stipple::test
