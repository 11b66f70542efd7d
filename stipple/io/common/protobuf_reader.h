#pragma once
// Protocol Buffers, the reading half (protobuf_writer.h has the format): a message field by field, without a copy.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace stipple::io {

struct ProtobufField {
    enum class Type { varint, eight_bytes, bytes, four_bytes };
    int64_t number = 0;
    Type type = Type::varint;
    uint64_t value = 0;                // varint, eight_bytes, four_bytes
    std::span<const std::byte> bytes;  // bytes: a text or a message
    int64_t offset = 0;                // of the value in the file

    bool is(int64_t wanted_number, Type wanted_type) const { return number == wanted_number && type == wanted_type; }
    std::string text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

class ProtobufReader {
public:
    /// offset: where the message begins in its file, for errors.
    explicit ProtobufReader(std::span<const std::byte> message, int64_t offset) : rest_(message), offset_(offset) {}

    /// The next field; false at the end. Throws Error{bad_file} where the bytes break the wire format; groups, which
    /// nobody writes any more, are refused too.
    bool next(ProtobufField& field);

private:
    uint64_t varint();
    std::span<const std::byte> take(uint64_t bytes);
    uint64_t fixed(uint64_t bytes);
    [[noreturn]] void fail(const char* what) const;

    std::span<const std::byte> rest_;
    int64_t offset_;
};

}  // namespace stipple::io
