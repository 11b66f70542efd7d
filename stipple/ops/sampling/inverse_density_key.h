#pragma once
// The keys of inverse_density_sample, bit for bit the same on CPU and CUDA. Not for users: inverse_density.h is.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "stipple/core/rng.h"
#include "stipple/ops/inverse_density.h"

namespace stipple::ops {

/// Natural logarithm of a positive, normal number, within 4e-16 of the size of the result: libraries differ in the
/// last bit, this does not. x = 2^e f with f in [sqrt(1/2), sqrt(2)), log f = 2 atanh((f - 1) / (f + 1)).
STIPPLE_HD double portable_log(double x) {
    int exponent = 0;
    double f = ::frexp(x, &exponent);
    if (f < 0.70710678118654752440) {
        f = f + f;
        --exponent;
    }
    const double s = (f - 1) / (f + 1), square = multiply_rounded(s, s);  // square < 0.0295
    double series = 1.0 / 21;
    for (int odd = 19; odd >= 3; odd -= 2) series = add_rounded(multiply_rounded(series, square), 1.0 / odd);
    const double rest = multiply_rounded(multiply_rounded(series, square), s);
    const double of_f = multiply_rounded(2, add_rounded(s, rest));
    return add_rounded(multiply_rounded(exponent, 0.69314718055994530942), of_f);
}

/// The key of a point that is not finite: after every other.
inline constexpr uint64_t kNoKey = ~uint64_t{0};

/// -log(u) / r^dimension as bits, which sort as the number does. Infinity when r is 0.
STIPPLE_HD uint64_t inverse_density_key(uint64_t seed, int64_t cloud, int64_t point, float radius_sq, int dimension) {
    constexpr uint64_t kPurpose = 0x49444e53;  // keeps apart from other uses of the seed
    const RandomBlock block =
        Rng(seed, kPurpose << 32 ^ static_cast<uint64_t>(cloud)).block(static_cast<uint64_t>(point));
    const uint64_t bits = uint64_t{block.word[0]} << 20 | block.word[1] >> 12;
    const double u = (static_cast<double>(bits) + 0.5) * 0x1p-52;  // in (0, 1), exact
    const double r_sq = radius_sq, r = ::sqrt(r_sq);
    const double weight = dimension == 1 ? r : dimension == 2 ? r_sq : multiply_rounded(r_sq, r);
    const double key = -portable_log(u) / weight;
    uint64_t result;
#ifdef __CUDA_ARCH__
    result = static_cast<uint64_t>(__double_as_longlong(key));
#else
    std::memcpy(&result, &key, sizeof result);
#endif
    return result;
}

/// The last neighbour that was found; -1 for a query that found nothing, being non-finite.
STIPPLE_HD float last_radius_sq(const float* distances_sq, int64_t columns) {
    for (int64_t k = columns - 1; k >= 0; --k)
        if (distances_sq[k] <= 3.402823466e+38f) return distances_sq[k];
    return -1;
}

STIPPLE_HD uint64_t row_key(uint64_t seed, int64_t cloud, int64_t point, const float* distances_sq, int64_t columns,
                            int dimension) {
    const float radius_sq = last_radius_sq(distances_sq, columns);
    return radius_sq < 0 ? kNoKey : inverse_density_key(seed, cloud, point, radius_sq, dimension);
}

namespace cuda {
/// keys[first_row + i] from row i of the distances.
void inverse_density_keys(const Batch& batch, int64_t first_row, View<const float, 2> distances_sq, uint64_t seed,
                          int dimension, View<uint64_t, 1> keys, Stream stream);
/// Positions of the smallest keys, ascending; `enough` is false when some of them are kNoKey. Waits for the stream.
void smallest_keys(View<const uint64_t, 1> keys, View<int32_t, 1> indices, bool& enough, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
