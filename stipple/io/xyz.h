#pragma once
// Points as lines of numbers: XYZ and TXT, PTS, CSV.
//
// Read: columns separated by blanks, commas or semicolons; '#' and '//' begin comment lines. A first line (or comment)
// of words that starts with x y z names the columns; without names, what follows x y z is judged by its values:
//   1 column   intensity
//   3 columns  normal when all are of unit length, color when all are integers from 0 to 255, else "extra"
//   4 columns  intensity and color (PTS)
//   6 columns  a color and a normal, in either order
// any other count is the attribute "extra". Named columns are read as color (uint8, uint16 or float32), normal and
// intensity (float32), label (int32), time (float64); any other as int32 when all its values are such, else float64.
// PTS begins with a line that holds the number of points.
// Written: XYZ holds positions only; CSV has a header and every attribute; PTS positions, intensity and color.

#include "stipple/io/format.h"

namespace stipple::io {

Mesh parse_xyz(ByteReader& reader, const ReadOptions& options, Warnings& warnings);
Mesh parse_pts(ByteReader& reader, const ReadOptions& options, Warnings& warnings);
void write_xyz(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);
void write_pts(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);
void write_csv(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);

}  // namespace stipple::io
