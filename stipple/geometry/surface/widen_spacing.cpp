#include "stipple/geometry/surface/widen_spacing.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "stipple/core/numeric.h"
#include "stipple/geometry/cloud/point_cells.h"

namespace stipple::geometry {
namespace {

/// Gaps are told apart up to this many spacings; wider ones are all the same.
constexpr float kReach = 1.3f;

/// The chosen points among all, and how far each point is from the nearest chosen one other than itself. Points are
/// known by their place in the order of the cells.
class Spread {
public:
    Spread(View<const float, 2> points, float spacing, View<const int32_t, 1> chosen)
        : cells_(point_cells(points, kReach * spacing)),
          reach_sq_(kReach * kReach * spacing * spacing),
          wanted_sq_(spacing * spacing),
          smallest_sq_(reach_sq_),
          chosen_(static_cast<size_t>(points.size(0)), 0),
          runs_(static_cast<size_t>(cells_.cells())),
          cell_(static_cast<size_t>(points.size(0))),
          gap_sq_(static_cast<size_t>(points.size(0)), reach_sq_) {
        std::vector<char> is_chosen(chosen_.size(), 0);
        for (int64_t i = 0; i < chosen.size(0); ++i) is_chosen[chosen(i)] = 1;
        cells_.for_each(0, cells_.cells(), [&](int64_t cell, const PointCells::Runs& runs) {
            runs_[cell] = runs;
            for (int64_t i = cells_.offsets.data()[cell]; i < cells_.offsets.data()[cell + 1]; ++i) {
                cell_[i] = static_cast<int32_t>(cell);
                chosen_[i] = is_chosen[cells_.order.data()[i]];
            }
        });
        for (size_t i = 0; i < chosen_.size(); ++i)
            if (chosen_[i]) narrow_around(static_cast<int32_t>(i));
        for (size_t i = 0; i < chosen_.size(); ++i)
            if (chosen_[i]) smallest_sq_ = std::min(smallest_sq_, gap_sq_[i]);
        for (size_t i = 0; i < chosen_.size(); ++i) note(static_cast<int32_t>(i));
    }

    /// Exchanges one point; false when that would not help.
    bool exchange() {
        const Entry nearest = top(pairs_, true);
        if (nearest.place < 0) return false;
        remove(nearest.place);
        const Entry widest = top(gaps_, false);
        const bool better = widest.gap_sq > nearest.gap_sq;
        insert(better ? widest.place : nearest.place);
        return better;
    }

    /// Between chosen points; what was wanted when they are further apart.
    float smallest_sq() {
        const Entry nearest = top(pairs_, true);
        return nearest.place < 0 ? wanted_sq_ : nearest.gap_sq;
    }

    void write(View<int32_t, 1> chosen) const {
        int64_t count = 0;
        for (size_t i = 0; i < chosen_.size(); ++i)
            if (chosen_[i]) chosen(count++) = cells_.order.data()[i];
        std::sort(chosen.data(), chosen.data() + count);
    }

private:
    /// A gap as it was when it was noted: out of date when it has changed since.
    struct Entry {
        float gap_sq;
        int32_t index, place;
    };
    struct WidestFirst {
        bool operator()(const Entry& a, const Entry& b) const {
            return a.gap_sq != b.gap_sq ? a.gap_sq < b.gap_sq : a.index > b.index;
        }
    };
    struct NearestFirst {
        bool operator()(const Entry& a, const Entry& b) const {
            return a.gap_sq != b.gap_sq ? a.gap_sq > b.gap_sq : a.index > b.index;
        }
    };

    template <class Body>
    void for_each_near(int32_t place, const Body& body) const {
        const float* p = cells_.points.data() + 3 * int64_t{place};
        const int64_t* offsets = cells_.offsets.data();
        for (const PointCells::Run run : runs_[cell_[place]])
            for (int64_t j = offsets[run.begin]; j < offsets[run.end]; ++j)
                if (j != place) body(static_cast<int32_t>(j), distance_sq(p, cells_.points.data() + 3 * j));
    }

    /// Only what may be asked for: pairs that are too near, gaps wider than the nearest ever were.
    void note(int32_t place) {
        const Entry entry = {gap_sq_[place], cells_.order.data()[place], place};
        if (chosen_[place] && entry.gap_sq < wanted_sq_) pairs_.push(entry);
        if (!chosen_[place] && entry.gap_sq > smallest_sq_) gaps_.push(entry);
    }

    /// The first entry that is still true; place -1 when there is none.
    template <class Queue>
    Entry top(Queue& queue, bool chosen) const {
        while (!queue.empty()) {
            const Entry entry = queue.top();
            if (chosen_[entry.place] == static_cast<char>(chosen) && gap_sq_[entry.place] == entry.gap_sq) return entry;
            queue.pop();
        }
        return {0, -1, -1};
    }

    void narrow_around(int32_t place) {
        for_each_near(place, [&](int32_t j, float dist_sq) { gap_sq_[j] = std::min(gap_sq_[j], dist_sq); });
    }

    void insert(int32_t place) {
        chosen_[place] = 1;
        note(place);
        for_each_near(place, [&](int32_t j, float dist_sq) {
            if (dist_sq >= gap_sq_[j]) return;
            gap_sq_[j] = dist_sq;
            note(j);
        });
    }

    void remove(int32_t place) {
        chosen_[place] = 0;
        note(place);
        for_each_near(place, [&](int32_t j, float dist_sq) {
            if (dist_sq != gap_sq_[j]) return;  // something else is nearer
            float gap_sq = reach_sq_;
            for_each_near(j, [&](int32_t k, float d) { gap_sq = chosen_[k] ? std::min(gap_sq, d) : gap_sq; });
            if (gap_sq == gap_sq_[j]) return;
            gap_sq_[j] = gap_sq;
            note(j);
        });
    }

    PointCells cells_;
    float reach_sq_, wanted_sq_, smallest_sq_;
    std::vector<char> chosen_;
    std::vector<PointCells::Runs> runs_;                                  // of each cell
    std::vector<int32_t> cell_;                                           // of each place
    std::vector<float> gap_sq_;                                           // of each place
    std::priority_queue<Entry, std::vector<Entry>, WidestFirst> gaps_;    // of places that are not chosen
    std::priority_queue<Entry, std::vector<Entry>, NearestFirst> pairs_;  // of places that are
};

}  // namespace

float widen_spacing(View<const float, 2> points, float spacing, View<int32_t, 1> chosen) {
    if (chosen.size(0) < 2 || !(spacing * spacing > 0)) return spacing;
    Spread spread(points, spacing, chosen);
    int64_t left = chosen.size(0);
    while (left-- > 0 && spread.exchange()) {
    }
    spread.write(chosen);
    return std::sqrt(spread.smallest_sq());
}

}  // namespace stipple::geometry
