#include "stipple/tasks/upsample/run_tiles.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/core/number_text.h"
#include "stipple/core/numeric.h"
#include "stipple/core/parallel.h"
#include "stipple/tasks/upsample/choose.h"
#include "stipple/tasks/upsample/refine.h"
#include "stipple/tasks/upsample/support.h"
#include "stipple/tasks/upsample/tiles.h"

namespace stipple::tasks {
namespace {

// A tile's candidates are made together, and chosen from cell by cell: each has its share of the points, so that the
// density of the output follows that of the input from one cell to the next, and is even within.
constexpr int64_t kCellPoints = 512;
// Tiles have options.tile_points up to this ratio.
constexpr double kTileRatio = 4;
// Around a tile or cell, in shares of the radius of a patch: candidates of input points so near take part in the
// elimination.
constexpr float kBorder = 1.0f / 3;
// Of the points that elimination leaves in a tile, this share is too many, and those farthest from the input go: as
// published for PU-Flow, 24 of 8192. Not so where points are moved again, as those that fill gaps lie far from the
// input.
constexpr double kOutlierShare = 24.0 / 8192;
// Times that the points of all tiles are spread evenly and moved onto the surface again. Of 0 to 3.
constexpr int kRefinements = 2;
// An input that may be noisy stays as it was measured where the network moves it by less than this, in spacings,
// or by less than it expects to be wrong. On clean inputs nine of ten moves are below 0.025, with noise of 0.2 spacings
// most are above 0.1.
constexpr float kMeasured = 0.05f;

class Tiles {
public:
    Tiles(CandidateMaker& maker, View<const float, 2> cloud, int64_t count, bool has_sources,
          const UpsampleOptions& options)
        : maker_(maker),
          options_(options),
          cloud_(cloud),
          search_(cloud, maker.runner() ? maker.runner()->device() : Device{}),
          ratio_(static_cast<double>(count) / static_cast<double>(cloud.size(0))),
          tiles_(cut_tiles(cloud, points_of_tile(options.tile_points, ratio_))),
          cell_of_(static_cast<size_t>(cloud.size(0))),
          stays_(cell_of_.size(), all_stay(maker, options) ? Stay::yes : Stay::unknown) {
        kept_.width = has_sources ? maker.sources() : 0;
        if (maker.mover()) support_.emplace(search_, options), planes_.emplace(search_);
        // Shares of the cells: the count of all up to each one is rounded, so that the last makes it exact.
        int64_t points = 0, before = 0;
        for (const Tile& tile : tiles_) {
            first_cell_.push_back(static_cast<int32_t>(cells_.size()));
            for (Tile& cell : cut_tiles(cloud, tile.points, kCellPoints)) {
                points += static_cast<int64_t>(cell.points.size());
                const int64_t until = std::llround(static_cast<double>(count) * static_cast<double>(points) /
                                                   static_cast<double>(cloud.size(0)));
                share_.push_back(until - before);
                before = until;
                for (const int32_t i : cell.points)
                    cell_of_[static_cast<size_t>(i)] = static_cast<int32_t>(cells_.size());
                cells_.push_back(std::move(cell));
            }
        }
        first_cell_.push_back(static_cast<int32_t>(cells_.size()));
    }

    UpsampledTiles run() {
        for (size_t t = 0; t < tiles_.size(); ++t) {
            check_interrupted();
            const Candidates made = candidates_of(t);
            const std::vector<SupportGrade> grades = grades_of(made);
            find_inputs_that_stay(made);
            count_dropped(t, made, grades);
            const int64_t first = kept_.size(), wanted = choose_in_tile(t, made, grades);
            drop_outliers(first, wanted);
            kept_of_tile_.emplace_back(first, kept_.size());
            advance(t, 0);
        }
        std::vector<uint8_t> stays = inputs_that_stay();
        for (int pass = 1; pass < passes(); ++pass)
            for (size_t t = 0; t < tiles_.size(); ++t) {
                check_interrupted();
                refine_tile(*maker_.mover(), {search_, *support_, *planes_, tiles_, kept_of_tile_, stays}, t,
                            pass + 1 < passes(), kept_);
                advance(t, pass);
            }
        return {std::move(kept_), std::move(stays), dropped_};
    }

private:
    enum class Stay : uint8_t { unknown, no, yes };

