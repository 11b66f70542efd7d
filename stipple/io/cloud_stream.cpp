#include "stipple/io/cloud_stream.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "stipple/io/common/load.h"
#include "stipple/io/las/stream.h"

namespace stipple::io {
namespace {

/// Puts the path on errors of a reader that does not know it.
class NamedReader : public CloudReader {
public:
    NamedReader(std::string path, std::unique_ptr<CloudReader> reader)
        : path_(std::move(path)), reader_(std::move(reader)) {}
    Format format() const override { return reader_->format(); }
    int64_t points() const override { return reader_->points(); }
    const FileFacts& facts() const override { return reader_->facts(); }
    bool next(PointCloud& chunk) override {
        try {
            return reader_->next(chunk);
        } catch (...) {
            rethrow_for(path_);
        }
    }

private:
    std::string path_;
    std::unique_ptr<CloudReader> reader_;
};

/// A cloud that was read whole.
class WholeReader : public CloudReader {
public:
    WholeReader(PointCloud cloud, Format format, int64_t chunk_points)
        : cloud_(std::move(cloud)), format_(format), chunk_points_(chunk_points) {}
    Format format() const override { return format_; }
    int64_t points() const override { return cloud_.size(); }
    const FileFacts& facts() const override { return cloud_.facts; }

    bool next(PointCloud& chunk) override {
        if (began_ && done_ == cloud_.size()) return false;
        began_ = true;
        const int64_t n = std::min(chunk_points_, cloud_.size() - done_);
        chunk = PointCloud(n);
        chunk.origin = cloud_.origin;
        chunk.facts = cloud_.facts;
        if (n > 0)
            std::memcpy(chunk.positions.data(), cloud_.positions.data() + 3 * done_, static_cast<size_t>(12 * n));
        for (const Attribute& attribute : cloud_.attributes) {
            Attribute part(attribute.name(), attribute.dtype(), n, attribute.components());
            const int64_t bytes = attribute.row_bytes();
            if (n > 0) std::memcpy(part.data(), attribute.data() + done_ * bytes, static_cast<size_t>(n * bytes));
            chunk.attributes.push_back(std::move(part));
        }
        done_ += n;
        return true;
    }

private:
    PointCloud cloud_;
    Format format_;
    int64_t chunk_points_, done_ = 0;
    bool began_ = false;
};

void require_same_attributes(const PointCloud& first, const PointCloud& chunk) {
    const auto same = [](const Attribute& a, const Attribute& b) {
        return a.name() == b.name() && a.dtype() == b.dtype() && a.components() == b.components();
    };
    STIPPLE_REQUIRE(std::equal(first.attributes.begin(), first.attributes.end(), chunk.attributes.begin(),
                               chunk.attributes.end(), same),
                    "chunks of one file have different attributes");
}

/// The chunks as one cloud about the origin of the first; each is released as it is copied.
PointCloud joined(std::vector<PointCloud> chunks) {
    if (chunks.empty()) return {};
    if (chunks.size() == 1) return std::move(chunks[0]);
    int64_t n = 0;
    for (const PointCloud& chunk : chunks) n += chunk.size();
    PointCloud all(n);
    all.origin = chunks[0].origin;
    all.facts = chunks.back().facts;
    float* to = all.positions.data();
    for (PointCloud& chunk : chunks) {
        require_same_attributes(chunks[0], chunk);
        for (int64_t i = 0; i < 3 * chunk.size(); ++i) {
            const auto a = static_cast<size_t>(i % 3);
            const float p = chunk.positions.data()[i];
            *to++ = chunk.origin[a] == all.origin[a] ? p : static_cast<float>(p + (chunk.origin[a] - all.origin[a]));
        }
        chunk.positions = {};
    }
    for (size_t k = 0; k < chunks[0].attributes.size(); ++k) {
        const Attribute& first = chunks[0].attributes[k];
        Attribute column(first.name(), first.dtype(), n, first.components());
        std::byte* at = column.data();
        for (PointCloud& chunk : chunks) {
            const auto bytes = static_cast<size_t>(chunk.attributes[k].rows() * column.row_bytes());
            if (bytes > 0) std::memcpy(at, chunk.attributes[k].data(), bytes);
            at += bytes;
            chunk.attributes[k] = Attribute(column.name(), column.dtype(), 0, column.components());
        }
        all.attributes.push_back(std::move(column));
    }
    return all;
}

class StreamingWriter : public CloudWriter {
public:
    StreamingWriter(const std::string& path, Overwrite overwrite, Format format, const WriteOptions& options,
                    Warnings& warnings)
        : path_(path), overwrite_(overwrite), format_(format), options_(options), warnings_(warnings) {
        require_writable(path, overwrite);
    }
    StreamingWriter(ByteSink& sink, Format format, const WriteOptions& options, Warnings& warnings)
        : sink_(&sink), format_(format), options_(options), warnings_(warnings) {}

