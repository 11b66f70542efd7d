// int8 by smmla: 2 x 8 by 8 x 2, 32 multiply-adds an instruction.

#include "stipple/engine/cpu/chain/kernels.h"

#if defined(__ARM_FEATURE_MATMUL_INT8)

#include <sys/auxv.h>

#include "stipple/engine/cpu/chain/mmla.h"

namespace stipple::engine::cpu {
namespace {

struct Ops {
    using Vector = int8x16_t;
    using Sum = int32x4_t;
    using Number = int32_t;
    static Sum zero() { return vdupq_n_s32(0); }
    static Vector load(const std::byte* from) { return vld1q_s8(reinterpret_cast<const int8_t*>(from)); }
    static Sum load_sums(const Number* from) { return vld1q_s32(from); }
    static Sum multiply_add(Sum sum, Vector w, Vector x) { return vmmlaq_s32(sum, w, x); }
    static Sum maximum(Sum a, Sum b) { return vmaxq_s32(a, b); }
    static Sum pair_maximum(Sum a, Sum b) { return vpmaxq_s32(a, b); }
    static Sum low_halves(Sum a, Sum b) {
        return vreinterpretq_s32_s64(vtrn1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
    }
    static Sum high_halves(Sum a, Sum b) {
        return vreinterpretq_s32_s64(vtrn2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
    }
    static void store(Number* to, Sum sum) { vst1q_s32(to, sum); }

    static constexpr bool kIsScaled = true;
    static float32x4_t scaled(Sum sum, float32x4_t scale) { return vmulq_f32(vcvtq_f32_s32(sum), scale); }
    static void store_pair(const float32x4_t (&v)[4], float per_scale, std::byte* to) {
        int32x4_t steps[4];
        for (int i = 0; i < 4; ++i) steps[i] = vcvtnq_s32_f32(vmulq_n_f32(v[i], per_scale));
        const int32x4_t low = vreinterpretq_s32_s16(vqmovn_high_s32(vqmovn_s32(steps[0]), steps[1]));
        const int32x4_t high = vreinterpretq_s32_s16(vqmovn_high_s32(vqmovn_s32(steps[2]), steps[3]));
        const int8x8_t row0 = vqmovn_s16(vreinterpretq_s16_s32(vuzp1q_s32(low, high)));
        const int8x16_t rows = vqmovn_high_s16(row0, vreinterpretq_s16_s32(vuzp2q_s32(low, high)));
        vst1q_s8(reinterpret_cast<int8_t*>(to), vmaxq_s8(rows, vdupq_n_s8(-127)));
    }
};

// Steps of the scale, not yet at least -127: 4 rows of 2 channels as r0 c0, r0 c1, r1 c0 ...
int16x8_t steps_of(const float* values, float per_scale) {
    const int16x4_t c0 = vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(values), per_scale)));
    const int16x4_t c1 = vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(values + kPanelRows), per_scale)));
    return vcombine_s16(vzip1_s16(c0, c1), vzip2_s16(c0, c1));
}

void store(const float* values, int64_t channels, float per_scale, std::byte* rows) {
    auto* to = reinterpret_cast<int8_t*>(rows);
    for (int64_t c = 0; c < channels; c += 8, to += 8 * kPanelRows)
        for (int64_t r = 0; r < kPanelRows; r += 4) {
            const float* at = values + c * kPanelRows + r;
            // Four rows, and of each the channels 0 to 1, 2 to 3, 4 to 5, 6 to 7: as 16 bits each, interleaved.
            int16x4x4_t pairs;
            for (int i = 0; i < 4; ++i) {
                const int8x8_t both = vqmovn_s16(steps_of(at + 2 * i * kPanelRows, per_scale));
                pairs.val[i] = vreinterpret_s16_s8(vmax_s8(both, vdup_n_s8(-127)));
            }
            vst4_s16(reinterpret_cast<int16_t*>(to + 8 * r), pairs);
        }
}

bool can_run() {
    return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
}

const Kernel kKernel = {.name = "smmla 8x12",
                        .precision = Precision::int8,
                        .factor = Factor::i8,
                        .group = 8,
                        .channels = 8,
                        .few_rows = 2,
                        .can_run = can_run,
                        .product = MatrixKernel<Ops>::product,
                        .few = MatrixKernel<Ops>::few,
                        .maximum = MatrixKernel<Ops>::maximum,
                        .store = store,
                        .advance = MatrixKernel<Ops>::advance};

}  // namespace

const Kernel* neon_i8mm_kernel() {
    return &kKernel;
}

}  // namespace stipple::engine::cpu

#else

namespace stipple::engine::cpu {

const Kernel* neon_i8mm_kernel() {
    return nullptr;
}

}  // namespace stipple::engine::cpu

#endif
