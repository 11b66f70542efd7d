#pragma once
// Numbers for the bricks that are stored.

#include <cstdint>
#include <span>
#include <vector>

#include "stipple/radiance/field.h"

namespace stipple::radiance {

struct BrickTable {
    std::vector<int32_t> table;  // [bricks x, y, z] the number of a brick, -1: not stored
    std::vector<int32_t> place;  // [stored] where in the table
    int32_t stored() const { return static_cast<int32_t>(place.size()); }
};

/// wanted [bricks] is not 0 for bricks to store; numbers follow the table's order. Throws Error{bad_argument} for more
/// nodes than 2^31 - 1.
BrickTable number_bricks(std::span<const uint8_t> wanted);

/// Bricks that are stored at places of the table, ascending.
BrickTable bricks_at(const GridShape& grid, std::vector<int32_t> place);

/// Bricks within one node of an occupied one. occupied: [stored bricks of `bricks`] a bit per node.
std::vector<uint8_t> bricks_near(const GridShape& grid, const BrickTable& bricks, std::span<const uint64_t> occupied);

/// BrickGrid::free for the grid's bricks [bricks x, y, z], of which those with a number in `table` are stored.
std::vector<uint8_t> free_bricks(const GridShape& grid, std::span<const int32_t> table,
                                 std::span<const uint64_t> occupied);

}  // namespace stipple::radiance
