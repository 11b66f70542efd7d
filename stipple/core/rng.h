#pragma once
// Counter-based random numbers: Philox4x32-10 [Salmon et al. 2011].
//
// A draw is a pure function of (seed, stream, index). Nothing is stored, so results do not depend on the number of
// threads or on the device, and a training run resumes from integers alone. Bits and uniforms are identical on CPU and
// CUDA; normals agree to 1e-6 because the two differ in the last bit of log and sine.

#include <cmath>
#include <cstdint>

#include "stipple/core/numeric.h"

namespace stipple {

struct RandomBlock {
    uint32_t word[4];
};

/// The Philox4x32-10 bijection.
STIPPLE_HD RandomBlock philox(RandomBlock counter, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t product0 = uint64_t{0xD2511F53u} * counter.word[0];
        const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter.word[2];
        counter = {{static_cast<uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0, static_cast<uint32_t>(product1),
                    static_cast<uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1, static_cast<uint32_t>(product0)}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

/// Random numbers for one purpose. Different streams of one seed are independent: derive them from what the numbers
/// are for, e.g. Rng(seed, kShuffle + epoch).
class Rng {
public:
    STIPPLE_HD explicit Rng(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

    /// Four words for `index`.
    STIPPLE_HD RandomBlock block(uint64_t index) const {
        const RandomBlock counter = {{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                                      static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)}};
        return philox(counter, static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32));
    }

    STIPPLE_HD uint32_t bits(uint64_t index) const { return block(index >> 2).word[index & 3]; }

    /// In [0, 1), a multiple of 2^-24.
    STIPPLE_HD float uniform(uint64_t index) const { return static_cast<float>(bits(index) >> 8) * 0x1p-24f; }

    /// In [0, bound); bound > 0. The bias is below bound / 2^32.
    STIPPLE_HD uint32_t below(uint64_t index, uint32_t bound) const {
        return static_cast<uint32_t>((uint64_t{bits(index)} * bound) >> 32);
    }

    /// Standard normal by Box and Muller, in double so that CPU and CUDA differ by rounding to float only.
    STIPPLE_HD float normal(uint64_t index) const {
        const RandomBlock b = block(index >> 1);
        const int half = static_cast<int>(index & 1) * 2;
        const double radius_u = (b.word[half] + 1.0) * 0x1p-32;  // in (0, 1]
        const double angle_u = b.word[half + 1] * 0x1p-32;
        return static_cast<float>(::sqrt(-2.0 * ::log(radius_u)) * ::cos(6.283185307179586476925 * angle_u));
    }

private:
    uint64_t seed_, stream_;
};

}  // namespace stipple
