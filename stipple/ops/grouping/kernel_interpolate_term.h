#pragma once
// One weight of kernel_interpolate and its gradient, for CPU and CUDA.

#include <cmath>

#include "stipple/ops/kernel_interpolate.h"

namespace stipple::ops {

struct KernelTerm {
    KernelWeights::Shape shape;
    float width, inverse_width;

    explicit KernelTerm(const KernelWeights& options)
        : shape(options.shape), width(options.width), inverse_width(1 / options.width) {}

    /// max(0, 1 - |d| / width), exactly 0 from |d| = width on.
    STIPPLE_HD float hat(float d) const {
        const float rest = width - ::fabsf(d);
        return (rest > 0 ? rest : 0) * inverse_width;  // 0 for NaN too
    }

    /// T for the offset d of a neighbour from a kernel point.
    STIPPLE_HD float weight(float dx, float dy, float dz) const {
        if (shape == KernelWeights::Shape::trilinear) return hat(dx) * hat(dy) * hat(dz);
        const float x = dx * inverse_width, y = dy * inverse_width, z = dz * inverse_width;
        return ::expf(-0.5f * distance_sq(x, y, z));
    }

    STIPPLE_HD double hat_slope(float d) const { return d == 0 || hat(d) == 0 ? 0.0 : (d > 0 ? -1.0 : 1.0) / width; }

    /// dT/dd.
    STIPPLE_HD void gradient(float dx, float dy, float dz, double out[3]) const {
        if (shape == KernelWeights::Shape::trilinear) {
            const double x = hat(dx), y = hat(dy), z = hat(dz);
            out[0] = hat_slope(dx) * y * z;
            out[1] = x * hat_slope(dy) * z;
            out[2] = x * y * hat_slope(dz);
            return;
        }
        const double scale = -static_cast<double>(weight(dx, dy, dz)) / (static_cast<double>(width) * width);
        out[0] = scale * dx;
        out[1] = scale * dy;
        out[2] = scale * dz;
    }
};

/// What all neighbours of a query share at one kernel point.
struct KernelPoint {
    double inverse = 0;  // 1 / N, 0 where N is 0
    double mean = 0;     // what normalisation by the sum takes off every gradient: sum of dL_dw w

    /// From the sums over the neighbours of T, of [T != 0] and of dL_dw T.
    STIPPLE_HD KernelPoint(KernelWeights::Normalise normalise, double sum, double count, double gradient_sum) {
        const double n = normalise == KernelWeights::Normalise::sum     ? sum
                         : normalise == KernelWeights::Normalise::count ? count
                                                                        : 1.0;
        inverse = n > 0 ? 1 / n : 0;
        mean = normalise == KernelWeights::Normalise::sum ? gradient_sum * inverse : 0;
    }
    /// dL/dT.
    STIPPLE_HD double backward(float dL_dweight) const { return (dL_dweight - mean) * inverse; }
};

constexpr int64_t kMostKernelPoints = 1024;
constexpr int64_t kQueriesPerSum = 64;  // of the kernel's gradient: partial sums, then their sum in order

}  // namespace stipple::ops
