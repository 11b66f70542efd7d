#pragma once
// Heights over a grid of squares: opening, and filling where nothing is known. Not for users.

#include <cmath>
#include <cstdint>
#include <vector>

namespace stipple::geometry {

/// Rows of y, each of `columns` cells of x. NaN: not known.
struct HeightField {
    int64_t columns = 0, rows = 0;
    std::vector<float> heights;

    HeightField() = default;
    HeightField(int64_t c, int64_t r) : columns(c), rows(r), heights(static_cast<size_t>(c * r), NAN) {}
    float& at(int64_t column, int64_t row) { return heights[static_cast<size_t>(row * columns + column)]; }
    float at(int64_t column, int64_t row) const { return heights[static_cast<size_t>(row * columns + column)]; }

    /// At a place in cells, (0.5, 0.5) being the middle of the first: between the middles of cells linearly, beyond the
    /// last as there.
    double between(double column, double row) const;
};

/// The lowest (or highest) height within `radius` cells on each axis, by squares; all heights known. What lies outside
/// of the field does not count. O(cells), whatever the radius.
HeightField lowest_around(const HeightField& field, int64_t radius);
HeightField highest_around(const HeightField& field, int64_t radius);

/// The field with its unknown heights interpolated smoothly from the known ones; known ones stay. 0 where none is
/// known.
HeightField filled(const HeightField& field);

}  // namespace stipple::geometry
