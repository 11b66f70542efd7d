#include "stipple/tasks/upsample/run_tiles.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/core/number_text.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/poisson_disk.h"
#include "stipple/tasks/upsample/tiles.h"

namespace stipple::tasks {
namespace {

using ops::SampleRole;

// Around a tile, in shares of the radius of a patch: input points so near take part in the elimination. Those of tiles
// that are done fill the gaps that these have left at the common border.
constexpr float kBorder = 1.0f / 3;
// Of the points that elimination leaves, this share is too many, and those farthest from the input go: as published
// for PU-Flow, 24 of 8192.
constexpr double kOutlierShare = 24.0 / 8192;

// Of a candidate that is as certain as most; others have a quarter to four times as much.
constexpr uint8_t kEvenFactor = 60;

class Tiles {
public:
    Tiles(Upsampler& upsampler, View<const float, 2> cloud, int64_t count, const UpsampleOptions& options)
        : upsampler_(upsampler),
          options_(options),
          cloud_(cloud),
          index_(cloud),
          tiles_(cut_tiles(cloud, options.tile_points)),
          ratio_(static_cast<double>(count) / static_cast<double>(cloud.size(0))),
          tile_of_(static_cast<size_t>(cloud.size(0))),
          kept_of_tile_(tiles_.size()) {
        kept_.width = upsampler.sources();
        for (size_t t = 0; t < tiles_.size(); ++t)
            for (const int32_t i : tiles_[t].points) tile_of_[static_cast<size_t>(i)] = static_cast<int32_t>(t);
        // Shares of the tiles: the count of all up to each one is rounded, so that the last makes it exact.
        int64_t points = 0, before = 0;
        for (const Tile& tile : tiles_) {
            points += static_cast<int64_t>(tile.points.size());
            const int64_t until = std::llround(static_cast<double>(count) * static_cast<double>(points) /
                                               static_cast<double>(cloud.size(0)));
            wanted_.push_back(until - before - (options.keeps_input ? static_cast<int64_t>(tile.points.size()) : 0));
            before = until;
        }
    }

    Candidates run() {
        for (size_t t = 0; t < tiles_.size(); ++t) {
            check_interrupted();
            run_tile(static_cast<int32_t>(t));
            if (options_.advance) options_.advance(static_cast<int64_t>(tiles_[t].points.size()));
        }
        return std::move(kept_);
    }

private:
    const float* input(int32_t i) const { return cloud_.data() + 3 * int64_t{i}; }
    bool is_within(int32_t tile, const float* point, float distance) const {
        return distance_sq_to(tiles_[static_cast<size_t>(tile)], point) <= distance * distance;
    }

    /// The input points of a tile, and of others within `margin` of it.
    std::vector<int32_t> region_of(int32_t tile, float margin) const {
        const Tile& own = tiles_[static_cast<size_t>(tile)];
        std::vector<int32_t> region = own.points;
        for (const Tile& other : tiles_) {
            if (&other == &own || !are_near(own, other, margin)) continue;
            for (const int32_t i : other.points)
                if (is_within(tile, input(i), margin)) region.push_back(i);
        }
        return region;
    }

    /// What the tiles before have kept within `margin` of this one, [n, 3].
    std::vector<float> kept_near(int32_t tile, float margin) const {
        std::vector<float> near;
        for (int32_t other = 0; other < tile; ++other) {
            // New points may lie outside of the boxes, a patch away at most.
            if (!are_near(tiles_[static_cast<size_t>(tile)], tiles_[static_cast<size_t>(other)], 2 * margin)) continue;
            const auto [begin, end] = kept_of_tile_[static_cast<size_t>(other)];
            for (int64_t i = begin; i < end; ++i) {
                const float* point = kept_.points.data() + 3 * i;
                if (is_within(tile, point, margin)) near.insert(near.end(), point, point + 3);
            }
        }
        return near;
    }

    void run_tile(int32_t tile) {
        const float margin = patch_radius(index_, cloud_, tiles_[static_cast<size_t>(tile)].points);
        const std::vector<int32_t> points = region_of(tile, margin), around = region_of(tile, 2 * margin);
        std::vector<uint8_t> is_wanted(tile_of_.size(), 0);
        int64_t asked = 0;  // input points whose candidates take part
        for (const int32_t i : points) {
            const int32_t of = tile_of_[static_cast<size_t>(i)];
            const bool takes_part = of == tile || is_within(tile, input(i), kBorder * margin);
            is_wanted[static_cast<size_t>(i)] = takes_part;
            asked += takes_part;
        }
        const Candidates made = make_candidates(upsampler_, {cloud_, points, around, is_wanted}, ratio_,
                                                !options_.keeps_input, options_.seed);
        std::vector<float> fixed = kept_near(tile, margin);
        if (options_.keeps_input)
            for (const int32_t i : points) fixed.insert(fixed.end(), input(i), input(i) + 3);
        const int64_t first = kept_.size();
        for (const int32_t i : choose(tile, made, fixed, asked)) append(made, i, kept_);
        kept_of_tile_[static_cast<size_t>(tile)] = {first, kept_.size()};
    }

