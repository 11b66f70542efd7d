#include "stipple/radiance/train/brick_table.h"

#include "stipple/core/error.h"

namespace stipple::radiance {

BrickTable number_bricks(std::span<const uint8_t> wanted) {
    BrickTable bricks;
    bricks.table.resize(wanted.size(), -1);
    for (size_t i = 0; i < wanted.size(); ++i) {
        if (!wanted[i]) continue;
        bricks.table[i] = bricks.stored();
        bricks.place.push_back(static_cast<int32_t>(i));
    }
    STIPPLE_REQUIRE(bricks.place.size() < (size_t{1} << 31) / kBrickNodes, "{} bricks are too many", bricks.place.size());
    return bricks;
}

std::vector<uint8_t> bricks_near(const GridShape& grid, const BrickTable& bricks, std::span<const uint64_t> occupied) {
    const std::array<int32_t, 3> count = grid.bricks();
    std::vector<uint8_t> wanted(bricks.table.size());
    const auto mark = [&](int32_t x, int32_t y, int32_t z) {
        if (x < 0 || y < 0 || z < 0 || x >= count[0] || y >= count[1] || z >= count[2]) return;
        wanted[static_cast<size_t>((int64_t{x} * count[1] + y) * count[2] + z)] = 1;
    };
    for (int32_t b = 0; b < bricks.stored(); ++b) {
        const uint64_t bits = occupied[static_cast<size_t>(b)];
        if (bits == 0) continue;
        const int32_t at = bricks.place[static_cast<size_t>(b)];
        const int32_t bx = at / (count[1] * count[2]), by = at / count[2] % count[1], bz = at % count[2];
        // Which sides of the brick have an occupied node.
        int low[3] = {kBrick, kBrick, kBrick}, high[3] = {-1, -1, -1};
        for (int place = 0; place < kBrickNodes; ++place) {
            if (!(bits >> place & 1)) continue;
            const int local[3] = {place / (kBrick * kBrick), place / kBrick % kBrick, place % kBrick};
            for (int axis = 0; axis < 3; ++axis) {
                low[axis] = std::min(low[axis], local[axis]);
                high[axis] = std::max(high[axis], local[axis]);
            }
        }
        for (int dx = low[0] == 0 ? -1 : 0; dx <= (high[0] == kBrick - 1 ? 1 : 0); ++dx) {
            for (int dy = low[1] == 0 ? -1 : 0; dy <= (high[1] == kBrick - 1 ? 1 : 0); ++dy) {
                for (int dz = low[2] == 0 ? -1 : 0; dz <= (high[2] == kBrick - 1 ? 1 : 0); ++dz) {
                    mark(bx + dx, by + dy, bz + dz);
                }
            }
        }
    }
    return wanted;
}

}  // namespace stipple::radiance
