#pragma once
// The CPU structure of farthest_point_sample: points in spatial blocks below a wide tree of bounding boxes, each entry
// with the largest distance to the chosen points among what it holds.
//
// A new sample descends to the blocks whose box is nearer to it than their largest distance; no other point can change.
// That is exact in float: subtraction, product and sum round monotonically, so the distance to a box, computed by the
// same operations as the distance to a point, is never above that of a point inside. The farthest point is read off at
// the root.
//
// Squared distances are kept as the integers of the same bits: their order is the same, and integer minima and maxima
// vectorise without assumptions about NaN. -1 marks a point that is chosen (or no point at all).

#include <array>
#include <bit>
#include <vector>

#include "stipple/core/view.h"

namespace stipple::ops::cpu {

class FarthestTree {
public:
    /// points [n, 3]; those with a non-finite coordinate are left out. `samples` is how many choose() will follow: for
    /// a few, putting the points in order would cost more than it saves.
    FarthestTree(View<const float, 2> points, int64_t samples);

    /// Points have a position in the tree's order. The position of the farthest point that is not chosen, ties to the
    /// lowest index; -1 when there is none. Before the first choice every point is at +infinity.
    int64_t farthest() const;

    /// Takes a point that is not chosen.
    void choose(int64_t position);

    bool is_chosen(int64_t position) const { return key(position) == kChosen; }
    float distance_sq(int64_t position) const { return std::bit_cast<float>(key(position)); }
    int32_t index(int64_t position) const { return blocks_[position / kBlock].index[position % kBlock]; }

    int64_t find(int32_t index) const;       // the position of a point, -1 when it is not finite; O(n)
    std::vector<int32_t> positions() const;  // of all points, by index

private:
    static constexpr int kBlock = 32;  // points; best of 16 to 128 on Neoverse-V1, by little
    static constexpr int kWidthBits = 4, kWidth = 1 << kWidthBits;  // entries of a node
    static constexpr int32_t kChosen = -1;

    struct Block {
        float x[kBlock], y[kBlock], z[kBlock];
        int32_t key[kBlock], index[kBlock];
    };
    struct Farthest {
        int32_t key, index;
    };
    struct Node {
        float low[3][kWidth], high[3][kWidth];
        int32_t key[kWidth], index[kWidth];
    };
    struct Box {
        std::array<float, 3> low, high;
    };

    int32_t key(int64_t position) const { return blocks_[position / kBlock].key[position % kBlock]; }
    void fill_blocks(View<const float, 2> points, const std::vector<int32_t>& order);
    void build_levels();
    static Farthest farthest_of(const Node& node);
    static Farthest update(Block& block, const float* point);
    Farthest visit(size_t level, int64_t node, const float* point, int64_t own_block);

    int64_t n_all_ = 0, n_ = 0;  // points given, points kept
    std::vector<Block> blocks_;
    std::vector<Box> boxes_;                 // of blocks, until the levels are built
    std::vector<std::vector<Node>> levels_;  // [0] above the blocks, the last has one node
};

}  // namespace stipple::ops::cpu
