// bf16 by vdpbf16ps: sums of pairs in float32.

#include "stipple/engine/cpu/chain/kernels.h"

#if defined(__AVX512BF16__)

#include <immintrin.h>

#include "stipple/engine/cpu/chain/broadcast.h"
#include "stipple/engine/cpu/chain/lanes.h"

namespace stipple::engine::cpu {
namespace {

int32_t word_at(const std::byte* x) {
    int32_t word;
    std::memcpy(&word, x, sizeof word);
    return word;
}

struct Bf16 {
    using Sum = __m512;
    using Number = float;
    static constexpr int kLanes = 16;
    static constexpr bool kHasStart = false;
    static Sum zero() { return _mm512_setzero_ps(); }
    static Sum load_sums(const Number* from) { return _mm512_loadu_ps(from); }
    static void store_sums(Number* to, Sum sum) { _mm512_storeu_ps(to, sum); }
    static Sum maximum(Sum a, Sum b) { return _mm512_max_ps(b, a); }
    static Sum multiply_add(Sum sum, const std::byte* w, const std::byte* x) {
        const __m512i weights = _mm512_loadu_si512(w), row = _mm512_set1_epi32(word_at(x));
        return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(weights), reinterpret_cast<__m512bh>(row));
    }
};

using Pairs = BroadcastKernel<Bf16, 2, 12>;

bool can_run() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16");
}

const Kernel kKernel = {.name = "vdpbf16ps 32x12",
                        .precision = Precision::bf16,
                        .factor = Factor::bf16,
                        .group = 2,
                        .channels = Pairs::kChannels,
                        .few_rows = Pairs::kFew,
                        .can_run = can_run,
                        .product = Pairs::product,
                        .few = Pairs::few,
                        .maximum = Pairs::maximum,
                        .store = store_bf16_pairs};

}  // namespace

const Kernel* avx512_bf16_kernel() {
    return &kKernel;
}

}  // namespace stipple::engine::cpu

#else

namespace stipple::engine::cpu {

const Kernel* avx512_bf16_kernel() {
    return nullptr;
}

}  // namespace stipple::engine::cpu

#endif
