// fp32 by NEON, which every aarch64 CPU has: 8 channels x 12 rows in 24 registers, 24 multiply-adds for 5 loads. Where
// there are no instructions for bf16, its rounded numbers go the same way.

#include "stipple/engine/cpu/chain/kernels.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "stipple/engine/cpu/chain/lanes.h"

namespace stipple::engine::cpu {
namespace {

using network::ActivationKind;

constexpr int kChannels = 8, kRows = kPanelRows;

// The lane of an intrinsic must be a constant.
#define STIPPLE_FMA_LANES(sums, at, x, y)                  \
    sums[at] = vfmaq_laneq_f32(sums[at], x, y, 0);         \
    sums[at + 1] = vfmaq_laneq_f32(sums[at + 1], x, y, 1); \
    sums[at + 2] = vfmaq_laneq_f32(sums[at + 2], x, y, 2); \
    sums[at + 3] = vfmaq_laneq_f32(sums[at + 3], x, y, 3)

// Lanes are rows: the sums of a channel lie together, as the next layer reads them.
[[gnu::always_inline]] inline void multiply(const float* w, const float* x, int64_t groups,
                                            float32x4_t (&s0)[kChannels], float32x4_t (&s1)[kChannels],
                                            float32x4_t (&s2)[kChannels]) {
#pragma GCC unroll 8
    for (int c = 0; c < kChannels; ++c) s0[c] = s1[c] = s2[c] = vdupq_n_f32(0);
#pragma GCC unroll 4
    for (int64_t g = 0; g < groups; ++g, w += kChannels, x += kRows) {
        const float32x4_t w0 = vld1q_f32(w), w1 = vld1q_f32(w + 4);
        const float32x4_t x0 = vld1q_f32(x), x1 = vld1q_f32(x + 4), x2 = vld1q_f32(x + 8);
        STIPPLE_FMA_LANES(s0, 0, x0, w0);
        STIPPLE_FMA_LANES(s1, 0, x1, w0);
        STIPPLE_FMA_LANES(s2, 0, x2, w0);
        STIPPLE_FMA_LANES(s0, 4, x0, w1);
        STIPPLE_FMA_LANES(s1, 4, x1, w1);
        STIPPLE_FMA_LANES(s2, 4, x2, w1);
    }
}

void product(const std::byte* weights, const std::byte* rows, int64_t groups, void* sums) {
    float32x4_t s0[kChannels], s1[kChannels], s2[kChannels];
    multiply(reinterpret_cast<const float*>(weights), reinterpret_cast<const float*>(rows), groups, s0, s1, s2);
    auto* out = static_cast<float*>(sums);
#pragma GCC unroll 8
    for (int c = 0; c < kChannels; ++c) {
        vst1q_f32(out + c * kRows, s0[c]);
        vst1q_f32(out + c * kRows + 4, s1[c]);
        vst1q_f32(out + c * kRows + 8, s2[c]);
    }
}

template <ActivationKind kKind>
float32x4_t finished(float32x4_t sum, float bias, float slope) {
    const float32x4_t x = vaddq_f32(sum, vdupq_n_f32(bias)), zero = vdupq_n_f32(0);
    if constexpr (kKind == ActivationKind::relu) return vmaxnmq_f32(x, zero);
    if constexpr (kKind == ActivationKind::leaky_relu) return vbslq_f32(vcgtq_f32(x, zero), x, vmulq_n_f32(x, slope));
    return x;
}

template <ActivationKind kKind>
void advance_with(const std::byte* weights, const std::byte* rows, int64_t groups, const Finish& finish, float* out) {
    float32x4_t s0[kChannels], s1[kChannels], s2[kChannels];
    multiply(reinterpret_cast<const float*>(weights), reinterpret_cast<const float*>(rows), groups, s0, s1, s2);
#pragma GCC unroll 8
    for (int c = 0; c < kChannels; ++c) {
        vst1q_f32(out + c * kRows, finished<kKind>(s0[c], finish.bias[c], finish.activation.slope));
        vst1q_f32(out + c * kRows + 4, finished<kKind>(s1[c], finish.bias[c], finish.activation.slope));
        vst1q_f32(out + c * kRows + 8, finished<kKind>(s2[c], finish.bias[c], finish.activation.slope));
    }
}

void advance(const std::byte* weights, const std::byte* rows, int64_t groups, const Finish& finish, float,
             std::byte* out) {
    auto* to = reinterpret_cast<float*>(out);
    switch (finish.activation.kind) {
        case ActivationKind::none: return advance_with<ActivationKind::none>(weights, rows, groups, finish, to);
        case ActivationKind::relu: return advance_with<ActivationKind::relu>(weights, rows, groups, finish, to);
        default: return advance_with<ActivationKind::leaky_relu>(weights, rows, groups, finish, to);
    }
}

// Lanes are channels: the maximum over rows is one of registers, and the sums never reach memory.
void maximum(const std::byte* weights, const std::byte* rows, int64_t groups, int64_t panels, int64_t panel_bytes,
             void* largest) {
    auto* out = static_cast<float*>(largest);
    float32x4_t most0 = vld1q_f32(out), most1 = vld1q_f32(out + 4);
    for (int64_t p = 0; p < panels; ++p, rows += panel_bytes) {
        const auto* w = reinterpret_cast<const float*>(weights);
        const auto* x = reinterpret_cast<const float*>(rows);
        float32x4_t s0[kRows], s1[kRows];
#pragma GCC unroll 12
        for (int r = 0; r < kRows; ++r) s0[r] = s1[r] = vdupq_n_f32(0);
#pragma GCC unroll 4
        for (int64_t g = 0; g < groups; ++g, w += kChannels, x += kRows) {
            const float32x4_t w0 = vld1q_f32(w), w1 = vld1q_f32(w + 4);
            const float32x4_t x0 = vld1q_f32(x), x1 = vld1q_f32(x + 4), x2 = vld1q_f32(x + 8);
            STIPPLE_FMA_LANES(s0, 0, w0, x0);
            STIPPLE_FMA_LANES(s1, 0, w1, x0);
            STIPPLE_FMA_LANES(s0, 4, w0, x1);
            STIPPLE_FMA_LANES(s1, 4, w1, x1);
            STIPPLE_FMA_LANES(s0, 8, w0, x2);
            STIPPLE_FMA_LANES(s1, 8, w1, x2);
        }
#pragma GCC unroll 12
        for (int r = 0; r < kRows; ++r) {
            most0 = vmaxnmq_f32(most0, s0[r]);
            most1 = vmaxnmq_f32(most1, s1[r]);
        }
    }
    vst1q_f32(out, most0);
    vst1q_f32(out + 4, most1);
}

// One to four rows: bound by reading the weights.
void few(const std::byte* weights, const std::byte* rows, int64_t groups, void* sums) {
    const auto* w = reinterpret_cast<const float*>(weights);
    const auto* x = reinterpret_cast<const float*>(rows);
    float32x4_t s[kChannels];
#pragma GCC unroll 8
    for (float32x4_t& sum : s) sum = vdupq_n_f32(0);
    for (int64_t g = 0; g < groups; ++g, w += kChannels, x += kRows) {
        const float32x4_t w0 = vld1q_f32(w), w1 = vld1q_f32(w + 4), x0 = vld1q_f32(x);
        STIPPLE_FMA_LANES(s, 0, x0, w0);
        STIPPLE_FMA_LANES(s, 4, x0, w1);
    }
    auto* out = static_cast<float*>(sums);
#pragma GCC unroll 8
    for (int c = 0; c < kChannels; ++c) vst1q_f32(out + c * kRows, s[c]);
}

#undef STIPPLE_FMA_LANES

bool always() {
    return true;
}

const Kernel kFp32 = {.name = "neon 8x12",
                      .precision = Precision::fp32,
                      .factor = Factor::f32,
                      .group = 1,
                      .channels = kChannels,
                      .few_rows = 4,
                      .can_run = always,
                      .product = product,
                      .few = few,
                      .maximum = maximum,
                      .store = store_f32,
                      .advance = advance};
const Kernel kBf16 = {.name = "neon 8x12, products in fp32",
                      .precision = Precision::bf16,
                      .factor = Factor::f32,
                      .group = 1,
                      .channels = kChannels,
                      .few_rows = 4,
                      .can_run = always,
                      .product = product,
                      .few = few,
                      .maximum = maximum,
                      .store = store_rounded};

}  // namespace

const Kernel* neon_kernel(Precision precision) {
    return precision == Precision::fp32 ? &kFp32 : precision == Precision::bf16 ? &kBf16 : nullptr;
}

}  // namespace stipple::engine::cpu

#else

namespace stipple::engine::cpu {

const Kernel* neon_kernel(Precision) {
    return nullptr;
}

}  // namespace stipple::engine::cpu

#endif
