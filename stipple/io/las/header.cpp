#include "stipple/io/las/header.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "stipple/io/laz/reader.h"

namespace stipple::io::las {
namespace {

constexpr int64_t kMaxGap = int64_t{1} << 20;  // bytes before the points that belong to no record and are kept

constexpr int kCompressed = 0xc0;  // of the point format: LAZ
constexpr uint16_t kCompression = 22204;
constexpr const char* kCloudOptimised = "copc";  // COPC's index of the compressed chunks: no use in any other file

}  // namespace

std::string text_at(const std::byte* bytes, int64_t offset, size_t length) {
    const char* text = reinterpret_cast<const char*>(bytes + offset);
    return {text, std::find(text, text + length, '\0')};
}

void fail_at(int64_t offset, std::string message, std::string hint) {
    throw Error(ErrorCode::bad_file, Place{{}, {}, offset}, std::move(message), std::move(hint));
}

Header read_header(ByteReader& reader, Warnings& warnings) {
    if (reader.at_end()) reader.fail("empty file");
    std::byte h[kHeader14] = {};
    const auto head = reader.peek(4);
    if (head.size() < 4 || std::memcmp(head.data(), "LASF", 4) != 0)
        reader.fail("not a LAS file: it must begin with LASF");
    reader.read_exact(h, kHeader12, "the LAS header");
    Header header;
    const int major = number_at<uint8_t>(h, at::kVersion);
    header.minor = number_at<uint8_t>(h, at::kVersion + 1);
    if (major != 1 || header.minor > 4)
        fail_at(at::kVersion, fmt::format("LAS version {}.{}; 1.0 to 1.4 are read", major, header.minor));
    if (header.minor >= 2) header.encoding = number_at<uint16_t>(h, at::kGlobalEncoding);
    header.header_size = number_at<uint16_t>(h, at::kHeaderSize);
    const int64_t least = header.minor == 4 ? kHeader14 : header.minor == 3 ? kHeader13 : kHeader12;
    if (header.header_size < least)
        fail_at(at::kHeaderSize,
                fmt::format("header of {} bytes; LAS 1.{} needs {}", header.header_size, header.minor, least));
    reader.read_exact(h + kHeader12, least - kHeader12, "the LAS header");

    const int marked = number_at<uint8_t>(h, at::kFormat), format = marked & ~kCompressed;
    header.compressed = marked & kCompressed;
    h[at::kFormat] = static_cast<std::byte>(format);
    if (format >= kFormats) fail_at(at::kFormat, fmt::format("point format {}; 0 to 10 are read", format));
    header.format = format;
    header.record = number_at<uint16_t>(h, at::kRecordLength);
    if (header.record < kRecordBytes[format])
        fail_at(at::kRecordLength, fmt::format("point records of {} bytes; point format {} needs {}", header.record,
                                               format, kRecordBytes[format]));
    header.points_at = number_at<uint32_t>(h, at::kPoints);
    if (header.points_at < header.header_size)
        fail_at(at::kPoints, fmt::format("offset to the points {} lies inside the header of {} bytes", header.points_at,
                                         header.header_size));
    header.vlrs = number_at<uint32_t>(h, at::kVlrs);
    if (header.vlrs > reader.limits().max_vlrs)
        fail_at(at::kVlrs,
                fmt::format("{} variable length records, the limit is {}", header.vlrs, reader.limits().max_vlrs));
    if (header.vlrs * kVlrHeader > header.points_at - header.header_size)
        fail_at(at::kVlrs, fmt::format("{} variable length records need {} bytes, there are {} before the points",
                                       header.vlrs, header.vlrs * kVlrHeader, header.points_at - header.header_size));
    const int64_t legacy = number_at<uint32_t>(h, at::kLegacyCount);
    uint64_t count = static_cast<uint64_t>(legacy);
    int64_t count_at = at::kLegacyCount;
    if (header.minor == 4 && number_at<uint64_t>(h, at::kCount) != 0) {
        count = number_at<uint64_t>(h, at::kCount);
        count_at = at::kCount;
        if (legacy != 0 && static_cast<uint64_t>(legacy) != count)
            warnings.push_back(
                fmt::format("LAS: the header counts {} points in its old field and {} in its new one, "
                            "which is believed",
                            legacy, count));
    }
    if (count > static_cast<uint64_t>(reader.limits().max_points))
        fail_at(count_at, fmt::format("{} points, the limit is {}", count, reader.limits().max_points));
    header.count = static_cast<int64_t>(count);
    for (int axis = 0; axis < 3; ++axis) {
        const int64_t scale_at = at::kScale + 8 * axis, offset_at = at::kOffset + 8 * axis;
        const auto scale = number_at<double>(h, scale_at), offset = number_at<double>(h, offset_at);
        if (!std::isfinite(scale) || scale == 0)
            fail_at(scale_at, fmt::format("scale {} of axis {} is not a finite number other than 0", scale, axis));
        if (!std::isfinite(offset)) fail_at(offset_at, fmt::format("offset {} of axis {} is not finite", offset, axis));
        header.scale[axis] = scale;
        header.offset[axis] = offset;
    }

    if (header.minor == 4) {
        header.evlrs = number_at<uint32_t>(h, at::kEvlrs);
        const auto first = number_at<uint64_t>(h, at::kFirstEvlr);
        header.first_evlr = static_cast<int64_t>(std::min<uint64_t>(first, std::numeric_limits<int64_t>::max()));
    }

    // With a size at hand everything the header points to is checked before anything is read.
    if (const auto left = reader.remaining()) {
        const int64_t size = reader.offset() + *left, points = header.compressed ? 0 : header.count * header.record;
        if (header.compressed && header.points_at > size)
            fail_at(at::kPoints,
                    fmt::format("offset to the points {} lies past the end of the file at {}", header.points_at, size));
        if (header.points_at > size || points > size - header.points_at)
            fail_at(count_at,
                    fmt::format("{} points of {} bytes at byte {} need {} bytes, the file has {}", header.count,
                                header.record, header.points_at, header.points_at + points, size));
        if (header.count == 0 && !header.compressed && size - header.points_at >= header.record &&
            number_at<uint32_t>(h, at::kEvlrs) == 0)
            warnings.push_back(
                fmt::format("LAS: the header counts no points, yet {} bytes follow it", size - header.points_at));
        if (header.evlrs > 0 && (header.first_evlr > size || header.evlrs * kEvlrHeader > size - header.first_evlr))
            fail_at(at::kFirstEvlr, fmt::format("{} extended records at byte {} lie past the end of the file at {}",
                                                header.evlrs, header.first_evlr, size));
    }
    header.bytes.assign(reinterpret_cast<const char*>(h), static_cast<size_t>(least));
    header.bytes.resize(static_cast<size_t>(header.header_size));
    reader.read_exact(header.bytes.data() + least, header.header_size - least, "the LAS header");
    return header;
}

namespace {

/// "NAME[3]" -> ("NAME", 3).
std::optional<std::pair<std::string, int64_t>> numbered(const std::string& name) {
    const size_t open = name.rfind('[');
    if (open == name.npos || open == 0 || name.back() != ']') return std::nullopt;
    int64_t index = -1;
    const char* end = name.data() + name.size() - 1;
    const auto [stop, error] = std::from_chars(name.data() + open + 1, end, index);
    if (error != std::errc{} || stop != end || index < 0) return std::nullopt;
    return std::pair{name.substr(0, open), index};
}

void read_extra(const std::vector<std::byte>& bytes, int64_t place, const Header& header, Records& records,
                Warnings& warnings) {
    int64_t offset = kRecordBytes[header.format];
    for (size_t i = 0; i + kExtraDescriptor <= bytes.size(); i += kExtraDescriptor) {
        const std::byte* d = bytes.data() + i;
        const int type = number_at<uint8_t>(d, 2), options = number_at<uint8_t>(d, 3);
        ExtraColumn extra;
        Column& column = extra.column;
        column.name = text_at(d, 4, 32);
        column.offset = offset;
        if (type == 0) {
            offset += options;  // so many bytes without a meaning
        } else if (type <= 30) {
            column.dtype = kExtraTypes[(type - 1) % 10];
            column.components = (type - 1) / 10 + 1;
            offset += column.components * size_of(column.dtype);
        }
        if (offset > header.record)
            fail_at(place + static_cast<int64_t>(i),
                    fmt::format("extra bytes {} end at byte {} of point records of {} bytes", in_quotes(column.name),
                                offset, header.record));
        if (type > 30) {
            warnings.push_back(fmt::format("LAS: extra bytes from {} on have the unknown type {}: dropped",
                                           in_quotes(column.name), type));
            return;
        }
        if (type == 0 || column.name.empty()) {
            warnings.push_back("LAS: extra bytes without a type or a name are dropped");
            continue;
        }
        extra.scaled = options & 24;
        for (int64_t c = 0; c < 3; ++c) {
            if (options & 8) extra.scale[c] = number_at<double>(d, 112 + 8 * c);
            if (options & 16) extra.offset[c] = number_at<double>(d, 136 + 8 * c);
        }
        const auto part = numbered(column.name);
        if (part && part->second > 0 && !records.extra.empty()) {
            Column& last = records.extra.back().column;
            const auto first = numbered(last.name);
            // NAME[0] NAME[1] ... of one type lie side by side: one attribute.
            if (first && first->first == part->first && first->second == 0 && last.dtype == column.dtype &&
                last.components == part->second && column.components == 1 && !extra.scaled &&
                !records.extra.back().scaled) {
                ++last.components;
                continue;
            }
        }
        records.extra.push_back(std::move(extra));
    }
    for (ExtraColumn& extra : records.extra) {
        Column& column = extra.column;
        if (const auto part = numbered(column.name); part && part->second == 0 && column.components > 1)
            column.name = part->first;
    }
}

/// Our own record. Anything odd in it means that somebody else wrote it: it is ignored.
void read_own(const std::vector<std::byte>& bytes, Records& records) {
    if (bytes.size() < 24) return;
    std::array<double, 3> origin;
    std::memcpy(origin.data(), bytes.data(), 24);
    std::string_view rest(reinterpret_cast<const char*>(bytes.data()) + 24, bytes.size() - 24);
    std::vector<OwnAttribute> own;
    while (!rest.empty()) {
        const size_t end = rest.find('\n');
        if (end == rest.npos) return;
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end + 1);
        const size_t first = line.find(' '), second = first == line.npos ? line.npos : line.find(' ', first + 1);
        if (second == line.npos) return;
        OwnAttribute attribute;
        attribute.name = line.substr(second + 1);
        const auto [stop, error] = std::from_chars(line.data() + first + 1, line.data() + second, attribute.components);
        if (error != std::errc{} || stop != line.data() + second || attribute.components < 1) return;
        bool known = false;
        for (int t = 0; t <= static_cast<int>(DType::boolean); ++t)
            if (name_of(static_cast<DType>(t)) == line.substr(0, first)) {
                attribute.dtype = static_cast<DType>(t);
                known = true;
            }
        if (!known) return;
        own.push_back(std::move(attribute));
    }
    records.own_origin = origin;
    records.own = std::move(own);
}

}  // namespace

