#include "stipple/engine/cpu/chain/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace stipple::engine::cpu {

int64_t bytes_of(Factor factor) {
    switch (factor) {
        case Factor::f32: return 4;
        case Factor::bf16:
        case Factor::i16: return 2;
        case Factor::i8:
        case Factor::u8: return 1;
    }
    return 4;
}

std::vector<const Kernel*> kernels_of(Precision precision) {
    std::vector<const Kernel*> all;
    if (precision == Precision::bf16) all = {neon_bf16_kernel(), avx512_bf16_kernel()};
    if (precision == Precision::int8)
        all = {neon_i8mm_kernel(), neon_dot_kernel(), avx512_vnni_kernel(), avx_vnni_kernel()};
    all.insert(all.end(),
               {neon_kernel(precision), avx512_kernel(precision), avx2_kernel(precision), portable_kernel(precision)});
    std::erase_if(all, [](const Kernel* kernel) { return kernel == nullptr || !kernel->can_run(); });
    return all;
}

float round_to_bf16(float x) {
    if (std::isnan(x)) return x;
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

float round_to_int8(float x, float per_scale) {
    return std::clamp(std::nearbyint(x * per_scale), -127.0f, 127.0f);
}

}  // namespace stipple::engine::cpu
