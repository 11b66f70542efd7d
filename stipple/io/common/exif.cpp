#include "stipple/io/common/exif.h"

#include <cstring>

namespace stipple::io {

int exif_orientation(std::span<const uint8_t> segment) {
    constexpr uint8_t kMark[6] = {'E', 'x', 'i', 'f', 0, 0};
    if (segment.size() < 14 || std::memcmp(segment.data(), kMark, 6) != 0) return 1;
    const std::span<const uint8_t> tiff = segment.subspan(6);
    const bool big = tiff[0] == 'M' && tiff[1] == 'M';
    if (!big && !(tiff[0] == 'I' && tiff[1] == 'I')) return 1;
    // Callers check that the bytes are there.
    const auto short_at = [&](size_t at) {
        return static_cast<uint32_t>(big ? tiff[at] << 8 | tiff[at + 1] : tiff[at + 1] << 8 | tiff[at]);
    };
    const auto long_at = [&](size_t at) {
        return big ? short_at(at) << 16 | short_at(at + 2) : short_at(at + 2) << 16 | short_at(at);
    };
    if (short_at(2) != 42) return 1;
    const size_t directory = long_at(4);
    if (directory + 2 > tiff.size()) return 1;
    const size_t entries = short_at(directory);
    constexpr size_t kEntry = 12;
    constexpr uint32_t kOrientationTag = 0x112, kShort = 3;
    for (size_t i = 0; i < entries; ++i) {
        const size_t at = directory + 2 + kEntry * i;
        if (at + kEntry > tiff.size()) return 1;
        if (short_at(at) != kOrientationTag) continue;
        const uint32_t value = short_at(at + 8);
        const bool is_valid = short_at(at + 2) == kShort && long_at(at + 4) == 1 && value >= 1 && value <= 8;
        return is_valid ? static_cast<int>(value) : 1;
    }
    return 1;
}

}  // namespace stipple::io
