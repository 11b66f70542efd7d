#include "stipple/io/laz/reader.h"

#include <cstring>
#include <limits>

namespace stipple::io::laz {

using las::fail_at;
using las::number_at;

namespace {

constexpr uint32_t kVaries = 0xffffffffu;
constexpr const char* kConvert = "convert it: laszip -i in.laz -o out.las, or pdal translate in.laz out.las";

/// The parts that records of this point format have.
std::vector<Item> items_of(int format, int64_t record) {
    std::vector<Item> items;
    if (format >= 6) {
        items.push_back({Part::point14, 30});
        if (format == 7) items.push_back({Part::color14, 6});
        if (format == 8) items.push_back({Part::color_nir14, 8});
    } else {
        items.push_back({Part::point10, 20});
        if (format == 1 || format == 3) items.push_back({Part::time11, 8});
        if (format >= 2) items.push_back({Part::color12, 6});
    }
    const int64_t extra = record - las::kRecordBytes[format];
    if (extra > 0) items.push_back({format >= 6 ? Part::bytes14 : Part::bytes, extra});
    return items;
}

}  // namespace

Description read_description(std::span<const std::byte> payload, int64_t place, const las::Header& header) {
    constexpr int64_t kFixed = 34, kItem = 6;
    const auto size = static_cast<int64_t>(payload.size());
    const std::byte* bytes = payload.data();
    if (size < kFixed || size < kFixed + kItem * number_at<uint16_t>(bytes, 32))
        fail_at(place, fmt::format("the record that tells how the points are compressed ends after {} bytes", size));
    const int compressor = number_at<uint16_t>(bytes, 0), coder = number_at<uint16_t>(bytes, 2);
    const bool layered = header.format >= 6;
    if (header.format > 8 || las::has_wave_packets(header.format))
        fail_at(place, fmt::format("compressed points of format {} are not read; 0 to 3 and 6 to 8 are", header.format),
                kConvert);
    if (coder != 0 || compressor != (layered ? 3 : 2))
        fail_at(place,
                fmt::format("points of format {} compressed by method {}.{} are not read", header.format, compressor,
                            coder),
                kConvert);
    Description description;
    description.layered = layered;
    const auto chunk = number_at<uint32_t>(bytes, 12);
    if (chunk == 0) fail_at(place + 12, "chunks of 0 points");
    if (chunk != kVaries) description.chunk_points = chunk;

    description.items = items_of(header.format, header.record);
    const int64_t count = number_at<uint16_t>(bytes, 32);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t at = kFixed + kItem * i;
        const int type = number_at<uint16_t>(bytes, at), version = number_at<uint16_t>(bytes, at + 4);
        const int64_t length = number_at<uint16_t>(bytes, at + 2);
        const bool expected = i < static_cast<int64_t>(description.items.size()) &&
                              type == static_cast<int>(description.items[static_cast<size_t>(i)].part) &&
                              length == description.items[static_cast<size_t>(i)].bytes;
        if (!expected)
            fail_at(place + at, fmt::format("part {} of the compressed records is of type {} and {} bytes, which point "
                                            "format {} with records of {} bytes does not have",
                                            i, type, length, header.format, header.record));
        if (version != (layered ? 3 : 2))
            fail_at(
                place + at + 4,
                fmt::format("version {} of the compression of part {} is not read; {} is", version, i, layered ? 3 : 2),
                kConvert);
    }
    if (count != static_cast<int64_t>(description.items.size()))
        fail_at(place + 32, fmt::format("{} parts of compressed records; point format {} with records of {} bytes "
                                        "has {}",
                                        count, header.format, header.record, description.items.size()));
    return description;
}

