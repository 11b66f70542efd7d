#pragma once
// Protocol Buffers, the writing half: what ONNX and event files are made of. A message is written field by field into
// memory; a message inside another is written first, then put in as bytes.
//
// The wire format [protobuf.dev, "Encoding"]: a field is its key, number * 8 + wire type, and its value: a varint (7
// bits a byte, lowest first, the high bit says that more follow), four or eight bytes little-endian, or a length and as
// many bytes. Packed: all numbers of a repeated field behind one key and length.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stipple::io {

class ProtobufWriter {
public:
    /// int32, int64 and enum fields. Negative numbers take ten bytes.
    void integer(int field, int64_t value);
    /// float and double fields.
    void real(int field, float value);
    void real(int field, double value);
    /// string and bytes fields.
    void text(int field, std::string_view value);
    void bytes(int field, std::span<const std::byte> value);
    /// A field that is a message.
    void message(int field, const ProtobufWriter& inner);
    /// A repeated integer field.
    void packed(int field, std::span<const int64_t> values);

    const std::vector<std::byte>& data() const { return data_; }
    std::vector<std::byte> take() { return std::move(data_); }

private:
    void key(int field, int wire_type);
    void fixed(uint64_t bits, int bytes);
    void varint(uint64_t value);

    std::vector<std::byte> data_;
};

}  // namespace stipple::io
