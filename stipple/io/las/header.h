#pragma once
// The header and the variable length records of a LAS file, read and checked.

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "stipple/io/format.h"
#include "stipple/io/las/layout.h"

namespace stipple::io::las {

struct Header {
    int minor = 0, format = 0;
    int64_t header_size = 0, points_at = 0, vlrs = 0, record = 0, count = 0;
    std::array<double, 3> scale, offset;  // finite, scale not 0
    int encoding = 0;                     // the global encoding; 0 before LAS 1.2, which has none
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
};

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

/// Leaves the reader at the first point.
Records read_records(ByteReader& reader, const Header& header, Warnings& warnings);

}  // namespace stipple::io::las
