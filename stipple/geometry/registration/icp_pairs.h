#pragma once
// The nearest target point of every source point while the source moves. Internal to icp().
//
// A search also finds the second nearest. As long as a point has moved by less than half the difference of the two
// distances since, its nearest is the same [after Nuechter et al. 2007, who cache tree nodes]; else it is searched
// anew, with its last two neighbours as a first bound. Points lie in the order of a tree, sixteen by sixteen, and
// search as groups (ops/search/point_tree_search.h).

#include <vector>

#include "stipple/geometry/rigid_transform.h"
#include "stipple/ops/point_index.h"
#include "stipple/ops/search/point_tree.h"

namespace stipple::geometry {

/// The target: a tree and its points in the order of the leaves ("slots").
class PairTarget {
public:
    /// points [n, 3] on the CPU.
    explicit PairTarget(View<const float, 2> points);

    int64_t size() const { return tree().leaves.size; }  // finite points
    const ops::PointIndex& index() const { return index_; }
    const ops::cpu::CloudTree& tree() const { return *tree_; }
    int32_t slot_of(int32_t index) const { return slots_[index]; }
    int32_t index_at(int64_t slot) const {
        return tree().leaves.indices_at(slot / ops::cpu::kLeaf)[slot % ops::cpu::kLeaf];
    }
    float at(int64_t slot, int axis) const { return at(slot)[axis * ops::cpu::kLeaf]; }
    /// Its coordinates are kLeaf numbers apart.
    const float* at(int64_t slot) const {
        constexpr int64_t kBlock = 4 * ops::cpu::kLeaf;
        return blocks_ + slot / ops::cpu::kLeaf * kBlock + slot % ops::cpu::kLeaf;
    }

private:
    ops::PointIndex index_;
    const ops::cpu::CloudTree* tree_;  // of the index, which copies share
    const float* blocks_;
    std::vector<int32_t> slots_;
};

/// The source and its pairs, by rank: places in the order of the source's tree, finite points only.
class Pairs {
public:
    /// `target` must outlive the pairs.
    Pairs(const PairTarget& target, View<const float, 2> source, float max_distance);
    /// Of points in order already; `source` must outlive the pairs too.
    Pairs(const PairTarget& target, const ops::cpu::Leaves& source, float max_distance);
    Pairs(const Pairs&) = delete;
    Pairs& operator=(const Pairs&) = delete;

    int64_t size() const { return source_->size; }
    /// Sixteen points from rank 16 * leaf on: x, then y, then z.
    const float* block(int64_t leaf) const { return source_->at(leaf); }
    Vector3 source(int64_t rank) const {
        const float* place = block(rank / ops::cpu::kLeaf) + rank % ops::cpu::kLeaf;
        return {place[0], place[ops::cpu::kLeaf], place[2 * ops::cpu::kLeaf]};
    }

    /// Finds the nearest target point of every moved source point. How many had to be searched.
    int64_t update(const RigidTransform& motion);

    /// The slot of the target point, or -1 where none is within max_distance; and the squared distance, computed in
    /// float32 as ops::knn does.
    int32_t slot(int64_t rank) const { return within_[rank] ? slots_[rank].first : -1; }
    float distance_sq(int64_t rank) const { return distances_sq_[rank]; }

private:
    struct Two {
        int32_t first, second;  // slots, -1 for none
    };

    void prepare();
    int64_t update_group(int64_t leaf, const RigidTransform& motion);
    void search(int64_t leaf, const float (*at)[ops::cpu::kLeaf], uint32_t lanes);

    const PairTarget* target_;
    ops::cpu::Leaves arranged_;  // where the pairs keep the source themselves
    const ops::cpu::Leaves* source_;
    float max_distance_, reach_;
    std::vector<Two> slots_;
    std::vector<std::array<float, 3>> searched_at_;
    std::vector<float> slack_;  // motion from searched_at_ up to which the pair stands; negative: never searched
    std::vector<float> distances_sq_;
    std::vector<uint8_t> within_;
};

}  // namespace stipple::geometry
