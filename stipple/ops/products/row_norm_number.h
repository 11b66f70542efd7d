#pragma once
// What the CPU and CUDA do with one number of a matrix or of a column of it, bit for bit alike.

#include "stipple/core/numeric.h"

namespace stipple::ops {

STIPPLE_HD float scaled_and_shifted(float x, float scale, float shift) {
    return add_rounded(multiply_rounded(x, scale), shift);
}

/// least: 0 with a rectifier, -infinity without. NaN is not below it.
STIPPLE_HD float not_below(float least, float y) {
    return y < least ? least : y;
}

/// What of a gradient comes through the rectifier.
STIPPLE_HD float passed(float gradient, float x, float scale, float shift, bool has_relu) {
    return !has_relu || scaled_and_shifted(x, scale, shift) > 0 ? gradient : 0.0f;
}

/// The gradient's two means over the rows: of g, and of g times the normalised number, here for x - mean.
struct MeanGradient {
    float constant, slope;
};
STIPPLE_HD MeanGradient mean_gradient(float sum_g, float sum_gx, float inverse, double inverse_count) {
    return {static_cast<float>(static_cast<double>(sum_g) * inverse_count),
            static_cast<float>(static_cast<double>(sum_gx) * inverse_count * static_cast<double>(inverse))};
}

STIPPLE_HD float gradient_of_row(float g, float x, float scale, float mean, MeanGradient all) {
    const float along = multiply_rounded(add_rounded(x, -mean), all.slope);
    return multiply_rounded(scale, add_rounded(add_rounded(g, -all.constant), -along));
}

/// Mean and variance of n numbers from sum and sum of squares of their distances to `origin`, which is near them.
struct MeanAndVariance {
    double mean, variance;
};
STIPPLE_HD MeanAndVariance mean_and_variance(double origin, double sum, double squares, double n) {
    const double from_origin = sum / n, variance = squares / n - from_origin * from_origin;
    return {origin + from_origin, variance < 0 ? 0 : variance};  // below 0 by rounding alone; NaN stays
}

/// NaN for what is not finite.
STIPPLE_HD double finite_or_nan(double x) {
    return x - x + x;
}

}  // namespace stipple::ops
