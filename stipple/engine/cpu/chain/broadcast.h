#pragma once
// The loops of instructions whose lanes are channels: 32 bits of a row's inputs (one float32, two bf16 or int16, four
// int8) are broadcast and multiplied with the same inputs' weights of every lane. Included by the files compiled for
// such instructions; unnamed, so that every file has its own copy.

#include <utility>

#include "stipple/engine/cpu/chain/blocks.h"
#include "stipple/engine/cpu/chain/kernels.h"

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

    /// Indices of the sums of kCount rows, row by row. Constants, not loops: only so do compilers keep all sums in
    /// registers.
    template <int kCount>
    using Indices = std::make_integer_sequence<int, kVectors * kCount>;

    template <int... kIndex>
    [[gnu::always_inline]] static inline void multiply(const std::byte* w, const std::byte* x, int64_t groups, Sum* s,
                                                       std::integer_sequence<int, kIndex...>) {
        ((s[kIndex] = Ops::kHasStart
                          ? Ops::load_sums(reinterpret_cast<const Number*>(w) + kIndex % kVectors * Ops::kLanes)
                          : Ops::zero()),
         ...);
        if constexpr (Ops::kHasStart) w += 4 * kChannels;
        for (int64_t g = 0; g < groups; ++g, w += 4 * kChannels, x += 4 * kRows)
            ((s[kIndex] =
                  Ops::multiply_add(s[kIndex], w + 4 * (kIndex % kVectors) * Ops::kLanes, x + 4 * (kIndex / kVectors))),
             ...);
    }

    template <int... kIndex>
    [[gnu::always_inline]] static inline void raise(const Sum* s, Sum* most, std::integer_sequence<int, kIndex...>) {
        ((most[kIndex % kVectors] = Ops::maximum(most[kIndex % kVectors], s[kIndex])), ...);
    }

    template <int... kIndex>
    [[gnu::always_inline]] static inline void write(const Sum* s, Number* lines,
                                                    std::integer_sequence<int, kIndex...>) {
        (Ops::store_sums(lines + kIndex * Ops::kLanes, s[kIndex]), ...);
    }

    template <int kCount>
    [[gnu::always_inline]] static inline void multiply_and_write(const std::byte* weights, const std::byte* rows,
                                                                 int64_t groups, Number* lines) {
        Sum s[kVectors * kCount];
        multiply(weights, rows, groups, s, Indices<kCount>{});
        write(s, lines, Indices<kCount>{});
    }

    /// lines[12][channels] -> sums[channels][12]
    static void turn(const Number* lines, void* sums) {
        const float* at[kRows];
        for (int r = 0; r < kRows; ++r) at[r] = reinterpret_cast<const float*>(lines + r * kChannels);
        take_rows(at, kChannels, static_cast<float*>(sums));
    }

    static void product(const std::byte* weights, const std::byte* rows, int64_t groups, void* sums) {
        alignas(64) Number lines[kRows * kChannels];
        for (int r = 0; r < kRows; r += kBlock)
            multiply_and_write<kBlock>(weights, rows + 4 * r, groups, lines + r * kChannels);
        turn(lines, sums);
    }

    static void few(const std::byte* weights, const std::byte* rows, int64_t groups, void* sums) {
        alignas(64) Number lines[kRows * kChannels] = {};
        multiply_and_write<kFew>(weights, rows, groups, lines);
        turn(lines, sums);
    }

    static void lines(const std::byte* weights, const std::byte* rows, int64_t groups, float* out, int64_t stride) {
        for (int r = 0; r < kRows; r += kBlock) {
            Sum s[kVectors * kBlock];
            multiply(weights, rows + 4 * r, groups, s, Indices<kBlock>{});
            for (int i = 0; i < kVectors * kBlock; ++i)
                Ops::store_sums(out + (r + i / kVectors) * stride + i % kVectors * Ops::kLanes, s[i]);
        }
    }

    template <int kAdded, ActivationKind kKind>
    static void finish_lines(const float* sums, const RowFinish& finish) {
        Sum bias[kVectors];
        for (int v = 0; v < kVectors; ++v) bias[v] = Ops::load_sums(finish.bias + v * Ops::kLanes);
        const Sum zero = Ops::zero(), slope = zero + finish.activation.slope;
        for (int64_t r = 0; r < finish.n_rows; ++r)
            for (int v = 0; v < kVectors; ++v) {
                const int c = v * Ops::kLanes;
                Sum x = Ops::load_sums(sums + r * kChannels + c);
                if constexpr (kAdded >= 1) x = x + Ops::load_sums(finish.added.rows[0][r] + c);
                if constexpr (kAdded == 2) x = x + Ops::load_sums(finish.added.rows[1][r] + c);
                x = x + bias[v];
                if constexpr (kKind == ActivationKind::relu) x = x > zero ? x : zero;
                if constexpr (kKind == ActivationKind::leaky_relu) x = x > zero ? x : slope * x;
                Ops::store_sums(finish.out + r * finish.stride + c, x);
            }
    }

    template <int kAdded>
    static void finish_lines(const float* sums, const RowFinish& finish) {
        switch (finish.activation.kind) {
            case ActivationKind::none: return finish_lines<kAdded, ActivationKind::none>(sums, finish);
            case ActivationKind::relu: return finish_lines<kAdded, ActivationKind::relu>(sums, finish);
            default: return finish_lines<kAdded, ActivationKind::leaky_relu>(sums, finish);
        }
    }

    static void rows(const std::byte* weights, const std::byte* rows, int64_t groups, const RowFinish& finish) {
        alignas(64) float sums[kRows * kChannels];
        for (int r = 0; r < kRows && r < finish.n_rows; r += kBlock)
            multiply_and_write<kBlock>(weights, rows + 4 * r, groups, sums + r * kChannels);
        if (finish.channels < kChannels)
            return finish_rows(sums, kChannels, finish.added, finish.n_rows, finish.channels, finish.bias,
                               finish.activation, finish.out, finish.stride);
        switch (finish.added.count) {
            case 0: return finish_lines<0>(sums, finish);
            case 1: return finish_lines<1>(sums, finish);
            default: return finish_lines<2>(sums, finish);
        }
    }

    static void maximum(const std::byte* weights, const std::byte* rows, int64_t groups, int64_t panels,
                        int64_t panel_bytes, void* largest) {
        static_assert(kVectors == 2);
        auto* out = static_cast<Number*>(largest);
        Sum most[kVectors] = {Ops::load_sums(out), Ops::load_sums(out + Ops::kLanes)};
        for (int64_t p = 0; p < panels; ++p, rows += panel_bytes)
            for (int r = 0; r < kRows; r += kBlock) {
                Sum s[kVectors * kBlock];
                multiply(weights, rows + 4 * r, groups, s, Indices<kBlock>{});
                raise(s, most, Indices<kBlock>{});
            }
        Ops::store_sums(out, most[0]);
        Ops::store_sums(out + Ops::kLanes, most[1]);
    }
};

}  // namespace
}  // namespace stipple::engine::cpu
