#include "stipple/io/common/zip.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "stipple/core/parallel.h"

namespace stipple::io {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kDescriptor = 0x08074b50, kCentral = 0x02014b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50, kEnd = 0x06054b50;
constexpr uint32_t kSaturated = 0xffffffff;
constexpr uint16_t kEncrypted = 1, kSizesFollow = 8, kStrongEncryption = 64;

template <class T>
T number_at(const std::string& bytes, size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

std::string take(ByteReader& reader, int64_t bytes, const char* what) {
    reader.require_remaining(bytes, what);
    std::string result(static_cast<size_t>(bytes), '\0');
    reader.read_exact(result.data(), bytes, what);
    return result;
}

uint32_t peek_signature(ByteReader& reader, const char* what) {
    const auto head = reader.peek(4);
    if (head.size() < 4) reader.fail(fmt::format("the file ends where {} should be", what));
    uint32_t signature;
    std::memcpy(&signature, head.data(), 4);
    return signature;
}

int64_t signed_size(ByteReader& reader, uint64_t value) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) reader.fail("zip: a size beyond 2^63");
    return static_cast<int64_t>(value);
}

/// The ZIP64 field (id 1) of an extra area; empty when absent.
std::string zip64_field(ByteReader& reader, const std::string& extra) {
    size_t at = 0;
    while (at + 4 <= extra.size()) {
        const auto id = number_at<uint16_t>(extra, at), length = number_at<uint16_t>(extra, at + 2);
        if (at + 4 + length > extra.size()) break;
        if (id == 1) return extra.substr(at + 4, length);
        at += 4 + size_t{length};
    }
    // Some writers pad the area with fewer than four bytes.
    if (extra.size() - at >= 4) reader.fail("zip: an extra field is longer than its entry's header says");
    return {};
}

void check_flags(ByteReader& reader, uint16_t flags, uint16_t method, const std::string& name) {
    if (flags & (kEncrypted | kStrongEncryption)) reader.fail(fmt::format("zip: {} is encrypted", in_quotes(name)));
    if (method != 0 && method != 8)
        reader.fail(
            fmt::format("zip: {} is compressed by method {}; stored and deflated are read", in_quotes(name), method),
            "write it with numpy.savez or numpy.savez_compressed");
}

void check_central_entry(ByteReader& reader, const ZipEntry& entry) {
    const std::string fixed = take(reader, 46, "the zip directory");
    const std::string name = take(reader, number_at<uint16_t>(fixed, 28), "the zip directory");
    const std::string extra = take(reader, number_at<uint16_t>(fixed, 30), "the zip directory");
    reader.skip(number_at<uint16_t>(fixed, 32), "the zip directory");
    check_flags(reader, number_at<uint16_t>(fixed, 8), number_at<uint16_t>(fixed, 10), name);
    const std::string large = zip64_field(reader, extra);
    size_t next = 0;
    const auto widen = [&](size_t at) -> int64_t {
        const auto narrow = number_at<uint32_t>(fixed, at);
        if (narrow != kSaturated || next + 8 > large.size()) return narrow;
        next += 8;
        return signed_size(reader, number_at<uint64_t>(large, next - 8));
    };
    const int64_t bytes = widen(24), stored = widen(20), offset = widen(42);
    if (name != entry.name || bytes != entry.bytes || stored != entry.stored || offset != entry.offset ||
        number_at<uint32_t>(fixed, 16) != entry.crc)
        reader.fail(fmt::format("zip: the directory's entry {} does not match the {} found in the file",
                                in_quotes(name), in_quotes(entry.name)));
}

