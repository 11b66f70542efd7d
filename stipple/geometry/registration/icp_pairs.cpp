#include "stipple/geometry/registration/icp_pairs.h"

#include <cmath>

#include "stipple/core/numeric.h"
#include "stipple/ops/search/point_tree_search.h"

namespace stipple::geometry {
namespace {

using ops::cpu::CloudTree;
using ops::cpu::Ints16;
using ops::cpu::kLeaf;
using Group = ops::cpu::Group<3>;

// A neighbour as one number, as in ops/search/knn_cpu.cpp: distance above, index below.
uint64_t key_of(int32_t distance_bits, int32_t index) {
    return static_cast<uint64_t>(distance_bits) << 32 | static_cast<uint32_t>(index);
}
int32_t distance_bits(uint64_t key) {
    return static_cast<int32_t>(key >> 32);
}
constexpr uint32_t kNoIndex = 0xffffffff;
bool is_found(uint64_t key) {
    return static_cast<uint32_t>(key) != kNoIndex;
}

// The two nearest so far of every query of a group.
struct TwoNearest {
    uint64_t first[kLeaf], second[kLeaf];

    void clear(int lane, int32_t reach) { first[lane] = second[lane] = key_of(reach, 0) | kNoIndex; }

    // A point may be shown twice: as a start and by the walk.
    void show(int lane, uint64_t key) {
        if (key >= second[lane] || key == first[lane]) return;
        second[lane] = key < first[lane] ? first[lane] : key;
        first[lane] = key < first[lane] ? key : first[lane];
    }

