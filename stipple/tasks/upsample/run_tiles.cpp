#include "stipple/tasks/upsample/run_tiles.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/core/number_text.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/poisson_disk.h"
#include "stipple/tasks/upsample/refine.h"
#include "stipple/tasks/upsample/tiles.h"

namespace stipple::tasks {
namespace {

using ops::SampleRole;

// A tile's candidates are made together, and chosen from cell by cell: each has its share of the points, so that the
// density of the output follows that of the input from one cell to the next, and is even within.
constexpr int64_t kCellPoints = 512;
// Tiles have options.tile_points up to this ratio.
constexpr double kTileRatio = 4;
// Around a tile or cell, in shares of the radius of a patch: candidates of input points so near take part in the
// elimination. Those of cells that are done fill the gaps that these have left at the common border.
constexpr float kBorder = 1.0f / 3;
// Of the points that elimination leaves in a tile, this share is too many, and those farthest from the input go: as
// published for PU-Flow, 24 of 8192. Not so where queries are moved, as those that fill holes lie far from the input.
constexpr double kOutlierShare = 24.0 / 8192;
// Radius of the elimination, over that of the densest packing: candidates are few, and farther neighbours tell which of
// them leaves the smallest gap. Of 0.7 to 2.2 on held-out meshes.
constexpr float kWiderRadius = 1.5f;
// Times that the points of all tiles are spread evenly and moved onto the surface again. Of 0 to 3.
constexpr int kRefinements = 2;
// Of a candidate that is as certain as most; others have a quarter to four times as much.
constexpr uint8_t kEvenFactor = 60;

class Tiles {
public:
    Tiles(Upsampler& upsampler, View<const float, 2> cloud, int64_t count, bool has_sources,
          const UpsampleOptions& options)
        : upsampler_(upsampler),
          options_(options),
          cloud_(cloud),
          index_(cloud),
          ratio_(static_cast<double>(count) / static_cast<double>(cloud.size(0))),
          tiles_(cut_tiles(cloud, points_of_tile(options.tile_points, ratio_))),
          cell_of_(static_cast<size_t>(cloud.size(0))) {
        kept_.width = has_sources ? upsampler.sources() : 0;
        // Shares of the cells: the count of all up to each one is rounded, so that the last makes it exact.
        int64_t points = 0, before = 0;
        for (const Tile& tile : tiles_) {
            first_cell_.push_back(static_cast<int32_t>(cells_.size()));
            for (Tile& cell : cut_tiles(cloud, tile.points, kCellPoints)) {
                const auto own = static_cast<int64_t>(cell.points.size());
                points += own;
                const int64_t until = std::llround(static_cast<double>(count) * static_cast<double>(points) /
                                                   static_cast<double>(cloud.size(0)));
                wanted_.push_back(until - before - (options.keeps_input ? own : 0));
                before = until;
                for (const int32_t i : cell.points)
                    cell_of_[static_cast<size_t>(i)] = static_cast<int32_t>(cells_.size());
                cells_.push_back(std::move(cell));
            }
        }
        first_cell_.push_back(static_cast<int32_t>(cells_.size()));
    }

    Candidates run() {
        for (size_t t = 0; t < tiles_.size(); ++t) {
            check_interrupted();
            const Candidates made = candidates_of(t);
            const int64_t first = kept_.size();
            int64_t wanted = 0;
            for (int32_t cell = first_cell_[t]; cell < first_cell_[t + 1]; ++cell) {
                run_cell(cell, made);
                wanted += wanted_[static_cast<size_t>(cell)];
            }
            drop_outliers(first_cell_[t], first, wanted);
            kept_of_tile_.emplace_back(first, kept_.size());
            advance(t, 0);
        }
        for (int pass = 1; pass < passes(); ++pass)
            for (size_t t = 0; t < tiles_.size(); ++t) {
                check_interrupted();
                refine_tile(upsampler_, {cloud_, index_, tiles_, kept_of_tile_, options_.keeps_input}, t,
                            pass + 1 < passes(), kept_);
                advance(t, pass);
            }
        return std::move(kept_);
    }

private:
    /// Fewer where each makes many points, as these are what takes memory.
    static int64_t points_of_tile(int64_t most, double ratio) {
        const auto points = static_cast<int64_t>(static_cast<double>(most) * std::min(1.0, kTileRatio / ratio));
        return std::max(std::min(most, kCellPoints), points);
    }

    /// All tiles are gone through once for candidates, and again where a network can move points once more.
    int passes() const { return upsampler_.takes_queries() ? 1 + kRefinements : 1; }

    void advance(size_t t, int pass) const {
        const auto points = static_cast<int64_t>(tiles_[t].points.size());
        if (options_.advance) options_.advance(points * (pass + 1) / passes() - points * pass / passes());
    }

