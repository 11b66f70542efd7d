#include "stipple/ops/sampling/farthest_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/numeric.h"
#include "stipple/ops/common/spatial_order.h"

namespace stipple::ops::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int32_t kNoIndex = std::numeric_limits<int32_t>::max();

/// Below this many samples the points stay in the caller's order: every block is then touched by nearly every sample,
/// which costs less than the order.
constexpr int64_t kOrderFromSamples = 48;

/// The bits of a float; those of a negative one count as below all others.
int32_t bits_of(float value) {
    return std::bit_cast<int32_t>(value);
}

/// The lowest index among those with the key; written without branches, for the sake of vectors.
template <int kCount>
int32_t lowest_index(const int32_t* keys, const int32_t* indices, int32_t key) {
    int32_t lowest = kNoIndex;
    for (int i = 0; i < kCount; ++i) {
        const int32_t other = -static_cast<int32_t>(keys[i] != key);
        lowest = std::min(lowest, (indices[i] | other) & kNoIndex);
    }
    return lowest;
}

}  // namespace

FarthestTree::FarthestTree(View<const float, 2> points, int64_t samples) : n_all_(points.size(0)) {
    std::vector<int32_t> order;
    order.reserve(static_cast<size_t>(n_all_));
    for (int64_t i = 0; i < n_all_; ++i) {
        if (std::isfinite(points(i, 0)) && std::isfinite(points(i, 1)) && std::isfinite(points(i, 2)))
            order.push_back(static_cast<int32_t>(i));
    }
    n_ = static_cast<int64_t>(order.size());
    if (n_ == 0) return;
    if (samples >= kOrderFromSamples && n_ > 2 * kBlock) spatial_order(points, order, kBlock);
    fill_blocks(points, order);
    build_levels();
}

void FarthestTree::fill_blocks(View<const float, 2> points, const std::vector<int32_t>& order) {
    const int64_t n_blocks = (n_ + kBlock - 1) / kBlock;
    blocks_.resize(static_cast<size_t>(n_blocks));
    boxes_.resize(static_cast<size_t>(n_blocks));
    constexpr int32_t kFar = std::bit_cast<int32_t>(kInfinity);
    constexpr int kAhead = 24;  // points to have on the way: they lie anywhere
    for (int64_t b = 0; b < n_blocks; ++b) {
        Block& block = blocks_[b];
        Box box{{kInfinity, kInfinity, kInfinity}, {-kInfinity, -kInfinity, -kInfinity}};
        const int64_t count = std::min<int64_t>(kBlock, n_ - b * kBlock);
        for (int64_t i = 0; i < kBlock; ++i) {
            // The last block is filled up with copies of its first point that count as chosen.
            const int32_t index = order[b * kBlock + (i < count ? i : 0)];
            const int64_t ahead = b * kBlock + i + kAhead;
            if (ahead < n_) __builtin_prefetch(&points(order[ahead], 0));
            const float* p = &points(index, 0);
            block.x[i] = p[0], block.y[i] = p[1], block.z[i] = p[2];
            block.key[i] = i < count ? kFar : kChosen;
            block.index[i] = i < count ? index : kNoIndex;
            for (int axis = 0; axis < 3; ++axis) {
                box.low[axis] = std::min(box.low[axis], p[axis]);
                box.high[axis] = std::max(box.high[axis], p[axis]);
            }
        }
        boxes_[b] = box;
    }
}

void FarthestTree::build_levels() {
    std::vector<Farthest> farthest(blocks_.size());
    for (size_t b = 0; b < blocks_.size(); ++b)
        farthest[b] = {std::bit_cast<int32_t>(kInfinity),
                       *std::min_element(blocks_[b].index, blocks_[b].index + kBlock)};
    do {
        std::vector<Node> level((boxes_.size() + kWidth - 1) / kWidth);
        std::vector<Box> level_boxes(level.size());
        std::vector<Farthest> level_farthest(level.size());
        for (size_t n = 0; n < level.size(); ++n) {
            Node& node = level[n];
            Box all{{kInfinity, kInfinity, kInfinity}, {-kInfinity, -kInfinity, -kInfinity}};
            for (int c = 0; c < kWidth; ++c) {
                const size_t child = n * kWidth + c;
                const bool there = child < boxes_.size();
                const Box box = there ? boxes_[child] : boxes_[n * kWidth];
                for (int axis = 0; axis < 3; ++axis) {
                    node.low[axis][c] = box.low[axis], node.high[axis][c] = box.high[axis];
                    all.low[axis] = std::min(all.low[axis], box.low[axis]);
                    all.high[axis] = std::max(all.high[axis], box.high[axis]);
                }
                node.key[c] = there ? farthest[child].key : kChosen;
                node.index[c] = there ? farthest[child].index : kNoIndex;
            }
            level_boxes[n] = all;
            level_farthest[n] = farthest_of(node);
        }
        levels_.push_back(std::move(level));
        boxes_ = std::move(level_boxes);
        farthest = std::move(level_farthest);
    } while (levels_.back().size() > 1);
    boxes_ = {};
}

