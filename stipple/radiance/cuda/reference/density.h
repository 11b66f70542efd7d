#pragma once
// Densities and opacities of samples, and the way back to the nodes.

#include "stipple/radiance/cuda/reference/samples.h"
#include "stipple/radiance/march/opacity.h"
#include "stipple/radiance/train/constants.h"

namespace stipple::radiance::reference {

/// Sums that many threads add to: floats, or in deterministic training integers (kGradientOne), whose sums do not
/// depend on their order.
struct Sums {
    float* plain = nullptr;
    int64_t* fixed = nullptr;  // not null: these
};

STIPPLE_HD void add_to(const Sums& sums, int64_t i, float value) {
#ifdef __CUDA_ARCH__
    if (sums.fixed) {
        atomicAdd(reinterpret_cast<unsigned long long*>(sums.fixed) + i,
                  static_cast<unsigned long long>(__float2ll_rn(value * kGradientOne)));
    } else {
        atomicAdd(sums.plain + i, value);
    }
#else
    if (sums.fixed) {
        sums.fixed[i] += std::llrint(value * kGradientOne);
    } else {
        sums.plain[i] += value;
    }
#endif
}

/// Deterministic training: sums as the numbers that everything else reads.
struct FromFixed {
    const int64_t* fixed;
    float* to;

    STIPPLE_HD void operator()(int64_t i) const { to[i] = static_cast<float>(fixed[i]) / kGradientOne; }
};

struct TrilinearDensity {
    GridView grid;
    const float* density;  // [nodes]
    const Vec3f* position;
    float* raw;

    STIPPLE_HD void operator()(int64_t i) const {
        const Cell cell = cell_of(grid, to_nodes(grid, position[i]));
        float sum = 0;
        for (int k = 0; k < 8; ++k) sum += cell.weight(k) * density[cell.node(k)];
        raw[i] = sum;
    }
};

struct TrilinearDensityBack {
    GridView grid;
    const Vec3f* position;
    const float* to_raw;
    Sums gradient;  // [nodes]

    STIPPLE_HD void operator()(int64_t i) const {
        if (to_raw[i] == 0) return;
        const Cell cell = cell_of(grid, to_nodes(grid, position[i]));
        for (int k = 0; k < 8; ++k) add_to(gradient, cell.node(k), cell.weight(k) * to_raw[i]);
    }
};

struct OpacityOfDensity {
    const float* raw;
    float shift, length;
    float* alpha;

    STIPPLE_HD void operator()(int64_t i) const { alpha[i] = opacity(raw[i] + shift, length); }
};

struct OpacityBack {
    const float *raw, *alpha, *to_alpha;
    float shift, length;
    float* to_raw;

    STIPPLE_HD void operator()(int64_t i) const {
        to_raw[i] = to_alpha[i] * opacity_slope(raw[i] + shift, length, alpha[i]);
    }
};

}  // namespace stipple::radiance::reference
