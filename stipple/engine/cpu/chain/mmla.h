#pragma once
// The loops of the two aarch64 instructions that multiply small matrices: each adds the product of two rows of weights
// with two rows of inputs, `group` numbers deep, to four sums. 8 channels x 12 rows are 24 registers of sums, and 24
// instructions for 10 loads. Included by the files compiled for these instructions alone.

#include <arm_neon.h>

#include "stipple/engine/cpu/chain/kernels.h"

namespace stipple::engine::cpu {
namespace {

using network::ActivationKind;

/// Ops: Vector (16 bytes of factors), Sum, Number, zero(), load(), multiply_add(), maximum(), pair_maximum(), store(),
/// low_halves(), high_halves(); kIsScaled and scaled(), which makes values of sums; store_pair(), which writes two rows
/// of 8 channels (r0 c0, r0 c1, r1 c0, r1 c1, then c2 and c3 ...) as factors.
template <class Ops>
struct MatrixKernel {
    using Vector = typename Ops::Vector;
    using Sum = typename Ops::Sum;
    using Number = typename Ops::Number;
    static constexpr int kChannels = 8, kRows = kPanelRows, kVector = 16;

    /// s[i * 6 + j]: channels 2 i and 2 i + 1 with rows 2 j and 2 j + 1, in this order: c0 r0, c0 r1, c1 r0, c1 r1;
    /// with rows first: c0 r0, c1 r0, c0 r1, c1 r1.
    template <bool kRowsFirst>
    [[gnu::always_inline]] static inline void multiply(const std::byte* w, const std::byte* x, int64_t groups,
                                                       Sum (&s)[24]) {
#pragma GCC unroll 24
        for (int i = 0; i < 24; ++i) s[i] = Ops::zero();
#pragma GCC unroll 2
        for (int64_t g = 0; g < groups; ++g, w += 4 * kVector, x += 6 * kVector) {
            const Vector w0 = Ops::load(w), w1 = Ops::load(w + kVector);
            const Vector w2 = Ops::load(w + 2 * kVector), w3 = Ops::load(w + 3 * kVector);
#pragma GCC unroll 6
            for (int j = 0; j < 6; ++j) {
                const Vector xj = Ops::load(x + j * kVector);
                s[j] = kRowsFirst ? Ops::multiply_add(s[j], xj, w0) : Ops::multiply_add(s[j], w0, xj);
                s[6 + j] = kRowsFirst ? Ops::multiply_add(s[6 + j], xj, w1) : Ops::multiply_add(s[6 + j], w1, xj);
                s[12 + j] = kRowsFirst ? Ops::multiply_add(s[12 + j], xj, w2) : Ops::multiply_add(s[12 + j], w2, xj);
                s[18 + j] = kRowsFirst ? Ops::multiply_add(s[18 + j], xj, w3) : Ops::multiply_add(s[18 + j], w3, xj);
            }
        }
    }

    static void product(const std::byte* weights, const std::byte* rows, int64_t groups, void* sums) {
        Sum s[24];
        multiply<false>(weights, rows, groups, s);
        auto* out = static_cast<Number*>(sums);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
#pragma GCC unroll 3
            for (int j = 0; j < 3; ++j) {
                const Sum a = s[i * 6 + 2 * j], b = s[i * 6 + 2 * j + 1];
                Ops::store(out + 2 * i * kRows + 4 * j, Ops::low_halves(a, b));
                Ops::store(out + (2 * i + 1) * kRows + 4 * j, Ops::high_halves(a, b));
            }
    }

