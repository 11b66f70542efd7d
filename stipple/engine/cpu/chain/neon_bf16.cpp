// bf16 by bfmmla: 2 x 4 by 4 x 2, 16 multiply-adds an instruction, sums in float32.

#include "stipple/engine/cpu/chain/kernels.h"

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)

#include <sys/auxv.h>

#include "stipple/engine/cpu/chain/mmla.h"

namespace stipple::engine::cpu {
namespace {

struct Ops {
    using Vector = bfloat16x8_t;
    using Sum = float32x4_t;
    using Number = float;
    static Sum zero() { return vdupq_n_f32(0); }
    static Vector load(const std::byte* from) { return vld1q_bf16(reinterpret_cast<const bfloat16_t*>(from)); }
    static Sum load_sums(const Number* from) { return vld1q_f32(from); }
    static Sum multiply_add(Sum sum, Vector w, Vector x) { return vbfmmlaq_f32(sum, w, x); }
    static Sum maximum(Sum a, Sum b) { return vmaxnmq_f32(a, b); }
    static Sum pair_maximum(Sum a, Sum b) { return vpmaxnmq_f32(a, b); }
    static Sum low_halves(Sum a, Sum b) {
        return vreinterpretq_f32_s64(vtrn1q_s64(vreinterpretq_s64_f32(a), vreinterpretq_s64_f32(b)));
    }
    static Sum high_halves(Sum a, Sum b) {
        return vreinterpretq_f32_s64(vtrn2q_s64(vreinterpretq_s64_f32(a), vreinterpretq_s64_f32(b)));
    }
    static void store(Number* to, Sum sum) { vst1q_f32(to, sum); }

    static constexpr bool kIsScaled = false;
    static float32x4_t scaled(Sum sum, float32x4_t) { return sum; }
    static void store_pair(const float32x4_t (&v)[4], float, std::byte* to) {
        for (int i = 0; i < 4; i += 2, to += 16 * kPanelRows / 2) {
            const bfloat16x8_t row0 = vcvtq_low_bf16_f32(low_halves(v[i], v[i + 1]));
            vst1q_bf16(reinterpret_cast<bfloat16_t*>(to), vcvtq_high_bf16_f32(row0, high_halves(v[i], v[i + 1])));
        }
    }
};

void store(const float* values, int64_t channels, float, std::byte* rows) {
    auto* to = reinterpret_cast<uint16_t*>(rows);
    for (int64_t c = 0; c < channels; c += 4, to += 4 * kPanelRows)
        for (int64_t r = 0; r < kPanelRows; r += 4) {
            uint16x4x4_t numbers;
            for (int i = 0; i < 4; ++i)
                numbers.val[i] = vreinterpret_u16_bf16(vcvt_bf16_f32(vld1q_f32(values + (c + i) * kPanelRows + r)));
            vst4_u16(to + 4 * r, numbers);
        }
}

bool can_run() {
    return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
}

const Kernel kKernel = {.name = "bfmmla 8x12",
                        .precision = Precision::bf16,
                        .factor = Factor::bf16,
                        .group = 4,
                        .channels = 8,
                        .few_rows = 2,
                        .can_run = can_run,
                        .product = MatrixKernel<Ops>::product,
                        .few = MatrixKernel<Ops>::few,
                        .maximum = MatrixKernel<Ops>::maximum,
                        .store = store,
                        .advance = MatrixKernel<Ops>::advance};

}  // namespace

const Kernel* neon_bf16_kernel() {
    return &kKernel;
}

}  // namespace stipple::engine::cpu

#else

namespace stipple::engine::cpu {

const Kernel* neon_bf16_kernel() {
    return nullptr;
}

}  // namespace stipple::engine::cpu

#endif
