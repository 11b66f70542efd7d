#pragma once
// What the CPU and CUDA do with one number of a matrix or of a column of it, bit for bit alike.

#include <cmath>

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

/// What norm_columns makes of a column.
struct ColumnNumbers {
    float inverse, scale, shift, running_mean, running_variance;
};
STIPPLE_HD ColumnNumbers column_numbers(float mean, float variance, double count, float gamma, float beta, float offset,
                                        double eps, double momentum, float running_mean, float running_variance) {
    const double m = mean, v = variance, before_mean = running_mean, before_variance = running_variance;
    const double inverse = 1 / ::sqrt(v + eps), scale = gamma * inverse;
    const double unbiased = multiply_rounded(v, count / (count - 1));
    // Products that are rounded apart: a compiler may join them with the sums on one side alone.
    const double shift = multiply_rounded(m, scale), mean_step = multiply_rounded(momentum, m + offset - before_mean),
                 variance_step = multiply_rounded(momentum, unbiased - before_variance);
    return {static_cast<float>(inverse), static_cast<float>(scale), static_cast<float>(beta - shift),
            static_cast<float>(before_mean + mean_step), static_cast<float>(before_variance + variance_step)};
}

/// NaN for what is not finite.
STIPPLE_HD double finite_or_nan(double x) {
    return x - x + x;
}

}  // namespace stipple::ops
