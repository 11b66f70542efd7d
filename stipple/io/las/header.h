#pragma once
// The header and the variable length records of a LAS file, read and checked.

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "stipple/io/format.h"
#include "stipple/io/las/layout.h"
#include "stipple/io/laz/points.h"

namespace stipple::io::las {

struct Header {
    int minor = 0, format = 0;
    int64_t header_size = 0, points_at = 0, vlrs = 0, record = 0, count = 0;
    std::array<double, 3> scale, offset;  // finite, scale not 0
    int encoding = 0;                     // the global encoding; 0 before LAS 1.2, which has none
    int64_t first_evlr = 0, evlrs = 0;    // extended records; LAS 1.4
    bool compressed = false;              // LAZ
    std::string bytes;                    // the whole header as it stands, without the mark of LAZ

    /// Compressed points end somewhere behind it.
    int64_t points_end() const { return compressed ? points_at : points_at + count * record; }
};

struct ExtraColumn {
    Column column;
    bool scaled = false;
    std::array<double, 3> scale = {1, 1, 1}, offset = {};
};

struct OwnAttribute {
    std::string name;
    DType dtype = DType::u8;
    int64_t components = 1;
};

struct Records {
    std::vector<ExtraColumn> extra;
    std::optional<std::array<double, 3>> own_origin;
    std::vector<OwnAttribute> own;
    std::vector<FileFacts::Record> projection;  // of the coordinate system
    LasFacts raw;                               // everything, byte for byte, but the record of LAZ
    std::optional<laz::Description> compression;
};

/// Text of a fixed field: up to its first NUL.
std::string text_at(const std::byte* bytes, int64_t offset, size_t length);

template <class T>
T number_at(const std::byte* bytes, int64_t offset) {
    T value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
}

/// Throws Error{bad_file} at this byte.
[[noreturn]] void fail_at(int64_t offset, std::string message, std::string hint = {});

/// Throws Error{bad_file} at the offset of the field that is wrong. Afterwards the reader stands at the first record.
Header read_header(ByteReader& reader, Warnings& warnings);

/// Leaves the reader at the first point. Records beyond limits().max_las_records bytes are dropped with a warning.
Records read_records(ByteReader& reader, const Header& header, Warnings& warnings);

/// The extended records of LAS 1.4, read by a reader that stands at byte `at` of the file, behind the points. Throws
/// Error{bad_file} for one that reaches past the end.
void read_extended(ByteReader& reader, int64_t at, const Header& header, Records& records, Warnings& warnings);

/// The facts of a file whose records were read.
FileFacts facts_of(const Header& header, const Records& records);

}  // namespace stipple::io::las
