#include "stipple/ops/search/neighbours_cpu.h"
#include "stipple/ops/search/point_tree_search.h"

namespace stipple::ops::cpu {
namespace {

View<int32_t, 2> column(View<int32_t, 1> view) {
    return {view.data(), {view.size(0), 1}};
}
View<float, 2> column(View<float, 1> view) {
    return {view.data(), {view.size(0), 1}};
}

// From the points of one tree to those of another: the queries are in kd order already.
void one_way(const PointTree& from, const Clouds& queries, const PointTree& tree, View<int32_t, 1> indices,
             View<float, 1> distances_sq) {
    std::vector<const Leaves*> leaves;
    for (const CloudTree& cloud : from.clouds) leaves.push_back(&cloud.leaves);
    nearest_within(tree, leaves, queries.batch, kFarthest, column(indices), column(distances_sq));
}

}  // namespace

void nearest_pairs(const Clouds& a, const Clouds& b, View<int32_t, 1> b_of_a, View<float, 1> sq_of_a,
                   View<int32_t, 1> a_of_b, View<float, 1> sq_of_b) {
    const auto tree_a = build(a), tree_b = build(b);
    if (b_of_a.size(0) > 0) one_way(*tree_a, a, *tree_b, b_of_a, sq_of_a);
    if (a_of_b.size(0) > 0) one_way(*tree_b, b, *tree_a, a_of_b, sq_of_b);
}

}  // namespace stipple::ops::cpu
