// radius_search and ball_query in index order: everything within a fixed reach.

#include "stipple/ops/search/neighbours_cpu.h"
#include "stipple/ops/search/point_tree_search.h"

namespace stipple::ops::cpu {
namespace {

// scan(state, lane, bits, indices) for every leaf that may be within reach of a query; then finish(state, lane, row of
// the batch).
template <int C, class State, class Scan, class Finish>
void within_reach(const PointTree& tree, const std::vector<const Leaves*>& queries, const Batch& batch, int32_t reach,
                  Scan scan, Finish finish) {
    for_each_group<C>(
        tree, queries, [] { return State(); },
        [&](int64_t cloud, const CloudTree& cloud_tree, const Leaves& from, int64_t number, int64_t home,
            Group<C>& group, State& state) {
            group.fill(from, number, reach);
            for_each_part(cloud_tree, group, home, [&](Group<C>& part, uint32_t, int64_t) {
                part.update_farthest();
                walk(cloud_tree, part, {},
                     [&](int lane, const Ints16& bits, const int32_t* indices) { scan(state, lane, bits, indices); });
            });
            for (int lane = 0; lane < group.lanes; ++lane) finish(state, lane, batch.begin(cloud) + group.rows[lane]);
        });
}

template <class State, class Scan, class Finish>
void within_reach(const PointTree& tree, const std::vector<const Leaves*>& queries, const Batch& batch, int32_t reach,
                  Scan scan, Finish finish) {
    if (queries.empty()) return;
    if (queries[0]->dimension == 3)
        within_reach<3, State>(tree, queries, batch, reach, scan, finish);
    else
        within_reach<0, State>(tree, queries, batch, reach, scan, finish);
}

struct Counts {
    int32_t of[kLeaf] = {};
};

// Found so far by each query of a group: distance bits above, index below.
struct Hits {
    std::vector<uint64_t> of[kLeaf];
};

}  // namespace

void radius_count(const PointTree& tree, const Clouds& queries, float radius, View<int32_t, 1> counts) {
    const ArrangedQueries arranged(tree, queries);
    const int32_t reach = reach_of(radius, false);
    within_reach<Counts>(
        tree, arranged.leaves(), queries.batch, reach,
        [=](Counts& found, int lane, const Ints16& bits, const int32_t*) {
            found.of[lane] += std::popcount(bits.within(reach));
        },
        [=](Counts& found, int lane, int64_t row) {
            counts(row) = found.of[lane];
            found.of[lane] = 0;
        });
    for_each_left_out(queries, arranged.leaves(), [&](int64_t row) { counts(row) = 0; });
}

void radius_search(const PointTree& tree, const Clouds& queries, float radius, View<const int64_t, 1> offsets,
                   View<int32_t, 1> indices, View<float, 1> distances_sq, NeighbourOrder order) {
    const int64_t total = indices.size(0);
    const auto require_room = [=](int64_t row, int64_t found) {
        const int64_t begin = offsets(row), end = offsets(row + 1);
        STIPPLE_REQUIRE(0 <= begin && begin <= end && end <= total && end - begin == found,
                        "radius_search: offsets {} to {} of {} for the {} neighbours of query {}", begin, end, total,
                        found, row);
    };
    const ArrangedQueries arranged(tree, queries);
    const int32_t reach = reach_of(radius, false);
    within_reach<Hits>(
        tree, arranged.leaves(), queries.batch, reach,
        [=](Hits& hits, int lane, const Ints16& bits, const int32_t* leaf_indices) {
            int32_t distances[kLeaf];
            bits.to(distances);
            for_each_bit(bits.within(reach), [&](int i) {
                hits.of[lane].push_back(static_cast<uint64_t>(distances[i]) << 32 |
                                        static_cast<uint32_t>(leaf_indices[i]));
            });
        },
        [=](Hits& hits, int lane, int64_t row) {
            std::vector<uint64_t>& keys = hits.of[lane];
            require_room(row, static_cast<int64_t>(keys.size()));
            if (order == NeighbourOrder::nearest)
                std::sort(keys.begin(), keys.end());
            else
                std::sort(keys.begin(), keys.end(), [](uint64_t a, uint64_t b) { return uint32_t(a) < uint32_t(b); });
            const int64_t begin = offsets(row);
            for (size_t i = 0; i < keys.size(); ++i) {
                indices.data()[begin + i] = static_cast<int32_t>(keys[i]);
                if (distances_sq.elements() > 0)
                    distances_sq.data()[begin + i] = std::bit_cast<float>(static_cast<int32_t>(keys[i] >> 32));
            }
            keys.clear();
        });
    for_each_left_out(queries, arranged.leaves(), [&](int64_t row) { require_room(row, 0); });
}

void ball_query(const PointTree& tree, const Clouds& queries, float radius, View<int32_t, 2> indices,
                View<int32_t, 1> counts, NeighbourOrder order) {
    const int64_t samples = indices.size(1);
    const int32_t reach = reach_of(radius, true);
    const ArrangedQueries arranged(tree, queries);
    // Found at the front of the row: the rest repeats the first.
    const auto fill_up = [=](int64_t row, int64_t found) {
        int32_t* to = indices.data() + row * samples;
        std::fill(to + found, to + samples, found > 0 ? to[0] : -1);
        if (counts.elements() > 0) counts(row) = static_cast<int32_t>(found);
    };
    if (order == NeighbourOrder::nearest) {
        nearest_within(tree, arranged.leaves(), queries.batch, reach, indices, {});
        parallel_for(queries.rows.size(0), 4096, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
                const int32_t* found = indices.data() + row * samples;
                fill_up(row, std::find(found, found + samples, -1) - found);
            }
        });
    } else {
        for_each_left_out(queries, arranged.leaves(), [&](int64_t row) { fill_up(row, 0); });
        const auto most = static_cast<size_t>(samples);
        within_reach<Hits>(
            tree, arranged.leaves(), queries.batch, reach,
            [=](Hits& hits, int lane, const Ints16& bits, const int32_t* leaf_indices) {
                std::vector<uint64_t>& ball = hits.of[lane];
                for_each_bit(bits.within(reach),
                             [&](int i) { ball.push_back(static_cast<uint32_t>(leaf_indices[i])); });
                if (ball.size() > 2 * most + 256) {  // a large ball: only the lowest indices are wanted
                    std::nth_element(ball.begin(), ball.begin() + samples, ball.end());
                    ball.resize(most);
                }
            },
            [=](Hits& hits, int lane, int64_t row) {
                std::vector<uint64_t>& ball = hits.of[lane];
                const auto found = static_cast<int64_t>(std::min(ball.size(), most));
                std::partial_sort(ball.begin(), ball.begin() + found, ball.end());
                for (int64_t i = 0; i < found; ++i) indices.data()[row * samples + i] = static_cast<int32_t>(ball[i]);
                fill_up(row, found);
                ball.clear();
            });
    }
}

}  // namespace stipple::ops::cpu
