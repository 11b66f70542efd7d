#include "stipple/geometry/surface/separate_sheets.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/ops/knn.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kRows = 1 << 16;  // neighbours of so many points are held at a time
constexpr float kDisc = 1.5f;       // spacings about a normal's line in which another sheet is looked for

float dot3(const float* a, const float* b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// Calls visit(i, neighbours, distances_sq, columns) for every query, nearest first, in parallel.
template <class Visit>
void for_neighbours(const ops::PointIndex& index, View<const float, 2> queries, int64_t columns, Visit visit) {
    const int64_t n = queries.size(0);
    Array<int32_t, 2> neighbours({std::min(n, kRows), columns});
    Array<float, 2> distances_sq({std::min(n, kRows), columns});
    for (int64_t begin = 0; begin < n; begin += kRows) {
        const int64_t rows = std::min(kRows, n - begin);
        ops::knn(index, queries.slice(begin, begin + rows), neighbours.view().slice(0, rows),
                 distances_sq.view().slice(0, rows));
        parallel_for(rows, 1024, [&](int64_t first, int64_t last) {
            for (int64_t i = first; i < last; ++i)
                visit(begin + i, neighbours.data() + i * columns, distances_sq.data() + i * columns);
        });
    }
}

Array<float, 2> rows_of(View<const float, 2> points, const std::vector<int64_t>& chosen) {
    Array<float, 2> rows({static_cast<int64_t>(chosen.size()), 3});
    for (size_t i = 0; i < chosen.size(); ++i) std::copy_n(points.data() + 3 * chosen[i], 3, rows.data() + 3 * i);
    return rows;
}

/// The sheets that face the other way at a point: how many of their points, and the sum of their distances.
struct Opposite {
    float behind = 0, between = 0, before = 0;  // between: so near that the side is not known
    int of_behind = 0, of_between = 0, of_before = 0;
    int same = 0;           // points of the sheet itself
    float same_square = 0;  // of their distances from its plane

    int count() const { return of_behind + of_between + of_before; }
    /// Two sheets, each of points enough and flat enough: outliers, and normals that were turned the wrong way where a
    /// scan grazes an edge, make no sheet.
    bool is_sheet(float spacing) const {
        constexpr int kUneven = 3;
        constexpr float kFlat = 0.5f;  // spacings
        const int opposite = count();
        return opposite >= 2 && same >= 2 && opposite <= kUneven * same && same <= kUneven * opposite &&
               same_square <= kFlat * kFlat * spacing * spacing * static_cast<float>(same);
    }
};

/// What a point has to move for a sheet at the mean of these distances: half of what is missing.
float half_missing(float sum, int count, float wanted) {
    return count < 2 ? 0.0f : std::max(0.0f, 0.5f * (wanted - sum / static_cast<float>(count)));
}

}  // namespace

