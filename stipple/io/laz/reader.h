#pragma once
// The compressed points of a LAS file (LAZ) [Isenburg 2013, LASzip: lossless compression of LiDAR data]. Points lie in
// chunks that are decoded alone; the first record of a chunk is stored as it is, the others are coded from what came
// before. A table of the chunks follows the last one; its place stands before the first, or at the end of the file.

#include <optional>

#include "stipple/io/las/header.h"
#include "stipple/io/laz/points.h"

namespace stipple::io::laz {

/// From the payload of the record, which lies at byte `place`. Throws Error{bad_file} for what is not read: point
/// formats with wave packets, one chunk for all points, other versions than LASzip 2 and 3 write.
Description read_description(std::span<const std::byte> payload, int64_t place, const las::Header& header);

/// Decodes in the order of the file. Memory: one chunk of a layered file; the compressed points where chunks vary in
/// size and are not layered; else a few 100 kB.
class Reader {
public:
    /// `reader` stands at the first byte behind the records, and is read as far as the chunks need it. `header` and
    /// `warnings` must live as long as this.
    Reader(ByteReader& reader, const las::Header& header, Description description, Warnings& warnings);
    Reader(const Reader&) = delete;

    /// The next records. Behind the last one of the file the table is compared with what was read: a difference is
    /// damage. Throws Error{bad_file} with the place of the chunk, also for points that need more than the limits allow
    /// compressed files to become.
    void read(std::byte* records, int64_t count);

private:
    struct Chunk {
        int64_t points = 0, bytes = 0;
        bool operator==(const Chunk&) const = default;
    };

    void gather();
    void begin_chunk(std::byte* record);
    void begin_layers(const std::byte* first);
    void end_chunk();
    void check_table();
    std::vector<Chunk> read_table(ByteReader& from, int64_t base);
    int64_t offset() const { return base_ + points_->offset(); }

    ByteReader& reader_;
    const las::Header& header_;
    Description description_;
    Warnings& warnings_;
    int64_t table_at_ = 0;

    // Chunks that vary in size and are not layered: their points are counted in the table alone.
    Buffer gathered_;
    std::optional<MemorySource> gathered_source_;
    std::optional<ByteReader> gathered_reader_;
    std::vector<Chunk> table_;

    ByteReader* points_;  // reader_ or gathered_reader_
    int64_t base_ = 0;    // where its first byte lies in the file
    std::optional<ByteFeed> feed_;
    std::unique_ptr<ChunkDecoder> decoder_;
    std::vector<Chunk> chunks_;  // that were read
    int64_t done_ = 0, chunk_at_ = 0, chunk_points_ = 0, chunk_left_ = 0;
};

}  // namespace stipple::io::laz
