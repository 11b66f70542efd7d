#pragma once
// PLY [Turk 1994]: ascii, little and big endian.
//
// Read: every property type and its aliases, lists with any integer count type, CRLF, comments and obj_info. Vertex
// properties become positions and attributes (PointTable has the rules); polygons are cut into fans of triangles;
// scalar face properties become face attributes. Other elements and lists are skipped, lists with a warning. float64
// coordinates move their large part into the origin; "comment stipple origin X Y Z" gives it exactly.
// Written: float x y z, or double in world coordinates when the origin is not 0; attributes under their usual property
// names. int64, uint64, float16, bfloat16 and bool have no PLY type: stored in a wider or equal one that holds every
// value, with a warning, or refused.

#include "stipple/io/format.h"

namespace stipple::io {

Mesh parse_ply(ByteReader& reader, const ReadOptions& options, Warnings& warnings);
void write_ply(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);

}  // namespace stipple::io
