#pragma once
// The one fact of a photograph's EXIF data that changes its pixels.

#include <cstdint>
#include <span>

namespace stipple::io {

/// Orientation, 1 to 8, of an APP1 segment's content ("Exif", two zero bytes, then a TIFF header in either byte order);
/// 1, upright, where there is none, or where anything about it is wrong: pictures with odd tags are pictures still.
int exif_orientation(std::span<const uint8_t> segment);

}  // namespace stipple::io