Reader::Reader(ByteReader& reader, const las::Header& header, Description description, Warnings& warnings)
    : reader_(reader), header_(header), description_(std::move(description)), warnings_(warnings), points_(&reader) {
    if (header.count == 0) return;
    const int64_t place = reader.offset();
    table_at_ = reader.read_number<int64_t>("the place of the table of chunks");
    const auto left = reader.remaining();
    if (table_at_ != -1 && table_at_ < reader.offset())
        fail_at(place, fmt::format("the table of chunks is said to be at byte {}, before the points at byte {}",
                                   table_at_, place));
    if (left && table_at_ > reader.offset() + *left)
        fail_at(place,
                fmt::format("the file is cut off: the table of chunks is said to be at byte {}, the file ends at "
                            "byte {}",
                            table_at_, reader.offset() + *left));
    if (!description_.layered && !description_.chunk_points) gather();
}

void Reader::gather() {
    const int64_t begin = reader_.offset();
    int64_t bytes = table_at_ - begin;
    if (table_at_ == -1) {
        const auto left = reader_.remaining();
        if (!left)
            throw Error(ErrorCode::bad_file, "the place of the table of chunks stands at the end of the file",
                        "give its path: a pipe cannot be read backwards");
        if (*left < 8) fail_at(begin, "the file ends before the table of chunks");
        bytes = *left - 8;
    }
    gathered_ = reader_.read_buffer(bytes, "the points");
    base_ = begin;
    if (table_at_ == -1) {
        table_at_ = reader_.read_number<int64_t>("the place of the table of chunks");
        if (table_at_ < begin || table_at_ > begin + bytes)
            fail_at(begin + bytes, fmt::format("the table of chunks is said to be at byte {}, which is none behind the "
                                               "points at byte {}",
                                               table_at_, begin));
        MemorySource source({gathered_.data() + (table_at_ - begin), static_cast<size_t>(begin + bytes - table_at_)});
        ByteReader table(source, reader_.limits());
        table_ = read_table(table, table_at_);
    } else {
        table_ = read_table(reader_, 0);
    }
    gathered_source_.emplace(std::span<const std::byte>(gathered_.data(), static_cast<size_t>(table_at_ - begin)));
    gathered_reader_.emplace(*gathered_source_, reader_.limits());
    points_ = &*gathered_reader_;
}

std::vector<Reader::Chunk> Reader::read_table(ByteReader& from, int64_t base) {
    const int64_t at = base + from.offset();
    const auto version = from.read_number<uint32_t>("the table of chunks");
    const auto count = from.read_number<uint32_t>("the table of chunks");
    if (version != 0) fail_at(at, fmt::format("version {} of the table of chunks; 0 is read", version));
    // Every chunk has a whole record.
    if (count > (at - header_.points_at) / header_.record)
        fail_at(at + 4, fmt::format("a table of {} chunks, more than the {} bytes of points can hold", count,
                                    at - header_.points_at));
    std::vector<Chunk> table;
    if (count == 0) return table;
    ByteFeed feed(from, [at] { fail_at(at, "the file ends in the middle of the table of chunks"); });
    Decoder decoder(feed);
    decoder.begin();
    IntegerDecoder numbers(32, 2);
    Chunk last;
    int64_t before = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const auto next = [&](int64_t previous, size_t context) {
            const int32_t value =
                numbers.decode(decoder, static_cast<int32_t>(static_cast<uint32_t>(previous)), context);
            return int64_t{static_cast<uint32_t>(value)};
        };
        if (!description_.chunk_points)
            last.points = next(last.points, 0);
        else
            last.points = std::min(*description_.chunk_points, header_.count - before);
        last.bytes = next(last.bytes, 1);
        before += last.points;
        table.push_back(last);
    }
    feed.release();
    return table;
}

void Reader::begin_chunk(std::byte* record) {
    chunk_at_ = offset();
    points_->read_exact(record, header_.record, "the first point of a chunk");
    const int64_t left = header_.count - done_;
    chunk_points_ = description_.chunk_points ? std::min(*description_.chunk_points, left) : 0;
    if (description_.layered) return begin_layers(record);
    if (!description_.chunk_points) {
        chunk_points_ = chunks_.size() < table_.size() ? table_[chunks_.size()].points : 0;
        if (chunk_points_ < 1 || chunk_points_ > left)
            fail_at(chunk_at_, fmt::format("chunk {} of {} is said to have {} of the {} points that are left",
                                           chunks_.size(), table_.size(), chunk_points_, left));
    }
    feed_.emplace(*points_, [this] {
        fail_at(chunk_at_,
                "the chunk of points that begins here ends too early: it is damaged, or the file is cut off");
    });
    decoder_ = decode_pointwise(description_.items, record, *feed_);
}

