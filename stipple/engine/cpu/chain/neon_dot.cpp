// int8 by sdot, of aarch64 CPUs without smmla.

#include "stipple/engine/cpu/chain/kernels.h"

#if defined(__ARM_FEATURE_DOTPROD)

#include <sys/auxv.h>

#include <arm_neon.h>

#include "stipple/engine/cpu/chain/broadcast.h"
#include "stipple/engine/cpu/chain/lanes.h"

namespace stipple::engine::cpu {
namespace {

struct Int8 {
    using Sum = int32x4_t;
    using Number = int32_t;
    static constexpr int kLanes = 4;
    static constexpr bool kHasStart = false;
    static Sum zero() { return vdupq_n_s32(0); }
    static Sum load_sums(const Number* from) { return vld1q_s32(from); }
    static void store_sums(Number* to, Sum sum) { vst1q_s32(to, sum); }
    static Sum maximum(Sum a, Sum b) { return vmaxq_s32(a, b); }
    static Sum multiply_add(Sum sum, const std::byte* w, const std::byte* x) {
        const int32x4_t row = vld1q_dup_s32(reinterpret_cast<const int32_t*>(x));
        return vdotq_s32(sum, vld1q_s8(reinterpret_cast<const int8_t*>(w)), vreinterpretq_s8_s32(row));
    }
};

using Quads = BroadcastKernel<Int8, 2, 12>;

bool can_run() {
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}

const Kernel kKernel = {.name = "sdot 8x12",
                        .precision = Precision::int8,
                        .factor = Factor::i8,
                        .group = 4,
                        .channels = Quads::kChannels,
                        .few_rows = Quads::kFew,
                        .can_run = can_run,
                        .product = Quads::product,
                        .few = Quads::few,
                        .maximum = Quads::maximum,
                        .store = store_bytes<0>};

}  // namespace

const Kernel* neon_dot_kernel() {
    return &kKernel;
}

}  // namespace stipple::engine::cpu

#else

namespace stipple::engine::cpu {

const Kernel* neon_dot_kernel() {
    return nullptr;
}

}  // namespace stipple::engine::cpu

#endif
