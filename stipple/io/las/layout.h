#pragma once
// Where LAS keeps things: shared by its reader and its writer.

#include <cstring>
#include <string>
#include <vector>

#include "stipple/core/attribute.h"

namespace stipple::io::las {

constexpr int64_t kHeader12 = 227, kHeader13 = 235, kHeader14 = 375, kVlrHeader = 54, kEvlrHeader = 60;
constexpr int64_t kExtraDescriptor = 192;
constexpr int kFormats = 11;
constexpr int64_t kRecordBytes[kFormats] = {20, 28, 26, 34, 57, 63, 30, 36, 38, 59, 67};

/// The fixed part of the header, at these offsets in every version.
namespace at {
constexpr int64_t kSource = 4, kGlobalEncoding = 6, kGuid = 8, kVersion = 24, kSystem = 26, kSoftware = 58, kDate = 90,
                  kHeaderSize = 94, kPoints = 96, kVlrs = 100, kFormat = 104, kRecordLength = 105, kLegacyCount = 107,
                  kLegacyReturns = 111, kScale = 131, kOffset = 155, kBounds = 179, kWaves = 227, kFirstEvlr = 235,
                  kEvlrs = 243, kCount = 247, kReturns = 255;
}

/// A record of ours: origin (three doubles), then "TYPE COMPONENTS NAME\n" for each attribute in its order.
constexpr const char* kOwnUser = "stipple";
constexpr uint16_t kOwnRecord = 1;

/// Of LASF_Spec: descriptions of extra bytes, and wave packets.
constexpr uint16_t kExtraRecord = 4, kWaveRecord = 65535;

/// Records of the coordinate system: WKT, which goes with point formats 6 to 10, and else GeoTIFF keys.
constexpr const char* kProjectionUser = "LASF_Projection";
constexpr uint16_t kWktRecord = 2112;

/// Bits of the global encoding.
constexpr int kAdjustedTime = 1, kWavesInside = 2, kWavesOutside = 4, kSyntheticReturns = 8, kWkt = 16;

/// Part of a point record.
struct Column {
    std::string name;
    DType dtype = DType::u8;
    int64_t components = 1;
    int64_t offset = 0;  // bytes into the record
    int shift = 0;       // of a bit field in one byte
    int bits = 0;        // 0: the whole value
};

/// The standard columns of a point format, in the order of las.h.
std::vector<Column> columns_of(int format);

inline bool has_wave_packets(int format) {
    return format == 4 || format == 5 || format == 9 || format == 10;
}

/// What a column holds in files whose writer has nothing to say: returns are counted from 1.
inline int default_of(const std::string& name) {
    return name == "return_number" || name == "number_of_returns" ? 1 : 0;
}

/// The element types of extra bytes, by their number less one.
constexpr DType kExtraTypes[] = {DType::u8,  DType::i8,  DType::u16, DType::i16, DType::u32,
                                 DType::i32, DType::u64, DType::i64, DType::f32, DType::f64};

template <int64_t Bytes>
void copy_column(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t n) {
    for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, Bytes);
}

/// n values of `bytes` bytes from one stride to another; the usual widths have loops of their own.
inline void copy_values(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t bytes,
                        int64_t n) {
    switch (bytes) {
        case 1: return copy_column<1>(from, from_stride, to, to_stride, n);
        case 2: return copy_column<2>(from, from_stride, to, to_stride, n);
        case 4: return copy_column<4>(from, from_stride, to, to_stride, n);
        case 6: return copy_column<6>(from, from_stride, to, to_stride, n);
        case 8: return copy_column<8>(from, from_stride, to, to_stride, n);
        case 12: return copy_column<12>(from, from_stride, to, to_stride, n);
        default:
            for (int64_t i = 0; i < n; ++i)
                std::memcpy(to + i * to_stride, from + i * from_stride, static_cast<size_t>(bytes));
    }
}

/// uint8 colours in the 16 bits of LAS, and degrees in steps of 0.006: what a file written from such attributes holds.
Attribute widen_color(const Attribute& color);
bool narrow_color(const Attribute& color, Attribute& to);
Attribute degrees_to_steps(const Attribute& angle);
bool steps_to_degrees(const Attribute& angle, Attribute& to);

}  // namespace stipple::io::las
