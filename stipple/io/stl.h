#pragma once
// STL, ascii and binary: triangles without indices, float32.

#include "stipple/io/format.h"

namespace stipple::io {

/// Corners with identical coordinates (bit for bit, but -0 is 0) become one vertex, numbered by first occurrence. A
/// binary file may begin with "solid": the size 84 + 50 n decides where it is known, else the bytes after the word do.
/// Several ascii solids are joined. Facet normals are dropped without a word, since corners tell them; attribute bytes
/// of binary facets are dropped with a warning. Degenerate facets and non-finite coordinates are kept. Refused: no
/// facets, a count that the file cannot hold, bytes after the last facet, text that breaks the grammar (with its line).
Mesh parse_stl(ByteReader& reader, const ReadOptions& options, Warnings& warnings);

/// Binary, or ascii with options.ascii (shortest decimals that read back equal). Normals are computed from the corners,
/// 0 for degenerate facets. Throws Error{bad_argument} for a cloud without faces. World coordinates are float32: told
/// where that rounds. Vertices of no face, and attributes, are dropped with a warning. Vertices of equal coordinates
/// are one when read again.
void write_stl(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);

}  // namespace stipple::io