void check_directory(ByteReader& reader, const std::vector<ZipEntry>& entries) {
    const int64_t begin = reader.offset();
    for (const ZipEntry& entry : entries) {
        if (peek_signature(reader, "the zip directory") != kCentral)
            reader.fail(fmt::format("zip: the directory does not list {}", in_quotes(entry.name)));
        check_central_entry(reader, entry);
    }
    const int64_t end = reader.offset();
    uint32_t signature = peek_signature(reader, "the end of the zip directory");
    if (signature == kEnd64) {
        const std::string fixed = take(reader, 56, "the zip directory");
        const int64_t rest = signed_size(reader, number_at<uint64_t>(fixed, 4));
        if (rest < 44 || number_at<uint64_t>(fixed, 32) != entries.size()) reader.fail("zip: bad ZIP64 directory end");
        reader.skip(rest - 44, "the zip directory");
        if (peek_signature(reader, "the ZIP64 locator") != kLocator64) reader.fail("zip: the ZIP64 locator is missing");
        take(reader, 20, "the ZIP64 locator");
        signature = peek_signature(reader, "the end of the zip directory");
    }
    if (signature != kEnd) reader.fail("zip: the directory lists entries that are not in the file");
    const std::string fixed = take(reader, 22, "the end of the zip directory");
    const auto count = number_at<uint16_t>(fixed, 10);
    const auto size = number_at<uint32_t>(fixed, 12), offset = number_at<uint32_t>(fixed, 16);
    if ((count != 0xffff && count != entries.size()) || (size != kSaturated && size != end - begin) ||
        (offset != kSaturated && offset != begin))
        reader.fail(fmt::format("zip: the directory's end does not match its {} entries", entries.size()));
    reader.skip(number_at<uint16_t>(fixed, 20), "the zip comment");
    if (!reader.at_end()) reader.fail("bytes after the end of the zip archive");
}

void append(std::string& to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
}

uint32_t narrow(int64_t value) {
    return value >= int64_t{kSaturated} ? kSaturated : static_cast<uint32_t>(value);
}

// 1 January 1980, the first day that zip knows: the same content gives the same file.
constexpr uint16_t kDate = (1 << 5) | 1;

}  // namespace

bool next_zip_entry(ByteReader& reader, std::vector<ZipEntry>& entries) {
    if (entries.empty() && reader.at_end()) reader.fail("empty file");
    const uint32_t signature = peek_signature(reader, "a zip entry");
    if (signature != kLocal) {
        if (signature != kCentral && !(signature == kEnd && entries.empty()))
            reader.fail(entries.empty() ? "not a zip archive" : "zip: expected an entry or the directory");
        check_directory(reader, entries);
        return false;
    }
    if (static_cast<int64_t>(entries.size()) >= reader.limits().max_zip_entries)
        reader.fail(fmt::format("zip: more than {} entries", reader.limits().max_zip_entries));
    ZipEntry entry;
    entry.offset = reader.offset();
    const std::string fixed = take(reader, 30, "a zip entry");
    const auto flags = number_at<uint16_t>(fixed, 6), method = number_at<uint16_t>(fixed, 8);
    entry.crc = number_at<uint32_t>(fixed, 14);
    entry.stored = number_at<uint32_t>(fixed, 18);
    entry.bytes = number_at<uint32_t>(fixed, 22);
    entry.name = take(reader, number_at<uint16_t>(fixed, 26), "a zip entry's name");
    const std::string large = zip64_field(reader, take(reader, number_at<uint16_t>(fixed, 28), "a zip entry"));
    check_flags(reader, flags, method, entry.name);
    if (entry.name.empty() || entry.name.find('\0') != entry.name.npos)
        reader.fail("zip: an entry without a proper name");
    entry.deflated = method == 8;
    entry.sizes_known = !(flags & kSizesFollow);
    entry.zip64 = large.size() >= 16;
    if (entry.zip64 && entry.sizes_known && entry.bytes == kSaturated)
        entry.bytes = signed_size(reader, number_at<uint64_t>(large, 0));
    if (entry.zip64 && entry.sizes_known && entry.stored == kSaturated)
        entry.stored = signed_size(reader, number_at<uint64_t>(large, 8));
    if (entry.sizes_known) {
        reader.require_remaining(entry.stored, fmt::format("the bytes of {}", in_quotes(entry.name)));
        if (!entry.deflated && entry.stored != entry.bytes)
            reader.fail(fmt::format("zip: {} is stored in {} bytes and has {}", in_quotes(entry.name), entry.stored,
                                    entry.bytes));
    }
    entries.push_back(std::move(entry));
    return true;
}

