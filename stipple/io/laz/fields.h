#pragma once
// Parts of point records that old (0 to 3) and new (6 to 8) point formats code alike.

#include <array>

#include "stipple/io/laz/decoder.h"

namespace stipple::io::laz {

inline uint8_t low_byte(uint32_t value) {
    return static_cast<uint8_t>(value & 255);
}
inline uint8_t high_byte(uint32_t value) {
    return static_cast<uint8_t>(value >> 8 & 255);
}
inline int clamp_byte(int value) {
    return std::clamp(value, 0, 255);
}

/// The context of a difference by the width of those before it, in steps of two up to `most`; `single`: the point is
/// the only return of its pulse.
inline size_t width_context(uint32_t width, uint32_t most, bool single) {
    return (width < most ? width & ~1u : most) + single;
}

/// GPS times as integers by the bits of the double. Four sequences (of flight lines that alternate) are kept, each with
/// its last time and difference; a time is a small multiple of the difference before, else a difference of 32 bits,
/// else whole. `tells_same`: a time that is as before has a code of its own, as in the old formats.
class TimeDecoder {
public:
    TimeDecoder(int64_t first, bool tells_same);
    /// The next time.
    int64_t decode(Decoder& decoder);

private:
    struct Sequence {
        int64_t time = 0;
        int32_t difference = 0;
        int odd = 0;  // differences in a row that were no multiple of `difference`
    };
    void decode_whole(Decoder& decoder);
    void note_odd(Sequence& sequence, int32_t difference);

    int same_;  // 1: there is a code for it
    SymbolModel multiples_, after_same_;
    IntegerDecoder differences_;
    std::array<Sequence, 4> sequences_;
    size_t current_ = 0, newest_ = 0;
};

constexpr int kMultiples = 500, kNegativeMultiples = 10;         // largest that have codes
constexpr int kTimeCodes = kMultiples + kNegativeMultiples + 1;  // of multiples: 0, 1 to 500, -1 to -10

/// Red, green and blue: which of their bytes differ from the last point's, then the differences, those of green and
/// blue from where the change of red leads.
class ColorDecoder {
public:
    using Color = std::array<uint16_t, 3>;
    ColorDecoder();
    void decode(Decoder& decoder, Color& last);

private:
    SymbolModel used_;
    std::array<SymbolModel, 6> bytes_;
};

/// A number of 16 bits by its bytes.
class NirDecoder {
public:
    NirDecoder();
    void decode(Decoder& decoder, uint16_t& last);

private:
    SymbolModel used_;
    std::array<SymbolModel, 2> bytes_;
};

}  // namespace stipple::io::laz
