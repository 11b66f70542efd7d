// int8 by AVX-512's vpdpbusd, which takes rows as unsigned bytes: see Factor::u8.

#include "stipple/engine/cpu/chain/kernels.h"

#if defined(__AVX512VNNI__)

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

struct Int8 {
    using Sum = __m512i;
    using Number = int32_t;
    static constexpr int kLanes = 16;
    static constexpr bool kHasStart = true;
    static Sum zero() { return _mm512_setzero_si512(); }
    static Sum load_sums(const Number* from) { return _mm512_loadu_si512(from); }
    static void store_sums(Number* to, Sum sum) { _mm512_storeu_si512(to, sum); }
    static Sum maximum(Sum a, Sum b) { return _mm512_max_epi32(a, b); }
    static Sum multiply_add(Sum sum, const std::byte* w, const std::byte* x) {
        return _mm512_dpbusd_epi32(sum, _mm512_set1_epi32(word_at(x)), _mm512_loadu_si512(w));
    }
};

using Quads = BroadcastKernel<Int8, 2, 12>;

bool can_run() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni");
}

const Kernel kKernel = {.name = "avx512 vnni 32x12",
                        .precision = Precision::int8,
                        .factor = Factor::u8,
                        .group = 4,
                        .channels = Quads::kChannels,
                        .few_rows = Quads::kFew,
                        .can_run = can_run,
                        .product = Quads::product,
                        .few = Quads::few,
                        .maximum = Quads::maximum,
                        .store = store_bytes<128>};

}  // namespace

const Kernel* avx512_vnni_kernel() {
    return &kKernel;
}

}  // namespace stipple::engine::cpu

#else

namespace stipple::engine::cpu {

const Kernel* avx512_vnni_kernel() {
    return nullptr;
}

}  // namespace stipple::engine::cpu

#endif
