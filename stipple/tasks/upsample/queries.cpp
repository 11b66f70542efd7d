#include "stipple/tasks/upsample/queries.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stipple/core/numeric.h"
#include "stipple/core/parallel.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/upsample/frame.h"

namespace stipple::tasks {
namespace {

// Queries for each point that is wanted in the end.
constexpr double kOversampling = 1.5;
// Places that are tried for each of them: enough that one more would hardly find room.
constexpr double kTrials = 4;
// Of a plane, discs of diameter d that are put down at random one after the other until none fits cover 0.547
// [Feder 1980]: this over d^2 is their number in a unit of area.
constexpr double kRandomPacking = 0.547 * 4 / std::numbers::pi;
// Times that the distance of a point's queries is halved, where there are too few of them, until it does not count.
constexpr int kCloser = 8;
constexpr uint64_t kSeed = 0x5155;
constexpr int64_t kQueryGrain = 256;

/// Puts down queries that keep a distance from those of their parent and of its neighbours. Every point offers one
/// place at a time, and all do so at once: what comes too near to a query is refused, and so is what comes too near to
/// the place of a neighbour that is drawn before it. So the result does not depend on the order of points or threads.
class Spreader {
public:
    /// `wanted`: rows that have queries. `count`: queries that a point has room for. `most`: offers, all in all.
    Spreader(View<const float, 2> rows, View<const int32_t, 2> near, std::span<const int32_t> wanted, double count,
             int64_t most)
        : near_(near),
          wanted_(wanted),
          most_(most),
          room_sq_(static_cast<size_t>(rows.size(0))),
          count_(room_sq_.size()),
          offers_(room_sq_.size()),
          queries_(static_cast<size_t>(3 * most) * room_sq_.size()) {
        const double part = kRandomPacking / count;
        const int64_t last = near.size(1) - 1;
        for (int64_t i = 0; i < rows.size(0); ++i) {
            const int32_t far = near(i, last);
            if (far < 0 || last == 0) continue;
            const double area = std::numbers::pi * distance_sq(&rows(i, 0), &rows(far, 0)) / static_cast<double>(last);
            room_sq_[static_cast<size_t>(i)] = static_cast<float>(part * area);
        }
    }

    /// place(i, row, to) writes what wanted[i] offers, or returns false.
    template <class Place>
    void offer(const Place& place) {
        ++round_;
        for_wanted([&](int64_t i, int32_t row) {
            Offer& mine = offers_[static_cast<size_t>(row)];
            mine.is_open = place(i, row, mine.at) && has_room(row, mine.at);
        });
        for_wanted([&](int64_t, int32_t row) {
            const Offer& mine = offers_[static_cast<size_t>(row)];
            if (mine.is_open && is_first(row, mine.at)) put(row, mine.at);
        });
    }
    /// In any case.
    void put(int32_t row, const float* point) {
        std::copy_n(point, 3, queries_.data() + 3 * (row * most_ + count_[static_cast<size_t>(row)]++));
    }

    int64_t count(int32_t row) const { return count_[static_cast<size_t>(row)]; }
    std::span<const float> queries_of(int32_t row) const {
        return {queries_.data() + 3 * row * most_, static_cast<size_t>(3 * count(row))};
    }
    /// Halves the distance that its queries keep, or gives it up.
    void narrow(int32_t row, bool entirely) { room_sq_[static_cast<size_t>(row)] *= entirely ? 0 : 0.25f; }

private:
    struct Offer {
        float at[3];
        bool is_open = false;
    };

    template <class Body>
    void for_wanted(const Body& body) const {
        parallel_for(static_cast<int64_t>(wanted_.size()), kQueryGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) body(i, wanted_[static_cast<size_t>(i)]);
        });
    }