    const float* input(int32_t i) const { return cloud_.data() + 3 * int64_t{i}; }
    static bool is_within(const Tile& tile, const float* point, float distance) {
        return distance_sq_to(tile, point) <= distance * distance;
    }

    /// Of the points of a tile and those near its border.
    Candidates candidates_of(size_t t) {
        const Tile& tile = tiles_[t];
        const float margin = patch_radius(index_, cloud_, tile.points);
        const std::vector<int32_t> points = points_near(cloud_, tiles_, t, margin),
                                   around = points_near(cloud_, tiles_, t, 2 * margin);
        std::vector<uint8_t> is_wanted(cell_of_.size(), 0);
        for (const int32_t i : points) is_wanted[static_cast<size_t>(i)] = is_within(tile, input(i), kBorder * margin);
        return make_candidates(
            upsampler_, {cloud_, points, around, is_wanted, kept_.width > 0, options_.temperature, options_.seed},
            ratio_, !options_.keeps_input);
    }

    /// What the cells before have kept within `margin` of this one, [n, 3].
    std::vector<float> kept_near(int32_t cell, float margin) const {
        std::vector<float> near;
        const Tile& box = cells_[static_cast<size_t>(cell)];
        for (int32_t other = 0; other < cell; ++other) {
            // New points may lie outside of the boxes, a patch away at most.
            if (!are_near(box, cells_[static_cast<size_t>(other)], 2 * margin)) continue;
            const auto [begin, end] = kept_of_cell_[static_cast<size_t>(other)];
            for (int64_t i = begin; i < end; ++i) {
                const float* point = kept_.points.data() + 3 * i;
                if (is_within(box, point, margin)) near.insert(near.end(), point, point + 3);
            }
        }
        return near;
    }

    void run_cell(int32_t cell, const Candidates& made) {
        const Tile& box = cells_[static_cast<size_t>(cell)];
        const float margin = patch_radius(index_, cloud_, box.points), border = kBorder * margin;
        std::vector<int32_t> near, parents;  // candidates that take part, and the input points that they belong to
        for (int64_t i = 0; i < made.size(); ++i) {
            const int32_t parent = made.parents[static_cast<size_t>(i)];
            if (!is_within(box, input(parent), border)) continue;
            near.push_back(static_cast<int32_t>(i));
            parents.push_back(parent);
        }
        std::sort(parents.begin(), parents.end());
        parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
        std::vector<float> fixed = kept_near(cell, margin);
        if (options_.keeps_input)
            for (const int32_t i : parents) fixed.insert(fixed.end(), input(i), input(i) + 3);
        const int64_t first = kept_.size();
        for (const int32_t i : choose(cell, made, near, static_cast<int64_t>(parents.size()), fixed))
            append(made, i, kept_);
        kept_of_cell_.emplace_back(first, kept_.size());
    }

    /// Of the candidates near a cell, which belong to `asked` input points, those that stay, as many as it is to have,
    /// in view of what is fixed.
    std::vector<int32_t> choose(int32_t cell, const Candidates& made, const std::vector<int32_t>& near, int64_t asked,
                                const std::vector<float>& fixed) const {
        std::vector<float> points;
        std::vector<uint8_t> roles;
        int64_t own = 0;
        for (const int32_t i : near) {
            const int32_t parent = made.parents[static_cast<size_t>(i)];
            const bool is_own = cell_of_[static_cast<size_t>(parent)] <= cell;
            points.insert(points.end(), made.points.begin() + 3 * i, made.points.begin() + 3 * i + 3);
            roles.push_back(static_cast<uint8_t>(is_own ? SampleRole::candidate : SampleRole::border));
            own += is_own;
        }
        const float radius =
            kWiderRadius *
            ops::poisson_disk_radius(View<const float, 2>(points.data(), {static_cast<int64_t>(near.size()), 3}),
                                     std::max<int64_t>(1, std::llround(ratio_ * static_cast<double>(asked))));
        points.insert(points.end(), fixed.begin(), fixed.end());
        roles.resize(points.size() / 3, static_cast<uint8_t>(SampleRole::fixed));
        const int64_t wanted = wanted_[static_cast<size_t>(cell)];
        if (own < wanted) {  // where a cell is small and its points' candidates belong to its neighbours
            std::fill_n(roles.begin(), near.size(), static_cast<uint8_t>(SampleRole::candidate));
            own = static_cast<int64_t>(near.size());
        }
        STIPPLE_REQUIRE(own >= wanted, "{} points are wanted where there are {} places for them", grouped(wanted),
                        grouped(own));
        const int64_t outliers =
            upsampler_.takes_queries()
                ? 0
                : std::min(own - wanted, static_cast<int64_t>(std::ceil(kOutlierShare * static_cast<double>(wanted))));
        std::vector<int32_t> left =
            eliminate(points, roles, factors_of(made, near, roles.size()), radius, wanted + outliers);
        for (int32_t& i : left) i = near[static_cast<size_t>(i)];
        return left;
    }

