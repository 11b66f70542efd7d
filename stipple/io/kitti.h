#pragma once
// KITTI .bin [Geiger et al. 2013]: rows of four little-endian float32, x y z and reflectance, and nothing else.

#include "stipple/io/format.h"

namespace stipple::io {

/// Positions and attribute intensity, float32 [n, 1]. There is no header: an empty file and a size that is not a
/// multiple of 16 are refused. Numbers that no scanner gives (not finite, beyond 10 000 km, nearer to 0 than 1e-30,
/// intensities below 0 or above 65535) are doubted, unless options.named: a warning where a few points have them,
/// Error{bad_file} where half of the points have such coordinates. All values are kept.
Mesh parse_kitti(ByteReader& reader, const ReadOptions& options, Warnings& warnings);

/// Intensity of another type is converted to float32 and told in a warning; a missing one is written as 0, likewise.
/// World coordinates are float32: told where that rounds. Faces and other attributes are dropped with a warning.
void write_kitti(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);

}  // namespace stipple::io
