#include "stipple/core/number_text.h"

#include <fmt/format.h>

namespace stipple {

std::string grouped(int64_t number) {
    std::string digits = std::to_string(number < 0 ? -number : number);
    for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<size_t>(at), ",");
    return number < 0 ? "-" + digits : digits;
}

std::string bytes_text(int64_t bytes) {
    if (bytes < 1000) return fmt::format("{} B", bytes);
    const char* units[] = {"kB", "MB", "GB", "TB"};
    auto value = static_cast<double>(bytes);
    int unit = -1;
    while (value >= 999.5 && unit < 3) {
        value /= 1000;
        ++unit;
    }
    return fmt::format("{:.3g} {}", value, units[unit]);
}

}  // namespace stipple