    static bool all_stay(CandidateMaker& maker, const UpsampleOptions& options) {
        return options.keeps_input || (maker.mover() && !options.denoises);
    }

    /// Fewer where each makes many points, as these are what takes memory.
    static int64_t points_of_tile(int64_t most, double ratio) {
        const auto points = static_cast<int64_t>(static_cast<double>(most) * std::min(1.0, kTileRatio / ratio));
        return std::max(std::min(most, kCellPoints), points);
    }

    /// All tiles are gone through once for candidates, and again where points can be moved once more.
    int passes() const { return maker_.mover() ? 1 + kRefinements : 1; }

    void advance(size_t t, int pass) const {
        const auto points = static_cast<int64_t>(tiles_[t].points.size());
        if (options_.advance) options_.advance(points * (pass + 1) / passes() - points * pass / passes());
    }

    const float* input(int32_t i) const { return cloud_.data() + 3 * int64_t{i}; }
    bool stays(int32_t i) const { return stays_[static_cast<size_t>(i)] == Stay::yes; }
    static bool is_within(const Tile& tile, const float* point, float distance) {
        return distance_sq_to(tile, point) <= distance * distance;
    }

    /// Of the points of a tile and those near its border.
    Candidates candidates_of(size_t t) {
        const Tile& tile = tiles_[t];
        const float margin = patch_radius(search_.index(), cloud_, tile.points);
        const std::vector<int32_t> points = points_near(cloud_, tiles_, t, margin),
                                   around = points_near(cloud_, tiles_, t, 2 * margin);
        std::vector<uint8_t> is_wanted(cell_of_.size(), 0);
        for (const int32_t i : points) is_wanted[static_cast<size_t>(i)] = is_within(tile, input(i), kBorder * margin);
        return maker_.make({.region = {cloud_, points, options_.holes == Holes::fill},
                            .around = around,
                            .is_wanted = is_wanted,
                            .ratio = ratio_,
                            .has_inputs = !all_stay(maker_, options_),
                            .has_sources = kept_.width > 0,
                            .temperature = options_.temperature,
                            .seed = options_.seed});
    }

    /// Children and midpoints reach nowhere: all of them are supported.
    std::vector<SupportGrade> grades_of(const Candidates& made) const {
        if (support_) return support_->of({made.points.data(), {made.size(), 3}});
        return std::vector<SupportGrade>(static_cast<size_t>(made.size()), SupportGrade::between);
    }

    /// Decided where an input point is first among the candidates.
    void find_inputs_that_stay(const Candidates& made) {
        for (int64_t i = 0; i < made.inputs; ++i) {
            const auto parent = static_cast<size_t>(made.parents[static_cast<size_t>(i)]);
            if (stays_[parent] != Stay::unknown) continue;
            float farthest = kMeasured * support_->spacings()[parent];
            if (!made.uncertainties.empty()) farthest = std::max(farthest, made.uncertainties[static_cast<size_t>(i)]);
            const float moved_sq = distance_sq(made.points.data() + 3 * i, input(static_cast<int32_t>(parent)));
            stays_[parent] = moved_sq <= farthest * farthest ? Stay::yes : Stay::no;
        }
    }
    std::vector<uint8_t> inputs_that_stay() const {
        std::vector<uint8_t> flags;
        for (const Stay stay : stays_) flags.push_back(stay == Stay::yes);
        return flags;
    }

    void count_dropped(size_t t, const Candidates& made, const std::vector<SupportGrade>& grades) {
        for (int64_t i = 0; i < made.size(); ++i) {
            const int32_t cell = cell_of_[static_cast<size_t>(made.parents[static_cast<size_t>(i)])];
            const bool is_own = cell >= first_cell_[t] && cell < first_cell_[t + 1];
            dropped_ += is_own && grades[static_cast<size_t>(i)] != SupportGrade::between;
        }
    }

