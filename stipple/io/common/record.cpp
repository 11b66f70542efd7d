#include "stipple/io/common/record.h"

#include <algorithm>
#include <cstring>

#include "stipple/core/error.h"
#include "stipple/io/common/crc32c.h"

namespace stipple::io {
namespace {

// Up to `bytes` bytes, fewer at the end of the input.
std::vector<std::byte> read_up_to(ByteReader& reader, int64_t bytes) {
    std::vector<std::byte> result;
    while (static_cast<int64_t>(result.size()) < bytes) {
        const int64_t wanted = std::min<int64_t>(bytes - static_cast<int64_t>(result.size()), 1 << 16);
        const std::span<const std::byte> piece = reader.peek(wanted);
        if (piece.empty()) break;
        result.insert(result.end(), piece.begin(), piece.end());
        reader.skip(static_cast<int64_t>(piece.size()), "a record");
    }
    return result;
}

uint32_t checksum_at(std::span<const std::byte> bytes) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

}  // namespace

uint32_t masked_crc(std::span<const std::byte> bytes) {
    const uint32_t crc = crc32c(bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

std::vector<std::byte> record_of(std::span<const std::byte> message) {
    std::vector<std::byte> record(kRecordHead + message.size() + kRecordTail);
    const uint64_t length = message.size();  // hosts are little-endian
    std::memcpy(record.data(), &length, 8);
    const uint32_t head = masked_crc(std::span(record).first(8)), tail = masked_crc(message);
    std::memcpy(record.data() + 8, &head, 4);
    std::copy(message.begin(), message.end(), record.begin() + kRecordHead);
    std::memcpy(record.data() + kRecordHead + message.size(), &tail, 4);
    return record;
}

std::vector<std::byte> read_record(ByteReader& reader, std::string_view& damage) {
    damage = {};
    const int64_t begin = reader.offset();
    const std::vector<std::byte> head = read_up_to(reader, kRecordHead);
    if (static_cast<int64_t>(head.size()) < kRecordHead) {
        damage = kRecordCut;
        return {};
    }
    if (masked_crc(std::span(head).first(8)) != checksum_at(std::span(head).subspan(8))) {
        damage = "the checksum of a record's length is wrong";
        return {};
    }
    uint64_t length = 0;
    std::memcpy(&length, head.data(), sizeof length);
    const int64_t most = reader.limits().max_record;
    if (length > static_cast<uint64_t>(most))
        throw Error(ErrorCode::bad_file, Place{{}, {}, begin},
                    fmt::format("a record of {} bytes, more than {} are not read", length, most));
    std::vector<std::byte> message = read_up_to(reader, static_cast<int64_t>(length) + kRecordTail);
    if (message.size() < length + kRecordTail) {
        damage = kRecordCut;
        return {};
    }
    const uint32_t checksum = checksum_at(std::span(message).subspan(static_cast<size_t>(length)));
    message.resize(static_cast<size_t>(length));
    if (masked_crc(message) != checksum) damage = "the checksum of a record is wrong";
    return message;
}

}  // namespace stipple::io
