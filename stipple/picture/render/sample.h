#pragma once
// A sample of the points of a large cloud, for statistics. One of each run of points at random: scanners store their
// rings and columns in a fixed order, and a fixed step would see only some of them.

#include <algorithm>

#include "stipple/core/rng.h"

namespace stipple::picture {

/// Calls body(i) for about `wanted` of 0 .. n - 1, in order; for all of them when there are no more. Returns how many
/// items each one stands for.
template <class Body>
int64_t for_sample(int64_t n, int64_t wanted, const Body& body) {
    const int64_t step = std::max<int64_t>(1, (n + wanted - 1) / wanted);
    const Rng rng(0x73616d706c65);
    for (int64_t begin = 0; begin < n; begin += step) {
        const auto run = static_cast<uint32_t>(std::min(step, n - begin));
        body(begin + (run > 1 ? rng.below(static_cast<uint64_t>(begin / step), run) : 0));
    }
    return step;
}

}  // namespace stipple::picture