    /// How much sooner than others a candidate goes: the fourth root of its uncertainty over the median one, where the
    /// network tells it (in full, uncertain parts of a surface would be sparse; of the powers 0, 1/4, 1/2 and 1 on
    /// held-out meshes). Points beyond the candidates are fixed.
    static std::vector<uint8_t> factors_of(const Candidates& made, const std::vector<int32_t>& near, size_t points) {
        if (made.uncertainties.empty()) return {};
        std::vector<float> own;
        for (const int32_t i : near) own.push_back(made.uncertainties[static_cast<size_t>(i)]);
        std::vector<float> sorted = own;
        const auto middle = sorted.begin() + static_cast<int64_t>(sorted.size() / 2);
        std::nth_element(sorted.begin(), middle, sorted.end());
        std::vector<uint8_t> factors(points, kEvenFactor);
        for (size_t i = 0; i < own.size(); ++i) {
            const float share = *middle > 0 ? std::sqrt(std::sqrt(own[i] / *middle)) : 1;
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

    /// Leaves `wanted` of the points kept from `first` on, those of the cells from `first_cell` on: without those that
    /// lie farthest from the input.
    void drop_outliers(int32_t first_cell, int64_t first, int64_t wanted) {
        const int64_t n = kept_.size() - first;
        if (n == wanted) return;
        Array<float, 2> nearest_sq({n, 1});
        Array<int32_t, 2> nearest({n, 1});
        ops::knn(index_, View<const float, 2>(kept_.points.data() + 3 * first, {n, 3}), nearest.view(),
                 nearest_sq.view());
        std::vector<std::pair<float, int64_t>> far;
        for (int64_t i = 0; i < n; ++i) far.emplace_back(nearest_sq.data()[i], i);
        std::nth_element(far.begin(), far.begin() + wanted, far.end());
        std::vector<uint8_t> stays(static_cast<size_t>(n), 0);
        for (int64_t i = 0; i < wanted; ++i) stays[static_cast<size_t>(far[static_cast<size_t>(i)].second)] = 1;
        Candidates all;
        all.width = kept_.width;
        for (int64_t i = 0; i < n; ++i) append(kept_, first + i, all);
        truncate(kept_, first);
        for (size_t cell = static_cast<size_t>(first_cell); cell < kept_of_cell_.size(); ++cell) {
            auto& [begin, end] = kept_of_cell_[cell];
            const int64_t from = begin, to = end;
            begin = kept_.size();
            for (int64_t i = from; i < to; ++i)
                if (stays[static_cast<size_t>(i - first)]) append(all, i - first, kept_);
            end = kept_.size();
        }
    }

    static void truncate(Candidates& candidates, int64_t size) {
        candidates.points.resize(static_cast<size_t>(3 * size));
        candidates.parents.resize(static_cast<size_t>(size));
        candidates.sources.resize(static_cast<size_t>(size * candidates.width));
        candidates.weights.resize(static_cast<size_t>(size * candidates.width));
        if (!candidates.uncertainties.empty()) candidates.uncertainties.resize(static_cast<size_t>(size));
    }

    static void append(const Candidates& from, int64_t i, Candidates& to) {
        const auto copy = [&](const auto& source, auto& target, int64_t width) {
            target.insert(target.end(), source.begin() + i * width, source.begin() + (i + 1) * width);
        };
        copy(from.points, to.points, 3);
        copy(from.parents, to.parents, 1);
        copy(from.sources, to.sources, from.width);
        copy(from.weights, to.weights, from.width);
        if (!from.uncertainties.empty()) copy(from.uncertainties, to.uncertainties, 1);
    }

    Upsampler& upsampler_;
    const UpsampleOptions& options_;
    View<const float, 2> cloud_;
    ops::PointIndex index_;
    double ratio_;
    std::vector<Tile> tiles_, cells_;  // cells of a tile one after the other
    std::vector<int32_t> first_cell_;  // of each tile, and their number
    std::vector<int64_t> wanted_;      // of each cell, input points that stay not counted
    std::vector<int32_t> cell_of_;     // of input points
    Candidates kept_;                  // of all cells so far
    std::vector<std::pair<int64_t, int64_t>> kept_of_cell_, kept_of_tile_;  // from, to in kept_
};

}  // namespace

Candidates run_tiles(Upsampler& upsampler, View<const float, 2> cloud, int64_t count, bool has_sources,
                     const UpsampleOptions& options) {
    return Tiles(upsampler, cloud, count, has_sources, options).run();
}

}  // namespace stipple::tasks
