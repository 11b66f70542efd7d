#pragma once
// Which unit cubes of a lattice a triangle touches [Schwarz & Seidel 2010].

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace stipple::geometry {

using TrianglePlaces = std::array<std::array<double, 3>, 3>;

/// Calls visit(x, y, z) for every cube [x, x + 1] x [y, y + 1] x [z, z + 1], grown by `margin` on all sides, that the
/// triangle touches. Degenerate triangles count as the segments or points they are. Conservative by 1e-9: rounding
/// never loses a cube. About the area of the triangle's bounding box in its flattest direction.
template <class Visit>
void visit_touched_voxels(const TrianglePlaces& p, double margin, Visit&& visit) {
    constexpr double kTolerance = 1e-9;
    const double side = 1 + 2 * margin;
    std::array<double, 3> edge[3];
    std::array<int32_t, 3> first, last;
    double longest = 0;
    for (int k = 0; k < 3; ++k) {
        first[k] = static_cast<int32_t>(std::floor(std::min({p[0][k], p[1][k], p[2][k]}) - margin - kTolerance));
        last[k] = static_cast<int32_t>(std::floor(std::max({p[0][k], p[1][k], p[2][k]}) + margin + kTolerance));
        for (int i = 0; i < 3; ++i) {
            edge[i][k] = p[(i + 1) % 3][k] - p[i][k];
            longest = std::max(longest, std::abs(edge[i][k]));
        }
    }
    if (first == last) return visit(first[0], first[1], first[2]);
    std::array<double, 3> normal;
    for (int k = 0; k < 3; ++k) {
        const int i = (k + 1) % 3, j = (k + 2) % 3;
        normal[k] = edge[0][i] * edge[1][j] - edge[0][j] * edge[1][i];
    }

    // Seen along axis k, with axes i and j: a cube is within all three edges.
    struct HalfPlane {
        double i, j, least;
    };
    std::array<std::array<HalfPlane, 3>, 3> half;
    for (int k = 0; k < 3; ++k) {
        const int i = (k + 1) % 3, j = (k + 2) % 3;
        const double sign = normal[k] < 0 ? -1 : 1;
        for (int e = 0; e < 3; ++e) {
            const double a = -sign * edge[e][j], b = sign * edge[e][i];
            const double reach = std::max(0.0, side * a) + std::max(0.0, side * b) - margin * (a + b);
            half[k][e] = {a, b, a * p[e][i] + b * p[e][j] - reach - kTolerance * (longest + 1)};
        }
    }
    const auto within = [&](int k, int32_t at_i, int32_t at_j) {
        for (const HalfPlane& h : half[k])
            if (h.i * at_i + h.j * at_j < h.least) return false;
        return true;
    };

    // Columns along the axis that the plane crosses most steeply: few cubes in each.
    int k = 0;
    for (int axis = 1; axis < 3; ++axis)
        if (std::abs(normal[axis]) > std::abs(normal[k])) k = axis;
    const int i = (k + 1) % 3, j = (k + 2) % 3;
    const double reach = side / 2 * (std::abs(normal[0]) + std::abs(normal[1]) + std::abs(normal[2])) +
                         kTolerance * longest * (longest + 1);
    const bool steep = std::abs(normal[k]) > kTolerance * longest * longest;
    std::array<int32_t, 3> at;
    for (at[j] = first[j]; at[j] <= last[j]; ++at[j]) {
        for (at[i] = first[i]; at[i] <= last[i]; ++at[i]) {
            if (!within(k, at[i], at[j])) continue;
            int32_t from = first[k], to = last[k];
            if (steep) {
                const double middle =
                    p[0][k] - (normal[i] * (at[i] + 0.5 - p[0][i]) + normal[j] * (at[j] + 0.5 - p[0][j])) / normal[k];
                const double half_height = reach / std::abs(normal[k]);
                from = std::max(from, static_cast<int32_t>(std::ceil(std::max(middle - half_height, -1e9) - 0.5)));
                to = std::min(to, static_cast<int32_t>(std::floor(std::min(middle + half_height, 1e9) - 0.5)));
            }
            for (at[k] = from; at[k] <= to; ++at[k])
                if (within(i, at[j], at[k]) && within(j, at[k], at[i])) visit(at[0], at[1], at[2]);
        }
    }
}

}  // namespace stipple::geometry