    void show(Group& group, int lane, const Ints16& bits, const int32_t* indices) {
        const uint32_t found = bits.within(group.reach[lane]);
        if (found == 0) return;
        int32_t distances[kLeaf];
        bits.to(distances);
        ops::cpu::for_each_bit(found, [&](int i) { show(lane, key_of(distances[i], indices[i])); });
        group.reach[lane] = distance_bits(second[lane]);
    }
};

void set_box(Group& group, uint32_t lanes) {
    for (int axis = 0; axis < 3; ++axis) {
        float low = std::numeric_limits<float>::infinity(), high = -low;
        ops::cpu::for_each_bit(lanes, [&](int lane) {
            low = std::min(low, group.at[axis][lane]);
            high = std::max(high, group.at[axis][lane]);
        });
        group.low[axis] = low;
        group.high[axis] = high;
    }
}

// Whether a group is so much larger than a leaf of the tree that its queries had better go alone.
bool is_scattered(const Group& group, const CloudTree& tree, int64_t leaf) {
    const float* box = tree.box(0, leaf / ops::cpu::kFan) + leaf % ops::cpu::kFan;
    float group_sq = 0, leaf_sq = 0;
    for (int axis = 0; axis < 3; ++axis) {
        const float group_side = group.high[axis] - group.low[axis];
        const float leaf_side = box[(2 * axis + 1) * ops::cpu::kFan] - box[2 * axis * ops::cpu::kFan];
        group_sq += group_side * group_side;
        leaf_sq += leaf_side * leaf_side;
    }
    constexpr float kLarger = 16;
    return group_sq > kLarger * leaf_sq;
}

}  // namespace

PairTarget::PairTarget(View<const float, 2> points)
    : index_(ops::Clouds(points)),
      tree_(&index_.on_cpu().clouds[0]),
      blocks_(tree_->leaves.at(0)),
      slots_(static_cast<size_t>(points.size(0)), -1) {
    for (int64_t slot = 0; slot < size(); ++slot) slots_[index_at(slot)] = static_cast<int32_t>(slot);
}

Pairs::Pairs(const PairTarget& target, View<const float, 2> source, float max_distance)
    : target_(&target),
      arranged_(std::move(ops::cpu::arrange(ops::Clouds(source))[0])),
      source_(&arranged_),
      max_distance_(max_distance) {
    prepare();
}

Pairs::Pairs(const PairTarget& target, const ops::cpu::Leaves& source, float max_distance)
    : target_(&target), source_(&source), max_distance_(max_distance) {
    prepare();
}

void Pairs::prepare() {
    // A little further than wanted, so that points without a pair may move before they are searched again.
    constexpr float kFurther = 1.125f;
    reach_ = kFurther * max_distance_;
    const auto n = static_cast<size_t>(source_->size);
    slots_.assign(n, {-1, -1});
    searched_at_.resize(n);
    slack_.assign(n, -1);
    distances_sq_.resize(n);
    within_.resize(n);
}

int64_t Pairs::update(const RigidTransform& motion) {
    constexpr int64_t kGroups = 32;
    const int64_t groups = source_->count();
    std::vector<int64_t> searched(static_cast<size_t>((groups + kGroups - 1) / kGroups), 0);
    parallel_for(groups, kGroups, [&](int64_t begin, int64_t end) {
        for (int64_t leaf = begin; leaf < end; ++leaf) searched[begin / kGroups] += update_group(leaf, motion);
    });
    int64_t total = 0;
    for (const int64_t count : searched) total += count;
    return total;
}

int64_t Pairs::update_group(int64_t leaf, const RigidTransform& motion) {
    const int lanes = source_->lanes(leaf);
    const int64_t first = leaf * kLeaf;
    alignas(16) float at[3][kLeaf];
    const float* block = source_->at(leaf);
    for (int axis = 0; axis < 3; ++axis) {
        const auto& row = motion.rotation[axis];
        for (int lane = 0; lane < kLeaf; ++lane)  // the last leaf is filled up with infinities: not read
            at[axis][lane] = static_cast<float>(row[0] * block[lane] + row[1] * block[kLeaf + lane] +
                                                row[2] * block[2 * kLeaf + lane] + motion.translation[axis]);
    }
    uint32_t moved = 0;
    for (int lane = 0; lane < lanes; ++lane) {
        const std::array<float, 3>& from = searched_at_[first + lane];
        const float slack = slack_[first + lane];
        const float motion_sq =
            stipple::distance_sq(at[0][lane] - from[0], at[1][lane] - from[1], at[2][lane] - from[2]);
        // A point that rests keeps even a tied neighbour.
        if (!(slack >= 0 && (motion_sq < slack * slack || motion_sq == 0))) moved |= 1U << lane;
    }
    if (moved != 0) search(leaf, at, moved);
    const float most = max_distance_ * max_distance_;
    for (int lane = 0; lane < lanes; ++lane) {
        const int64_t rank = first + lane;
        const int32_t slot = slots_[rank].first;
        within_[rank] = 0;
        if (slot < 0) continue;
        const float distance = stipple::distance_sq(
            target_->at(slot, 0) - at[0][lane], target_->at(slot, 1) - at[1][lane], target_->at(slot, 2) - at[2][lane]);
        distances_sq_[rank] = distance;
        within_[rank] = distance <= most;
    }
    return std::popcount(moved);
}

void Pairs::search(int64_t leaf, const float (*at)[kLeaf], uint32_t lanes) {
    const CloudTree& tree = target_->tree();
    if (tree.levels.empty()) return;
    const int64_t first = leaf * kLeaf;
    const int32_t reach = ops::cpu::reach_of(reach_, false);
    Group group;
    TwoNearest nearest;
    group.dimension = 3;
    group.lanes = kLeaf;
    std::copy_n(at[0], 3 * kLeaf, group.at[0]);
    std::fill_n(group.reach, kLeaf, ops::cpu::kNothing);
    set_box(group, lanes);
    int64_t near = -1;  // a leaf near the group, where one is known
    ops::cpu::for_each_bit(lanes, [&](int lane) {
        nearest.clear(lane, reach);
        for (const int32_t slot : {slots_[first + lane].first, slots_[first + lane].second}) {
            if (slot < 0) continue;
            const float distance =
                stipple::distance_sq(target_->at(slot, 0) - at[0][lane], target_->at(slot, 1) - at[1][lane],
                                     target_->at(slot, 2) - at[2][lane]);
            nearest.show(lane, key_of(std::bit_cast<int32_t>(distance), target_->index_at(slot)));
            near = slot / kLeaf;
        }
        group.reach[lane] = distance_bits(nearest.second[lane]);
    });
    if (near < 0) near = leaf_near(tree, group);
    const auto walk_from = [&](Group& part, uint32_t part_lanes, int64_t start, bool is_new) {
        ops::cpu::LeafRange seen = {};
        if (is_new) {
            ops::cpu::for_each_bit(part_lanes, [&](int lane) {
                nearest.show(part, lane, distances_to_points(part, lane, tree.leaves.at(start)),
                             tree.leaves.indices_at(start));
            });
            seen = {start, start + 1};
        }
        part.update_farthest();
        walk(tree, part, seen,
             [&](int lane, const Ints16& bits, const int32_t* indices) { nearest.show(part, lane, bits, indices); });
    };
    const bool is_new = slots_[first + std::countr_zero(lanes)].first < 0;
    if (!is_scattered(group, tree, near)) {
        walk_from(group, lanes, near, is_new);
    } else {
        ops::cpu::for_each_bit(lanes, [&](int lane) {
            Group alone = group;
            std::fill_n(alone.reach, kLeaf, ops::cpu::kNothing);
            alone.reach[lane] = group.reach[lane];
            for (int axis = 0; axis < 3; ++axis) alone.low[axis] = alone.high[axis] = group.at[axis][lane];
            const bool alone_is_new = slots_[first + lane].first < 0;
            walk_from(alone, 1U << lane, alone_is_new ? leaf_near(tree, alone) : near, alone_is_new);
        });
    }
    ops::cpu::for_each_bit(lanes, [&](int lane) {
        const int64_t rank = first + lane;
        const uint64_t one = nearest.first[lane], two = nearest.second[lane];
        slots_[rank] = {is_found(one) ? target_->slot_of(static_cast<int32_t>(one)) : -1,
                        is_found(two) ? target_->slot_of(static_cast<int32_t>(two)) : -1};
        searched_at_[rank] = {at[0][lane], at[1][lane], at[2][lane]};
        // Without a find the reach is a lower bound of the distance. Distances and motions in float32 are right to
        // 3e-7 of themselves, so this much less is safe.
        constexpr float kSafe = 4e-6f;
        const float nearest_at = std::sqrt(std::bit_cast<float>(distance_bits(one)));
        const float second_at = std::sqrt(std::bit_cast<float>(distance_bits(two)));
        const float between = 0.5f * (second_at - nearest_at), outside = nearest_at - max_distance_;
        const float slack = (is_found(one) ? std::max(between, outside) : outside) - kSafe * second_at;
        slack_[rank] = std::max(slack, 0.0f);
    });
}

}  // namespace stipple::geometry
