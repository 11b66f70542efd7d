#pragma once
// PCD 0.6-0.7 (Point Cloud Library): ascii, binary, binary_compressed.
//
// Read: any FIELDS with SIZE 1, 2, 4, 8 and TYPE I, U, F; COUNT above 1 makes an attribute of that many components;
// "_" is padding. rgb and rgba (packed into 4 bytes) become color; normal_x normal_y normal_z become normal. NaN points
// are kept. The viewpoint goes into the cloud's facts; the rows of an organised cloud are not kept: a warning says so.
// Written: binary, ascii or binary_compressed (up to 4 GiB); x y z as float32, as float64 when the origin is not 0;
// the viewpoint of the facts.

#include "stipple/io/format.h"

namespace stipple::io {

/// The viewpoint of files that have none to tell.
inline constexpr std::array<double, 7> kPcdIdentity = {0, 0, 0, 1, 0, 0, 0};

Mesh parse_pcd(ByteReader& reader, const ReadOptions& options, Warnings& warnings);
void write_pcd(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);

}  // namespace stipple::io