    /// New points of a cell.
    int64_t wanted_of(int32_t cell) const {
        int64_t wanted = share_[static_cast<size_t>(cell)];
        for (const int32_t i : cells_[static_cast<size_t>(cell)].points) wanted -= stays(i);
        return wanted;
    }

    /// Candidates near a cell that are no worse than `least`; not those of input points that stay.
    std::vector<int32_t> candidates_near(const Tile& box, float border, const Candidates& made,
                                         const std::vector<SupportGrade>& grades, SupportGrade least) const {
        std::vector<int32_t> near;
        for (int64_t i = 0; i < made.size(); ++i) {
            const int32_t parent = made.parents[static_cast<size_t>(i)];
            if (grades[static_cast<size_t>(i)] >= least && !(i < made.inputs && stays(parent)) &&
                is_within(box, input(parent), border))
                near.push_back(static_cast<int32_t>(i));
        }
        return near;
    }

    /// Chosen candidates of one cell, and how many more it lacks.
    struct CellChoice {
        std::vector<int32_t> chosen;
        int64_t wanted = 0, lacking = 0;
    };

    /// Cells choose side by side, each in view of the candidates around it, which go as its own do: both sides of a
    /// border come to the same picture of it, whatever the order. Adds to what is kept; returns how many are wanted.
    int64_t choose_in_tile(size_t t, const Candidates& made, const std::vector<SupportGrade>& grades) {
        const int32_t first = first_cell_[t];
        std::vector<CellChoice> cells(static_cast<size_t>(first_cell_[t + 1] - first));
        parallel_for(static_cast<int64_t>(cells.size()), 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                cells[static_cast<size_t>(i)] = choose_in_cell(first + static_cast<int32_t>(i), made, grades);
        });
        fill_lacking(cells, made);
        int64_t wanted = 0;
        for (const CellChoice& cell : cells) {
            wanted += cell.wanted;
            for (const int32_t i : cell.chosen) append(made, i, kept_);
        }
        return wanted;
    }

    /// Gives cells whose own candidates are too few, as networks may make some that are not finite, others that nobody
    /// has chosen.
    void fill_lacking(std::vector<CellChoice>& cells, const Candidates& made) const {
        std::vector<uint8_t> is_chosen;
        for (CellChoice& cell : cells) {
            if (cell.lacking == 0) continue;
            if (is_chosen.empty()) {
                is_chosen.resize(static_cast<size_t>(made.size()));
                for (const CellChoice& other : cells)
                    for (const int32_t i : other.chosen) is_chosen[static_cast<size_t>(i)] = 1;
                for (int64_t i = 0; i < made.inputs; ++i)
                    is_chosen[static_cast<size_t>(i)] |= stays(made.parents[static_cast<size_t>(i)]);
            }
            for (int32_t i = 0; i < made.size() && cell.lacking > 0; ++i)
                if (!is_chosen[static_cast<size_t>(i)]) {
                    is_chosen[static_cast<size_t>(i)] = 1;
                    cell.chosen.push_back(i);
                    --cell.lacking;
                }
            STIPPLE_REQUIRE(cell.lacking == 0, "{} points are wanted where there are no places for them",
                            grouped(cell.lacking));
        }
    }

