#pragma once
// PointTable: builds a PointCloud out of binary rows with named fields, as PLY, PCD and text files have them.

#include <optional>
#include <string>
#include <vector>

#include "stipple/core/point_cloud.h"
#include "stipple/io/format.h"

namespace stipple::io {

/// One number of a row.
struct Field {
    std::string name;
    DType dtype;
    int64_t offset = 0;  // bytes from the row's begin
};

/// Lays fields out one after the other, without padding; returns the bytes of a row.
int64_t pack_fields(std::vector<Field>& fields);

/// Bytes that grow as rows arrive, or stand at their final size from the begin.
class GrowingBuffer {
public:
    void reserve(int64_t bytes);  // grows by doubling
    void reserve_exactly(int64_t bytes);
    std::byte* data() { return buffer_.data(); }
    Buffer release() { return std::move(buffer_); }

private:
    Buffer buffer_;
};

/// Float64 coordinates that become float32 positions about an origin. Holds blocks that are released as they are
/// converted, so that the peak is little more than the coordinates themselves.
class PositionBuilder {
public:
    void append(const double* xyz, int64_t count);
    /// The origin to use, instead of one chosen from the coordinates.
    void set_origin(const std::array<double, 3>& origin) { origin_ = origin; }
    /// The positions and their origin: 0 where float32 holds every coordinate, else choose_origin() of a sample.
    void finish(PointCloud& cloud);
    int64_t size() const { return size_; }

private:
    std::vector<double> sample() const;

    std::vector<Buffer> blocks_;
    int64_t size_ = 0;
    std::optional<std::array<double, 3>> origin_;
};

class PointTable {
public:
    /// Fields x, y and z become positions. Known groups of fields become one attribute: nx ny nz (or normal_x ...) ->
    /// normal (float32), red green blue [alpha] (or r g b [a]) -> color, NAME_0 NAME_1 ... of one type -> NAME. Every
    /// other field is an attribute of its own; classification and CloudCompare's scalar_Intensity and scalar_Label get
    /// their usual names. Throws Error{bad_file} without x, y, z or with duplicate names.
    /// `expected_rows` allocates at once (the caller has checked that the file can hold them); -1 grows.
    PointTable(const std::vector<Field>& fields, int64_t row_bytes, int64_t expected_rows);

    /// Rows in host byte order. Parallel.
    void append(const std::byte* rows, int64_t count);

    /// Where `count` rows may be read to directly, when rows are exactly three float32; else null. They count as
    /// appended.
    std::byte* append_directly(int64_t count);

    /// The origin for float64 coordinates, where the file names one.
    void set_origin(const std::array<double, 3>& origin) { builder_.set_origin(origin); }

    int64_t rows() const { return rows_; }
    int64_t row_bytes() const { return row_bytes_; }
    PointCloud finish();

private:
    struct Group {
        std::string name;
        DType dtype;  // of the result
        std::vector<Field> fields;
        bool contiguous = false;  // one copy takes all fields of a row
        GrowingBuffer data;
        int64_t row_bytes() const { return static_cast<int64_t>(fields.size()) * size_of(dtype); }
    };
    void plan(const std::vector<Field>& fields);
    void reserve(int64_t rows);
    static void copy_rows(const Group& group, const std::byte* rows, int64_t row_bytes, int64_t count, std::byte* to);

    std::vector<Group> groups_;  // the first holds the positions unless they are built from float64
    std::vector<Field> wide_;    // x, y, z when they are not float32
    PositionBuilder builder_;
    int64_t row_bytes_, expected_rows_, rows_ = 0;
};

/// Reads `count` binary rows into the table, a few MiB at a time; `to_host` (if any) puts each chunk in host byte
/// order. Through a pipe the memory grows with what arrives.
void read_rows(ByteReader& reader, PointTable& table, int64_t count, std::string_view what,
               const std::function<void(std::byte* rows, int64_t count)>& to_host = {});

/// Writes `count` binary rows of `row_bytes` that `fill(to, begin, end)` lays out, in parallel, chunk by chunk.
void write_rows(ByteSink& sink, int64_t count, int64_t row_bytes,
                const std::function<void(std::byte* to, int64_t begin, int64_t end)>& fill);

/// The reverse: the fields under which a cloud's attributes are written (positions not included), packed, with the
/// attribute and component that each comes from.
struct WrittenField {
    std::string name;
    DType dtype;
    const Attribute* attribute;
    int64_t component;
};
std::vector<WrittenField> flatten(const Attributes& attributes);

}  // namespace stipple::io
