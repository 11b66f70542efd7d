// Kernels for any CPU: plain loops that the compiler vectorises as far as it can. A CPU without instructions for bf16
// multiplies the rounded numbers in fp32; int8 is widened to int16, of which every CPU sums pairs.

#include <cstring>

#include "stipple/engine/cpu/chain/kernels.h"
#include "stipple/engine/cpu/chain/lanes.h"

namespace stipple::engine::cpu {
namespace {

constexpr int kChannels = 8, kRows = kPanelRows;

template <class Factor, class Sum, int kGroup>
void multiply(const Factor* weights, const Factor* rows, int64_t groups, Sum (&sums)[kChannels][kRows]) {
    // Half of the channels at a time: 4 x 12 sums fit in the registers of SSE2.
    for (int half = 0; half < kChannels; half += 4) {
        Sum part[4][kRows] = {};
        const Factor* w = weights + half * kGroup;
        const Factor* x = rows;
        for (int64_t g = 0; g < groups; ++g, w += kChannels * kGroup, x += kRows * kGroup)
            for (int c = 0; c < 4; ++c)
                for (int r = 0; r < kRows; ++r)
                    for (int j = 0; j < kGroup; ++j)
                        part[c][r] += static_cast<Sum>(w[c * kGroup + j]) * static_cast<Sum>(x[r * kGroup + j]);
        std::memcpy(sums[half], part, sizeof part);
    }
}

template <class Factor, class Sum, int kGroup>
void product(const std::byte* weights, const std::byte* rows, int64_t groups, void* sums) {
    Sum block[kChannels][kRows];
    multiply<Factor, Sum, kGroup>(reinterpret_cast<const Factor*>(weights), reinterpret_cast<const Factor*>(rows),
                                  groups, block);
    std::memcpy(sums, block, sizeof block);
}

template <class Factor, class Sum, int kGroup>
void maximum(const std::byte* weights, const std::byte* rows, int64_t groups, int64_t panels, int64_t panel_bytes,
             void* largest) {
    Sum* out = static_cast<Sum*>(largest);
    for (int64_t p = 0; p < panels; ++p, rows += panel_bytes) {
        Sum block[kChannels][kRows];
        multiply<Factor, Sum, kGroup>(reinterpret_cast<const Factor*>(weights), reinterpret_cast<const Factor*>(rows),
                                      groups, block);
        for (int c = 0; c < kChannels; ++c)
            for (int r = 0; r < kRows; ++r) out[c] = block[c][r] > out[c] ? block[c][r] : out[c];
    }
}

bool always() {
    return true;
}

const Kernel kFp32 = {.name = "portable 8x12",
                      .precision = Precision::fp32,
                      .factor = Factor::f32,
                      .group = 1,
                      .channels = kChannels,
                      .can_run = always,
                      .product = product<float, float, 1>,
                      .maximum = maximum<float, float, 1>,
                      .store = store_f32};
const Kernel kBf16 = {.name = "portable 8x12, products in fp32",
                      .precision = Precision::bf16,
                      .factor = Factor::f32,
                      .group = 1,
                      .channels = kChannels,
                      .can_run = always,
                      .product = product<float, float, 1>,
                      .maximum = maximum<float, float, 1>,
                      .store = store_rounded};
const Kernel kInt8 = {.name = "portable 8x12",
                      .precision = Precision::int8,
                      .factor = Factor::i16,
                      .group = 2,
                      .channels = kChannels,
                      .can_run = always,
                      .product = product<int16_t, int32_t, 2>,
                      .maximum = maximum<int16_t, int32_t, 2>,
                      .store = store_i16_pairs};

}  // namespace

const Kernel* portable_kernel(Precision precision) {
    switch (precision) {
        case Precision::fp32: return &kFp32;
        case Precision::bf16: return &kBf16;
        case Precision::int8: return &kInt8;
        default: return nullptr;
    }
}

}  // namespace stipple::engine::cpu
