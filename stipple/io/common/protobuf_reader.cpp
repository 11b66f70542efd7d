#include "stipple/io/common/protobuf_reader.h"

#include "stipple/core/error.h"

namespace stipple::io {

void ProtobufReader::fail(const char* what) const {
    throw Error(ErrorCode::bad_file, Place{{}, {}, offset_}, fmt::format("protocol buffers: {}", what));
}

std::span<const std::byte> ProtobufReader::take(uint64_t bytes) {
    if (bytes > rest_.size()) fail("a field is longer than its message");
    const std::span<const std::byte> taken = rest_.first(static_cast<size_t>(bytes));
    rest_ = rest_.subspan(static_cast<size_t>(bytes));
    offset_ += static_cast<int64_t>(bytes);
    return taken;
}

uint64_t ProtobufReader::varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const auto byte = static_cast<uint64_t>(take(1)[0]);
        if (shift == 63 && byte > 1) break;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    fail("a number of more than 64 bits");
}

uint64_t ProtobufReader::fixed(uint64_t bytes) {
    uint64_t value = 0;
    int shift = 0;
    for (std::byte byte : take(bytes)) {
        value |= static_cast<uint64_t>(byte) << shift;
        shift += 8;
    }
    return value;
}

bool ProtobufReader::next(ProtobufField& field) {
    if (rest_.empty()) return false;
    field = {};
    const uint64_t key = varint();
    if (key < 8 || key >> 3 >= (uint64_t{1} << 29)) fail("no field has that number");
    field.number = static_cast<int64_t>(key >> 3);
    field.offset = offset_;
    switch (key & 7) {
        case 0:
            field.type = ProtobufField::Type::varint;
            field.value = varint();
            break;
        case 1:
            field.type = ProtobufField::Type::eight_bytes;
            field.value = fixed(8);
            break;
        case 2: {
            field.type = ProtobufField::Type::bytes;
            const uint64_t length = varint();
            field.offset = offset_;
            field.bytes = take(length);
            break;
        }
        case 5:
            field.type = ProtobufField::Type::four_bytes;
            field.value = fixed(4);
            break;
        default: fail("a field of an unknown type");
    }
    return true;
}

}  // namespace stipple::io
