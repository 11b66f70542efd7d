#pragma once
// LAS files as other programs write them.

#include "tests/io/binary_samples.h"

namespace stipple::test {

template <class T>
void put_at(Bytes& bytes, size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <class T>
T get_at(const Bytes& bytes, size_t at) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

/// A file as others write it: `n` points whose bytes count up, no records of stipple's own.
inline Bytes foreign(int minor, int format, size_t n, size_t more_bytes = 0) {
    constexpr size_t kRecords[] = {20, 28, 26, 34, 57, 63, 30, 36, 38, 59, 67};
    const size_t header = minor == 4 ? 375 : minor == 3 ? 235 : 227, record = kRecords[format] + more_bytes;
    Bytes bytes(header + n * record);
    std::memcpy(bytes.data(), "LASF", 4);
    put_at<uint8_t>(bytes, 24, 1);
    put_at<uint8_t>(bytes, 25, static_cast<uint8_t>(minor));
    put_at<uint16_t>(bytes, 94, static_cast<uint16_t>(header));
    put_at<uint32_t>(bytes, 96, static_cast<uint32_t>(header));
    put_at<uint8_t>(bytes, 104, static_cast<uint8_t>(format));
    put_at<uint16_t>(bytes, 105, static_cast<uint16_t>(record));
    if (minor == 4)
        put_at<uint64_t>(bytes, 247, n);
    else
        put_at<uint32_t>(bytes, 107, static_cast<uint32_t>(n));
    for (size_t a = 0; a < 3; ++a) {
        put_at<double>(bytes, 131 + 8 * a, 0.01);
        put_at<double>(bytes, 155 + 8 * a, 1000.0 * static_cast<double>(a));
    }
    for (size_t i = 0; i < n; ++i) {
        const size_t at = header + i * record;
        for (size_t b = 0; b < record; ++b) bytes[at + b] = static_cast<std::byte>(i * 7 + b * 3);
        for (size_t a = 0; a < 3; ++a) put_at<int32_t>(bytes, at + 4 * a, static_cast<int32_t>(i * 100 + a) - 50);
    }
    return bytes;
}

/// Puts a variable length record after the header of a file without any.
inline Bytes with_vlr(Bytes bytes, const std::string& user, uint16_t id, const Bytes& payload) {
    Bytes vlr(54);
    std::memcpy(vlr.data() + 2, user.data(), user.size());
    put_at<uint16_t>(vlr, 18, id);
    put_at<uint16_t>(vlr, 20, static_cast<uint16_t>(payload.size()));
    vlr.insert(vlr.end(), payload.begin(), payload.end());
    const auto header = get_at<uint16_t>(bytes, 94);
    bytes.insert(bytes.begin() + header, vlr.begin(), vlr.end());
    put_at<uint32_t>(bytes, 96, get_at<uint32_t>(bytes, 96) + static_cast<uint32_t>(vlr.size()));
    put_at<uint32_t>(bytes, 100, get_at<uint32_t>(bytes, 100) + 1);
    return bytes;
}

/// Puts an extended record behind the points of a LAS 1.4 file.
inline Bytes with_evlr(Bytes bytes, const std::string& user, uint16_t id, const Bytes& payload) {
    if (get_at<uint32_t>(bytes, 243) == 0) put_at<uint64_t>(bytes, 235, bytes.size());
    put_at<uint32_t>(bytes, 243, get_at<uint32_t>(bytes, 243) + 1);
    Bytes evlr(60);
    std::memcpy(evlr.data() + 2, user.data(), user.size());
    put_at<uint16_t>(evlr, 18, id);
    put_at<uint64_t>(evlr, 20, payload.size());
    std::memcpy(evlr.data() + 28, "about it", 8);
    bytes.insert(bytes.end(), evlr.begin(), evlr.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
}

/// A file with everything that a header can say: the points of foreign(), an odd header, records and extended ones.
inline Bytes talkative(int minor, int format, size_t n) {
    Bytes bytes = foreign(minor, format, n, 5);  // five bytes of each point are not described
    put_at<uint16_t>(bytes, 4, 4711);
    if (minor >= 2) put_at<uint16_t>(bytes, 6, static_cast<uint16_t>(1 | 8 | (minor == 4 ? 16 : 0)));
    for (size_t i = 0; i < 16; ++i) bytes[8 + i] = static_cast<std::byte>(i + 1);
    std::memcpy(bytes.data() + 26, "A SCANNER", 9);
    std::memcpy(bytes.data() + 58, "A PROGRAM", 9);
    put_at<uint16_t>(bytes, 90, 123);
    put_at<uint16_t>(bytes, 92, 2019);
    bytes = with_vlr(bytes, "LASF_Projection", 34735, bytes_of("keys of GeoTIFF"));
    bytes = with_vlr(bytes, "LASF_Projection", 2112, bytes_of("GEOGCS[\"a place\"]"));
    bytes = with_vlr(bytes, "somebody", 77, Bytes(300, std::byte{9}));
    put_at<uint16_t>(bytes, get_at<uint16_t>(bytes, 94), 0xaabb);  // "reserved"
    if (minor == 4) {
        bytes = with_evlr(bytes, "LASF_Projection", 2111, bytes_of("a transform"));
        bytes = with_evlr(bytes, "somebody else", 5, Bytes(100'000, std::byte{3}));
    }
    return bytes;
}

}  // namespace stipple::test
