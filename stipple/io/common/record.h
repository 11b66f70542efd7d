#pragma once
// Records of bytes, one behind the other, as event files of TensorBoard and TFRecord files have them.
//
// A record is a length (8 bytes, little-endian), the masked CRC-32C of these 8 bytes (4), as many bytes, and their
// masked CRC-32C (4); masked is rotated right by 15 bits, plus 0xa282ead8.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "stipple/io/byte_source.h"

namespace stipple::io {

constexpr int64_t kRecordHead = 12;  // length and its checksum
constexpr int64_t kRecordTail = 4;   // checksum of the data

/// What `damage` of a record says where the input ends before it does.
constexpr std::string_view kRecordCut = "the file ends within a record";

/// A CRC-32C that may itself be among the bytes of another.
uint32_t masked_crc(std::span<const std::byte> bytes);

/// The record around a message.
std::vector<std::byte> record_of(std::span<const std::byte> message);

/// The message of the next record, of at least one byte of input. Where a checksum is wrong or the input ends, `damage`
/// says so and the message counts for nothing; otherwise it is empty. Throws Error{bad_file} for a right checksum of a
/// length above limits().max_record. Memory grows with what has arrived.
std::vector<std::byte> read_record(ByteReader& reader, std::string_view& damage);

}  // namespace stipple::io
