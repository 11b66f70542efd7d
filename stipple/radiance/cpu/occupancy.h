#pragma once
// Which nodes are occupied, by their densities.

#include <span>

#include "stipple/radiance/train/brick_table.h"
#include "stipple/radiance/train/constants.h"

namespace stipple::radiance::cpu {

/// Of the candidates [stored bricks], a bit for each node, those about which one of the 27 is opaque by the constants'
/// threshold. `bricks` are those of `grid`.
std::vector<uint64_t> still_occupied(const BrickGrid& grid, const BrickTable& bricks, std::span<const float> density,
                                     const StepConstants& constants, std::span<const uint64_t> candidates);

}  // namespace stipple::radiance::cpu