    bool has_room(int32_t row, const float* point) const {
        const float room_sq = room_sq_[static_cast<size_t>(row)];
        for (int64_t j = 0; j < near_.size(1); ++j) {
            const int32_t other = near_(row, j);
            if (other < 0) break;
            const float* query = queries_.data() + 3 * other * most_;
            for (int64_t left = count(other); left > 0; --left, query += 3)
                if (distance_sq(query, point) < room_sq) return false;
        }
        return true;
    }
    bool is_first(int32_t row, const float* point) const {
        const float room_sq = room_sq_[static_cast<size_t>(row)];
        for (int64_t j = 0; j < near_.size(1); ++j) {
            const int32_t other = near_(row, j);
            if (other < 0) break;
            const Offer& theirs = offers_[static_cast<size_t>(other)];
            if (theirs.is_open && draw(other) < draw(row) && distance_sq(theirs.at, point) < room_sq) return false;
        }
        return true;
    }
    /// In another order each time; never the same of two rows.
    uint64_t draw(int32_t row) const {
        const auto key = static_cast<uint64_t>(row);
        return (key ^ round_ * 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    }

    View<const int32_t, 2> near_;
    std::span<const int32_t> wanted_;
    int64_t most_;
    uint64_t round_ = 0;
    std::vector<float> room_sq_;  // of each row: the squared distance that its queries keep
    std::vector<int64_t> count_;
    std::vector<Offer> offers_;   // of each row, in this round
    std::vector<float> queries_;  // [rows, most, 3]
};

}  // namespace

Queries make_queries(const CandidateRequest& request) {
    const std::span<const int32_t> points = request.region.points;
    const double ratio = request.ratio;
    const Array<float, 2> rows = rows_of(request.region.cloud, points);
    const int64_t n = rows.size(0), k = std::min(n, data::kQueryNeighbours);
    Array<int32_t, 2> near({n, k});
    ops::knn(ops::PointIndex(rows.view()), rows.view(), near.view(), {});
    std::vector<int32_t> wanted;
    for (int32_t i = 0; i < static_cast<int32_t>(n); ++i)
        if (request.is_wanted[static_cast<size_t>(points[static_cast<size_t>(i)])]) wanted.push_back(i);

    const auto tried = static_cast<int64_t>(std::ceil(kTrials * kOversampling * ratio));
    std::vector<float> places(static_cast<size_t>(3 * tried * static_cast<int64_t>(wanted.size())));
    data::neighbour_queries(rows.view(), near.view(), wanted, tried, kSeed, places.data());

    Spreader spread(rows.view(), near.view(), wanted, kOversampling * ratio, 1 + k + 2 * tried);
    if (request.has_inputs)
        for (const int32_t i : wanted) spread.put(i, &rows.view()(i, 0));
    for (int64_t j = 1; j < k; ++j)
        spread.offer([&](int64_t, int32_t row, float* to) {
            const int32_t other = near.view()(row, j);
            for (int c = 0; c < 3 && other >= 0; ++c) to[c] = 0.5f * (rows.view()(row, c) + rows.view()(other, c));
            return other >= 0;
        });
    const auto place = [&](int64_t i, int64_t j, float* to) {
        std::copy_n(places.data() + 3 * (i * tried + j), 3, to);
        return true;
    };
    for (int64_t j = 0; j < tried; ++j) spread.offer([&](int64_t i, int32_t, float* to) { return place(i, j, to); });

    // Points on a line, or many at one place, seem to have more room than they have: closer and closer there.
    const auto needed = static_cast<int64_t>(std::ceil(ratio));
    const auto lacks = [&](int32_t row) { return spread.count(row) < needed; };
    for (int closer = 0; closer <= kCloser && std::any_of(wanted.begin(), wanted.end(), lacks); ++closer) {
        for (const int32_t row : wanted)
            if (lacks(row)) spread.narrow(row, closer == kCloser);
        for (int64_t j = 0; j < tried; ++j)
            spread.offer([&](int64_t i, int32_t row, float* to) { return lacks(row) && place(i, j, to); });
    }

    Queries queries;
    const auto add = [&](int32_t row, std::span<const float> of) {
        queries.points.insert(queries.points.end(), of.begin(), of.end());
        queries.parents.insert(queries.parents.end(), of.size() / 3, points[static_cast<size_t>(row)]);
    };
    const size_t own = request.has_inputs ? 3 : 0;
    for (const int32_t row : wanted) add(row, spread.queries_of(row).first(own));
    queries.inputs = queries.size();
    for (const int32_t row : wanted) add(row, spread.queries_of(row).subspan(own));
    return queries;
}

}  // namespace stipple::tasks
