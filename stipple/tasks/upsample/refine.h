#pragma once
// Points that have been chosen, spread evenly and moved onto the surface once more.

#include "stipple/tasks/upsample/candidates.h"
#include "stipple/tasks/upsample/planes.h"
#include "stipple/tasks/upsample/support.h"
#include "stipple/tasks/upsample/tiles.h"

namespace stipple::tasks {

/// What has been chosen of which tile of a cloud.
struct ChosenTiles {
    const CloudSearch& cloud;  // input points
    const Support& support;
    const SweptPlanes& planes;
    std::span<const Tile> tiles;
    std::span<const std::pair<int64_t, int64_t>> chosen;  // of each tile: from, to
    std::span<const uint8_t> stays;                       // [n] input points that are in the output, as they are
};

/// Tile t of the chosen points, in view of those of all others, which stay. A point that would end where the input
/// does not support it stays where it is. A tile whose points the network does not keep finite stays as it was.
/// `is_rough`: as of PointMover::move().
void refine_tile(PointMover& mover, const ChosenTiles& tiles, size_t t, bool is_rough, Candidates& chosen);

}  // namespace stipple::tasks
