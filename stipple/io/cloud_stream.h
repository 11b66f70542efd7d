#pragma once
// Clouds in chunks: files that are larger than the memory pass through a command part by part.
//
//     auto reader = io::CloudReader::open(path, options, warnings);
//     auto writer = io::CloudWriter::open(output, overwrite, write_options, warnings);
//     for (PointCloud chunk; reader->next(chunk);) writer->write(select(chunk, kept));
//     writer->finish();
//
// LAS is read (LAZ too) and written in chunks: memory is a few chunks, whatever the size of the file. Every other
// format is read whole and handed out in chunks, or gathered and written whole by finish(); so is LAS from chunks
// without facts.grid and facts.las (they come from other formats, or somebody has forgotten their place), since scale
// and point format follow from all points. All chunks of a reader have the same origin, attributes and facts.
//
// A command that moves no point asks for `las_records` and gets point records as they stand in the attribute
// kLasRecord (las.h), which select() carries along and the writer writes unchanged. A command that moves points does
// not ask, calls facts.forget_place(), and may set facts.grid to the scale and offset it wants, which keeps LAS in
// chunks; points that do not fit are Error{bad_argument}.

#include <memory>

#include "stipple/io/format.h"

namespace stipple::io {

struct StreamOptions {
    ReadOptions reading = {};
    int64_t chunk_points = int64_t{1} << 16;
    bool attributes = true;              // LAS: false leaves all but the positions (and the records) out
    std::vector<std::string> only = {};  // LAS: of the attributes those of these names alone; empty: all
    bool las_records = false;            // LAS: adds the attribute kLasRecord; other formats have none
    const Format* format = nullptr;      // else told by content and name, as load() does
};

class CloudReader {
public:
    /// Reads the header; "-" is standard input. Faces are left out with a warning. Throws as load() does. `warnings`
    /// and `options.reading` must live as long as the reader.
    static std::unique_ptr<CloudReader> open(const std::string& path, const StreamOptions& options, Warnings& warnings);

    virtual ~CloudReader() = default;
    virtual Format format() const = 0;
    /// Of the whole file.
    virtual int64_t points() const = 0;
    /// What every chunk carries. Extended records of LAS from a pipe come with the last chunk alone.
    virtual const FileFacts& facts() const = 0;
    /// The next points; false at the end. A file of no points has one chunk of none, which tells its attributes. The
    /// origin of LAS is choose_origin() of the first chunk, or the one of the file where stipple wrote it.
    virtual bool next(PointCloud& chunk) = 0;
};

class CloudWriter {
public:
    /// Nothing appears at `path` before finish(). The format is `format` if given, else the
    /// extension's. Throws Error{cannot_write} as AtomicFile does. `warnings` must live as long as the writer.
    static std::unique_ptr<CloudWriter> open(const std::string& path, Overwrite overwrite, const WriteOptions& options,
                                             Warnings& warnings, const Format* format = nullptr);

    /// The same for bytes that go anywhere else, which are gathered until finish().
    static std::unique_ptr<CloudWriter> open(ByteSink& sink, Format format, const WriteOptions& options,
                                             Warnings& warnings);

    virtual ~CloudWriter() = default;
    virtual Format format() const = 0;
    /// The chunk may have no points; the first tells attributes, origin and facts. Throws Error{bad_argument} for a
    /// chunk of other attributes.
    virtual void write(PointCloud chunk) = 0;
    /// Completes the file and makes it appear; without it nothing does. Returns the points written.
    virtual int64_t finish() = 0;
};

/// Whether `path` is a LAS or LAZ file, a regular one: by `from`, the name of a format, where it is given, else by its
/// first bytes. False for what cannot be opened, and for pipes.
bool is_las(const std::string& path, const std::string& from = {});

/// All chunks of the reader into the writer. Returns the points written.
int64_t copy_cloud(CloudReader& reader, CloudWriter& writer);

}  // namespace stipple::io
