#pragma once
// The loops of instructions whose lanes are channels: 32 bits of a row's inputs (one float32, two bf16 or int16, four
// int8) are broadcast and multiplied with the same inputs' weights of every lane. Included by the files compiled for
// such instructions; unnamed, so that every file has its own copy.

#include "stipple/engine/cpu_chain_blocks.h"
#include "stipple/engine/cpu_chain_kernels.h"

namespace stipple::engine::cpu {
namespace {

/// Ops: Sum (a register of sums), Number, kLanes, kHasStart, zero(), load_sums(), store_sums(), maximum(), and
/// multiply_add(sum, weights, row): of kLanes x 32 bits of weights and 32 bits of a row.
/// kVectors registers of channels by kBlock rows are summed at a time; kBlock divides 12.
template <class Ops, int kVectors, int kBlock>
struct BroadcastKernel {
    using Sum = typename Ops::Sum;
    using Number = typename Ops::Number;
    static constexpr int kChannels = kVectors * Ops::kLanes, kRows = kPanelRows, kFew = 4;
    static_assert(kRows % kBlock == 0 && sizeof(Number) == 4 && kChannels <= kMostChannels);

    template <int kCount>
    [[gnu::always_inline]] static inline void multiply(const std::byte* w, const std::byte* x, int64_t groups,
                                                       Sum (&s)[kVectors * kCount]) {
#pragma GCC unroll 24
        for (int i = 0; i < kVectors * kCount; ++i) {
            if constexpr (Ops::kHasStart)
                s[i] = Ops::load_sums(reinterpret_cast<const Number*>(w) + i % kVectors * Ops::kLanes);
            else
                s[i] = Ops::zero();
        }
        if constexpr (Ops::kHasStart) w += 4 * kChannels;
        for (int64_t g = 0; g < groups; ++g, w += 4 * kChannels, x += 4 * kRows) {
#pragma GCC unroll 12
            for (int r = 0; r < kCount; ++r)
#pragma GCC unroll 2
                for (int v = 0; v < kVectors; ++v)
                    s[r * kVectors + v] = Ops::multiply_add(s[r * kVectors + v], w + 4 * v * Ops::kLanes, x + 4 * r);
        }
    }

    template <int kCount>
    static void write(const std::byte* weights, const std::byte* rows, int64_t groups, Number* lines) {
        Sum s[kVectors * kCount];
        multiply<kCount>(weights, rows, groups, s);
#pragma GCC unroll 24
        for (int i = 0; i < kVectors * kCount; ++i) Ops::store_sums(lines + i * Ops::kLanes, s[i]);
    }

    /// lines[12][channels] -> sums[channels][12]
    static void turn(const Number* lines, void* sums) {
        const float* at[kRows];
        for (int r = 0; r < kRows; ++r) at[r] = reinterpret_cast<const float*>(lines + r * kChannels);
        take_rows(at, kChannels, static_cast<float*>(sums));
    }

    static void product(const std::byte* weights, const std::byte* rows, int64_t groups, void* sums) {
        alignas(64) Number lines[kRows * kChannels];
        for (int r = 0; r < kRows; r += kBlock) write<kBlock>(weights, rows + 4 * r, groups, lines + r * kChannels);
        turn(lines, sums);
    }

    static void few(const std::byte* weights, const std::byte* rows, int64_t groups, void* sums) {
        alignas(64) Number lines[kRows * kChannels] = {};
        write<kFew>(weights, rows, groups, lines);
        turn(lines, sums);
    }

    static void maximum(const std::byte* weights, const std::byte* rows, int64_t groups, int64_t panels,
                        int64_t panel_bytes, void* largest) {
        auto* out = static_cast<Number*>(largest);
        for (int64_t p = 0; p < panels; ++p, rows += panel_bytes)
            for (int r = 0; r < kRows; r += kBlock) {
                Sum s[kVectors * kBlock];
                multiply<kBlock>(weights, rows + 4 * r, groups, s);
#pragma GCC unroll 2
                for (int v = 0; v < kVectors; ++v) {
                    Sum most = Ops::load_sums(out + v * Ops::kLanes);
#pragma GCC unroll 12
                    for (int i = 0; i < kBlock; ++i) most = Ops::maximum(most, s[i * kVectors + v]);
                    Ops::store_sums(out + v * Ops::kLanes, most);
                }
            }
    }
};

}  // namespace
}  // namespace stipple::engine::cpu
