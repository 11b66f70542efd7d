#pragma once
// Wavefront OBJ: v (with optional colors), vn, f; positive and negative indices; lines continued by a backslash.
//
// Polygons are cut into fans. Normals become an attribute when every corner uses the normal of its vertex' own number
// (or there are no faces and as many normals as vertices); other normals, texture coordinates, materials, groups, lines
// and curves are left out, the first three with a warning. Colors that are multiples of 1/255 become uint8.
// Written: v (with r g b from 0 to 1), vn, f.

#include "stipple/io/format.h"

namespace stipple::io {

Mesh parse_obj(ByteReader& reader, const ReadOptions& options, Warnings& warnings);
void write_obj(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);

}  // namespace stipple::io