void Reader::begin_layers(const std::byte* first) {
    const int64_t left = header_.count - done_;
    const int64_t points = points_->read_number<uint32_t>("the number of points of a chunk");
    const int64_t most = description_.chunk_points ? chunk_points_ : left;
    if (points < 1 || points > most || (description_.chunk_points && points != most))
        fail_at(chunk_at_, fmt::format("a chunk of {} points where {}{} are left", points,
                                       description_.chunk_points ? "" : "at most ", most));
    chunk_points_ = points;
    int64_t count = 0;
    for (const Item& item : description_.items) count += layers_of(item);
    std::vector<int64_t> sizes;
    for (int64_t i = 0; i < count; ++i) sizes.push_back(points_->read_number<uint32_t>("the sizes of layers"));
    Layers layers;
    for (const int64_t size : sizes) layers.push_back(points_->read_buffer(size, "a layer of points"));
    decoder_ = decode_layered(description_.items, first, std::move(layers), chunk_at_);
}

void Reader::end_chunk() {
    if (feed_) feed_->release();
    decoder_.reset();
    feed_.reset();
    chunks_.push_back({chunk_points_, offset() - chunk_at_});
    // What follows is only known to be the next chunk if this one ends where it should.
    if (table_at_ != -1 && offset() > table_at_)
        fail_at(chunk_at_, fmt::format("the chunk of points that begins here reaches into the table of chunks at byte "
                                       "{}: it is damaged",
                                       table_at_));
    if (done_ == header_.count) check_table();
}

void Reader::check_table() {
    if (!gathered_reader_) {
        if (table_at_ == -1 && reader_.at_end()) {
            warnings_.push_back("LAZ: the table of chunks is missing: damage of the points cannot be told");
            return;
        }
        if (table_at_ != -1 && table_at_ != offset())
            fail_at(offset(), fmt::format("the points end here, their table of chunks is at byte {}: they are damaged, "
                                          "or more than the header counts",
                                          table_at_));
        table_ = read_table(reader_, 0);
    }
    int64_t at = header_.points_at + 8;
    for (size_t i = 0; i < std::max(chunks_.size(), table_.size()); ++i) {
        if (i >= chunks_.size() || i >= table_.size())
            fail_at(at, fmt::format("{} chunks of points, the table has {}", chunks_.size(), table_.size()));
        if (chunks_[i] != table_[i])
            fail_at(at, fmt::format("the chunk of points that begins here has {} points in {} bytes, the table says {} "
                                    "in {}: damaged",
                                    chunks_[i].points, chunks_[i].bytes, table_[i].points, table_[i].bytes));
        at += chunks_[i].bytes;
    }
}

void Reader::read(std::byte* records, int64_t count) {
    const Limits& limits = reader_.limits();
    const int64_t became = (done_ + count) * header_.record, from = offset() - header_.points_at;
    if (became > limits.max_inflated && became / limits.max_inflation > from)
        fail_at(header_.points_at, fmt::format("{} points in {} bytes, more than {} times as many as are stored",
                                               done_ + count, from, limits.max_inflation));
    for (int64_t i = 0; i < count; ++i) {
        std::byte* record = records + i * header_.record;
        if (chunk_left_ == 0) {
            begin_chunk(record);
            chunk_left_ = chunk_points_;
        } else {
            decoder_->next(record);
        }
        ++done_;
        if (--chunk_left_ == 0) end_chunk();
    }
    if (feed_) feed_->release();
}

}  // namespace stipple::io::laz
