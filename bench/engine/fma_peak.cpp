// Compiled for this very processor and with contraction (CMakeLists.txt): a * b + c is one instruction.
#include "fma_peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace stipple::bench {
namespace {

// The tile of a matrix product, kRows vectors times kColumns numbers, whose sums stay in registers: more chains than a
// latency of 4 cycles times 4 units (2 on x86) needs. The factors come from the first-level cache. On aarch64 the same
// without any loads is tried too: a Neoverse-V1 runs it at half of its rate or at all of it, as it likes, and all of it
// is 7 % more than with loads.
#if defined(__AVX512F__)
constexpr int kBytes = 64, kRows = 2, kColumns = 12;
#elif defined(__AVX__)
constexpr int kBytes = 32, kRows = 2, kColumns = 6;
#else
constexpr int kBytes = 16, kRows = 2, kColumns = 12;
#endif
using Vector = float __attribute__((vector_size(kBytes)));

constexpr int kDepth = 256;
constexpr int64_t kSteps = 400;  // less than a millisecond: short enough to find a moment without other work
constexpr double kFlop = 2.0 * kRows * kColumns * (kBytes / 4) * kDepth * kSteps;

#if defined(__aarch64__)
// By hand: the compiler would not keep these sums in registers.
template <int Lane>
void multiply(float32x4_t* sum, const float32x4_t* a, float32x4_t b) {
    sum[0] = vfmaq_laneq_f32(sum[0], a[0], b, Lane);
    sum[1] = vfmaq_laneq_f32(sum[1], a[1], b, Lane);
}

__attribute__((noinline)) float tile(const float* a, const float* b) {
    float32x4_t sum[kColumns][kRows];
    for (auto& column : sum) column[0] = column[1] = vdupq_n_f32(0);
#pragma GCC unroll 4
    for (int k = 0; k < kDepth; ++k, a += 4 * kRows, b += kColumns) {
        const float32x4_t x[kRows] = {vld1q_f32(a), vld1q_f32(a + 4)};
        const float32x4_t y[3] = {vld1q_f32(b), vld1q_f32(b + 4), vld1q_f32(b + 8)};
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j) {
            multiply<0>(sum[4 * j], x, y[j]);
            multiply<1>(sum[4 * j + 1], x, y[j]);
            multiply<2>(sum[4 * j + 2], x, y[j]);
            multiply<3>(sum[4 * j + 3], x, y[j]);
        }
    }
    float32x4_t all = vdupq_n_f32(0);
    for (auto& column : sum) all = vaddq_f32(all, vaddq_f32(column[0], column[1]));
    return vaddvq_f32(all);
}

__attribute__((noinline)) float tiles_without_loads(const float* a, const float* b) {
    float32x4_t sum[kColumns * kRows];
#pragma GCC unroll 24
    for (float32x4_t& s : sum) s = vdupq_n_f32(0);
    const float32x4_t x = vld1q_f32(a), y = vld1q_f32(b);
    for (int64_t k = 0; k < kDepth * kSteps; ++k)
#pragma GCC unroll 24
        for (float32x4_t& s : sum) s = vfmaq_f32(s, x, y);
    float32x4_t all = vdupq_n_f32(0);
#pragma GCC unroll 24
    for (const float32x4_t& s : sum) all = vaddq_f32(all, s);
    return vaddvq_f32(all);
}
#else

__attribute__((noinline)) float tile(const float* a, const float* b) {
    Vector sum[kColumns][kRows] = {};
    for (int k = 0; k < kDepth; ++k, a += kBytes / 4 * kRows, b += kColumns) {
        Vector x[kRows];
        __builtin_memcpy(x, a, sizeof x);
#pragma GCC unroll 12
        for (int j = 0; j < kColumns; ++j)
#pragma GCC unroll 2
            for (int i = 0; i < kRows; ++i) sum[j][i] += x[i] * b[j];
    }
    Vector all = {};
    for (auto& column : sum)
        for (const Vector& x : column) all += x;
    return all[0];
}

float tiles_without_loads(const float* a, const float* b) {
    float sum = 0;
    for (int64_t step = 0; step < kSteps; ++step) sum += tile(a, b);
    return sum;
}
#endif

}  // namespace

double fma_peak(int threads) {
    using Clock = std::chrono::steady_clock;
    std::vector<float> a(kRows * kDepth * kBytes / 4), b(kColumns * kDepth);
    for (size_t i = 0; i < a.size(); ++i) a[i] = 1e-3f * static_cast<float>(i % 7) - 3e-3f;
    for (size_t i = 0; i < b.size(); ++i) b[i] = 1e-3f * static_cast<float>(i % 5) - 2e-3f;
    double best = 0;
    for (int run = 0; run < 100; ++run) {
        std::atomic<int> ready{0};
        std::atomic<float> sink{0};
        std::vector<double> seconds(static_cast<size_t>(threads));
        std::vector<std::thread> pool;
        const auto work = [&](size_t i) {
            ready.fetch_add(1);
            while (ready.load() < threads) {
            }
            const auto begin = Clock::now();
            if (run % 2 == 0)
                for (int64_t step = 0; step < kSteps; ++step) sink.store(tile(a.data(), b.data()));
            else
                sink.store(tiles_without_loads(a.data(), b.data()));
            seconds[i] = std::chrono::duration<double>(Clock::now() - begin).count();
        };
        for (int i = 0; i < threads; ++i) pool.emplace_back(work, static_cast<size_t>(i));
        for (std::thread& thread : pool) thread.join();
        best = std::max(best, threads * kFlop / *std::max_element(seconds.begin(), seconds.end()) * 1e-9);
    }
    return best;
}

}  // namespace stipple::bench
