#pragma once
// One chunk of points as LASzip codes it.

#include <cstring>

#include "tests/support/laz_fields.h"

namespace stipple::test {

template <class T>
T laz_field(const std::byte* record, size_t at) {
    T value;
    std::memcpy(&value, record + at, sizeof value);
    return value;
}

inline uint32_t laz_byte(const std::byte* record, size_t at) {
    return static_cast<uint32_t>(record[at]);
}

inline int32_t laz_difference(const std::byte* now, const std::byte* last, size_t at) {
    return static_cast<int32_t>(laz_field<uint32_t>(now, at) - laz_field<uint32_t>(last, at));
}

/// Of widths below `most` in steps of two, beside single returns.
inline size_t laz_width_context(uint32_t width, uint32_t most, bool single) {
    return (width < most ? width / 2 * 2 : most) + single;
}

/// Point formats 0 to 3.
std::vector<std::byte> laz_pointwise_chunk(const std::byte* records, size_t count, size_t record, int format);

/// Point formats 6 to 8.
std::vector<std::byte> laz_layered_chunk(const std::byte* records, size_t count, size_t record, int format);

}  // namespace stipple::test
