#pragma once
// Polygons of any size, cut into triangles while they are read.

#include <cstdint>
#include <span>
#include <vector>

#include "stipple/io/format.h"

namespace stipple::io {

class PolygonCollector {
public:
    /// Cuts the polygon into a fan. Fewer than three corners are counted and left out. Indices are checked in finish(),
    /// when the number of vertices is known; here they must fit in int32.
    void add(std::span<const int32_t> corners);
    void reserve(int64_t triangles) { corners_.reserve(static_cast<size_t>(3 * triangles)); }

    int64_t triangles() const { return static_cast<int64_t>(corners_.size() / 3); }

    /// Throws Error{bad_file} for an index outside [0, vertices).
    Array<int32_t, 2> finish(int64_t vertices, Warnings& warnings);

    /// The rows of a per-polygon attribute, one for each triangle.
    Attribute per_triangle(Attribute per_polygon) const;

private:
    std::vector<int32_t> corners_;
    std::vector<int32_t> sources_;  // the polygon of each triangle, once one had not exactly three corners
    bool tracked_ = false;
    int64_t polygons_ = 0, degenerate_ = 0;
};

}  // namespace stipple::io
