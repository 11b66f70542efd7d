#include "stipple/ops/nearest_pairs.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/search/neighbours_cpu.h"
#include "stipple/ops/search/neighbours_cuda.h"

namespace stipple::ops {

void nearest_pairs(const Clouds& a, const Clouds& b, View<int32_t, 1> b_of_a, View<float, 1> sq_of_a,
                   View<int32_t, 1> a_of_b, View<float, 1> sq_of_b, [[maybe_unused]] Stream stream) {
    require_pair("nearest_pairs", a, b);
    const int64_t n = a.rows.size(0), m = b.rows.size(0);
    const bool forth = b_of_a.size(0) > 0 || sq_of_a.size(0) > 0, back = a_of_b.size(0) > 0 || sq_of_b.size(0) > 0;
    if (forth) {
        require_output("nearest_pairs", "b_of_a", b_of_a, {n}, a.device());
        require_output("nearest_pairs", "sq_of_a", sq_of_a, {n}, a.device());
    }
    if (back) {
        require_output("nearest_pairs", "a_of_b", a_of_b, {m}, a.device());
        require_output("nearest_pairs", "sq_of_b", sq_of_b, {m}, a.device());
    }
    if (!forth && !back) return;
    switch (a.device().type) {
        case DeviceType::cpu: return cpu::nearest_pairs(a, b, b_of_a, sq_of_a, a_of_b, sq_of_b);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::nearest_pairs, a, b, b_of_a, sq_of_a, a_of_b, sq_of_b, stream);
    }
}

}  // namespace stipple::ops