std::vector<float> sheet_shifts(View<const float, 2> points, View<const float, 2> normals, View<const float, 1> areas,
                                float spacing, const WindingIndex& field, float thinnest, float accuracy) {
    const int64_t n = points.size(0);
    const ops::PointIndex index(points);
    constexpr int64_t kNeighbours = 40;  // of two sheets at one place they reach 2.5 spacings
    const int64_t columns = std::min(kNeighbours, n);
    constexpr float kSparse = 2;  // times the usual spacing: what is sparser is an outlier or an edge of a scan
    const auto spacing_of = [&](int64_t i) { return std::min(std::sqrt(areas.data()[i]), kSparse * spacing); };
    std::vector<Opposite> opposite(static_cast<size_t>(n));
    for_neighbours(index, points, columns, [&](int64_t i, const int32_t* neighbours, const float*) {
        const float apart = spacing_of(i);
        const float *p = points.data() + 3 * i, *normal = normals.data() + 3 * i;
        Opposite& found = opposite[i];
        for (int64_t k = 0; k < columns && neighbours[k] >= 0; ++k) {
            const int64_t j = neighbours[k];
            constexpr float kAlike = 0.5f;  // the cosine of 60 degrees
            const float turn = dot3(normal, normals.data() + 3 * j);
            if (!(std::abs(turn) > kAlike)) continue;
            const float* q = points.data() + 3 * j;
            const float offset[3] = {p[0] - q[0], p[1] - q[1], p[2] - q[2]};
            const float depth = dot3(offset, normal), aside_sq = dot3(offset, offset) - depth * depth;
            if (aside_sq > kDisc * kDisc * apart * apart || std::abs(depth) > thinnest * apart) continue;
            constexpr float kKnown = 0.25f;  // spacings
            if (turn > 0) {
                found.same_square += depth * depth, ++found.same;
            } else if (depth > kKnown * apart) {
                found.behind += depth, ++found.of_behind;
            } else if (depth < -kKnown * apart) {
                found.before -= depth, ++found.of_before;
            } else {
                found.between += std::abs(depth), ++found.of_between;
            }
        }
    });

    std::vector<int64_t> chosen, nearby;
    for (int64_t i = 0; i < n; ++i) {
        if (opposite[i].is_sheet(spacing_of(i))) chosen.push_back(i);
        if (opposite[i].count() > 0) nearby.push_back(i);
    }
    if (chosen.empty()) return {};
    const Array<float, 2> places = rows_of(points, chosen);
    std::vector<float> winding(chosen.size());
    winding_number(field, places.view(), View<float, 1>(winding.data(), {places.size(0)}), accuracy);
    std::vector<float> raw(static_cast<size_t>(n), 0.0f);
    for (size_t c = 0; c < chosen.size(); ++c) {
        Opposite& found = opposite[chosen[c]];
        const bool is_wall = winding[c] < 0.5f;
        (is_wall ? found.behind : found.before) += found.between;
        (is_wall ? found.of_behind : found.of_before) += found.of_between;
        const float wanted = thinnest * spacing_of(chosen[c]);
        raw[chosen[c]] =
            half_missing(found.behind, found.of_behind, wanted) - half_missing(found.before, found.of_before, wanted);
    }
    // The mean over the sheet around, for points too that could not tell: a torn sheet makes a torn surface.
    std::vector<float> shifts = raw;
    const Array<float, 2> all = rows_of(points, nearby);
    for_neighbours(index, all.view(), columns, [&](int64_t c, const int32_t* neighbours, const float* distances_sq) {
        const int64_t i = nearby[c];
        const float reach_sq = kDisc * kDisc * spacing_of(i) * spacing_of(i);
        float sum = 0;
        int count = 0;
        for (int64_t k = 0; k < columns && neighbours[k] >= 0 && distances_sq[k] <= reach_sq; ++k) {
            if (!(dot3(normals.data() + 3 * i, normals.data() + 3 * int64_t{neighbours[k]}) > 0.5f)) continue;
            sum += raw[neighbours[k]], ++count;
        }
        if (count > 0) shifts[i] = sum / static_cast<float>(count);
    });
    return shifts;
}

void undo_shifts(View<const float, 2> points, View<const float, 2> normals, View<const float, 1> areas,
                 const std::vector<float>& shifts, View<float, 2> vertices) {
    if (vertices.size(0) == 0) return;
    const ops::PointIndex index(points);
    const int64_t columns = std::min<int64_t>(8, points.size(0));
    for_neighbours(index, vertices, columns, [&](int64_t v, const int32_t* neighbours, const float* distances_sq) {
        if (neighbours[0] < 0) return;
        const float spacing = std::sqrt(areas.data()[neighbours[0]]), nearest = std::sqrt(distances_sq[0]);
        const float far = nearest + kDisc * spacing;
        float moved[3] = {}, weights = 0;
        for (int64_t k = 0; k < columns && neighbours[k] >= 0; ++k) {
            const int64_t j = neighbours[k];
            const float* normal = normals.data() + 3 * j;
            const float weight = 1 - distances_sq[k] / (far * far);
            if (!(weight > 0) || !(dot3(normal, normals.data() + 3 * int64_t{neighbours[0]}) > 0)) continue;
            for (int axis = 0; axis < 3; ++axis) moved[axis] += weight * weight * shifts[j] * normal[axis];
            weights += weight * weight;
        }
        if (!(weights > 0)) return;
        const float fade = std::clamp(2 - nearest / (2 * spacing), 0.0f, 1.0f);  // where a hole was closed
        for (int axis = 0; axis < 3; ++axis) vertices.data()[3 * v + axis] -= fade * moved[axis] / weights;
    });
}

}  // namespace stipple::geometry
