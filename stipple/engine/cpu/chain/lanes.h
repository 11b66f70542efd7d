#pragma once
// Rows of a kernel out of finished values, four lanes at a time through the compiler's vector extension, for kernels
// whose group is 32 bits. In an unnamed namespace: every file has its own copy, compiled for its own instructions.

#include <cstring>

#include "stipple/engine/cpu/chain/kernels.h"

namespace stipple::engine::cpu {
namespace {

using Float4 = float __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));
using Word4 = uint32_t __attribute__((vector_size(16)));

template <class To, class From>
inline To lanes_as(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

inline Float4 load_lanes(const float* from) {
    Float4 v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

/// Bits of the nearest bf16, ties to even, in the upper half of each lane.
inline Word4 bf16_lanes(Float4 x) {
    const Word4 bits = lanes_as<Word4>(x);
    const Word4 rounded = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    return x == x ? rounded : bits | 0x400000;  // what is not a number must not become infinite
}

/// round_to_int8() of four numbers. 1.5 * 2^23 has no room for fractions: adding it rounds.
inline Int4 int8_lanes(Float4 x, float per_scale) {
    constexpr float kRounder = 12582912.0f;
    x = x * per_scale;
    x = x < 127.0f ? x : Float4{127, 127, 127, 127};
    x = x > -127.0f ? x : Float4{-127, -127, -127, -127};
    return lanes_as<Int4>(x + kRounder) - 0x4b400000;
}

inline void store_f32(const float* values, int64_t channels, float, std::byte* rows) {
    std::memcpy(rows, values, sizeof(float) * static_cast<size_t>(channels * kPanelRows));
}

/// bf16 kept in float32.
inline void store_rounded(const float* values, int64_t channels, float, std::byte* rows) {
    for (int64_t i = 0; i < channels * kPanelRows; i += 4) {
        const Word4 rounded = bf16_lanes(load_lanes(values + i));
        std::memcpy(rows + 4 * i, &rounded, sizeof rounded);
    }
}

/// Calls word_of(values of a group's channels, one lane for each of four rows), which gives the group's 32 bits.
template <int kGroup, class WordOf>
inline void store_words(const float* values, int64_t channels, std::byte* rows, WordOf word_of) {
    for (int64_t c = 0; c < channels; c += kGroup)
        for (int64_t r = 0; r < kPanelRows; r += 4) {
            Float4 x[kGroup];
            for (int j = 0; j < kGroup; ++j) x[j] = load_lanes(values + (c + j) * kPanelRows + r);
            const Word4 word = word_of(x);
            std::memcpy(rows + 4 * (c / kGroup * kPanelRows + r), &word, sizeof word);
        }
}

inline void store_bf16_pairs(const float* values, int64_t channels, float, std::byte* rows) {
    store_words<2>(values, channels, rows, [](const Float4* x) { return bf16_lanes(x[0]) >> 16 | bf16_lanes(x[1]); });
}

inline void store_i16_pairs(const float* values, int64_t channels, float per_scale, std::byte* rows) {
    store_words<2>(values, channels, rows, [per_scale](const Float4* x) {
        return (lanes_as<Word4>(int8_lanes(x[0], per_scale)) & 0xffff) | lanes_as<Word4>(int8_lanes(x[1], per_scale))
                                                                             << 16;
    });
}

/// offset: 0 for i8, 128 for u8.
template <int kOffset>
inline void store_bytes(const float* values, int64_t channels, float per_scale, std::byte* rows) {
    store_words<4>(values, channels, rows, [per_scale](const Float4* x) {
        Word4 word = {};
        for (int j = 0; j < 4; ++j) word |= (lanes_as<Word4>(int8_lanes(x[j], per_scale) + kOffset) & 0xff) << (8 * j);
        return word;
    });
}

}  // namespace
}  // namespace stipple::engine::cpu
