#include "stipple/radiance/cpu/occupancy.h"

#include "stipple/core/parallel.h"
#include "stipple/radiance/march/opacity.h"

namespace stipple::radiance::cpu {

std::vector<uint64_t> still_occupied(const BrickGrid& grid, const BrickTable& bricks, std::span<const float> density,
                                     const StepConstants& constants, std::span<const uint64_t> candidates) {
    std::vector<uint64_t> occupied(candidates.size());
    parallel_for(bricks.stored(), 64, [&](int64_t begin, int64_t end) {
        for (auto brick = static_cast<size_t>(begin); brick < static_cast<size_t>(end); ++brick) {
            const int32_t at = bricks.place[brick];
            const int32_t x = at / (grid.bricks[1] * grid.bricks[2]) * kBrick,
                          y = at / grid.bricks[2] % grid.bricks[1] * kBrick, z = at % grid.bricks[2] * kBrick;
            for (int place = 0; place < kBrickNodes; ++place) {
                if (!(candidates[brick] >> place & 1)) continue;
                const float most = densest_about(grid, x + place / (kBrick * kBrick), y + place / kBrick % kBrick,
                                                 z + place % kBrick, density.data(), 1);
                if (opacity(most + constants.shift, constants.voxel_ratio) > constants.threshold)
                    occupied[brick] |= uint64_t{1} << place;
            }
        }
    });
    return occupied;
}

}  // namespace stipple::radiance::cpu
