#pragma once
// Point records into the columns of a cloud.

#include <limits>

#include "stipple/io/las/header.h"

namespace stipple::io::las {

struct IntBounds {
    std::array<int32_t, 3> min, max;
    IntBounds() {
        min.fill(std::numeric_limits<int32_t>::max());
        max.fill(std::numeric_limits<int32_t>::min());
    }
    void add(const IntBounds& other) {
        for (size_t a = 0; a < 3; ++a) {
            min[a] = std::min(min[a], other.min[a]);
            max[a] = std::max(max[a], other.max[a]);
        }
    }
};

/// The columns of a file: those of its point format, then its extra bytes. Tells in warnings what none of them covers.
std::vector<Column> file_columns(const Header& header, const Records& records, Warnings& warnings);

/// Makes room for `count` points and their columns.
void allocate(const std::vector<Column>& columns, int64_t count, PointCloud& cloud);

/// `count` records into the rows from `first` on. The integers of the positions stay in the memory of the floats until
/// place_positions(). Returns their bounds.
IntBounds unpack(const std::byte* records, int64_t record_bytes, const std::vector<Column>& columns, int64_t first,
                 int64_t count, PointCloud& cloud);

/// Integers of unpack() -> an origin, see choose_origin(); our own files keep theirs.
std::array<double, 3> origin_of(const Header& header, const Records& records, const PointCloud& unpacked);

/// Integers of unpack() -> positions about cloud.origin. Throws Error{bad_file} for points beyond float32.
void place_positions(const Header& header, const IntBounds& bounds, PointCloud& cloud);

/// The warning, if float32 about this origin is coarser than the scale of the file; at most one.
void warn_coarse(const Header& header, const IntBounds& bounds, const std::array<double, 3>& origin,
                 Warnings& warnings);

/// Scaled extra bytes become float64; `standard` columns come first.
void scale_extra(const Records& records, size_t standard, PointCloud& cloud);

/// Extra bytes of a name that a standard column has too: they take its place when that holds nothing, or else receive
/// another name; without `replace_empty` always.
void resolve_names(PointCloud& cloud, size_t standard, bool replace_empty = true);

/// The attributes as they were when stipple wrote the file: type, order, and no columns that it did not have. What
/// somebody has filled since stays, unless `only_own`.
void restore_own(PointCloud& cloud, const std::vector<OwnAttribute>& own, bool only_own = false);

}  // namespace stipple::io::las
