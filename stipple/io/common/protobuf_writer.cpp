#include "stipple/io/common/protobuf_writer.h"

#include <bit>

namespace stipple::io {

namespace {
constexpr int kVarint = 0, kEightBytes = 1, kLengthDelimited = 2, kFourBytes = 5;
}

void ProtobufWriter::varint(uint64_t value) {
    while (value >= 0x80) {
        data_.push_back(static_cast<std::byte>(value | 0x80));
        value >>= 7;
    }
    data_.push_back(static_cast<std::byte>(value));
}

void ProtobufWriter::key(int field, int wire_type) {
    varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
}

void ProtobufWriter::integer(int field, int64_t value) {
    key(field, kVarint);
    varint(static_cast<uint64_t>(value));
}

void ProtobufWriter::real(int field, float value) {
    key(field, kFourBytes);
    fixed(std::bit_cast<uint32_t>(value), 4);
}

void ProtobufWriter::real(int field, double value) {
    key(field, kEightBytes);
    fixed(std::bit_cast<uint64_t>(value), 8);
}

void ProtobufWriter::fixed(uint64_t bits, int bytes) {
    for (int i = 0; i < bytes; ++i) data_.push_back(static_cast<std::byte>(bits >> 8 * i));
}

void ProtobufWriter::bytes(int field, std::span<const std::byte> value) {
    key(field, kLengthDelimited);
    varint(value.size());
    data_.insert(data_.end(), value.begin(), value.end());
}

void ProtobufWriter::text(int field, std::string_view value) {
    bytes(field, std::as_bytes(std::span(value.data(), value.size())));
}

void ProtobufWriter::message(int field, const ProtobufWriter& inner) {
    bytes(field, inner.data_);
}

void ProtobufWriter::packed(int field, std::span<const int64_t> values) {
    ProtobufWriter inner;
    for (const int64_t value : values) inner.varint(static_cast<uint64_t>(value));
    message(field, inner);
}

}  // namespace stipple::io
