#pragma once
// Points as lines of numbers: XYZ and TXT, XYZN, XYZRGB, PTS, CSV.
//
// Read: columns separated by blanks, commas or semicolons; '#' and '//' begin comment lines. A first line (or comment)
// of words that starts with x y z names the columns; without names, what follows x y z is judged by its values:
//   1 column   intensity
//   3 columns  normal when all are of unit length, color when all are integers from 0 to 255, else "extra"
//   4 columns  intensity and color (PTS)
//   6 columns  a color and a normal, in either order
// any other count is the attribute "extra". Named columns are read as color (uint8, uint16 or float32), normal and
// intensity (float32), label (int32), time (float64); any other as int32 when all its values are such, else float64.
// PTS begins with a line that holds the number of points. XYZN and XYZRGB are as Open3D has them: six columns without
// names are x y z nx ny nz, or x y z r g b with colours from 0 to 1, which become uint8 where every one is a 255th part
// (else float32); integers from 0 to 255, some above 1, are taken as they stand. Other columns are read as in XYZ.
// Written: XYZ holds positions only; XYZN and XYZRGB those with normals or colours, and throw Error{bad_argument} where
// there are none; CSV has a header and every attribute; PTS positions, intensity and color. Only PTS can be empty: to
// write no points into the others throws Error{bad_argument}.

#include "stipple/io/format.h"

namespace stipple::io {

Mesh parse_xyz(ByteReader& reader, const ReadOptions& options, Warnings& warnings);
Mesh parse_xyzn(ByteReader& reader, const ReadOptions& options, Warnings& warnings);
Mesh parse_xyzrgb(ByteReader& reader, const ReadOptions& options, Warnings& warnings);
Mesh parse_pts(ByteReader& reader, const ReadOptions& options, Warnings& warnings);
void write_xyz(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);
void write_xyzn(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);
void write_xyzrgb(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);
void write_pts(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);
void write_csv(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);

}  // namespace stipple::io
