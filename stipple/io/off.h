#pragma once
// OFF (Geomview), text: OFF, COFF, NOFF, CNOFF, also with the counts glued to the keyword ("OFF490 518 0").
//
// Read: comments and blank lines anywhere; normals (N) then colors (C: 3 or 4 numbers, integers to 255 or reals to 1)
// after each position; the number of columns must match the keyword. Polygons are cut into fans; colors of faces are
// left out with a warning. Binary OFF, homogeneous (4OFF), n-dimensional (nOFF) and textured (ST) files are refused.
// Written: positions, float32 normals and uint8 colors of the vertices, faces.

#include "stipple/io/format.h"

namespace stipple::io {

Mesh parse_off(ByteReader& reader, const ReadOptions& options, Warnings& warnings);
void write_off(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);

}  // namespace stipple::io
