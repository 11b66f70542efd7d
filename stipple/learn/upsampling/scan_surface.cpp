#include "stipple/learn/upsampling/scan_surface.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "stipple/core/vec3.h"
#include "stipple/geometry/normals.h"
#include "stipple/ops/knn.h"

namespace stipple::learn {
namespace {

constexpr int64_t kNear = 24;         // neighbours of a point; the distance of the last tells the spacing
constexpr double kLargestCircle = 2;  // spacings
constexpr int kNormalNeighbours = 16;
constexpr int64_t kPointsAtATime = 1024;

using Corners = std::array<int32_t, 3>;

/// A corner of the cell of points that are nearer to the middle one than to its neighbours, and the neighbour beyond
/// the side that begins there; -1: none, the cell is open.
struct CellCorner {
    double x = 0, y = 0;
    int32_t beyond = -1;
};

/// Cuts off what is nearer to (qx, qy) than to 0.
void cut_cell(std::vector<CellCorner>& cell, double qx, double qy, int32_t neighbour, std::vector<CellCorner>& made) {
    const double half = 0.5 * (qx * qx + qy * qy);
    const auto outside = [&](const CellCorner& c) { return c.x * qx + c.y * qy - half; };
    made.clear();
    for (size_t i = 0; i < cell.size(); ++i) {
        const CellCorner &from = cell[i], &to = cell[(i + 1) % cell.size()];
        const double a = outside(from), b = outside(to);
        if (a <= 0) made.push_back(from);
        if ((a <= 0) == (b <= 0)) continue;
        const double t = a / (a - b);
        // Where the cell is left, the new side begins; where it is entered again, the rest of the old one.
        made.push_back({from.x + t * (to.x - from.x), from.y + t * (to.y - from.y), a <= 0 ? neighbour : from.beyond});
    }
    cell.swap(made);
}

struct CellScratch {
    std::vector<CellCorner> cell, made;
};

/// The triangles of point i.
void add_triangles(const float* points, int32_t i, const int32_t* near, const float* squares, int64_t k, Vec3f normal,
                   CellScratch& scratch, std::vector<Corners>& triangles) {
    const auto at = [&](int32_t p) { return Vec3d{points[3 * p], points[3 * p + 1], points[3 * p + 2]}; };
    const Vec3d n = {normal.x, normal.y, normal.z};
    const double spacing = std::sqrt(M_PI * squares[k - 1] / static_cast<double>(k - 1));
    const double largest = kLargestCircle * spacing, open = 4 * largest;
    if (!(dot(n, n) > 0.5) || !(largest > 0)) return;
    const Vec3d side = std::fabs(n.x) < 0.6 ? Vec3d{1, 0, 0} : Vec3d{0, 1, 0};
    const Vec3d u = unit(cross(n, side)), v = cross(n, u);
    scratch.cell = {{-open, -open, -1}, {open, -open, -1}, {open, open, -1}, {-open, open, -1}};
    for (int64_t j = 0; j < k && !scratch.cell.empty(); ++j) {
        if (near[j] == i || near[j] < 0) continue;
        const Vec3d offset = at(near[j]) - at(i);
        const double x = dot(offset, u), y = dot(offset, v);
        if (x * x + y * y > 1e-12 * largest * largest) cut_cell(scratch.cell, x, y, near[j], scratch.made);
    }
    for (size_t c = 0; c < scratch.cell.size(); ++c) {
        const CellCorner& corner = scratch.cell[c];
        const int32_t a = scratch.cell[(c + scratch.cell.size() - 1) % scratch.cell.size()].beyond, b = corner.beyond;
        if (a < 0 || b < 0 || a == b || std::hypot(corner.x, corner.y) > largest) continue;
        Corners triangle = {i, a, b};
        std::sort(triangle.begin(), triangle.end());
        triangles.push_back(triangle);
    }
}

}  // namespace

Mesh surface_of_points(Array<float, 2> points) {
    const int64_t n = points.size(0);
    STIPPLE_REQUIRE(points.size(1) == 3 && n >= 1, "surface_of_points: [{}, {}]", n, points.size(1));
    for (const float x : points.span()) STIPPLE_REQUIRE(std::isfinite(x), "surface_of_points: a point is not finite");
    Array<float, 2> normals({n, 3});
    geometry::estimate_normals(points.view(), normals.view(), {}, kNormalNeighbours);
    const int64_t k = std::min<int64_t>(n, kNear + 1);
    const ops::PointIndex index(points.view());
    const int64_t chunks = (n + kPointsAtATime - 1) / kPointsAtATime;
    std::vector<std::vector<Corners>> found(static_cast<size_t>(chunks));
    parallel_for(chunks, 1, [&](int64_t chunk, int64_t) {
        const int64_t begin = chunk * kPointsAtATime, count = std::min(kPointsAtATime, n - begin);
        Array<int32_t, 2> near({count, k});
        Array<float, 2> squares({count, k});
        ops::knn(index, View<const float, 2>(points.data() + 3 * begin, {count, 3}), near.view(), squares.view());
        CellScratch scratch;
        for (int64_t i = 0; i < count; ++i) {
            const float* normal = normals.data() + 3 * (begin + i);
            add_triangles(points.data(), static_cast<int32_t>(begin + i), near.data() + k * i, squares.data() + k * i,
                          k, {normal[0], normal[1], normal[2]}, scratch, found[static_cast<size_t>(chunk)]);
        }
    });
    std::vector<Corners> all;
    for (std::vector<Corners>& some : found) {
        all.insert(all.end(), some.begin(), some.end());
        some = {};
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::vector<char> is_used(static_cast<size_t>(n));
    for (const Corners& triangle : all)
        for (const int32_t corner : triangle) is_used[static_cast<size_t>(corner)] = 1;
    for (int32_t i = 0; i < n; ++i)
        if (!is_used[static_cast<size_t>(i)]) all.push_back({i, i, i});
    Mesh mesh;
    mesh.vertices.positions = std::move(points);
    mesh.triangles = Array<int32_t, 2>({static_cast<int64_t>(all.size()), 3});
    for (size_t t = 0; t < all.size(); ++t) std::copy(all[t].begin(), all[t].end(), mesh.triangles.data() + 3 * t);
    return mesh;
}

}  // namespace stipple::learn
