#include "stipple/tasks/upsample/queries.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stipple/core/interrupt.h"
#include "stipple/core/numeric.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/upsample/descend.h"
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
// Added to distances, in spacings, before their inverses are weights.
constexpr float kNearestDistance = 1e-3f;

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

/// Where m places have gone, in the coordinates of the network.
struct MovedPlaces {
    Array<float, 2> points;        // [m, 3]
    Array<float, 2> weights;       // [m * k, 1]
    Array<int32_t, 2> neighbours;  // [m, k] rows of the points
    Array<float, 2> uncertainty;   // [m, 1]; empty: the network does not know
};

/// By a network that moves them.
MovedPlaces places_by_network(Upsampler& upsampler, NetworkRunner& runner, const Array<float, 2>& points,
                              const Array<float, 2>& places, int64_t k) {
    const int64_t n = points.size(0), m = places.size(0);
    const Array<float, 2>* features = upsampler.features_of(points);
    engine::Context& context = runner.reserve(std::max(n, m));
    const Device device = runner.device();
    const Array<float, 2> points_there = points.to(device), places_there = places.to(device);
    MovedPlaces moved;
    moved.points = Array<float, 2>({m, 3}, device);
    std::vector<engine::Output> outputs = {{"upsampled", moved.points.view()}};
    if (k > 0) {
        moved.weights = Array<float, 2>({m * k, 1}, device);
        moved.neighbours = Array<int32_t, 2>({m, k}, device);
        outputs.push_back({"weights", moved.weights.view()});
        outputs.push_back({"neighbours", {}, moved.neighbours.view()});
    }
    if (find_type(runner.program(), runner.program().outputs, "uncertainty")) {
        moved.uncertainty = Array<float, 2>({m, 1}, device);
        outputs.push_back({"uncertainty", moved.uncertainty.view()});
    }
    std::vector<engine::Input> inputs = {{"points", points_there.view()}, {"queries", places_there.view()}};
    if (features) inputs.push_back({"features", features->view()});
    context.run({ops::Batch::single(n), ops::Batch::single(m)}, inputs, outputs);
    moved.points = moved.points.to(Device{});
    if (k > 0) moved.weights = moved.weights.to(Device{}), moved.neighbours = moved.neighbours.to(Device{});
    moved.uncertainty = moved.uncertainty.to(Device{});
    return moved;
}

/// Down the distances of a network; what is made of which points goes by how near they are.
MovedPlaces places_by_descent(Upsampler& upsampler, const Array<float, 2>& points, Array<float, 2> places, int64_t k) {
    const int64_t n = points.size(0), m = places.size(0);
    const Array<float, 2>* features = upsampler.features_of(points);
    NetworkRunner& runner = upsampler.runner();
    engine::Context& context = runner.reserve(std::max(n, m));
    const Device device = runner.device();
    const Array<float, 2> points_there = points.to(device);
    Array<float, 2> found({m, 1}, device);
    const std::vector<float> distances = descend(places.view(), [&](View<const float, 2> at, View<float, 1> to) {
        check_interrupted();
        Array<float, 2> here({m, 3});
        std::copy_n(at.data(), 3 * m, here.data());
        const Array<float, 2> there = here.to(device);
        std::vector<engine::Input> inputs = {{"points", points_there.view()}, {"queries", there.view()}};
        if (features) inputs.push_back({"features", features->view()});
        context.run({ops::Batch::single(n), ops::Batch::single(m)}, inputs, {{"distance", found.view()}});
        std::copy_n(found.to(Device{}).data(), m, to.data());
    });
    MovedPlaces moved;
    moved.points = std::move(places);
    moved.uncertainty = Array<float, 2>({m, 1});
    std::copy(distances.begin(), distances.end(), moved.uncertainty.data());
    if (k == 0) return moved;
    moved.weights = Array<float, 2>({m * k, 1});
    moved.neighbours = Array<int32_t, 2>({m, k});
    Array<float, 2> distances_sq({m, k});
    ops::knn(ops::PointIndex(points.view()), moved.points.view(), moved.neighbours.view(), distances_sq.view());
    for (int64_t i = 0; i < m * k; ++i)
        moved.weights.data()[i] = 1 / (std::sqrt(distances_sq.data()[i]) + kNearestDistance);
    return moved;
}

}  // namespace

Queries make_queries(const Region& region, double ratio, bool has_inputs) {
    const Array<float, 2> rows = rows_of(region.cloud, region.points);
    const int64_t n = rows.size(0), k = std::min(n, data::kQueryNeighbours);
    Array<int32_t, 2> near({n, k});
    ops::knn(ops::PointIndex(rows.view()), rows.view(), near.view(), {});
    std::vector<int32_t> wanted;
    for (int32_t i = 0; i < static_cast<int32_t>(n); ++i)
        if (region.is_wanted[static_cast<size_t>(region.points[static_cast<size_t>(i)])]) wanted.push_back(i);

    const auto tried = static_cast<int64_t>(std::ceil(kTrials * kOversampling * ratio));
    std::vector<float> places(static_cast<size_t>(3 * tried * static_cast<int64_t>(wanted.size())));
    data::neighbour_queries(rows.view(), near.view(), wanted, tried, kSeed, places.data());

    Spreader spread(rows.view(), near.view(), region.points, kOversampling * ratio);
    const auto place = [&](size_t i, int64_t j) { return places.data() + 3 * (static_cast<int64_t>(i) * tried + j); };
    for (const int32_t i : wanted)
        if (has_inputs) spread.put(i, &rows.view()(i, 0));
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

void move_queries(Upsampler& upsampler, const Region& region, const Queries& queries, bool is_rough,
                  Candidates& candidates) {
    const Array<float, 2> rows = rows_of(region.cloud, region.points);
    Frame frame;
    frame.unit = data::mean_spacing(rows.view());
    for (int c = 0; c < 3; ++c) frame.centre[c] = region.cloud(region.points[0], c);
    const int64_t n = rows.size(0), m = queries.size(), k = candidates.width;
    Array<float, 2> points({n, 3}), places({m, 3});
    for (int64_t i = 0; i < n; ++i) frame.into(rows.data() + 3 * i, points.data() + 3 * i);
    for (int64_t i = 0; i < m; ++i) frame.into(queries.points.data() + 3 * i, places.data() + 3 * i);
    NetworkRunner& runner = is_rough ? upsampler.first_step() : upsampler.runner();
    const MovedPlaces moved = upsampler.tells_distances() ? places_by_descent(upsampler, points, std::move(places), k)
                                                          : places_by_network(upsampler, runner, points, places, k);
    const bool knows_uncertainty = moved.uncertainty.elements() > 0;
    for (int64_t q = 0; q < m; ++q) {
        float point[3];
        frame.out_of(moved.points.data() + 3 * q, point);
        if (knows_uncertainty && !std::isfinite(moved.uncertainty.data()[q])) continue;
        const int64_t before = candidates.size();
        add_candidate(candidates, point, queries.parents[static_cast<size_t>(q)]);
        if (candidates.size() == before) continue;
        for (int64_t j = 0; j < k; ++j) {
            candidates.sources[static_cast<size_t>(before * k + j)] =
                region.points[static_cast<size_t>(moved.neighbours.data()[q * k + j])];
            candidates.weights[static_cast<size_t>(before * k + j)] = moved.weights.data()[q * k + j];
        }
        if (knows_uncertainty)
            candidates.uncertainties.push_back(static_cast<float>(moved.uncertainty.data()[q] * frame.unit));
    }
}

}  // namespace stipple::tasks
