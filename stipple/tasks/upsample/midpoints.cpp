#include <algorithm>
#include <cmath>

#include "stipple/ops/knn.h"
#include "stipple/tasks/upsample/candidates.h"
#include "stipple/tasks/upsample/frame.h"

namespace stipple::tasks {
namespace {

// Neighbours that ops::knn finds at most.
constexpr int64_t kMostNeighbours = 128;

/// Two points of a region, by their places in it, between which a candidate lies; equal for a point itself.
struct Pair {
    int32_t point = 0, other = 0;
};

/// Lists each wanted point itself, where asked for, and its pairs with its nearest neighbours, twice as many as the
/// ratio: at least `ratio` of each, as no pair comes twice.
std::vector<Pair> nearest_pairs(const CandidateRequest& request, View<const float, 2> rows) {
    const int64_t n = rows.size(0),
                  k = std::min({static_cast<int64_t>(std::ceil(2 * request.ratio)) + 1, n, kMostNeighbours});
    Array<int32_t, 2> near({n, k});
    ops::knn(ops::PointIndex(rows), rows, near.view(), {});
    const auto is_wanted = [&](int64_t i) {
        return request.is_wanted[static_cast<size_t>(request.region.points[static_cast<size_t>(i)])] != 0;
    };
    const auto has_neighbour = [&](int64_t i, int32_t j) {
        const int32_t* row = near.data() + i * k;
        return std::find(row, row + k, j) != row + k;
    };
    std::vector<Pair> pairs;
    for (int32_t i = 0; i < static_cast<int32_t>(n); ++i) {
        if (!is_wanted(i)) continue;
        if (request.has_inputs) pairs.push_back({i, i});
        for (int64_t j = 0; j < k; ++j) {
            const int32_t other = near.data()[i * k + j];
            const bool is_again = other < i && is_wanted(other) && has_neighbour(other, i);
            if (other != i && !is_again) pairs.push_back({i, other});
        }
    }
    return pairs;
}

void middle_of(View<const float, 2> rows, const Pair& pair, float* middle) {
    for (int c = 0; c < 3; ++c) middle[c] = 0.5f * (rows(pair.point, c) + rows(pair.other, c));
}

class MidpointMaker : public CandidateMaker {
public:
    Candidates make(const CandidateRequest& request) override {
        Candidates candidates;
        candidates.width = request.has_sources ? sources() : 0;
        const std::span<const int32_t> points = request.region.points;
        const Array<float, 2> rows = rows_of(request.region.cloud, points);
        for (const Pair& pair : nearest_pairs(request, rows.view())) {
            float middle[3];
            middle_of(rows.view(), pair, middle);
            add_candidate(candidates, middle, points[static_cast<size_t>(pair.point)]);
            if (candidates.width == 0) continue;
            const size_t first = candidates.sources.size() - 2;
            candidates.sources[first] = points[static_cast<size_t>(pair.point)];
            candidates.sources[first + 1] = points[static_cast<size_t>(pair.other)];
            candidates.weights[first] = candidates.weights[first + 1] = 0.5f;
        }
        return candidates;
    }
    double largest_ratio() const override { return 4; }  // of 8 neighbours
    int64_t sources() const override { return 2; }
};

}  // namespace

std::unique_ptr<CandidateMaker> midpoint_maker() {
    return std::make_unique<MidpointMaker>();
}

}  // namespace stipple::tasks
