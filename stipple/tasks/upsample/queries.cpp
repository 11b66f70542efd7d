#include "stipple/tasks/upsample/queries.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stipple/core/numeric.h"
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

/// Puts down queries that keep a distance from those of their parent and of its neighbours.
class Spreader {
public:
    /// `count`: queries that a point has room for.
    Spreader(View<const float, 2> rows, View<const int32_t, 2> near, std::span<const int32_t> points, double count)
        : near_(near), points_(points), room_sq_(static_cast<size_t>(rows.size(0))), of_(room_sq_.size()) {
        const double part = kRandomPacking / count;
        const int64_t last = near.size(1) - 1;
        for (int64_t i = 0; i < rows.size(0); ++i) {
            const int32_t far = near(i, last);
            if (far < 0 || last == 0) continue;
            const double area = std::numbers::pi * distance_sq(&rows(i, 0), &rows(far, 0)) / static_cast<double>(last);
            room_sq_[static_cast<size_t>(i)] = static_cast<float>(part * area);
        }
    }

    /// Where there is room for it.
    void add(int32_t row, const float* point) {
        const float room_sq = room_sq_[static_cast<size_t>(row)];
        for (int64_t j = 0; j < near_.size(1); ++j) {
            const int32_t other = near_(row, j);
            if (other < 0) break;
            for (const int32_t query : of_[static_cast<size_t>(other)])
                if (distance_sq(queries.points.data() + 3 * int64_t{query}, point) < room_sq) return;
        }
        put(row, point);
    }
    /// In any case.
    void put(int32_t row, const float* point) {
        of_[static_cast<size_t>(row)].push_back(static_cast<int32_t>(queries.size()));
        queries.points.insert(queries.points.end(), point, point + 3);
        queries.parents.push_back(points_[static_cast<size_t>(row)]);
    }

    int64_t count(int32_t row) const { return static_cast<int64_t>(of_[static_cast<size_t>(row)].size()); }
    /// Halves the distance that its queries keep, or gives it up.
    void narrow(int32_t row, bool entirely) { room_sq_[static_cast<size_t>(row)] *= entirely ? 0 : 0.25f; }

    Queries queries;

private:
    View<const int32_t, 2> near_;
    std::span<const int32_t> points_;
    std::vector<float> room_sq_;            // of each row: the squared distance that its queries keep
    std::vector<std::vector<int32_t>> of_;  // queries of each row
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

    Spreader spread(rows.view(), near.view(), points, kOversampling * ratio);
    const auto place = [&](size_t i, int64_t j) { return places.data() + 3 * (static_cast<int64_t>(i) * tried + j); };
    for (const int32_t i : wanted)
        if (request.has_inputs) spread.put(i, &rows.view()(i, 0));
    spread.queries.inputs = spread.queries.size();
    for (const int32_t i : wanted)
        for (int64_t j = 1; j < k; ++j) {
            const int32_t other = near.view()(i, j);
            if (other < 0) break;
            float middle[3];
            for (int c = 0; c < 3; ++c) middle[c] = 0.5f * (rows.view()(i, c) + rows.view()(other, c));
            spread.add(i, middle);
        }
    for (int64_t j = 0; j < tried; ++j)  // one of each point in turn
        for (size_t i = 0; i < wanted.size(); ++i) spread.add(wanted[i], place(i, j));

    // Points on a line, or many at one place, seem to have more room than they have: closer and closer there.
    const auto needed = static_cast<int64_t>(std::ceil(ratio));
    for (size_t i = 0; i < wanted.size(); ++i)
        for (int closer = 0; spread.count(wanted[i]) < needed && closer <= kCloser; ++closer) {
            spread.narrow(wanted[i], closer == kCloser);
            for (int64_t j = 0; j < tried && spread.count(wanted[i]) < needed; ++j) spread.add(wanted[i], place(i, j));
        }
    return std::move(spread.queries);
}

}  // namespace stipple::tasks
