#include "stipple/bench/multiply_peak.h"

#include <cmath>
#include <cstdint>

#include "stipple/bench/timing.h"
#include "stipple/core/parallel.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stipple::bench {
namespace {

constexpr int64_t kRounds = 100'000;
// Independent sums: more than latency times units of any CPU, as many as fit the registers. Every loop over them is
// unrolled, or the compiler would keep them in memory.
constexpr int kChains = 24;

/// Multiply-adds of one call, and something that depends on all of them.
struct Loop {
    float (*run)(float seed) = nullptr;
    double multiply_adds = 0;
    const char* instruction = "";
};

#if defined(__aarch64__)

float run_fp32(float seed) {
    float32x4_t sums[kChains];
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i) sums[i] = vdupq_n_f32(seed + static_cast<float>(i));
    const float32x4_t a = vdupq_n_f32(0.999f), b = vdupq_n_f32(seed);
    for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 24
        for (int i = 0; i < kChains; ++i) sums[i] = vfmaq_f32(sums[i], a, b);
    float total = 0;
#pragma GCC unroll 24
    for (const float32x4_t& sum : sums) total += vaddvq_f32(sum);
    return total;
}

Loop best_loop() {
    return {run_fp32, 4, "fmla"};
}

#elif defined(__x86_64__)

float run_sse(float seed) {
    __m128 sums[kChains / 2];
#pragma GCC unroll 24
    for (int i = 0; i < kChains / 2; ++i) sums[i] = _mm_set1_ps(seed + static_cast<float>(i));
    const __m128 a = _mm_set1_ps(0.999f), b = _mm_set1_ps(seed);
    for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 24
        for (int i = 0; i < kChains / 2; ++i) sums[i] = _mm_add_ps(_mm_mul_ps(sums[i], a), b);
    float total = 0;
#pragma GCC unroll 24
    for (const __m128& sum : sums) total += _mm_cvtss_f32(sum);
    return total;
}

__attribute__((target("avx2,fma"))) float run_avx2(float seed) {
    __m256 sums[kChains / 2];  // 16 registers
#pragma GCC unroll 24
    for (int i = 0; i < kChains / 2; ++i) sums[i] = _mm256_set1_ps(seed + static_cast<float>(i));
    const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(seed);
    for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 24
        for (int i = 0; i < kChains / 2; ++i) sums[i] = _mm256_fmadd_ps(a, b, sums[i]);
    float total = 0;
#pragma GCC unroll 24
    for (const __m256& sum : sums) total += _mm256_cvtss_f32(sum);
    return total;
}

__attribute__((target("avx512f"))) float run_avx512(float seed) {
    __m512 sums[kChains];
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(seed + static_cast<float>(i));
    const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(seed);
    for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 24
        for (int i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(a, b, sums[i]);
    float total = 0;
#pragma GCC unroll 24
    for (const __m512& sum : sums) total += _mm512_cvtss_f32(sum);
    return total;
}

Loop best_loop() {
    if (__builtin_cpu_supports("avx512f")) return {run_avx512, 16, "vfmadd zmm"};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {run_avx2, 8.0 / 2, "vfmadd ymm"};
    return {run_sse, 4.0 / 2, "mulps, addps"};
}

#else

float run_plain(float seed) {
    float sums[kChains];
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i) sums[i] = seed + static_cast<float>(i);
    for (int64_t round = 0; round < kRounds; ++round)
        for (float& sum : sums) sum = std::fma(sum, 0.999f, seed);
    float total = 0;
    for (const float sum : sums) total += sum;
    return total;
}

Loop best_loop() {
    return {run_plain, 1, "fma"};
}

#endif

}  // namespace

MultiplyPeak multiply_peak() {
    const Loop loop = best_loop();
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
