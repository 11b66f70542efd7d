#pragma once
// LAS 1.0 to 1.4 [ASPRS LAS 1.4-R15], point formats 0 to 10, and LAZ, which is LAS with points that LASzip compressed:
// it is told by the content, read as if it were not compressed, and never written.
//
// Attributes, all [n, 1] but color:
//   intensity uint16; return_number, number_of_returns, scan_direction, edge_of_flight_line uint8; label uint8, which
//   is LAS's classification; classification_flags uint8 (1 synthetic, 2 key point, 4 withheld, 8 overlap); scan_angle,
//   int8 in degrees (formats 0 to 5) or int16 in steps of 0.006 degrees (6 to 10); scanner_channel uint8 (6 to 10);
//   user_data uint8; point_source_id uint16; time float64, the GPS time as it stands; color uint16 [n, 3], as the file
//   has it, which may be 8-bit values (color_maximum() in core/attribute.h tells); nir uint16; and extra bytes under
//   the name that the file gives them (NAME[0], NAME[1] ... in a row are one attribute).

#include "stipple/io/format.h"

namespace stipple::io {

/// The attribute that holds point records as a file has them, uint8 [n, bytes of a record], where a reader in chunks
/// was asked for it (cloud_stream.h). Writers of LAS write these bytes instead of positions and attributes, so that
/// nothing changes in points that nobody touched: whoever moves points or changes an attribute erases it. Without
/// facts.grid and facts.las, or with another record length than theirs, it counts for nothing. No other format writes
/// it.
inline constexpr std::string_view kLasRecord = "las_record";

/// Positions are X * scale + offset about the origin that choose_origin() gives for a sample of the points; a warning
/// tells where float32 is coarser than the file's scale. Scaled extra bytes become float64. Told in a warning and
/// dropped: wave packets, extra bytes that nothing describes. The cloud's facts receive the header and all records (up
/// to Limits::max_las_records bytes), those of the coordinate system, scale and offset, time type and whether returns
/// are synthetic. Every
/// count, offset and length is checked against the size of the file before it is used. LAZ:
/// see stipple/io/laz/reader.h.
Mesh parse_las(ByteReader& reader, const ReadOptions& options, Warnings& warnings);

/// A cloud with facts.las is written with that header, version, point format (without wave packets) and all its records
/// byte for byte, as long as the format has a field for every attribute that LAS has one for; the generating software
/// becomes "stipple". Else LAS 1.2 with point format 0 to 3 where that holds everything, else 1.4 with 6 to 8, which a
/// coordinate system in WKT alone needs too; GeoTIFF keys go only with 1.2, else they are dropped with a warning: the
/// standard allows WKT alone there. Time type and synthetic returns are those of the facts. An attribute
/// that LAS has no field for, or whose values do not fit in it, goes into extra bytes; one of another type whose values
/// fit goes into the field (color of uint8 times 257), and a record of ours restores type, order and origin when
/// stipple reads the file again. Scale and offset are those of the options, else of facts.grid where the points fit;
/// else the offset is the origin, and the scale of each axis the coarsest power of ten, else the power of two, that
/// gives every float32 position back exactly; where none does, a power of ten at least as fine as float32 at the
/// largest coordinate, and the rounding is told in a warning. Throws Error{bad_argument} for a non-finite position.
/// Dropped with a warning: faces, alpha, attributes whose name is longer than 32 bytes; float16 and bfloat16 become
/// float32.
void write_las(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);

/// The box around all points as the header tells it, `finite` 1; none where the header ends before it.
std::optional<Bounds> las_box(const LasFacts& las);
/// Whether point records of the one file can stand in the other: the same point format and length.
bool have_same_records(const LasFacts& a, const LasFacts& b);
/// The largest integers of a grid that programs can be trusted with.
inline constexpr double kMostOfGrid = 2e9;
/// The grid, where all of the box fits its integers; on other axes about the middle of the box, and coarser if it must
/// be.
FileFacts::Grid grid_for(const Bounds& box, FileFacts::Grid grid);

}  // namespace stipple::io
