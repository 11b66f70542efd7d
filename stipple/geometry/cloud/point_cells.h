#pragma once
// Points sorted into cubes, and the 27 cubes around each as nine runs of them. Not for users.

#include <algorithm>
#include <array>
#include <vector>

#include "stipple/core/array.h"

namespace stipple::geometry {

struct PointCells {
    struct Run {
        int32_t begin, end;  // cells
    };
    using Runs = std::array<Run, 9>;  // own row of cells first, then the eight beside it

    Array<int32_t, 1> order;        // [finite points] indices, by cell (z, y, x), ascending within a cell
    Array<float, 2> points;         // [finite points, 3] in this order
    Array<int64_t, 1> offsets;      // [cells + 1] in `order`
    Array<int32_t, 2> coordinates;  // [cells, 3] x, y, z; touching cells differ by at most 1 on each axis

    int64_t cells() const { return coordinates.size(0); }

    /// Calls body(cell, runs) for cells [begin, end) in order; the runs are the cells that touch it, itself included.
    /// They are found by walking along: O(1) a cell where many are asked in a row.
    template <class Body>
    void for_each(int64_t begin, int64_t end, const Body& body) const {
        Runs runs = {};
        for (int64_t cell = begin; cell < end; ++cell) {
            const int32_t* at = coordinates.data() + 3 * cell;
            for (int k = 0; k < 9; ++k) {
                const int32_t y = at[1] + kRow[k][0], z = at[2] + kRow[k][1];
                Run& run = runs[k];
                if (cell == begin) run.begin = run.end = lower_bound(at[0] - 1, y, z);
                while (run.begin < cells() && before(run.begin, at[0] - 1, y, z)) ++run.begin;
                run.end = std::max(run.end, run.begin);
                while (run.end < cells() && before(run.end, at[0] + 2, y, z)) ++run.end;
            }
            body(cell, runs);
        }
    }

private:
    static constexpr int32_t kRow[9][2] = {{0, 0},   {-1, 0}, {1, 0},  {0, -1}, {0, 1},
                                           {-1, -1}, {1, -1}, {-1, 1}, {1, 1}};

    bool before(int64_t cell, int32_t x, int32_t y, int32_t z) const {
        const int32_t* c = coordinates.data() + 3 * cell;
        return c[2] != z ? c[2] < z : c[1] != y ? c[1] < y : c[0] < x;
    }
    int32_t lower_bound(int32_t x, int32_t y, int32_t z) const;
};

/// Cells a little wider than `size` > 0 for points [n, 3]: points within `size` of each other are in cells that touch.
/// Non-finite points are in none. Any size is fine: one too small is enlarged to 2^-40 of the largest coordinate.
/// Throws Error{out_of_memory}. O(n), or O(n log n) when the box around the points has more than 2^60 cells.
PointCells point_cells(View<const float, 2> points, double size);

}  // namespace stipple::geometry