Records read_records(ByteReader& reader, const Header& header, Warnings& warnings) {
    Records records;
    records.raw.header = header.bytes;
    int64_t carried = 0, dropped = 0;
    for (int64_t i = 0; i < header.vlrs; ++i) {
        const int64_t place = reader.offset();
        std::string raw(kVlrHeader, '\0');
        if (place + kVlrHeader > header.points_at)
            fail_at(place, fmt::format("variable length record {} of {} reaches into the points at byte {}", i,
                                       header.vlrs, header.points_at));
        reader.read_exact(raw.data(), kVlrHeader, "a variable length record");
        const auto* v = reinterpret_cast<const std::byte*>(raw.data());
        const std::string user = text_at(v, 2, 16), description = text_at(v, 22, 32);
        const auto id = number_at<uint16_t>(v, 18);
        const int64_t length = number_at<uint16_t>(v, 20);
        if (length > header.points_at - reader.offset())
            fail_at(place, fmt::format("variable length record {} of {} bytes reaches into the points at byte {}",
                                       in_quotes(user), length, header.points_at));
        reader.require_remaining(length, "a variable length record");
        raw.resize(static_cast<size_t>(kVlrHeader + length));
        reader.read_exact(raw.data() + kVlrHeader, length, "a variable length record");
        const auto* payload = reinterpret_cast<const std::byte*>(raw.data()) + kVlrHeader;
        const std::vector<std::byte> bytes(payload, payload + length);
        if (user == "laszip encoded" && id == kCompression) {
            if (!header.compressed)
                fail_at(place, "a record says that the points are compressed, the point format says that they are not");
            records.compression = laz::read_description(bytes, place + kVlrHeader, header);
            continue;
        }
        if (header.compressed && user == kCloudOptimised) continue;
        if (user == kOwnUser && id == kOwnRecord) read_own(bytes, records);
        if (user == kProjectionUser)
            records.projection.push_back({user, id, description, raw.substr(static_cast<size_t>(kVlrHeader))});
        if (user == "LASF_Spec" && id == kExtraRecord && records.extra.empty())
            read_extra(bytes, place + kVlrHeader, header, records, warnings);
        carried += kVlrHeader + length;
        if (carried > reader.limits().max_las_records) {
            ++dropped;
            continue;
        }
        records.raw.records.push_back(std::move(raw));
    }
    if (header.compressed && !records.compression)
        fail_at(at::kFormat, "the points are compressed (LAZ), and no record tells how");
    if (dropped > 0)
        warnings.push_back(fmt::format("LAS: {} of {} variable length records are beyond {} bytes: dropped", dropped,
                                       header.vlrs, reader.limits().max_las_records));
    if (header.compressed) reader.require_remaining(header.points_at - reader.offset(), "what lies before the points");
    const int64_t gap = header.points_at - reader.offset();
    if (gap <= kMaxGap) {
        reader.require_remaining(gap, "what lies before the points");
        records.raw.gap.resize(static_cast<size_t>(gap));
        reader.read_exact(records.raw.gap.data(), gap, "what lies before the points");
    } else {
        reader.skip(gap, "what lies before the points");
    }
    return records;
}

