// AVX2 with FMA: fp32, bf16 rounded and multiplied in fp32, int8 widened to int16, of which vpmaddwd sums pairs.

#include "stipple/engine/cpu/chain/kernels.h"

#if defined(__AVX2__) && defined(__FMA__)

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

struct Fp32 {
    using Sum = __m256;
    using Number = float;
    static constexpr int kLanes = 8;
    static constexpr bool kHasStart = false;
    static Sum zero() { return _mm256_setzero_ps(); }
    static Sum load_sums(const Number* from) { return _mm256_loadu_ps(from); }
    static void store_sums(Number* to, Sum sum) { _mm256_storeu_ps(to, sum); }
    static Sum maximum(Sum a, Sum b) { return _mm256_max_ps(b, a); }
    static Sum multiply_add(Sum sum, const std::byte* w, const std::byte* x) {
        return _mm256_fmadd_ps(_mm256_loadu_ps(reinterpret_cast<const float*>(w)),
                               _mm256_broadcast_ss(reinterpret_cast<const float*>(x)), sum);
    }
};

struct Int8 {
    using Sum = __m256i;
    using Number = int32_t;
    static constexpr int kLanes = 8;
    static constexpr bool kHasStart = false;
    static Sum zero() { return _mm256_setzero_si256(); }
    static Sum load_sums(const Number* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
    static void store_sums(Number* to, Sum sum) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sum); }
    static Sum maximum(Sum a, Sum b) { return _mm256_max_epi32(a, b); }
    static Sum multiply_add(Sum sum, const std::byte* w, const std::byte* x) {
        const __m256i weights = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w));
        return _mm256_add_epi32(sum, _mm256_madd_epi16(weights, _mm256_set1_epi32(word_at(x))));
    }
};

using Floats = BroadcastKernel<Fp32, 2, 6>;
using Integers = BroadcastKernel<Int8, 2, 6>;

bool can_run() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const Kernel kFp32 = {.name = "avx2 16x6",
                      .precision = Precision::fp32,
                      .factor = Factor::f32,
                      .group = 1,
                      .channels = Floats::kChannels,
                      .few_rows = Floats::kFew,
                      .can_run = can_run,
                      .product = Floats::product,
                      .few = Floats::few,
                      .maximum = Floats::maximum,
                      .store = store_f32,
                      .rows = Floats::rows,
                      .lines = Floats::lines};
const Kernel kBf16 = {.name = "avx2 16x6, products in fp32",
                      .precision = Precision::bf16,
                      .factor = Factor::f32,
                      .group = 1,
                      .channels = Floats::kChannels,
                      .few_rows = Floats::kFew,
                      .can_run = can_run,
                      .product = Floats::product,
                      .few = Floats::few,
                      .maximum = Floats::maximum,
                      .store = store_rounded,
                      .rows = Floats::rows,
                      .lines = Floats::lines};
const Kernel kInt8 = {.name = "avx2 16x6",
                      .precision = Precision::int8,
                      .factor = Factor::i16,
                      .group = 2,
                      .channels = Integers::kChannels,
                      .few_rows = Integers::kFew,
                      .can_run = can_run,
                      .product = Integers::product,
                      .few = Integers::few,
                      .maximum = Integers::maximum,
                      .store = store_i16_pairs};

}  // namespace

const Kernel* avx2_kernel(Precision precision) {
    switch (precision) {
        case Precision::fp32: return &kFp32;
        case Precision::bf16: return &kBf16;
        case Precision::int8: return &kInt8;
        default: return nullptr;
    }
}

}  // namespace stipple::engine::cpu

#else

namespace stipple::engine::cpu {

const Kernel* avx2_kernel(Precision) {
    return nullptr;
}

}  // namespace stipple::engine::cpu

#endif
