// AVX-512: fp32, and bf16 rounded and multiplied in fp32.

#include "stipple/engine/cpu/chain/kernels.h"

#if defined(__AVX512F__)

#include <immintrin.h>

#include "stipple/engine/cpu/chain/broadcast.h"
#include "stipple/engine/cpu/chain/lanes.h"

namespace stipple::engine::cpu {
namespace {

struct Fp32 {
    using Sum = __m512;
    using Number = float;
    static constexpr int kLanes = 16;
    static constexpr bool kHasStart = false;
    static Sum zero() { return _mm512_setzero_ps(); }
    static Sum load_sums(const Number* from) { return _mm512_loadu_ps(from); }
    static void store_sums(Number* to, Sum sum) { _mm512_storeu_ps(to, sum); }
    static Sum maximum(Sum a, Sum b) { return _mm512_max_ps(b, a); }
    static Sum multiply_add(Sum sum, const std::byte* w, const std::byte* x) {
        return _mm512_fmadd_ps(_mm512_loadu_ps(w), _mm512_set1_ps(*reinterpret_cast<const float*>(x)), sum);
    }
};

using Floats = BroadcastKernel<Fp32, 2, 12>;

bool can_run() {
    return __builtin_cpu_supports("avx512f");
}

const Kernel kFp32 = {.name = "avx512 32x12",
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
const Kernel kBf16 = {.name = "avx512 32x12, products in fp32",
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

}  // namespace

const Kernel* avx512_kernel(Precision precision) {
    return precision == Precision::fp32 ? &kFp32 : precision == Precision::bf16 ? &kBf16 : nullptr;
}

}  // namespace stipple::engine::cpu

#else

namespace stipple::engine::cpu {

const Kernel* avx512_kernel(Precision) {
    return nullptr;
}

}  // namespace stipple::engine::cpu

#endif
