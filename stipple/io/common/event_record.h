#pragma once
// What reader and writer of event files share.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stipple::io {

constexpr int64_t kRecordHead = 12;  // length and its checksum
constexpr int64_t kRecordTail = 4;   // checksum of the data
constexpr std::string_view kEventVersion = "brain.Event:2";
constexpr std::string_view kEventVersions = "brain.Event:";  // how all of them begin

/// A CRC-32C that may itself be among the bytes of another: rotated right by 15 bits, plus a constant.
uint32_t masked_crc(std::span<const std::byte> bytes);

}  // namespace stipple::io