InflateSource::InflateSource(ByteReader& reader, const ZipEntry& entry, int64_t& budget)
    : reader_(reader), entry_(entry), budget_(budget) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw Error(ErrorCode::out_of_memory, "zlib: out of memory");
}

InflateSource::~InflateSource() {
    inflateEnd(&stream_);
}

std::optional<int64_t> InflateSource::size() const {
    // A size that the file claims is believed where it is too small to hurt.
    if (entry_.sizes_known && entry_.bytes <= (int64_t{64} << 10)) return entry_.bytes;
    return std::nullopt;
}

int64_t InflateSource::read(std::byte* to, int64_t capacity) {
    const Limits& limits = reader_.limits();
    while (!ended_ && capacity > 0) {
        int64_t wanted = int64_t{64} << 10;
        if (entry_.sizes_known) wanted = std::min(wanted, entry_.stored - taken_);
        const auto in = reader_.peek(wanted);
        if (in.empty())
            reader_.fail(wanted ? "the file ends in the middle of compressed data"
                                : "zip: a deflate stream without end");
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
        stream_.avail_in = static_cast<uInt>(in.size());
        const auto room = static_cast<uInt>(std::min<int64_t>(capacity, int64_t{1} << 30));
        stream_.next_out = reinterpret_cast<Bytef*>(to);
        stream_.avail_out = room;
        const int status = inflate(&stream_, Z_NO_FLUSH);
        const int64_t used = static_cast<int64_t>(in.size()) - stream_.avail_in, made = room - stream_.avail_out;
        reader_.skip(used, "compressed data");
        taken_ += used;
        given_ += made;
        budget_ -= made;
        ended_ = status == Z_STREAM_END;
        if (!ended_ && (status != Z_OK || used + made == 0))
            reader_.fail(fmt::format("zip: {} is not a deflate stream: {}", in_quotes(entry_.name),
                                     stream_.msg ? stream_.msg : "no progress"));
        if (budget_ < 0) reader_.fail(fmt::format("zip: inflates to more than {} bytes", limits.max_inflated));
        if (given_ / limits.max_inflation > taken_)
            reader_.fail(fmt::format("zip: {} inflates to more than {} times its size", in_quotes(entry_.name),
                                     limits.max_inflation));
        if (entry_.sizes_known && given_ > entry_.bytes)
            reader_.fail(
                fmt::format("zip: {} inflates to more than its {} bytes", in_quotes(entry_.name), entry_.bytes));
        crc_ = crc_of(crc_, to, made);
        if (made > 0) return made;
    }
    return 0;
}

void finish_zip_entry(ByteReader& reader, ZipEntry& entry, int64_t stored, int64_t bytes, uint32_t crc) {
    if (!entry.sizes_known) {
        if (peek_signature(reader, "the sizes of a zip entry") == kDescriptor)
            reader.skip(4, "the sizes of a zip entry");
        entry.crc = reader.read_number<uint32_t>("the sizes of a zip entry");
        const auto size = [&]() -> int64_t {
            if (entry.zip64) return signed_size(reader, reader.read_number<uint64_t>("the sizes of a zip entry"));
            return reader.read_number<uint32_t>("the sizes of a zip entry");
        };
        entry.stored = size();
        entry.bytes = size();
    }
    if (stored != entry.stored || bytes != entry.bytes)
        reader.fail(fmt::format("zip: {} has {} bytes inflated to {}, its header says {} and {}", in_quotes(entry.name),
                                stored, bytes, entry.stored, entry.bytes));
    if (crc != entry.crc)
        reader.fail(
            fmt::format("zip: {} is damaged: its CRC-32 is {:08x}, not {:08x}", in_quotes(entry.name), crc, entry.crc));
}

