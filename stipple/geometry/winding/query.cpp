#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/geometry/winding/tree.h"
#include "stipple/ops/search/point_tree.h"

namespace stipple::geometry::cpu {
namespace {

using ops::cpu::Leaves;

/// The sums of eight children's terms, lane by lane.
struct Lanes {
    float sum[kWindingFan] = {};

    void add_children(const float* node, float qx, float qy, float qz, float accuracy_sq, int32_t* near) {
        for (int i = 0; i < kWindingFan; ++i) {
            const float* child = node + i;
            const float x = child[kCenterX * kWindingFan] - qx, y = child[kCenterY * kWindingFan] - qy,
                        z = child[kCenterZ * kWindingFan] - qz;
            const float distance_squared = distance_sq(x, y, z);
            const float term = cluster_term(x, y, z, distance_squared, child + kDipole * kWindingFan, kWindingFan);
            const bool far =
                is_far(distance_squared, child[kRadiusSq * kWindingFan], child[kReachSq * kWindingFan], accuracy_sq);
            sum[i] += far ? term : 0.0f;
            near[i] = far ? 0 : 1;
        }
    }
    void add_triangles(const float* leaf, float qx, float qy, float qz) {
        for (int i = 0; i < kWindingLeaf; ++i) sum[i] += triangle_term(leaf + i, kWindingLeaf, qx, qy, qz);
    }
    void add_points(const float* leaf, float qx, float qy, float qz) {
        for (int i = 0; i < kWindingLeaf; ++i) sum[i] += point_term(leaf + i, kWindingLeaf, qx, qy, qz);
    }
    float total() const { return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])); }
};

/// Level by level, not depth first: then no step waits for the one before it. Holds what queries reuse.
class Walk {
public:
    Walk(const WindingView& tree, float accuracy) : tree_(tree), accuracy_sq_(accuracy * accuracy) {}

    float winding_at(float qx, float qy, float qz) {
        if (is_beyond(qx, qy, qz)) return 0;
        Lanes lanes;
        near_.assign(1, 0);
        size_t count = 1;
        for (int level = tree_.levels - 1; level >= 0 && count > 0; --level) {
            if (next_.size() < count * kWindingFan) next_.resize(count * kWindingFan);
            const float* nodes = tree_.nodes + int64_t{tree_.level_begin[level]} * kNodeFloats;
            size_t found = 0;
            for (size_t n = 0; n < count; ++n) {
                int32_t near[kWindingFan];
                lanes.add_children(nodes + near_[n] * kNodeFloats, qx, qy, qz, accuracy_sq_, near);
                for (int i = 0; i < kWindingFan; ++i) {
                    next_[found] = near_[n] * kWindingFan + i;
                    found += static_cast<size_t>(near[i]);
                }
            }
            near_.swap(next_);
            count = found;
        }
        const int64_t floats = tree_.leaf_floats();
        for (size_t n = 0; n < count; ++n) {
            const float* leaf = tree_.leaves + near_[n] * floats;
            tree_.of_points ? lanes.add_points(leaf, qx, qy, qz) : lanes.add_triangles(leaf, qx, qy, qz);
        }
        return lanes.total();
    }

private:
    static constexpr int64_t kNodeFloats = int64_t{kChildFields} * kWindingFan;

    const WindingView& tree_;
    float accuracy_sq_;
    std::vector<int32_t> near_, next_;
};

}  // namespace

void winding_number(const WindingTree& tree, View<const float, 2> queries, View<float, 1> winding, float accuracy) {
    const WindingView& view = tree.view;
    parallel_for(queries.size(0), 1 << 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const float* q = &queries(i, 0);
            const bool finite = std::isfinite(q[0]) && std::isfinite(q[1]) && std::isfinite(q[2]);
            winding.data()[i] = finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
        }
    });
    if (view.levels == 0) return;
    // Neighbours one after another: they take the same way through the tree.
    for (const Leaves& ordered : ops::cpu::arrange(ops::Clouds(queries))) {
        parallel_for(ordered.count(), 8, [&](int64_t begin, int64_t end) {
            Walk walk(view, accuracy);
            for (int64_t leaf = begin; leaf < end; ++leaf) {
                const float* place = ordered.at(leaf);
                const int32_t* index = ordered.indices_at(leaf);
                for (int i = 0; i < ordered.lanes(leaf); ++i) {
                    winding.data()[index[i]] =
                        walk.winding_at(place[i] * view.scale, place[ops::cpu::kLeaf + i] * view.scale,
                                        place[2 * ops::cpu::kLeaf + i] * view.scale);
                }
            }
        });
    }
}

}  // namespace stipple::geometry::cpu
