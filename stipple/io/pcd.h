#pragma once
// PCD 0.6-0.7 (Point Cloud Library): ascii, binary, binary_compressed.
//
// Read: any FIELDS with SIZE 1, 2, 4, 8 and TYPE I, U, F; COUNT above 1 makes an attribute of that many components;
// "_" is padding. rgb and rgba (packed into 4 bytes) become color; normal_x normal_y normal_z become normal. NaN points
// are kept. The viewpoint goes into the cloud's facts; the rows of an organised cloud are not kept: a warning says so.
// Written: binary, ascii or binary_compressed (up to 4 GiB); x y z as float32 about the origin, because programs that
// read PCD expect float32 (Open3D takes float64 for zeros). An origin other than 0 stands in a comment, which we read
// back, so that nothing is lost here; a warning tells what others see. The viewpoint of the facts, about the same
// origin.

#include "stipple/io/format.h"

namespace stipple::io {

/// The viewpoint of files that have none to tell.
inline constexpr std::array<double, 7> kPcdIdentity = {0, 0, 0, 1, 0, 0, 0};

/// Comments of ours: "# stipple origin X Y Z" is added to all coordinates and to the viewpoint; "# stipple viewpoint"
/// says that there is one, though about the origin it may read as none.
inline constexpr std::string_view kPcdOrigin = "# stipple origin", kPcdViewpoint = "# stipple viewpoint";

Mesh parse_pcd(ByteReader& reader, const ReadOptions& options, Warnings& warnings);
void write_pcd(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);

}  // namespace stipple::io