uint32_t crc_of(uint32_t crc, const void* data, int64_t bytes) {
    constexpr int64_t kPiece = int64_t{1} << 20;
    const auto* from = static_cast<const Bytef*>(data);
    if (bytes <= kPiece) return bytes ? static_cast<uint32_t>(crc32_z(crc, from, static_cast<size_t>(bytes))) : crc;
    std::vector<uint32_t> pieces(static_cast<size_t>((bytes + kPiece - 1) / kPiece));
    parallel_for(bytes, kPiece, [&](int64_t begin, int64_t end) {
        pieces[static_cast<size_t>(begin / kPiece)] =
            static_cast<uint32_t>(crc32_z(0, from + begin, static_cast<size_t>(end - begin)));
    });
    for (size_t i = 0; i < pieces.size(); ++i) {
        const int64_t length = std::min(kPiece, bytes - static_cast<int64_t>(i) * kPiece);
        crc = static_cast<uint32_t>(crc32_combine(crc, pieces[i], static_cast<z_off_t>(length)));
    }
    return crc;
}

std::string local_header(const ZipEntry& entry) {
    const bool large = entry.bytes >= int64_t{kSaturated};
    std::string out;
    append(out, kLocal, 4);
    append(out, large ? 45 : 20, 2);
    append(out, 0x800, 2);  // the name is UTF-8
    append(out, 0, 2);
    append(out, 0, 2);
    append(out, kDate, 2);
    append(out, entry.crc, 4);
    append(out, large ? kSaturated : narrow(entry.stored), 4);
    append(out, large ? kSaturated : narrow(entry.bytes), 4);
    append(out, entry.name.size(), 2);
    append(out, large ? 20 : 0, 2);
    out += entry.name;
    if (large) {
        append(out, 1, 2);
        append(out, 16, 2);
        append(out, static_cast<uint64_t>(entry.bytes), 8);
        append(out, static_cast<uint64_t>(entry.stored), 8);
    }
    return out;
}

std::string central_directory(const std::vector<ZipEntry>& entries, int64_t offset) {
    std::string out;
    for (const ZipEntry& entry : entries) {
        const bool large = entry.bytes >= int64_t{kSaturated} || entry.offset >= int64_t{kSaturated};
        append(out, kCentral, 4);
        append(out, (3 << 8) | (large ? 45 : 20), 2);  // made on Unix, so that the mode below counts
        append(out, large ? 45 : 20, 2);
        append(out, 0x800, 2);
        append(out, 0, 2);
        append(out, 0, 2);
        append(out, kDate, 2);
        append(out, entry.crc, 4);
        append(out, large ? kSaturated : narrow(entry.stored), 4);
        append(out, large ? kSaturated : narrow(entry.bytes), 4);
        append(out, entry.name.size(), 2);
        append(out, large ? 28 : 0, 2);
        append(out, 0, 2);
        append(out, 0, 2);
        append(out, 0, 2);
        append(out, uint64_t{0100644} << 16, 4);
        append(out, large ? kSaturated : narrow(entry.offset), 4);
        out += entry.name;
        if (large) {
            append(out, 1, 2);
            append(out, 24, 2);
            append(out, static_cast<uint64_t>(entry.bytes), 8);
            append(out, static_cast<uint64_t>(entry.stored), 8);
            append(out, static_cast<uint64_t>(entry.offset), 8);
        }
    }
    const auto size = static_cast<int64_t>(out.size());
    const bool large = entries.size() >= 0xffff || offset + size >= int64_t{kSaturated};
    if (large) {
        append(out, kEnd64, 4);
        append(out, 44, 8);
        append(out, 45, 2);
        append(out, 45, 2);
        append(out, 0, 4);
        append(out, 0, 4);
        append(out, entries.size(), 8);
        append(out, entries.size(), 8);
        append(out, static_cast<uint64_t>(size), 8);
        append(out, static_cast<uint64_t>(offset), 8);
        append(out, kLocator64, 4);
        append(out, 0, 4);
        append(out, static_cast<uint64_t>(offset + size), 8);
        append(out, 1, 4);
    }
    append(out, kEnd, 4);
    append(out, 0, 2);
    append(out, 0, 2);
    append(out, std::min<size_t>(entries.size(), 0xffff), 2);
    append(out, std::min<size_t>(entries.size(), 0xffff), 2);
    append(out, large ? kSaturated : narrow(size), 4);
    append(out, large ? kSaturated : narrow(offset), 4);
    append(out, 0, 2);
    return out;
}

}  // namespace stipple::io