FarthestTree::Farthest FarthestTree::farthest_of(const Node& node) {
    int32_t key = kChosen;
    for (int c = 0; c < kWidth; ++c) key = std::max(key, node.key[c]);
    return {key, lowest_index<kWidth>(node.key, node.index, key)};
}

int64_t FarthestTree::farthest() const {
    if (n_ == 0) return -1;
    const Farthest best = farthest_of(levels_.back()[0]);
    if (best.key == kChosen) return -1;
    int64_t at = 0;
    for (size_t level = levels_.size(); level-- > 0;) {
        const int32_t* index = levels_[level][at].index;
        const int32_t* key = levels_[level][at].key;
        int c = 0;
        while (index[c] != best.index || key[c] != best.key) ++c;
        at = at * kWidth + c;
    }
    const int32_t* index = blocks_[at].index;
    return at * kBlock + (std::find(index, index + kBlock, best.index) - index);
}

FarthestTree::Farthest FarthestTree::update(Block& __restrict block, const float* point) {
    const float x = point[0], y = point[1], z = point[2];
    int32_t key = kChosen;
    for (int i = 0; i < kBlock; ++i) {
        const float d = stipple::distance_sq(block.x[i] - x, block.y[i] - y, block.z[i] - z);
        block.key[i] = std::min(block.key[i], bits_of(d));
        key = std::max(key, block.key[i]);
    }
    return {key, lowest_index<kBlock>(block.key, block.index, key)};
}

/// Updates what the point can change below a node, the point's own block in any case.
FarthestTree::Farthest FarthestTree::visit(size_t level, int64_t at, const float* point, int64_t own_block) {
    Node& node = levels_[level][at];
    float away[3][kWidth];  // how far outside of the box, 0 inside
    for (int axis = 0; axis < 3; ++axis) {
        const float at_axis = point[axis];
        for (int c = 0; c < kWidth; ++c) {
            const int32_t below = bits_of(node.low[axis][c] - at_axis), above = bits_of(at_axis - node.high[axis][c]);
            away[axis][c] = std::bit_cast<float>(std::max(std::max(below, above), 0));
        }
    }
    int32_t near[kWidth];
    for (int c = 0; c < kWidth; ++c)
        near[c] = bits_of(stipple::distance_sq(away[0][c], away[1][c], away[2][c])) < node.key[c];
    const int64_t own_child = own_block >> (kWidthBits * level);
    if (own_child / kWidth == at) near[own_child % kWidth] = 1;
    for (int c = 0; c < kWidth; ++c) {
        if (!near[c]) continue;
        const int64_t child = at * kWidth + c;
        const Farthest farthest =
            level == 0 ? update(blocks_[child], point) : visit(level - 1, child, point, own_block);
        node.key[c] = farthest.key;
        node.index[c] = farthest.index;
    }
    return farthest_of(node);
}

void FarthestTree::choose(int64_t position) {
    Block& block = blocks_[position / kBlock];
    const int64_t i = position % kBlock;
    const float point[3] = {block.x[i], block.y[i], block.z[i]};
    block.key[i] = kChosen;
    visit(levels_.size() - 1, 0, point, position / kBlock);
}

int64_t FarthestTree::find(int32_t index) const {
    for (size_t b = 0; b < blocks_.size(); ++b) {
        bool here = false;
        for (int i = 0; i < kBlock; ++i) here |= blocks_[b].index[i] == index;
        if (here) {
            const int32_t* all = blocks_[b].index;
            return static_cast<int64_t>(b) * kBlock + (std::find(all, all + kBlock, index) - all);
        }
    }
    return -1;
}

std::vector<int32_t> FarthestTree::positions() const {
    std::vector<int32_t> positions(static_cast<size_t>(n_all_), -1);
    for (int64_t position = 0; position < n_; ++position) positions[index(position)] = static_cast<int32_t>(position);
    return positions;
}

}  // namespace stipple::ops::cpu
