#include <algorithm>

#include "stipple/io/las.h"
#include "stipple/io/las/stream.h"

namespace stipple::io::las {

StreamReader::StreamReader(const std::string& path, std::unique_ptr<ByteSource> source,
                           std::unique_ptr<ByteReader> reader, const StreamOptions& options, Warnings& warnings)
    : source_(std::move(source)),
      own_reader_(std::move(reader)),
      reader_(*own_reader_),
      options_(options),
      warnings_(warnings) {
    STIPPLE_REQUIRE(options.chunk_points >= 1, "chunks of {} points", options.chunk_points);
    header_ = read_header(reader_, warnings);
    records_ = read_records(reader_, header_, warnings);
    // Records that are kept drop nothing.
    Warnings unsaid;
    columns_ = file_columns(header_, records_, options.las_records ? unsaid : warnings);
    if (!options.only.empty()) {
        const auto unwanted = [&](const Column& column) {
            return std::find(options.only.begin(), options.only.end(), column.name) == options.only.end();
        };
        std::erase_if(columns_, unwanted);
        std::erase_if(records_.extra, [&](const ExtraColumn& extra) { return unwanted(extra.column); });
    }
    standard_ = columns_.size() - records_.extra.size();
    if (!options.attributes) columns_.clear();
    // Standard input has one place for all who read it: its extended records must wait, as those of a pipe.
    if (reader_.remaining() && path != "-" && header_.evlrs > 0 && header_.first_evlr >= header_.points_end()) {
        FileSource again(path, header_.first_evlr);
        ByteReader behind(again, options.reading.limits);
        read_extended(behind, header_.first_evlr, header_, records_, warnings);
    } else {
        extended_later_ = header_.evlrs > 0;
    }
    facts_ = facts_of(header_, records_);
    points_.emplace(reader_, header_, records_, warnings);
}

bool StreamReader::next(PointCloud& chunk) {
    if (began_ && done_ == header_.count) return false;
    const int64_t count = std::min(options_.chunk_points, header_.count - done_), bytes = count * header_.record;
    if (points_->bounded()) {
        if (bytes_.bytes() < bytes) bytes_ = Buffer(bytes);
        points_->read(bytes_.data(), count);
    } else {
        bytes_ = points_->read_buffer(count);  // of a pipe memory grows with what has arrived
    }
    chunk = {};
    allocate(columns_, count, chunk);
    const IntBounds bounds = unpack(bytes_.data(), header_.record, columns_, 0, count, chunk);
    if (!began_) origin_ = origin_of(header_, records_, chunk);
    began_ = true;
    done_ += count;
    finish_chunk(chunk, bounds);
    return true;
}

void StreamReader::finish_chunk(PointCloud& chunk, const IntBounds& bounds) {
    chunk.origin = origin_;
    place_positions(header_, bounds, chunk);
    const bool ours = records_.own_origin.has_value();
    if (!options_.las_records && !coarse_ && !(ours && origin_ == header_.offset)) {
        const size_t before = warnings_.size();
        warn_coarse(header_, bounds, origin_, warnings_);
        coarse_ = warnings_.size() > before;
    }
    if (options_.attributes) {
        scale_extra(records_, standard_, chunk);
        // What stipple wrote itself is as its record says. In files that another program has written since, a chunk
        // cannot tell whether a column is empty in all of the file: names stay as they are there.
        const auto* header = reinterpret_cast<const std::byte*>(header_.bytes.data());
        if (ours && text_at(header, at::kSoftware, 32) == "stipple") {
            for (size_t i = 0; i < standard_; ++i)
                for (size_t j = standard_; j < chunk.attributes.size(); ++j)
                    if (chunk.attributes[i].name() == chunk.attributes[j].name()) chunk.attributes[i].rename("");
            restore_own(chunk, records_.own, true);
        } else {
            resolve_names(chunk, standard_, false);
        }
    }
    if (options_.las_records) {
        Attribute raw(std::string(kLasRecord), DType::u8, chunk.size(), header_.record);
        if (raw.rows() > 0) std::memcpy(raw.data(), bytes_.data(), static_cast<size_t>(raw.rows() * header_.record));
        chunk.attributes.push_back(std::move(raw));
    }
    if (done_ == header_.count && extended_later_) {
        read_extended(reader_, reader_.offset(), header_, records_, warnings_);
        facts_ = facts_of(header_, records_);
    }
    chunk.facts = facts_;
    if (options_.reading.on_progress) options_.reading.on_progress(reader_.offset(), source_->size().value_or(0));
}

}  // namespace stipple::io::las