    Format format() const override { return format_; }

    void write(PointCloud chunk) override {
        STIPPLE_ASSERT(!finished_);
        if (!began_ && !sink_ && format_ == Format::las && las::StreamWriter::takes(chunk)) {
            file_.emplace(path_, overwrite_);
            las_.emplace(*file_, options_, warnings_);
        }
        began_ = true;
        if (las_) return las_->write(chunk);
        if (!chunks_.empty()) require_same_attributes(chunks_[0], chunk);
        chunks_.push_back(std::move(chunk));
    }

    int64_t finish() override {
        STIPPLE_ASSERT(!finished_);
        finished_ = true;
        if (las_) {
            const int64_t points = las_->finish();
            file_->commit();
            return points;
        }
        Mesh mesh;
        mesh.vertices = joined(std::move(chunks_));
        const int64_t points = mesh.vertices.size();
        if (sink_)
            io::write(mesh, *sink_, format_, options_, warnings_);
        else
            save(path_, mesh, overwrite_, options_, warnings_, &format_);
        return points;
    }

private:
    std::string path_;
    Overwrite overwrite_ = Overwrite::refuse;
    ByteSink* sink_ = nullptr;
    Format format_;
    WriteOptions options_;
    Warnings& warnings_;
    bool began_ = false, finished_ = false;
    std::optional<AtomicFile> file_;
    std::optional<las::StreamWriter> las_;
    std::vector<PointCloud> chunks_;
};

bool begins_as_las(ByteReader& reader) {
    const auto head = reader.peek(4);
    return head.size() == 4 && std::memcmp(head.data(), "LASF", 4) == 0;
}

std::unique_ptr<CloudReader> open_unnamed(const std::string& path, const StreamOptions& options, Warnings& warnings) {
    auto source = std::make_unique<FileSource>(path);
    auto reader = std::make_unique<ByteReader>(*source, options.reading.limits);
    const bool las = options.format ? *options.format == Format::las : begins_as_las(*reader);
    if (las && options.reading.item <= 0)
        return std::make_unique<NamedReader>(
            path, std::make_unique<las::StreamReader>(path, std::move(source), std::move(reader), options, warnings));
    Format used{};
    // A regular file is opened again, with its progress and the checks of its name; a pipe can be read but once.
    Mesh mesh = source->size() && path != "-"
                    ? load(path, options.reading, warnings, options.format, &used)
                    : load_from(*reader, path, options.reading, warnings, options.format, &used);
    if (mesh.faces() > 0) warnings.push_back(fmt::format("the {} faces are left out", mesh.faces()));
    return std::make_unique<WholeReader>(std::move(mesh.vertices), used, options.chunk_points);
}

}  // namespace

std::unique_ptr<CloudReader> CloudReader::open(const std::string& path, const StreamOptions& options,
                                               Warnings& warnings) {
    STIPPLE_REQUIRE(options.chunk_points >= 1, "chunks of {} points", options.chunk_points);
    try {
        return open_unnamed(path, options, warnings);
    } catch (...) {
        rethrow_for(path);
    }
}

std::unique_ptr<CloudWriter> CloudWriter::open(const std::string& path, Overwrite overwrite,
                                               const WriteOptions& options, Warnings& warnings, const Format* format) {
    return std::make_unique<StreamingWriter>(path, overwrite, format ? *format : format_to_write(path), options,
                                             warnings);
}

std::unique_ptr<CloudWriter> CloudWriter::open(ByteSink& sink, Format format, const WriteOptions& options,
                                               Warnings& warnings) {
    return std::make_unique<StreamingWriter>(sink, format, options, warnings);
}

bool is_las(const std::string& path, const std::string& from) {
    std::error_code error;
    if (path == "-" || !std::filesystem::is_regular_file(path, error)) return false;  // a pipe can be read but once
    if (!from.empty()) return from == info_of(Format::las).name;
    try {
        FileSource source(path);
        ByteReader reader(source);
        return begins_as_las(reader);
    } catch (const Error&) {
        return false;
    }
}

int64_t copy_cloud(CloudReader& reader, CloudWriter& writer) {
    for (PointCloud chunk; reader.next(chunk);) writer.write(std::move(chunk));
    return writer.finish();
}

}  // namespace stipple::io
