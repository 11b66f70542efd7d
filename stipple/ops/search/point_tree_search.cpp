#include "stipple/ops/search/point_tree_search.h"

namespace stipple::ops::cpu {

bool are_queries(const Leaves& leaves, View<const float, 2> queries) {
    if (leaves.size == 0 || leaves.size != queries.size(0)) return false;
    std::atomic<bool> same{true};
    parallel_for(leaves.count(), 1024, [&](int64_t begin, int64_t end) {
        for (int64_t leaf = begin; leaf < end && same.load(std::memory_order_relaxed); ++leaf) {
            const int32_t* indices = leaves.indices_at(leaf);
            bool equal = true;
            for (int lane = 0; lane < leaves.lanes(leaf); ++lane) {
                const float* row = queries.data() + indices[lane] * queries.stride(0);
                for (int axis = 0; axis < leaves.dimension; ++axis)
                    equal &= leaves.at(leaf)[axis * kLeaf + lane] == row[axis];
            }
            if (!equal) same.store(false, std::memory_order_relaxed);
        }
    });
    return same;
}

ArrangedQueries::ArrangedQueries(const PointTree& tree, const Clouds& queries) {
    const int64_t clouds = queries.batch.clouds();
    bool same = true;
    for (int64_t i = 0; i < clouds && same; ++i) same = are_queries(tree.clouds[i].leaves, queries.cloud(i));
    if (!same) arranged_ = arrange(queries);
    for (int64_t i = 0; i < clouds; ++i) leaves_.push_back(same ? &tree.clouds[i].leaves : &arranged_[i]);
}

}  // namespace stipple::ops::cpu
