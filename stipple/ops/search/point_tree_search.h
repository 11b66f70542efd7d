#pragma once
// How the tree is searched: sixteen queries that lie close together walk it as one group, so that the descent is paid
// once for all of them. At a leaf every query decides for itself.
//
// Squared distances are handled as the bits of their float32, which order as integers because they are not negative.
// Pruning is exact: box distances are computed by the same rounded operations as point distances, and rounding is
// monotone, so the distance of a box is never above that of a point in it.

#include <atomic>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/simd.h"
#include "stipple/ops/search/point_tree.h"

namespace stipple::ops::cpu {

constexpr int32_t kFarthest = std::bit_cast<int32_t>(std::numeric_limits<float>::max());
constexpr int32_t kNothing = -1;  // a reach that no distance is within

/// The reach of a radius: the greatest squared distance inside, in bits. Overflowing distances are never inside.
inline int32_t reach_of(float radius, bool strictly) {
    return std::min(std::bit_cast<int32_t>(radius * radius) - (strictly ? 1 : 0), kFarthest);
}

/// Up to kLeaf queries side by side. C is the dimension, or 0 when it is known at run time only.
template <int C>
struct Group {
    static constexpr int kMost = C == 0 ? 32 : C;
    int dimension = C;
    int lanes = 0;
    alignas(16) float at[kMost][kLeaf];
    float low[kMost], high[kMost];
    alignas(16) int32_t reach[kLeaf];  // a query takes points up to this distance; kNothing in lanes without a query
    int32_t farthest = kNothing;       // the largest reach
    const int32_t* rows = nullptr;     // of the queries, in their cloud
    int axes() const { return C == 0 ? dimension : C; }

    void fill(const Leaves& queries, int64_t leaf, int32_t first_reach) {
        dimension = queries.dimension;
        lanes = queries.lanes(leaf);
        rows = queries.indices_at(leaf);
        for (int axis = 0; axis < axes(); ++axis) {
            const float* from = queries.at(leaf) + axis * kLeaf;
            for (int lane = 0; lane < kLeaf; ++lane) at[axis][lane] = lane < lanes ? from[lane] : from[0];
            low[axis] = high[axis] = from[0];
            for (int lane = 1; lane < lanes; ++lane) {
                low[axis] = from[lane] < low[axis] ? from[lane] : low[axis];
                high[axis] = from[lane] > high[axis] ? from[lane] : high[axis];
            }
        }
        for (int lane = 0; lane < kLeaf; ++lane) reach[lane] = lane < lanes ? first_reach : kNothing;
        farthest = first_reach;
    }

