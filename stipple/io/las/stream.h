#pragma once
// LAS in chunks: the readers and writers behind cloud_stream.h.

#include "stipple/io/cloud_stream.h"
#include "stipple/io/las/head.h"
#include "stipple/io/las/point_source.h"

namespace stipple::io::las {

class StreamReader : public CloudReader {
public:
    /// Errors have no path; `path` is read a second time for the records behind the points, unless it is a pipe.
    StreamReader(const std::string& path, std::unique_ptr<ByteSource> source, std::unique_ptr<ByteReader> reader,
                 const StreamOptions& options, Warnings& warnings);
    Format format() const override { return Format::las; }
    int64_t points() const override { return header_.count; }
    const FileFacts& facts() const override { return facts_; }
    bool next(PointCloud& chunk) override;

private:
    void finish_chunk(PointCloud& chunk, const IntBounds& bounds);

    std::unique_ptr<ByteSource> source_;
    std::unique_ptr<ByteReader> own_reader_;
    ByteReader& reader_;
    StreamOptions options_;
    Warnings& warnings_;
    Header header_;
    Records records_;
    std::optional<PointSource> points_;
    std::vector<Column> columns_;
    size_t standard_ = 0;
    FileFacts facts_;
    std::array<double, 3> origin_ = {};
    Buffer bytes_;
    int64_t done_ = 0;
    bool began_ = false, coarse_ = false, extended_later_ = false;
};

class StreamWriter {
public:
    /// Whether chunks like this one can be written as they come.
    static bool takes(const PointCloud& chunk);

    StreamWriter(RewritableSink& sink, const WriteOptions& options, Warnings& warnings);
    void write(const PointCloud& chunk);
    int64_t finish();

private:
    void begin(const PointCloud& chunk);
    void write_records(const std::byte* records, int64_t n);

    RewritableSink& sink_;
    WriteOptions options_;
    Warnings& warnings_;
    bool began_ = false, raw_ = false;
    Plan plan_;  // its layout; sources are those of each chunk
    Grid grid_;
    Head head_;
    Tally tally_;
    FileFacts facts_;
    int format_ = 0;
    int64_t record_ = 0;
    Buffer bytes_;
};

}  // namespace stipple::io::las
