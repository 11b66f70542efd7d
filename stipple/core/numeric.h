#pragma once
// Arithmetic that CPU and CUDA must agree on bit for bit.

#ifdef __CUDACC__
#define STIPPLE_HD __host__ __device__ inline
#else
#define STIPPLE_HD inline
#endif

namespace stipple {

/// Squared distance (dx*dx + dy*dy) + dz*dz with every product and sum rounded: no contraction into fused
/// multiply-adds. Paths that decide an index or a branch use this, on the CPU (the whole library is compiled with
/// -ffp-contract=off) and on CUDA (nvcc contracts by default, hence the intrinsics).
STIPPLE_HD float distance_sq(float dx, float dy, float dz) {
#ifdef __CUDA_ARCH__
    return __fadd_rn(__fadd_rn(__fmul_rn(dx, dx), __fmul_rn(dy, dy)), __fmul_rn(dz, dz));
#else
    return (dx * dx + dy * dy) + dz * dz;
#endif
}

STIPPLE_HD float distance_sq(const float* a, const float* b) {
    return distance_sq(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

}  // namespace stipple
