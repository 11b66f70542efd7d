#pragma once
// Files of a few numbers that people write by hand or pass from command to command: matrices and polygons.

#include <string>

#include "stipple/geometry/affine_transform.h"
#include "stipple/geometry/region.h"

namespace stipple::tasks {

/// All of a file of at most `most` bytes; "-" is standard input. Throws Error{bad_file} for a longer one: "too long for
/// WHAT".
std::string load_text(const std::string& path, size_t most, std::string_view what);

/// A 4 x 4 (or 3 x 4) matrix: text (geometry::parse_affine) or an array of numpy (.npy), told by content. Throws
/// Error{bad_file}.
geometry::AffineTransform load_affine(const std::string& path);

/// Corners as geometry::parse_polygon reads them, up to 64 MB of text.
geometry::Region::Polygon load_polygon(const std::string& path);

}  // namespace stipple::tasks