    /// Of the candidates those that stay, as many as the tile is to have, in view of what is fixed.
    std::vector<int32_t> choose(int32_t tile, const Candidates& made, const std::vector<float>& fixed,
                                int64_t asked) const {
        const int64_t n = made.size(), wanted = wanted_[static_cast<size_t>(tile)];
        const float radius =
            ops::poisson_disk_radius(View<const float, 2>(made.points.data(), {n, 3}),
                                     std::max<int64_t>(1, std::llround(ratio_ * static_cast<double>(asked))));
        std::vector<float> points = made.points;
        points.insert(points.end(), fixed.begin(), fixed.end());
        std::vector<uint8_t> roles(points.size() / 3, static_cast<uint8_t>(SampleRole::fixed));
        int64_t own = 0;
        for (size_t i = 0; i < made.parents.size(); ++i) {
            const bool is_own = tile_of_[static_cast<size_t>(made.parents[i])] <= tile;
            roles[i] = static_cast<uint8_t>(is_own ? SampleRole::candidate : SampleRole::border);
            own += is_own;
        }
        STIPPLE_REQUIRE(own >= wanted, "{} points are wanted where the network makes {}", grouped(wanted),
                        grouped(own));
        const int64_t outliers =
            std::min(own - wanted, static_cast<int64_t>(std::ceil(kOutlierShare * static_cast<double>(wanted))));
        std::vector<int32_t> left =
            eliminate(points, roles, factors_of(made, points.size() / 3), radius, wanted + outliers);
        drop_outliers(left, points, outliers);
        return left;
    }

    /// How much sooner than others a candidate goes: its uncertainty over the median one, where the network tells it.
    /// Points beyond the candidates are fixed.
    static std::vector<uint8_t> factors_of(const Candidates& made, size_t points) {
        if (made.uncertainties.empty()) return {};
        std::vector<float> sorted = made.uncertainties;
        const auto middle = sorted.begin() + static_cast<int64_t>(sorted.size() / 2);
        std::nth_element(sorted.begin(), middle, sorted.end());
        std::vector<uint8_t> factors(points, kEvenFactor);
        for (size_t i = 0; i < made.uncertainties.size(); ++i) {
            const float share = *middle > 0 ? made.uncertainties[i] / *middle : 1;
            factors[i] = static_cast<uint8_t>(std::clamp(share * kEvenFactor, kEvenFactor / 4.0f, kEvenFactor * 4.0f));
        }
        return factors;
    }

    /// So many of the candidates among the points, evenly spread.
    static std::vector<int32_t> eliminate(const std::vector<float>& points, const std::vector<uint8_t>& roles,
                                          const std::vector<uint8_t>& factors, float radius, int64_t count) {
        const auto n = static_cast<int64_t>(roles.size());
        std::vector<int32_t> left(static_cast<size_t>(count));
        if (radius > 0) {
            ops::poisson_disk_of_part({points.data(), {n, 3}}, {roles.data(), {n}},
                                      {factors.data(), {static_cast<int64_t>(factors.size())}}, radius,
                                      {left.data(), {count}});
            return left;
        }
        left.clear();  // all points are at one place: the first ones
        for (int32_t i = 0; static_cast<int64_t>(left.size()) < count; ++i)
            if (roles[static_cast<size_t>(i)] == static_cast<uint8_t>(SampleRole::candidate)) left.push_back(i);
        return left;
    }

    /// Takes away so many of the points that lie farthest from the input.
    void drop_outliers(std::vector<int32_t>& left, const std::vector<float>& points, int64_t count) const {
        const auto n = static_cast<int64_t>(left.size());
        Array<float, 2> places({n, 3}), distances_sq({n, 1});
        Array<int32_t, 2> nearest({n, 1});
        for (int64_t i = 0; i < n; ++i)
            std::copy_n(points.data() + 3 * int64_t{left[static_cast<size_t>(i)]}, 3, places.data() + 3 * i);
        ops::knn(index_, places.view(), nearest.view(), distances_sq.view());
        std::vector<std::pair<float, int32_t>> order;  // farthest first, the latest of equals
        for (int64_t i = 0; i < n; ++i) order.emplace_back(distances_sq.data()[i], left[static_cast<size_t>(i)]);
        std::sort(order.begin(), order.end(), std::greater<>());
        left.clear();
        for (size_t i = static_cast<size_t>(count); i < order.size(); ++i) left.push_back(order[i].second);
        std::sort(left.begin(), left.end());
    }

    static void append(const Candidates& from, int64_t i, Candidates& to) {
        const auto copy = [&](const auto& source, auto& target, int64_t width) {
            target.insert(target.end(), source.begin() + i * width, source.begin() + (i + 1) * width);
        };
        copy(from.points, to.points, 3);
        copy(from.parents, to.parents, 1);
        copy(from.sources, to.sources, from.width);
        copy(from.weights, to.weights, from.width);
    }

    Upsampler& upsampler_;
    const UpsampleOptions& options_;
    View<const float, 2> cloud_;
    ops::PointIndex index_;
    std::vector<Tile> tiles_;
    double ratio_;
    std::vector<int64_t> wanted_;                            // of each tile, input points that stay not counted
    std::vector<int32_t> tile_of_;                           // of input points
    Candidates kept_;                                        // of all tiles so far
    std::vector<std::pair<int64_t, int64_t>> kept_of_tile_;  // from, to in kept_
};

}  // namespace

Candidates run_tiles(Upsampler& upsampler, View<const float, 2> cloud, int64_t count, const UpsampleOptions& options) {
    return Tiles(upsampler, cloud, count, options).run();
}

}  // namespace stipple::tasks
