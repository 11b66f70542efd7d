#pragma once
// The parts of the zip format that an NPZ uses.

#include <zlib.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/io/byte_source.h"

namespace stipple::io {

struct ZipEntry {
    std::string name;
    bool deflated = false;
    bool sizes_known = false;       // else they follow the data
    bool zip64 = false;             // sizes after the data have 8 bytes
    int64_t stored = 0, bytes = 0;  // in the file, and inflated
    uint32_t crc = 0;
    int64_t offset = 0;  // of the local header
};

/// The next local entry, up to its data; false at the central directory, which is then checked against `entries` to the
/// end of the input.
bool next_zip_entry(ByteReader& reader, std::vector<ZipEntry>& entries);

/// The inflated bytes of a deflated entry. Takes from the reader exactly the bytes of the deflate stream.
class InflateSource : public ByteSource {
public:
    /// `budget` is what may still be inflated of limits.max_inflated; it is reduced.
    InflateSource(ByteReader& reader, const ZipEntry& entry, int64_t& budget);
    ~InflateSource() override;
    InflateSource(const InflateSource&) = delete;
    InflateSource& operator=(const InflateSource&) = delete;

    int64_t read(std::byte* to, int64_t capacity) override;
    std::optional<int64_t> size() const override;

    int64_t taken() const { return taken_; }
    int64_t given() const { return given_; }
    uint32_t crc() const { return crc_; }

private:
    ByteReader& reader_;
    const ZipEntry& entry_;
    int64_t& budget_;
    z_stream stream_{};
    bool ended_ = false;
    int64_t taken_ = 0, given_ = 0;
    uint32_t crc_ = 0;
};

/// Compares what was read with the entry, whose sizes and CRC-32 are taken from after the data where they stand there.
void finish_zip_entry(ByteReader& reader, ZipEntry& entry, int64_t stored, int64_t bytes, uint32_t crc);

/// CRC-32 of `crc`'s bytes followed by these.
uint32_t crc_of(uint32_t crc, const void* data, int64_t bytes);

/// Little-endian bytes of the headers that a writer needs.
std::string local_header(const ZipEntry& entry);
std::string central_directory(const std::vector<ZipEntry>& entries, int64_t offset);

}  // namespace stipple::io