void read_extended(ByteReader& reader, int64_t at, const Header& header, Records& records, Warnings& warnings) {
    if (header.evlrs == 0) return;
    if (header.first_evlr < std::max(header.points_end(), at)) {
        warnings.push_back(fmt::format("LAS: {} extended records at byte {} lie before the end of the points: dropped",
                                       header.evlrs, header.first_evlr));
        return;
    }
    const int64_t shift = at - reader.offset();
    reader.skip(header.first_evlr - at, "what lies before the extended records");
    int64_t carried = 0;
    for (int64_t i = 0; i < header.evlrs; ++i) {
        const int64_t place = reader.offset() + shift;
        std::byte v[kEvlrHeader];
        reader.read_exact(v, kEvlrHeader, "an extended record");
        const std::string user = text_at(v, 2, 16);
        const auto id = number_at<uint16_t>(v, 18);
        const auto length = number_at<uint64_t>(v, 20);
        const auto left = reader.remaining();
        if (length > static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 2) ||
            (left && static_cast<int64_t>(length) > *left))
            fail_at(place, fmt::format("extended record {} of {} bytes reaches past the end", in_quotes(user), length));
        const auto bytes = static_cast<int64_t>(length);
        if (header.compressed && user == kCloudOptimised) {
            reader.skip(bytes, "an extended record");
            continue;
        }
        if (bytes > reader.limits().max_las_records - carried) {
            warnings.push_back(fmt::format("LAS: extended record {} {} of {} bytes is dropped: up to {} are carried",
                                           in_quotes(user), id, bytes, reader.limits().max_las_records));
            reader.skip(bytes, "an extended record");
            continue;
        }
        carried += bytes;
        const Buffer payload = reader.read_buffer(bytes, "an extended record");
        std::string raw(reinterpret_cast<const char*>(v), kEvlrHeader);
        if (bytes > 0) raw.append(reinterpret_cast<const char*>(payload.data()), static_cast<size_t>(bytes));
        if (user == kProjectionUser)
            records.projection.push_back({user, id, text_at(v, 28, 32), raw.substr(static_cast<size_t>(kEvlrHeader))});
        records.raw.extended.push_back(std::move(raw));
    }
}

FileFacts facts_of(const Header& header, const Records& records) {
    FileFacts facts;
    facts.coordinate_system = records.projection;
    facts.grid = FileFacts::Grid{header.scale, header.offset};
    if (header.minor >= 2)
        facts.time_type =
            header.encoding & kAdjustedTime ? TimeType::gps_adjusted_standard : TimeType::gps_week_seconds;
    facts.synthetic_returns = header.encoding & kSyntheticReturns;
    facts.las = std::make_shared<const LasFacts>(records.raw);
    return facts;
}

}  // namespace stipple::io::las
