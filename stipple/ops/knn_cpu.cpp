#include "stipple/ops/neighbours_cpu.h"
#include "stipple/ops/point_tree_search.h"

namespace stipple::ops::cpu {
namespace {

// A neighbour as one number: distance above, index below. The order of the numbers is the order of the contract.
uint64_t key_of(int32_t distance_bits, int32_t index) {
    return static_cast<uint64_t>(distance_bits) << 32 | static_cast<uint32_t>(index);
}
int32_t distance_bits(uint64_t key) {
    return static_cast<int32_t>(key >> 32);
}

constexpr uint32_t kNoIndex = 0xffffffff;

// The k nearest so far of every query of a group, sorted.
struct Lists {
    int k = 0;
    uint64_t keys[kLeaf][kMostNeighbours];

    template <int C>
    void take(Group<C>& group, int lane, const int32_t* bits, const int32_t* indices) {
        int found[kLeaf + 1];
        uint64_t* list = keys[lane];
        const int count = within(bits, group.reach[lane], found);
        for (int i = 0; i < count; ++i) {
            const uint64_t key = key_of(bits[found[i]], indices[found[i]]);
            if (key >= list[k - 1]) continue;
            int at = k - 1;
            for (; at > 0 && list[at - 1] > key; --at) list[at] = list[at - 1];
            list[at] = key;
        }
        group.reach[lane] = distance_bits(list[k - 1]);
    }
};

template <int C>
void nearest(const PointTree& tree, const std::vector<const Leaves*>& queries, const Batch& batch, int32_t reach,
             View<int32_t, 2> indices, View<float, 2> distances_sq) {
    Lists none;
    const int k = none.k = static_cast<int>(indices.size(1));
    const bool with_distances = distances_sq.elements() > 0;
    int64_t start = 1;  // leaves that have k points
    while (start * kLeaf < k) start *= 2;
    for_each_group<C>(tree, queries, none,
                      [&](int64_t cloud, const CloudTree& cloud_tree, const Leaves& from, int64_t number, int64_t home,
                          Group<C>& group, Lists& lists) {
                          group.fill(from, number, reach);
                          for (int lane = 0; lane < group.lanes; ++lane)
                              std::fill_n(lists.keys[lane], k, key_of(reach, 0) | kNoIndex);
                          const auto scan = [&](int lane, const int32_t* bits, const int32_t* leaf_indices) {
                              lists.take(group, lane, bits, leaf_indices);
                          };
                          LeafRange seen;
                          if (cloud_tree.leaves.size > 0) {
                              // A few leaves around the queries first: they bound the walk.
                              const int64_t middle = home >= 0 ? home : leaf_near(cloud_tree, group);
                              seen.begin = middle / start * start;
                              seen.end = std::min(seen.begin + start, cloud_tree.leaves.count());
                              for (int64_t leaf = seen.begin; leaf < seen.end; ++leaf) {
                                  for (int lane = 0; lane < group.lanes; ++lane) {
                                      int32_t bits[kLeaf];
                                      distances_to_points(group, lane, cloud_tree.leaves.at(leaf), bits);
                                      scan(lane, bits, cloud_tree.leaves.indices_at(leaf));
                                  }
                              }
                              group.update_farthest();
                          }
                          search(cloud_tree, group, seen, scan);
                          for (int lane = 0; lane < group.lanes; ++lane) {
                              const int64_t row = batch.begin(cloud) + group.rows[lane];
                              int32_t* to = indices.data() + row * k;
                              float* to_distances = with_distances ? distances_sq.data() + row * k : nullptr;
                              for (int i = 0; i < k; ++i) {
                                  const uint64_t key = lists.keys[lane][i];
                                  const bool found = static_cast<uint32_t>(key) != kNoIndex;
                                  to[i] = static_cast<int32_t>(key);  // kNoIndex is -1
                                  if (with_distances)
                                      to_distances[i] = found ? std::bit_cast<float>(distance_bits(key))
                                                              : std::numeric_limits<float>::infinity();
                              }
                          }
                      });
}

}  // namespace

void nearest_within(const PointTree& tree, const std::vector<const Leaves*>& queries, const Batch& batch, int32_t reach,
                    View<int32_t, 2> indices, View<float, 2> distances_sq) {
    if (queries.empty()) return;
    if (queries[0]->dimension == 3)
        nearest<3>(tree, queries, batch, reach, indices, distances_sq);
    else
        nearest<0>(tree, queries, batch, reach, indices, distances_sq);
}

void knn(const PointTree& tree, const Clouds& queries, View<int32_t, 2> indices, View<float, 2> distances_sq) {
    const ArrangedQueries arranged(tree, queries);
    nearest_within(tree, arranged.leaves(), queries.batch, kFarthest, indices, distances_sq);
    for_each_left_out(queries, arranged.leaves(), [&](int64_t row) {
        std::fill_n(indices.data() + row * indices.size(1), indices.size(1), -1);
        if (distances_sq.elements() > 0)
            std::fill_n(distances_sq.data() + row * indices.size(1), indices.size(1),
                        std::numeric_limits<float>::infinity());
    });
}

}  // namespace stipple::ops::cpu
