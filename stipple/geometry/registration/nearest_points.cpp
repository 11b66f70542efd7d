#include "stipple/geometry/registration/nearest_points.h"

#include <cstring>

#include "stipple/core/parallel.h"
#include "stipple/ops/search/neighbours_cpu.h"
#include "stipple/ops/search/point_tree_search.h"

namespace stipple::geometry {
namespace {

using ops::cpu::kLeaf;
using ops::cpu::Leaves;

/// The leaves moved, and the places by row.
Leaves moved_leaves(const Leaves& leaves, const RigidTransform& motion, View<float, 2> places) {
    Leaves moved;
    moved.size = leaves.size;
    moved.blocks = Buffer(leaves.count() * leaves.block_bytes());
    parallel_for(leaves.count(), 64, [&](int64_t begin, int64_t end) {
        for (int64_t leaf = begin; leaf < end; ++leaf) {
            const float* from = leaves.at(leaf);
            auto* to = reinterpret_cast<float*>(moved.blocks.data() + leaf * moved.block_bytes());
            const int32_t* rows = leaves.indices_at(leaf);
            std::memcpy(to + 3 * kLeaf, rows, kLeaf * sizeof(int32_t));
            for (int axis = 0; axis < 3; ++axis) {
                const auto& row = motion.rotation[axis];
                for (int lane = 0; lane < kLeaf; ++lane)
                    to[axis * kLeaf + lane] =
                        static_cast<float>(row[0] * from[lane] + row[1] * from[kLeaf + lane] +
                                           row[2] * from[2 * kLeaf + lane] + motion.translation[axis]);
            }
            for (int lane = 0; lane < leaves.lanes(leaf); ++lane)
                for (int axis = 0; axis < 3; ++axis)
                    places.data()[3 * int64_t{rows[lane]} + axis] = to[axis * kLeaf + lane];
        }
    });
    return moved;
}

struct SupportCounts {
    int64_t around = 0, support = 0, opposite = 0;
    double distance_sq = 0;
};

}  // namespace

NearestPoints nearest_points(const ThinScan& source, const ThinScan& target, const RigidTransform& pose, double reach) {
    const int64_t n = source.size();
    NearestPoints near;
    near.local = between_origins(pose, source.origin, target.origin);
    if (n == 0 || target.size() == 0) return near;
    near.moved = Array<float, 2>({n, 3});
    near.nearest = Array<int32_t, 2>({n, 1});
    near.distances_sq = Array<float, 2>({n, 1});
    const Leaves& leaves = source.index.on_cpu().clouds[0].leaves;
    STIPPLE_ASSERT(leaves.size == n);  // the index is of these points
    const Leaves moved = moved_leaves(leaves, near.local, near.moved.view());
    constexpr double kMore = 1.001;  // for rounding
    ops::cpu::nearest_within(target.index.on_cpu(), {&moved}, ops::Batch::single(n),
                             ops::cpu::reach_of(static_cast<float>(kMore * reach), false), near.nearest.view(),
                             near.distances_sq.view());
    return near;
}

PoseSupport support_of(const ThinScan& source, const ThinScan& target, const NearestPoints& near, int sign) {
    constexpr double kAround = kSupportReach, kClose = 1.5, kOffPlane = 0.5,
                     kCosine = 0.8660254037844386;  // 30 degrees
    constexpr int64_t kChunk = 1024;
    PoseSupport found;
    found.points = source.size();
    const int64_t n = near.nearest.size(0);
    const double cell = target.voxel;
    std::vector<SupportCounts> counts(static_cast<size_t>((n + kChunk - 1) / kChunk));
    parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
        SupportCounts& count = counts[begin / kChunk];
        for (int64_t i = begin; i < end; ++i) {
            const int64_t j = near.nearest.data()[i];
            const double distance_sq = near.distances_sq.data()[i];
            if (j < 0 || distance_sq > kAround * kAround * cell * cell) continue;
            ++count.around;
            if (distance_sq > kClose * kClose * cell * cell) continue;
            const float *a = source.normals.data() + 3 * i, *b = target.normals.data() + 3 * j;
            const Vector3 turned = near.local.rotate({a[0], a[1], a[2]});
            double cosine = 0, off = 0;
            for (int axis = 0; axis < 3; ++axis) {
                cosine += sign * turned[axis] * b[axis];
                off += b[axis] * (double{target.points.data()[3 * j + axis]} - near.moved.data()[3 * i + axis]);
            }
            if (std::abs(off) > kOffPlane * cell) continue;
            count.opposite += cosine <= -kCosine;
            if (cosine < kCosine) continue;
            ++count.support;
            count.distance_sq += distance_sq;
        }
    });
    for (const SupportCounts& count : counts) {
        found.around += count.around;
        found.support += count.support;
        found.opposite += count.opposite;
        found.rmse += count.distance_sq;
    }
    found.rmse = found.support > 0 ? std::sqrt(found.rmse / static_cast<double>(found.support)) : 0;
    return found;
}

}  // namespace stipple::geometry
