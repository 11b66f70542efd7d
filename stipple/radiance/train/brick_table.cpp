#include "stipple/radiance/train/brick_table.h"

#include <algorithm>

#include "stipple/core/error.h"
#include "stipple/radiance/march/bricks.h"

namespace stipple::radiance {

BrickTable number_bricks(std::span<const uint8_t> wanted) {
    BrickTable bricks;
    bricks.table.resize(wanted.size(), -1);
    for (size_t i = 0; i < wanted.size(); ++i) {
        if (!wanted[i]) continue;
        bricks.table[i] = bricks.stored();
        bricks.place.push_back(static_cast<int32_t>(i));
    }
    STIPPLE_REQUIRE(bricks.place.size() < (size_t{1} << 31) / kBrickNodes, "{} bricks are too many",
                    bricks.place.size());
    return bricks;
}

BrickTable bricks_at(const GridShape& grid, std::vector<int32_t> place) {
    const std::array<int32_t, 3> count = grid.bricks();
    BrickTable bricks;
    bricks.table.resize(static_cast<size_t>(int64_t{count[0]} * count[1] * count[2]), -1);
    for (size_t i = 0; i < place.size(); ++i) bricks.table[static_cast<size_t>(place[i])] = static_cast<int32_t>(i);
    bricks.place = std::move(place);
    return bricks;
}

namespace {

/// Nodes of a brick that have a neighbour in the brick beside it at (dx, dy, dz).
uint64_t side_nodes(int dx, int dy, int dz) {
    uint64_t nodes = 0;
    for (int place = 0; place < kBrickNodes; ++place) {
        const int local[3] = {place / (kBrick * kBrick), place / kBrick % kBrick, place % kBrick};
        const int side[3] = {dx, dy, dz};
        bool is_beside = true;
        for (int axis = 0; axis < 3; ++axis) {
            if (side[axis] < 0) is_beside = is_beside && local[axis] == 0;
            if (side[axis] > 0) is_beside = is_beside && local[axis] == kBrick - 1;
        }
        if (is_beside) nodes |= uint64_t{1} << place;
    }
    return nodes;
}

}  // namespace

std::vector<uint8_t> bricks_near(const GridShape& grid, const BrickTable& bricks, std::span<const uint64_t> occupied) {
    const std::array<int32_t, 3> count = grid.bricks();
    uint64_t sides[27];
    for (int k = 0; k < 27; ++k) sides[k] = side_nodes(k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1);
    std::vector<uint8_t> wanted(bricks.table.size());
    for (int32_t b = 0; b < bricks.stored(); ++b) {
        const uint64_t bits = occupied[static_cast<size_t>(b)];
        if (bits == 0) continue;
        const int32_t at = bricks.place[static_cast<size_t>(b)];
        for (int k = 0; k < 27; ++k) {
            if (!(bits & sides[k])) continue;
            const int32_t x = at / (count[1] * count[2]) + k / 9 - 1, y = at / count[2] % count[1] + k / 3 % 3 - 1,
                          z = at % count[2] + k % 3 - 1;
            if (x < 0 || y < 0 || z < 0 || x >= count[0] || y >= count[1] || z >= count[2]) continue;
            wanted[static_cast<size_t>((int64_t{x} * count[1] + y) * count[2] + z)] = 1;
        }
    }
    return wanted;
}

std::vector<uint8_t> free_bricks(const GridShape& grid, std::span<const int32_t> table,
                                 std::span<const uint64_t> occupied) {
    const std::array<int32_t, 3> size = grid.bricks();
    std::vector<uint8_t> free(table.size(), kMostFree);
    for (size_t i = 0; i < table.size(); ++i) {
        if (table[i] >= 0 && occupied[static_cast<size_t>(table[i])] != 0) free[i] = 0;
    }
    const auto at = [&](int x, int y, int z) -> uint8_t& {
        return free[static_cast<size_t>((int64_t{x} * size[1] + y) * size[2] + z)];
    };
    // Two sweeps over the neighbours before and after give the exact distance of this norm.
    const auto relax = [&](int x, int y, int z, int sign) {
        int best = at(x, y, z);
        for (int neighbour = 0; neighbour < 13; ++neighbour) {  // the 13 that come first in a cube of 27
            const int nx = x + sign * (neighbour / 9 - 1), ny = y + sign * (neighbour / 3 % 3 - 1),
                      nz = z + sign * (neighbour % 3 - 1);
            if (nx >= 0 && ny >= 0 && nz >= 0 && nx < size[0] && ny < size[1] && nz < size[2])
                best = std::min(best, at(nx, ny, nz) + 1);
        }
        at(x, y, z) = static_cast<uint8_t>(best);
    };
    for (int x = 0; x < size[0]; ++x)
        for (int y = 0; y < size[1]; ++y)
            for (int z = 0; z < size[2]; ++z) relax(x, y, z, 1);
    for (int x = size[0]; x-- > 0;)
        for (int y = size[1]; y-- > 0;)
            for (int z = size[2]; z-- > 0;) relax(x, y, z, -1);
    return free;
}

}  // namespace stipple::radiance
