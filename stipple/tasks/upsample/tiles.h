#pragma once
// A cloud in boxes of so many points.

#include <cstdint>
#include <span>
#include <vector>

#include "stipple/core/view.h"

namespace stipple::tasks {

struct Tile {
    std::vector<int32_t> points;      // ascending
    float low[3] = {}, high[3] = {};  // of its points
};

/// Halves the points at the median of the longest axis until no part has more than `largest`. Neighbouring tiles follow
/// each other as far as halving allows. Finite points; ties go by index. O(n log n).
std::vector<Tile> cut_tiles(View<const float, 2> points, int64_t largest);
/// Likewise, of some points.
std::vector<Tile> cut_tiles(View<const float, 2> points, std::vector<int32_t> which, int64_t largest);

/// Squared distance of a point to a tile's box, 0 inside.
float distance_sq_to(const Tile& tile, const float* point);

/// The points of tile t, and of the others those within `margin` of it.
std::vector<int32_t> points_near(View<const float, 2> points, std::span<const Tile> tiles, size_t t, float margin);

/// Whether two boxes come within `margin` of each other along every axis.
bool are_near(const Tile& a, const Tile& b, float margin);

}  // namespace stipple::tasks