    /// Those that the input supports. Where they are too few, as of points that are scattered, the others too: first
    /// those near an input, in the end all.
    CellChoice choose_in_cell(int32_t cell, const Candidates& made, const std::vector<SupportGrade>& grades) const {
        const Tile& box = cells_[static_cast<size_t>(cell)];
        const float border = kBorder * patch_radius(search_.index(), cloud_, box.points);
        const auto is_own = [&](int32_t i) {
            return cell_of_[static_cast<size_t>(made.parents[static_cast<size_t>(i)])] == cell;
        };
        CellChoice result;
        result.wanted = wanted_of(cell);
        std::vector<int32_t> near;
        int64_t own = 0;
        for (const SupportGrade least : {SupportGrade::between, SupportGrade::beyond, SupportGrade::far}) {
            near = candidates_near(box, border, made, grades, least);
            own = std::count_if(near.begin(), near.end(), is_own);
            if (own >= result.wanted) break;
        }
        result.lacking = std::max<int64_t>(0, result.wanted - own);

        Choice choice;
        std::vector<int32_t> parents;  // input points that take part
        for (const int32_t i : near) {
            choice.points.insert(choice.points.end(), made.points.begin() + 3 * i, made.points.begin() + 3 * i + 3);
            choice.roles.push_back(is_own(i) ? ops::SampleRole::candidate : ops::SampleRole::border);
            if (!made.uncertainties.empty()) choice.uncertainties.push_back(made.uncertainties[static_cast<size_t>(i)]);
            parents.push_back(made.parents[static_cast<size_t>(i)]);
        }
        parents.insert(parents.end(), box.points.begin(), box.points.end());
        std::sort(parents.begin(), parents.end());
        parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
        for (const int32_t i : parents)
            if (stays(i)) choice.fixed.insert(choice.fixed.end(), input(i), input(i) + 3);
        choice.in_all = std::llround(ratio_ * static_cast<double>(parents.size()));
        choice.wanted = result.wanted - result.lacking;
        if (!maker_.mover())
            choice.wanted +=
                std::min(own - choice.wanted,
                         static_cast<int64_t>(std::ceil(kOutlierShare * static_cast<double>(result.wanted))));
        for (const int32_t i : choose(choice)) result.chosen.push_back(near[static_cast<size_t>(i)]);
        return result;
    }

    /// Leaves `wanted` of the points kept from `first` on: without those that lie farthest from the input.
    void drop_outliers(int64_t first, int64_t wanted) {
        const int64_t n = kept_.size() - first;
        if (n == wanted) return;
        Array<float, 2> nearest_sq({n, 1});
        Array<int32_t, 2> nearest({n, 1});
        search_.knn(View<const float, 2>(kept_.points.data() + 3 * first, {n, 3}), nearest.view(), nearest_sq.view());
        std::vector<std::pair<float, int64_t>> far;
        for (int64_t i = 0; i < n; ++i) far.emplace_back(nearest_sq.data()[i], i);
        std::nth_element(far.begin(), far.begin() + wanted, far.end());
        far.resize(static_cast<size_t>(wanted));
        std::sort(far.begin(), far.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
        Candidates all;
        all.width = kept_.width;
        for (int64_t i = 0; i < n; ++i) append(kept_, first + i, all);
        truncate(kept_, first);
        for (const auto& [distance_sq, i] : far) append(all, i, kept_);
    }

    CandidateMaker& maker_;
    const UpsampleOptions& options_;
    View<const float, 2> cloud_;
    CloudSearch search_;
    std::optional<Support> support_;     // where points are moved
    std::optional<SweptPlanes> planes_;  // likewise
    double ratio_;
    std::vector<Tile> tiles_, cells_;                        // cells of a tile one after the other
    std::vector<int32_t> first_cell_;                        // of each tile, and their number
    std::vector<int64_t> share_;                             // of each cell, points of the output
    std::vector<int32_t> cell_of_;                           // of input points
    std::vector<Stay> stays_;                                // likewise
    Candidates kept_;                                        // of all cells so far
    std::vector<std::pair<int64_t, int64_t>> kept_of_tile_;  // from, to in kept_
    int64_t dropped_ = 0;
};

}  // namespace

UpsampledTiles run_tiles(CandidateMaker& maker, View<const float, 2> cloud, int64_t count, bool has_sources,
                         const UpsampleOptions& options) {
    return Tiles(maker, cloud, count, has_sources, options).run();
}

}  // namespace stipple::tasks
