#pragma once
// The end of emd, once everybody has a partner: a better matching and better prices, for a gap that searches would take
// much longer to close. CPU and CUDA share the arithmetic bit for bit.
//
// Pairs that would cost less with their partners exchanged exchange them. Then prices move towards those of soft
// choices [Sinkhorn; Cuturi 2013]: every point divides itself among the objects that are nearly as good as its best,
// the more the better they are, and an object that gets more than one point becomes dearer, one that gets less becomes
// cheaper. The bound that prices prove holds whatever they are, so that weights and logarithms may be rough: straight
// lines between powers of two, in integers, whose sums depend on no order.

#include <cmath>
#include <cstdint>

#include "stipple/core/numeric.h"

namespace stipple::ops::assignment {

constexpr int kMostExchanges = 3;        // rounds of them
constexpr int kMostMoves = 24;           // of the prices
constexpr float kExchangeWindow = 2.0f;  // eps: an exchange that gains has no object farther from a point's best
constexpr int kOctaves = 4;              // an object that is so many octaves worse than the best gets nothing
constexpr float kFirstOctave = 0.28f;    // eps: an object that is so much worse gets half as much; of the first move
constexpr float kOctaveFall = 0.85f;     // from move to move
constexpr float kMoveFactor = 2.0f;      // more than the whole way: fewer moves
constexpr int kWholeBits = 16;           // a whole point is 2^kWholeBits
constexpr float kMostFall = 0.5f;  // octaves that a price falls in a move, before kMoveFactor; it rises by at most one

/// What an object gets of a point, among others, if it is `behind` above the best in cost + price: at most 2^13.
STIPPLE_HD uint32_t weight_of(float behind, float inverse_octave) {
    constexpr int kBits = 12;
    const float octaves = multiply_rounded(behind, inverse_octave);
    if (!(octaves < static_cast<float>(kOctaves))) return 0;
    const auto at = static_cast<uint32_t>(octaves * static_cast<float>(1 << kBits));
    return ((2u << kBits) - (at & ((1u << kBits) - 1))) >> (at >> kBits);
}

/// Of a whole point, for the sum of all its weights. They sum up to less than 2^32 for fewer than 2^19 objects; beyond
/// that, shares may be of no use.
STIPPLE_HD uint32_t inverse_of_weights(uint32_t sum) {
    return 0xffffffffu / (sum > 0 ? sum : 1);
}
STIPPLE_HD uint32_t share_of(uint32_t weight, uint32_t inverse) {
    return (weight * inverse) >> (32 - kWholeBits);
}

/// The price of an object that got so much of all points. Never below 0, and never lower by more than most_drop().
STIPPLE_HD float moved_price(float price, uint64_t got, float octave) {
    constexpr uint64_t kLeast = uint64_t{3} << (kWholeBits - 2), kMost = uint64_t{2} << kWholeBits;
    const auto within = static_cast<uint32_t>(got < kLeast ? kLeast : got > kMost ? kMost : got);
    int exponent = 0;  // the logarithm, straight between powers of two
    const float half = frexpf(static_cast<float>(within), &exponent);
    const float change = add_rounded(static_cast<float>(exponent - 1 - kWholeBits), 2.0f * half - 1.0f);
    const float moved = add_rounded(price, multiply_rounded(change, multiply_rounded(kMoveFactor, octave)));
    return moved > 0.0f ? moved : 0.0f;
}
STIPPLE_HD float most_drop(float octave) {
    return kMostFall * multiply_rounded(kMoveFactor, octave);
}

/// What two points gain if they exchange their partners, from the four costs.
STIPPLE_HD float gain_of(float mine, float theirs, float mine_then, float theirs_then) {
    return add_rounded(add_rounded(mine, -mine_then), add_rounded(theirs, -theirs_then));
}

}  // namespace stipple::ops::assignment
