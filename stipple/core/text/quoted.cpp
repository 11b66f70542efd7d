#include "stipple/core/quoted.h"

namespace stipple {

std::string in_quotes(std::string_view text) {
    std::string result = "\"";
    for (char c : text.substr(0, 40)) {
        const auto byte = static_cast<unsigned char>(c);
        result += byte < 0x20 || byte >= 0x7f ? '?' : c;
    }
    if (text.size() > 40) result += "...";
    return result + "\"";
}

}  // namespace stipple
