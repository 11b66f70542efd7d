#pragma once
// Packed data sets: one small file for all splits of a set, to be copied to where it is used.
//
//   save_packed("modelnet40.stpk", splits, {.bits = 10, .points = 1024}, Overwrite::refuse);
//   const DataSet test = load_data_set("modelnet40.stpk", {.split = "test"}, warnings);
//
// Coordinates are whole numbers of `bits` bits over the box of their cloud: the largest error of an axis is half a
// step, extent / (2^bits - 1) / 2, beside the rounding to float32. Order of points, labels, parts and names are kept as
// they are; normals are not. 1024 points at 10 bits take about 3.5 kB a cloud.
//
// The file, little-endian: "STPKDATA", the header's length (8 bytes), its CRC-32 (4), the header in JSON, then blocks
// of up to 256 clouds one after the other, as the header lists them: their length and CRC-32 are there. A block is a
// deflated piece (zlib) with sizes [u32], labels [u16], boxes [6 x f32: lower, upper], names [u16 lengths, bytes] and
// parts of all items [u8, within the category], each where the set has it, and a range-coded piece with the
// coordinates: of each item x, y and z of all points, from the highest bit to the lowest, with adaptive probabilities
// (packed/range_coder.h).

#include <span>
#include <string>

#include "stipple/core/atomic_file.h"
#include "stipple/core/fields.h"
#include "stipple/data/data_set.h"
#include "stipple/io/byte_source.h"

namespace stipple::data {

struct PackOptions {
    int bits = 10;       // of a coordinate, 8 to 16
    int64_t points = 0;  // the first n of each cloud, or all it has; 0: all
};
const Fields& pack_fields();

struct PackedFacts {
    std::vector<std::string> splits = {};
    int64_t items = 0, points = 0;
    int bits = 0;              // of a coordinate
    int64_t bytes = 0;         // of the file
    double largest_error = 0;  // half the largest step of all clouds
};
const Fields& packed_facts_fields();

/// Splits of one set: each with a name of its own, with the same classes, categories and names of parts, and with or
/// without labels and parts alike; names of items are kept when all have them. Throws Error{bad_argument} otherwise,
/// for no splits, pairs, options out of range, more than 65536 classes, a category of more than 256 parts, and text
/// that is not UTF-8. Blocks are coded in parallel and held in memory.
PackedFacts write_packed(std::span<const DataSet> splits, const PackOptions& options, ByteSink& sink);
PackedFacts save_packed(const std::string& path, std::span<const DataSet> splits, const PackOptions& options,
                        Overwrite overwrite);

/// What a file holds, from its header alone.
struct PackedContent {
    int bits = 0;
    std::vector<std::string> splits;
};
PackedContent load_packed_content(const std::string& path);
/// By its first bytes; false for anything else, and what cannot be opened.
bool is_packed_file(const std::string& path);

/// A split, the first `points` of each cloud (0: all). For files from anywhere: lengths are compared with what is there
/// before memory is taken, of blocks that are read the checksum is, and every number is checked. Throws Error{bad_file}
/// that says what is wrong; Error{bad_argument} for a split that there is not.
DataSet parse_packed(io::ByteReader& reader, const std::string& split, int64_t points = 0);

}  // namespace stipple::data