    static void maximum(const std::byte* weights, const std::byte* rows, int64_t groups, int64_t panels,
                        int64_t panel_bytes, void* largest) {
        auto* out = static_cast<Number*>(largest);
        Sum most0 = Ops::load_sums(out), most1 = Ops::load_sums(out + 4);
        for (int64_t p = 0; p < panels; ++p, rows += panel_bytes) {
            Sum s[24], most[4];
            multiply<false>(weights, rows, groups, s);
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                const Sum* of = s + i * 6;
                most[i] = Ops::maximum(Ops::maximum(Ops::maximum(of[0], of[1]), Ops::maximum(of[2], of[3])),
                                       Ops::maximum(of[4], of[5]));
            }
            most0 = Ops::maximum(most0, Ops::pair_maximum(most[0], most[1]));
            most1 = Ops::maximum(most1, Ops::pair_maximum(most[2], most[3]));
        }
        Ops::store(out, most0);
        Ops::store(out + 4, most1);
    }

    // A pair of numbers, twice: of channels 2 i and 2 i + 1, as the sums of two rows lie.
    static float32x4_t pair_of(const float* numbers) {
        const float32x2_t pair = vld1_f32(numbers);
        return vcombine_f32(pair, pair);
    }

    template <ActivationKind kKind>
    static void advance_with(const std::byte* weights, const std::byte* rows, int64_t groups, const Finish& finish,
                             float per_scale, std::byte* out) {
        Sum s[24];
        multiply<true>(weights, rows, groups, s);
        const float32x4_t zero = vdupq_n_f32(0), slope = vdupq_n_f32(finish.activation.slope);
        float32x4_t scales[4] = {}, bias[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            if constexpr (Ops::kIsScaled) scales[i] = pair_of(finish.scales + 2 * i);
            bias[i] = pair_of(finish.bias + 2 * i);
        }
#pragma GCC unroll 6
        for (int j = 0; j < 6; ++j) {
            float32x4_t v[4];
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                v[i] = vaddq_f32(Ops::scaled(s[i * 6 + j], scales[i]), bias[i]);
                if constexpr (kKind == ActivationKind::relu) v[i] = vmaxnmq_f32(v[i], zero);
                if constexpr (kKind == ActivationKind::leaky_relu)
                    v[i] = vbslq_f32(vcgtq_f32(v[i], zero), v[i], vmulq_f32(slope, v[i]));
            }
            Ops::store_pair(v, per_scale, out + j * kVector);
        }
    }

    static void advance(const std::byte* weights, const std::byte* rows, int64_t groups, const Finish& finish,
                        float per_scale, std::byte* out) {
        switch (finish.activation.kind) {
            case ActivationKind::none:
                return advance_with<ActivationKind::none>(weights, rows, groups, finish, per_scale, out);
            case ActivationKind::relu:
                return advance_with<ActivationKind::relu>(weights, rows, groups, finish, per_scale, out);
            default: return advance_with<ActivationKind::leaky_relu>(weights, rows, groups, finish, per_scale, out);
        }
    }

    // One or two rows: bound by reading the weights.
    static void few(const std::byte* w, const std::byte* x, int64_t groups, void* sums) {
        Sum s0 = Ops::zero(), s1 = s0, s2 = s0, s3 = s0;
        for (int64_t g = 0; g < groups; ++g, w += 4 * kVector, x += 6 * kVector) {
            const Vector x0 = Ops::load(x);
            s0 = Ops::multiply_add(s0, Ops::load(w), x0);
            s1 = Ops::multiply_add(s1, Ops::load(w + kVector), x0);
            s2 = Ops::multiply_add(s2, Ops::load(w + 2 * kVector), x0);
            s3 = Ops::multiply_add(s3, Ops::load(w + 3 * kVector), x0);
        }
        const Sum s[4] = {s0, s1, s2, s3};
        auto* out = static_cast<Number*>(sums);
        for (int i = 0; i < 4; ++i) {
            Ops::store(out + 2 * i * kRows, Ops::low_halves(s[i], s[i]));
            Ops::store(out + (2 * i + 1) * kRows, Ops::high_halves(s[i], s[i]));
        }
    }
};

}  // namespace
}  // namespace stipple::engine::cpu
