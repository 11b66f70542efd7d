#include "stipple/bench/multiply_peak.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "stipple/bench/timing.h"
#include "stipple/core/parallel.h"

#if defined(__aarch64__)
#include <sys/auxv.h>

#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stipple::bench {
namespace {

constexpr int64_t kRounds = 100'000;
constexpr int kChains = 24;  // independent sums: more than latency times units of any CPU, as many as fit the registers

/// Multiply-adds of one call, and something that depends on all of them.
struct Loop {
    float (*run)(float seed) = nullptr;
    double multiply_adds = 0;
    const char* instruction = "";
};

#if defined(__aarch64__)

float run_fp32(float seed) {
    float32x4_t sums[kChains];
    for (int i = 0; i < kChains; ++i) sums[i] = vdupq_n_f32(seed + static_cast<float>(i));
    const float32x4_t a = vdupq_n_f32(0.999f), b = vdupq_n_f32(seed);
    for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 24
        for (int i = 0; i < kChains; ++i) sums[i] = vfmaq_f32(sums[i], a, b);
    float total = 0;
    for (const float32x4_t& sum : sums) total += vaddvq_f32(sum);
    return total;
}

__attribute__((target("arch=armv8.2-a+bf16"))) float run_bf16(float seed) {
    float32x4_t sums[kChains];
    for (int i = 0; i < kChains; ++i) sums[i] = vdupq_n_f32(seed + static_cast<float>(i));
    const auto bits = static_cast<uint16_t>(0x3f00 + static_cast<int>(seed));  // about 0.5
    const bfloat16x8_t a = vreinterpretq_bf16_u16(vdupq_n_u16(bits)), b = a;
    for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 24
        for (int i = 0; i < kChains; ++i) sums[i] = vbfmmlaq_f32(sums[i], a, b);
    float total = 0;
    for (const float32x4_t& sum : sums) total += vaddvq_f32(sum);
    return total;
}

__attribute__((target("arch=armv8.2-a+i8mm"))) float run_int8(float seed) {
    int32x4_t sums[kChains];
    for (int i = 0; i < kChains; ++i) sums[i] = vdupq_n_s32(i);
    const int8x16_t a = vdupq_n_s8(static_cast<int8_t>(seed)), b = vdupq_n_s8(3);
    for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 24
        for (int i = 0; i < kChains; ++i) sums[i] = vmmlaq_s32(sums[i], a, b);
    float total = 0;
    for (const int32x4_t& sum : sums) total += static_cast<float>(vaddvq_s32(sum));
    return total;
}

Loop loop_of(Factors factors) {
    constexpr unsigned long kBf16 = 1ul << 14, kI8mm = 1ul << 13;  // of AT_HWCAP2
    const unsigned long has = ::getauxval(AT_HWCAP2);
    switch (factors) {
        case Factors::fp32: return {run_fp32, 4, "fmla"};
        case Factors::bf16: return has & kBf16 ? Loop{run_bf16, 16, "bfmmla"} : Loop{};
        case Factors::int8: return has & kI8mm ? Loop{run_int8, 32, "smmla"} : Loop{};
    }
    return {};
}

#elif defined(__x86_64__)

float run_sse(float seed) {
    __m128 sums[kChains / 2];
    for (int i = 0; i < kChains / 2; ++i) sums[i] = _mm_set1_ps(seed + static_cast<float>(i));
    const __m128 a = _mm_set1_ps(0.999f), b = _mm_set1_ps(seed);
    for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 24
        for (int i = 0; i < kChains / 2; ++i) sums[i] = _mm_add_ps(_mm_mul_ps(sums[i], a), b);
    float total = 0;
    for (const __m128& sum : sums) total += _mm_cvtss_f32(sum);
    return total;
}

__attribute__((target("avx2,fma"))) float run_avx2(float seed) {
    __m256 sums[kChains / 2];  // 16 registers
    for (int i = 0; i < kChains / 2; ++i) sums[i] = _mm256_set1_ps(seed + static_cast<float>(i));
    const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(seed);
    for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 24
        for (int i = 0; i < kChains / 2; ++i) sums[i] = _mm256_fmadd_ps(a, b, sums[i]);
    float total = 0;
    for (const __m256& sum : sums) total += _mm256_cvtss_f32(sum);
    return total;
}

__attribute__((target("avx512f"))) float run_avx512(float seed) {
    __m512 sums[kChains];
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(seed + static_cast<float>(i));
    const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(seed);
    for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 24
        for (int i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(a, b, sums[i]);
    float total = 0;
    for (const __m512& sum : sums) total += _mm512_cvtss_f32(sum);
    return total;
}

__attribute__((target("avx512f,avx512vnni"))) float run_vnni(float seed) {
    __m512i sums[kChains];
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_epi32(i);
    const __m512i a = _mm512_set1_epi8(static_cast<char>(seed)), b = _mm512_set1_epi8(3);
    for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 24
        for (int i = 0; i < kChains; ++i) sums[i] = _mm512_dpbusd_epi32(sums[i], a, b);
    float total = 0;
    for (const __m512i& sum : sums) total += static_cast<float>(_mm_cvtsi128_si32(_mm512_castsi512_si128(sum)));
    return total;
}

__attribute__((target("avx512f,avx512bf16"))) float run_avx512_bf16(float seed) {
    __m512 sums[kChains];
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(seed + static_cast<float>(i));
    const __m512 one = _mm512_set1_ps(1.0f);
    const __m512bh a = _mm512_cvtne2ps_pbh(one, one), b = a;
    for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 24
        for (int i = 0; i < kChains; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], a, b);
    float total = 0;
    for (const __m512& sum : sums) total += _mm512_cvtss_f32(sum);
    return total;
}

Loop loop_of(Factors factors) {
    const bool wide = __builtin_cpu_supports("avx512f");
    switch (factors) {
        case Factors::fp32:
            if (wide) return {run_avx512, 16, "vfmadd zmm"};
            if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
                return {run_avx2, 8.0 / 2, "vfmadd ymm"};
            return {run_sse, 4.0 / 2, "mulps, addps"};
        case Factors::bf16:
            return wide && __builtin_cpu_supports("avx512bf16") ? Loop{run_avx512_bf16, 32, "vdpbf16ps zmm"} : Loop{};
        case Factors::int8:
            return wide && __builtin_cpu_supports("avx512vnni") ? Loop{run_vnni, 64, "vpdpbusd zmm"} : Loop{};
    }
    return {};
}

#else

float run_plain(float seed) {
    float sums[kChains];
    for (int i = 0; i < kChains; ++i) sums[i] = seed + static_cast<float>(i);
    for (int64_t round = 0; round < kRounds; ++round)
        for (float& sum : sums) sum = std::fma(sum, 0.999f, seed);
    float total = 0;
    for (const float sum : sums) total += sum;
    return total;
}

Loop loop_of(Factors factors) {
    return factors == Factors::fp32 ? Loop{run_plain, 1, "fma"} : Loop{};
}

#endif

}  // namespace

MultiplyPeak multiply_peak(Factors factors) {
    const Loop loop = loop_of(factors);
    if (!loop.run) return {};
    const int64_t workers = threads();
    std::vector<float> results(static_cast<size_t>(workers));
    const auto work = [&] {
        parallel_for(workers, 1, [&](int64_t begin, int64_t) {
            results[static_cast<size_t>(begin)] = loop.run(1 + static_cast<float>(begin));
        });
    };
    const double best = measure(work, Device{}, {5, 0.1}).best;
    const double multiply_adds = loop.multiply_adds * kChains * static_cast<double>(kRounds * workers);
    volatile float sink = 0;  // the loops must not be found useless
    for (const float result : results) sink = sink + result;
    return {2 * multiply_adds / best, loop.instruction};
}

}  // namespace stipple::bench
