#pragma once
// Refinement: once all bidders are assigned, a cheaper assignment and better dual prices, for a gap that another phase
// would take much longer to close. CPU and CUDA share the arithmetic bit for bit. See README.md in this folder.
//
// 1. Two bidders swap their objects where that lowers the cost (2-opt).
// 2. Prices move towards those of a soft assignment [Sinkhorn; Cuturi 2013]: every bidder splits its unit mass among
// the
//    objects nearly as good as its best, weighted by 2^(-excess / temperature); an object that receives more than one
//    unit becomes more expensive, one that receives less becomes cheaper.
// The dual bound holds for any prices, so weights and logarithms may be coarse: piecewise linear between powers of two,
// in integers, whose sums depend on no order.

#include <cmath>
#include <cstdint>

#include "stipple/core/numeric.h"

namespace stipple::ops::assignment {

constexpr int kMaxSwapRounds = 3;     // rounds of swaps
constexpr int kMaxPriceUpdates = 24;  // steps of the dual prices
constexpr float kSwapWindow = 2.0f;   // eps: swaps consider objects whose cost + price is within this of the best
constexpr int kCutoff = 4;            // temperatures: an object that is worse than the best by this much gets nothing
constexpr float kFirstTemperature = 0.28f;  // eps: an object worse by one temperature gets half as much; first step
constexpr float kCooling = 0.85f;           // of the temperature, from step to step
constexpr float kStepFactor = 2.0f;         // over-relaxation: fewer steps
constexpr int kUnitMassBits = 16;           // the mass of a bidder is 2^kUnitMassBits
constexpr float kMaxFall =
    0.5f;  // temperatures that a price falls in a step, before kStepFactor; it rises by at most one

/// Weight of an object whose cost + price is `behind` above the bidder's best; at most 2^13.
STIPPLE_HD uint32_t weight_of(float behind, float inverse_temperature) {
    constexpr int kBits = 12;
    const float excess = multiply_rounded(behind, inverse_temperature);
    if (!(excess < static_cast<float>(kCutoff))) return 0;
    const auto at = static_cast<uint32_t>(excess * static_cast<float>(1 << kBits));
    return ((2u << kBits) - (at & ((1u << kBits) - 1))) >> (at >> kBits);
}

/// Mass per weight, from the sum of a bidder's weights. It is below 2^32 for fewer than 2^19 objects; beyond that, the
/// shares may be useless.
STIPPLE_HD uint32_t inverse_of_weights(uint32_t sum) {
    return 0xffffffffu / (sum > 0 ? sum : 1);
}
STIPPLE_HD uint32_t share_of(uint32_t weight, uint32_t inverse) {
    return (weight * inverse) >> (32 - kUnitMassBits);
}

/// The new price of an object that received this mass. Never below 0, and never lower by more than max_drop().
STIPPLE_HD float updated_price(float price, uint64_t mass, float temperature) {
    constexpr uint64_t kLeast = uint64_t{3} << (kUnitMassBits - 2), kMost = uint64_t{2} << kUnitMassBits;
    const auto within = static_cast<uint32_t>(mass < kLeast ? kLeast : mass > kMost ? kMost : mass);
    int exponent = 0;  // log2, linear between powers of two
    const float half = frexpf(static_cast<float>(within), &exponent);
    const float change = add_rounded(static_cast<float>(exponent - 1 - kUnitMassBits), 2.0f * half - 1.0f);
    const float moved = add_rounded(price, multiply_rounded(change, multiply_rounded(kStepFactor, temperature)));
    return moved > 0.0f ? moved : 0.0f;
}
STIPPLE_HD float max_drop(float temperature) {
    return kMaxFall * multiply_rounded(kStepFactor, temperature);
}

/// What two bidders gain if they swap objects, from the four costs.
STIPPLE_HD float swap_gain(float mine, float theirs, float mine_then, float theirs_then) {
    return add_rounded(add_rounded(mine, -mine_then), add_rounded(theirs, -theirs_then));
}

}  // namespace stipple::ops::assignment
