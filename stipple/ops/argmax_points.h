#pragma once

#include <cmath>

#include "stipple/core/rng.h"
#include "stipple/ops/clouds.h"

namespace stipple::ops {

/// Gumbel noise on scores: the winner is then a random point, point i with probability softmax(score / scale)_i.
struct GumbelNoise {
    float scale = 0;  // >= 0; 0: none
    uint64_t seed = 0;
};

/// For every channel of every cloud the point with the largest number: the hard choice of Gumbel subset sampling
/// [Yang et al. 2019], and the points that win a PointNet's max.
///
/// scores   [n, c], any batch, CPU or CUDA
/// winners  [clouds, c] int32, positions in the cloud
/// noise    scale * g is added to every score, g = -ln(-ln u) of seed, cloud, point and channel alone
///
/// Ties go to the lowest index. A NaN never wins; a channel of NaN alone, and an empty cloud, have -1. Without noise
/// CPU and CUDA agree exactly; with it up to the last bit of two logarithms, which decides nothing but near ties.
/// Throws Error{bad_argument} for wrong shapes, mixed devices, a scale that is negative or not finite. O(n c) time,
/// bound by memory; no scratch.
void argmax_points(const Clouds& scores, View<int32_t, 2> winners, const GumbelNoise& noise = {}, Stream stream = {});

/// g for channel c of point i of a cloud. u is never 0 or 1.
STIPPLE_HD float gumbel_noise(uint64_t seed, int64_t cloud, int64_t i, int64_t c, int64_t channels) {
    constexpr uint64_t kPurpose = 0x47554D42;  // keeps apart from other uses of the seed
    const uint64_t place = static_cast<uint64_t>(i) * static_cast<uint64_t>(channels) + static_cast<uint64_t>(c);
    const uint32_t bits = Rng(seed, kPurpose << 32 ^ static_cast<uint64_t>(cloud)).bits(place);
    const float u = (static_cast<float>(bits >> 9) + 0.5f) * 0x1p-23f;
    return -logf(-logf(u));
}

namespace cuda {
void argmax_points(const Clouds& scores, View<int32_t, 2> winners, const GumbelNoise& noise, Stream stream);
}

}  // namespace stipple::ops
