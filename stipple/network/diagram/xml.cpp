#include "stipple/network/diagram/xml.h"

#include <cstdint>

namespace stipple::network {
namespace {

/// Bytes of the UTF-8 sequence that starts here and that XML allows; 0 when there is none.
size_t sequence_length(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
    const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc0 ? 2 : 0;
    if (length == 0 || text.size() < length) return 0;
    uint32_t code = byte(0) & (0x7fu >> length);
    for (size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0u) != 0x80u) return 0;
        code = code << 6 | (byte(i) & 0x3fu);
    }
    static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_allowed = code >= kLeast[length] && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) &&
                            code != 0xfffe && code != 0xffff;
    return is_allowed && code >= 0xa0 ? length : 0;
}

}  // namespace

std::string xml_text(std::string_view text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        switch (byte) {
            case '&': result += "&amp;"; continue;
            case '<': result += "&lt;"; continue;
            case '>': result += "&gt;"; continue;
            case '"': result += "&quot;"; continue;
            case '\'': result += "&apos;"; continue;
            default: break;
        }
        if (byte < 0x80) {
            result += byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7f) ? static_cast<char>(byte) : '?';
            continue;
        }
        const size_t length = sequence_length(text.substr(i));
        result += length == 0 ? std::string_view("?") : text.substr(i, length);
        if (length > 0) i += length - 1;
    }
    return result;
}

}  // namespace stipple::network
