#pragma once
// The integers of LAS: coordinate = integer * scale + offset.

#include "stipple/io/format.h"
#include "stipple/io/las/unpack.h"

namespace stipple::io::las {

using Grid = FileFacts::Grid;

/// The largest integer that is used, either sign.
constexpr double kLargest = 2147483646;

/// The grid on which a cloud is written: scale and offset of the options, else those of the file that it was read from
/// where every point fits, else the origin and the coarsest scale that loses nothing; see write_las(). The bounds of
/// the integers go to `bounds`. Throws Error{bad_argument} for a non-finite position, and for points that do not fit
/// the options.
Grid choose_grid(const PointCloud& cloud, const WriteOptions& options, IntBounds& bounds, Warnings& warnings);

/// Throws Error{bad_argument} for a position that is not finite.
void require_finite(const PointCloud& cloud);

/// Throws Error{bad_argument} for a cloud that does not fit the grid.
void require_fits(const PointCloud& cloud, const Grid& grid);

/// Three integers of each position, `stride` bytes apart; the points fit.
void quantise(const PointCloud& cloud, const Grid& grid, int64_t first, int64_t count, std::byte* to, int64_t stride);

/// The same for integers on another grid.
void requantise(const Grid& from, const Grid& to, std::byte* records, int64_t stride, int64_t count);

}  // namespace stipple::io::las
