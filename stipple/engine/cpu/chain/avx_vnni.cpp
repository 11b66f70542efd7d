// int8 by AVX-VNNI's vpdpbusd, of CPUs without AVX-512: see Factor::u8.

#include "stipple/engine/cpu/chain/kernels.h"

#if defined(__AVXVNNI__)

#include <cpuid.h>
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
    using Sum = __m256i;
    using Number = int32_t;
    static constexpr int kLanes = 8;
    static constexpr bool kHasStart = true;
    static Sum zero() { return _mm256_setzero_si256(); }
    static Sum load_sums(const Number* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
    static void store_sums(Number* to, Sum sum) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sum); }
    static Sum maximum(Sum a, Sum b) { return _mm256_max_epi32(a, b); }
    static Sum multiply_add(Sum sum, const std::byte* w, const std::byte* x) {
        const __m256i weights = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w));
        return _mm256_dpbusd_avx_epi32(sum, _mm256_set1_epi32(word_at(x)), weights);
    }
};

using Quads = BroadcastKernel<Int8, 2, 6>;

bool can_run() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}

const Kernel kKernel = {.name = "avx vnni 16x6",
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

const Kernel* avx_vnni_kernel() {
    return &kKernel;
}

}  // namespace stipple::engine::cpu

#else

namespace stipple::engine::cpu {

const Kernel* avx_vnni_kernel() {
    return nullptr;
}

}  // namespace stipple::engine::cpu

#endif
