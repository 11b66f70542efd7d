#include "stipple/tasks/upsample/tiles.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace stipple::tasks {
namespace {

void set_box(View<const float, 2> points, Tile& tile) {
    for (int axis = 0; axis < 3; ++axis) {
        tile.low[axis] = std::numeric_limits<float>::infinity();
        tile.high[axis] = -std::numeric_limits<float>::infinity();
        for (const int32_t i : tile.points) {
            tile.low[axis] = std::min(tile.low[axis], points(i, axis));
            tile.high[axis] = std::max(tile.high[axis], points(i, axis));
        }
    }
}

void cut(View<const float, 2> points, std::vector<int32_t> part, int64_t largest, std::vector<Tile>& tiles) {
    Tile tile;
    tile.points = std::move(part);
    set_box(points, tile);
    const auto n = static_cast<int64_t>(tile.points.size());
    if (n <= largest) {
        std::sort(tile.points.begin(), tile.points.end());
        tiles.push_back(std::move(tile));
        return;
    }
    int axis = 0;
    for (int i = 1; i < 3; ++i)
        if (tile.high[i] - tile.low[i] > tile.high[axis] - tile.low[axis]) axis = i;
    const auto middle = tile.points.begin() + n / 2;
    std::nth_element(tile.points.begin(), middle, tile.points.end(), [&](int32_t a, int32_t b) {
        return points(a, axis) != points(b, axis) ? points(a, axis) < points(b, axis) : a < b;
    });
    std::vector<int32_t> second(middle, tile.points.end());
    tile.points.erase(middle, tile.points.end());
    cut(points, std::move(tile.points), largest, tiles);
    cut(points, std::move(second), largest, tiles);
}

}  // namespace

std::vector<Tile> cut_tiles(View<const float, 2> points, std::vector<int32_t> which, int64_t largest) {
    std::vector<Tile> tiles;
    if (!which.empty()) cut(points, std::move(which), largest, tiles);
    return tiles;
}

std::vector<Tile> cut_tiles(View<const float, 2> points, int64_t largest) {
    std::vector<int32_t> all(static_cast<size_t>(points.size(0)));
    std::iota(all.begin(), all.end(), 0);
    return cut_tiles(points, std::move(all), largest);
}

float distance_sq_to(const Tile& tile, const float* point) {
    float sum = 0;
    for (int axis = 0; axis < 3; ++axis) {
        const float d = std::max({tile.low[axis] - point[axis], point[axis] - tile.high[axis], 0.0f});
        sum += d * d;
    }
    return sum;
}

bool are_near(const Tile& a, const Tile& b, float margin) {
    for (int axis = 0; axis < 3; ++axis)
        if (a.low[axis] - b.high[axis] > margin || b.low[axis] - a.high[axis] > margin) return false;
    return true;
}

std::vector<int32_t> points_near(View<const float, 2> points, std::span<const Tile> tiles, size_t t, float margin) {
    const Tile& tile = tiles[t];
    std::vector<int32_t> near = tile.points;
    for (const Tile& other : tiles) {
        if (&other == &tile || !are_near(tile, other, margin)) continue;
        for (const int32_t i : other.points)
            if (distance_sq_to(tile, points.data() + 3 * int64_t{i}) <= margin * margin) near.push_back(i);
    }
    return near;
}

}  // namespace stipple::tasks