    void update_farthest() { farthest = Ints16::from(reach).most(); }
};

/// Squared distance of an interval outside of which a number lies this far below or above.
inline Float4 squared_gap(Float4 below, Float4 above) {
    const Float4 gap = larger(larger(below, above), all(0.0f));
    return gap * gap;
}

/// From the group's box to the boxes of a node's children.
template <int C>
void distances_to_children(const Group<C>& group, const float* boxes, int32_t* bits) {
    Float4 sum[kFan / 4] = {};
    for (int axis = 0; axis < group.axes(); ++axis) {
        const float *lows = boxes + 2 * axis * kFan, *highs = lows + kFan;
        const Float4 low = all(group.low[axis]), high = all(group.high[axis]);
        for (int i = 0; i < kFan / 4; ++i)
            sum[i] += squared_gap(load<Float4>(lows + 4 * i) - high, low - load<Float4>(highs + 4 * i));
    }
    for (int i = 0; i < kFan / 4; ++i) store(bits + 4 * i, bits_of(sum[i]));
}

/// From every query of the group to one box, the child of a node.
template <int C>
Ints16 distances_to_box(const Group<C>& group, const float* boxes, int child) {
    Float4 sum[4] = {};
    for (int axis = 0; axis < group.axes(); ++axis) {
        const Float4 low = all(boxes[2 * axis * kFan + child]), high = all(boxes[(2 * axis + 1) * kFan + child]);
        for (int i = 0; i < 4; ++i) {
            const auto x = load<Float4>(group.at[axis] + 4 * i);
            sum[i] += squared_gap(low - x, x - high);
        }
    }
    return {bits_of(sum[0]), bits_of(sum[1]), bits_of(sum[2]), bits_of(sum[3])};
}

/// From one query to the points of a leaf. 0 + x is x for the squares here, so the sums are those of distance_sq.
template <int C>
Ints16 distances_to_points(const Group<C>& group, int lane, const float* points) {
    Float4 sum[4] = {};
    for (int axis = 0; axis < group.axes(); ++axis) {
        const Float4 x = all(group.at[axis][lane]);
        for (int i = 0; i < 4; ++i) {
            const Float4 d = load<Float4>(points + axis * kLeaf + 4 * i) - x;
            sum[i] += d * d;
        }
    }
    return {bits_of(sum[0]), bits_of(sum[1]), bits_of(sum[2]), bits_of(sum[3])};
}

struct LeafRange {
    int64_t begin = 0, end = 0;
};

/// Shows every query of the group the leaves that can be within its reach, nearest to the group first, but not those of
/// `seen`: scan(lane, bits (Ints16), indices) with the squared distances to a leaf's points. scan may lower
/// group.reach[lane].
template <int C, class Scan>
void walk(const CloudTree& tree, Group<C>& group, LeafRange seen, Scan&& scan) {
    struct Entry {
        int32_t distance, level;  // level -1: a leaf
        int64_t node;
    };
    constexpr int kLevels = 10;  // 8^10 leaves are more than int32 can number points
    Entry stack[kLevels * kFan];
    int top = 0;
    if (tree.levels.empty()) return;
    stack[top++] = {0, static_cast<int32_t>(tree.levels.size()) - 1, 0};
    while (top > 0) {
        const Entry entry = stack[--top];
        if (entry.distance > group.farthest) continue;
        if (entry.level >= 0) {
            int32_t bits[kFan];
            distances_to_children(group, tree.box(entry.level, entry.node), bits);
            const int bottom = top;
            for (int child = 0; child < kFan; ++child) {
                if (bits[child] > group.farthest) continue;
                int at = top++;
                for (; at > bottom && stack[at - 1].distance < bits[child]; --at) stack[at] = stack[at - 1];
                stack[at] = {bits[child], entry.level - 1, entry.node * kFan + child};
            }
            continue;
        }
        const int64_t leaf = entry.node;
        if (leaf >= seen.begin && leaf < seen.end) continue;
        const uint32_t lanes = distances_to_box(group, tree.box(0, leaf / kFan), static_cast<int>(leaf % kFan))
                                   .within(Ints16::from(group.reach));
        for_each_bit(lanes, [&](int lane) {
            scan(lane, distances_to_points(group, lane, tree.leaves.at(leaf)), tree.leaves.indices_at(leaf));
        });
        if (lanes != 0) group.update_farthest();
    }
}

/// The leaf to begin with for queries that are not in the tree: nearest to the middle of the group at every step.
template <int C>
int64_t leaf_near(const CloudTree& tree, const Group<C>& group) {
    Group<C> middle;
    middle.dimension = group.dimension;
    for (int axis = 0; axis < group.axes(); ++axis)
        middle.low[axis] = middle.high[axis] = 0.5f * group.low[axis] + 0.5f * group.high[axis];
    int64_t node = 0;
    for (int level = static_cast<int>(tree.levels.size()) - 1; level >= 0; --level) {
        int32_t bits[kFan];
        distances_to_children(middle, tree.box(level, node), bits);
        int nearest = 0;
        for (int child = 1; child < kFan; ++child) nearest = bits[child] < bits[nearest] ? child : nearest;
        node = node * kFan + nearest;
    }
    return std::min(node, tree.leaves.count() - 1);
}

/// part(group, its lanes as bits, a leaf near it) for the whole group; or for each of its queries alone where the group
/// is far larger than a leaf, as queries are that are few among many points: its box would meet many leaves that none
/// of its queries needs. `home` is the group's own leaf or -1. Nothing when the tree is empty.
template <int C, class Part>
void for_each_part(const CloudTree& tree, Group<C>& group, int64_t home, Part part) {
    if (tree.levels.empty()) return;
    const int64_t leaf = home >= 0 ? home : leaf_near(tree, group);
    const float* box = tree.box(0, leaf / kFan) + leaf % kFan;
    float group_sq = 0, leaf_sq = 0;
    for (int axis = 0; axis < group.axes(); ++axis) {
        const float group_side = group.high[axis] - group.low[axis];
        const float leaf_side = box[(2 * axis + 1) * kFan] - box[2 * axis * kFan];
        group_sq += group_side * group_side;
        leaf_sq += leaf_side * leaf_side;
    }
    constexpr float kLarger = 16;  // four times as long
    if (home >= 0 || !(group_sq > kLarger * leaf_sq)) return part(group, (1U << group.lanes) - 1, leaf);
    for (int lane = 0; lane < group.lanes; ++lane) {
        Group<C> alone = group;
        std::fill_n(alone.reach, kLeaf, kNothing);
        alone.reach[lane] = group.reach[lane];
        for (int axis = 0; axis < group.axes(); ++axis) alone.low[axis] = alone.high[axis] = group.at[axis][lane];
        part(alone, 1U << lane, leaf_near(tree, alone));
    }
}

/// Whether the queries are the indexed points themselves, all of them finite: then they are in order already.
bool are_queries(const Leaves& leaves, View<const float, 2> queries);

/// The groups of all clouds, in parallel: each(cloud, its tree, queries, number of the group, its leaf in the tree or
/// -1 when the queries are others, group, state). Each task makes a state for itself.
template <int C, class Make, class Each>
void for_each_group(const PointTree& tree, const std::vector<const Leaves*>& queries, const Make& make_state,
                    const Each& each) {
    constexpr int64_t kGroups = 32;  // of a task: long enough to forget its start, short enough to share out
    struct Task {
        int64_t cloud, begin, end;
    };
    std::vector<Task> tasks;
    for (size_t cloud = 0; cloud < queries.size(); ++cloud) {
        const int64_t groups = queries[cloud]->count();
        for (int64_t begin = 0; begin < groups; begin += kGroups)
            tasks.push_back({static_cast<int64_t>(cloud), begin, std::min(begin + kGroups, groups)});
    }
    parallel_for(static_cast<int64_t>(tasks.size()), 1, [&](int64_t i, int64_t) {
        auto state = make_state();
        Group<C> group;
        const Task& task = tasks[i];
        const CloudTree& cloud_tree = tree.clouds[task.cloud];
        const bool home = &cloud_tree.leaves == queries[task.cloud];
        for (int64_t leaf = task.begin; leaf < task.end; ++leaf)
            each(task.cloud, cloud_tree, *queries[task.cloud], leaf, home ? leaf : int64_t{-1}, group, state);
    });
}

/// The queries of a batch in kd order, each cloud by itself; the tree's own leaves where they are the same points.
class ArrangedQueries {
public:
    ArrangedQueries(const PointTree& tree, const Clouds& queries);
    const std::vector<const Leaves*>& leaves() const { return leaves_; }

private:
    std::vector<Leaves> arranged_;
    std::vector<const Leaves*> leaves_;
};

/// Calls none(row) for the rows that ArrangedQueries leaves out because a number in them is not finite.
template <class None>
void for_each_left_out(const Clouds& queries, const std::vector<const Leaves*>& leaves, None none) {
    for (int64_t cloud = 0; cloud < queries.batch.clouds(); ++cloud) {
        if (leaves[cloud]->size == queries.batch.size(cloud)) continue;
        for (int64_t row = queries.batch.begin(cloud); row < queries.batch.end(cloud); ++row) {
            const float* numbers = queries.rows.data() + row * queries.rows.stride(0);
            bool finite = true;
            for (int64_t axis = 0; axis < queries.dimension(); ++axis) finite &= std::isfinite(numbers[axis]);
            if (!finite) none(row);
        }
    }
}

}  // namespace stipple::ops::cpu
