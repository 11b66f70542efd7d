#include "stipple/io/common/crc32c.h"

#include <array>

namespace stipple::io {
namespace {

constexpr std::array<uint32_t, 256> make_crc32c_table() {
    std::array<uint32_t, 256> table{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0x82f63b78u : 0);
        table[byte] = value;
    }
    return table;
}
constexpr std::array<uint32_t, 256> kCrc32c = make_crc32c_table();

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes) {
    uint32_t value = 0xffffffffu;
    for (std::byte byte : bytes) value = (value >> 8) ^ kCrc32c[(value ^ static_cast<uint32_t>(byte)) & 0xff];
    return ~value;
}

}  // namespace stipple::io
