#pragma once
// The tree behind PointIndex on the CPU: a balanced kd-tree [Friedman et al. 1977] without pointers.
//
// Points lie in leaves of 16, coordinate by coordinate, so that a leaf is searched by a few vector operations. Above
// them, eight children at a time, are the tight boxes of the children: three binary levels in one step of the descent.
// All leaves but the last are full, hence child j of node i is node 8 i + j one level down.

#include <memory>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/ops/clouds.h"

namespace stipple::ops::cpu {

constexpr int kLeaf = 16;
constexpr int kFan = 8;

/// The finite points of a cloud in kd order, those of a leaf by index. The last leaf is filled up with points at
/// +infinity.
struct Leaves {
    int dimension = 3;
    int64_t size = 0;  // finite points
    Buffer blocks;     // [leaf][dimension + 1][kLeaf]: coordinates, then int32 positions in the cloud

    int64_t count() const { return (size + kLeaf - 1) / kLeaf; }
    int lanes(int64_t leaf) const { return static_cast<int>(std::min<int64_t>(kLeaf, size - leaf * kLeaf)); }
    int64_t block_bytes() const { return int64_t{4} * kLeaf * (dimension + 1); }
    const float* at(int64_t leaf) const { return reinterpret_cast<const float*>(blocks.data() + leaf * block_bytes()); }
    const int32_t* indices_at(int64_t leaf) const {
        return reinterpret_cast<const int32_t*>(blocks.data() + (leaf + 1) * block_bytes()) - kLeaf;
    }
};

struct CloudTree {
    Leaves leaves;
    Array<float, 1> boxes;        // [node][axis][low, high][kFan]; a child that is not there is infinitely far
    std::vector<int64_t> levels;  // the first node of each level; parents of leaves first, the root last

    const float* box(int level, int64_t node) const {
        return boxes.data() + (levels[level] + node) * leaves.dimension * 2 * kFan;
    }
};

struct PointTree {
    std::vector<CloudTree> clouds;
};

/// Deterministic: the same rows give the same tree on any number of threads.
std::shared_ptr<const PointTree> build(const Clouds& points);

/// The leaves alone: queries in an order in which neighbours are near each other.
std::vector<Leaves> arrange(const Clouds& points);

}  // namespace stipple::ops::cpu
