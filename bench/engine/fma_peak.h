#pragma once

namespace stipple::bench {

/// GFLOP/s of nothing but float32 multiply-adds, on so many threads at once: independent chains that stay in registers,
/// in this processor's widest vectors that the compiler knows. Best of several runs. What no program exceeds.
double fma_peak(int threads);

}  // namespace stipple::bench
