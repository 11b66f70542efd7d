#pragma once
// Arithmetic that CPU and CUDA must agree on bit for bit.

#ifdef __CUDACC__
#define STIPPLE_HD __host__ __device__ inline
#else
#define STIPPLE_HD inline
#endif

namespace stipple {

/// A sum and a product that no compiler fuses into one rounding.
STIPPLE_HD float add_rounded(float a, float b) {
#ifdef __CUDA_ARCH__
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}
STIPPLE_HD float multiply_rounded(float a, float b) {
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}
STIPPLE_HD double add_rounded(double a, double b) {
#ifdef __CUDA_ARCH__
    return __dadd_rn(a, b);
#else
    return a + b;
#endif
}
STIPPLE_HD double multiply_rounded(double a, double b) {
#ifdef __CUDA_ARCH__
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

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
