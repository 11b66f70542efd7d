#include "stipple/network/onnx/protobuf_writer.h"

#include <bit>

namespace stipple::network {

namespace {
constexpr int kVarint = 0, kLengthDelimited = 2, kFourBytes = 5;
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
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) data_.push_back(static_cast<std::byte>(bits >> shift));
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

}  // namespace stipple::network
