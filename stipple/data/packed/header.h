#pragma once
// The header of a packed data set.

#include "stipple/data/data_set.h"
#include "stipple/io/byte_source.h"

namespace stipple::data {

inline constexpr std::string_view kPackedMagic = "STPKDATA";
inline constexpr int64_t kPackedFormat = 1;

struct PackedBlock {
    int64_t items = 0, points = 0;  // in all
    int64_t inflated = 0;           // bytes of its first piece
    int64_t deflated = 0;           // the same as stored
    int64_t coded = 0;              // bytes of its second piece
    int64_t crc32 = 0;              // of both as stored
};

struct PackedSplit {
    std::string name;
    std::vector<PackedBlock> blocks;
};

struct PackedHeader {
    int32_t bits = 0;
    bool has_labels = false, has_names = false, has_parts = false;
    std::vector<std::string> classes, part_names;
    std::vector<PartCategory> categories;
    std::vector<PackedSplit> splits;
};

std::string packed_header_json(const PackedHeader& header);

/// Magic, length, checksum, header; the reader is then at the first block. Everything that the header says is checked:
/// ranges of its numbers, blocks against the bytes that follow and against what their bytes can hold. Throws
/// Error{bad_file}.
PackedHeader read_packed_header(io::ByteReader& reader);

}  // namespace stipple::data
