#pragma once
// What CPU and CUDA compute for one number of bilateral_weights.

#include <cmath>

#include "stipple/ops/bilateral_weights.h"
#include "stipple/ops/grouping/scatter_terms.h"

namespace stipple::ops {

STIPPLE_HD float similarity_of(double distance_sq, float beta) {
    return static_cast<float>(::exp(-beta * distance_sq));
}

/// dL/d(x_j - x_i) in one channel.
STIPPLE_HD float similarity_slope(float beta, float similarity, float dL_dsimilarity, float difference) {
    return static_cast<float>(-2.0 * beta * similarity * dL_dsimilarity * difference);
}

/// The sums of one channel.
struct BilateralSum {
    double weights = 0, values = 0;

    STIPPLE_HD void add(float th, float psi, float value) {
        const double weight = static_cast<double>(th) * psi;  // exact: the denominator is the same on every device
        if (weight == 0) return;                              // a non-finite row under a zero weight does no harm
        weights += weight;
        values += weight * value;
    }
    STIPPLE_HD double denominator(float guard) const { return weights > guard ? weights : guard; }
};

/// dL/d(th psi) of one neighbour in one channel.
STIPPLE_HD double bilateral_slope(float dL_dout, float value, float out, float denominator, float guard) {
    return static_cast<double>(dL_dout) * (static_cast<double>(value) - (denominator > guard ? out : 0.0f)) /
           denominator;
}

/// Entry e = i k + j adds th psi dL_dout[i] / denominator[i] to its row.
struct BilateralRows {
    const float *th, *psi, *dL_dout, *denominator;
    int64_t k, c;
    int64_t per_entry = 1;

    struct Column {
        const float *th, *psi, *dL_dout, *denominator;
        bool any = true;
        STIPPLE_HD double operator()(int64_t l) const {
            const double weight = static_cast<double>(th[l]) * psi[l];
            const double scale = static_cast<double>(dL_dout[l]) / denominator[l];
#ifdef __CUDA_ARCH__
            return __dmul_rn(weight, scale);  // not fused into the sum: the CPU's bits
#else
            return weight * scale;
#endif
        }
    };
    STIPPLE_HD Column columns(int32_t entry, int64_t) const {
        const int64_t i = entry / static_cast<int32_t>(k);
        return {th + entry * c, psi + entry * c, dL_dout + i * c, denominator + i * c};
    }
    void touch(int32_t entry, int64_t first, int64_t count) const {
        cpu::prefetch(th + entry * c + first, count);
        cpu::prefetch(psi + entry * c + first, count);
    }
};

}  // namespace stipple::ops
