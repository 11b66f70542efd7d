#include "stipple/ops/search/neighbours_cpu.h"
#include "stipple/ops/search/point_tree_search.h"

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
template <int C>
class Lists {
public:
    explicit Lists(int k) : k_(k), length_((k + kBlock - 1) / kBlock * kBlock) {}

    uint64_t at(int lane, int i) const { return static_cast<uint64_t>(keys_[lane][i]); }

    // Nothing but the points of a first leaf.
    void begin(Group<C>& group, int lane, const Ints16& bits, const int32_t* indices) {
        int64_t* list = keys_[lane];
        const int32_t reach = group.reach[lane];
        const auto none = static_cast<int64_t>(key_of(reach, 0) | kNoIndex);
        for (int i = 0; i < length_; ++i) list[i] = none;
        int32_t distances[kLeaf], ranks[kLeaf];
        bits.to(distances);
        bits.ranks().to(ranks);
        int64_t sorted[kLeaf];
        for (int i = 0; i < kLeaf; ++i)
            sorted[ranks[i]] = distances[i] <= reach ? static_cast<int64_t>(key_of(distances[i], indices[i])) : none;
        for (int i = 0; i < std::min(length_, kLeaf); ++i) list[i] = sorted[i];
        group.reach[lane] = distance_bits(at(lane, k_ - 1));
    }

    void take(Group<C>& group, int lane, const Ints16& bits, const int32_t* indices) {
        const uint32_t found = bits.within(group.reach[lane]);
        if (found == 0) return;
        int32_t distances[kLeaf];
        bits.to(distances);
        int64_t* list = keys_[lane];
        if (length_ == kBlock)
            insert_in_registers<1>(list, found, distances, indices);
        else if (length_ == 2 * kBlock)
            insert_in_registers<2>(list, found, distances, indices);
        else
            for_each_bit(found, [&](int i) { insert(list, key_of(distances[i], indices[i])); });
        group.reach[lane] = distance_bits(at(lane, k_ - 1));
    }

private:
    static constexpr int kBlock = 8;

    // Inserts into sorted numbers, of which `before` is the last one in front: each moves up by one or stays.
    template <int Vectors>
    static void shift_in(Long2* numbers, Long2 before, Long2 key) {
        for (int i = 0; i < Vectors; ++i) {
            const Long2 old = numbers[i];
            numbers[i] = smaller(old, larger(Long2{before[1], old[0]}, key));
            before = old;
        }
    }

    template <int Blocks>
    static void insert_in_registers(int64_t* list, uint32_t found, const int32_t* distances, const int32_t* indices) {
        constexpr int kVectors = Blocks * kBlock / 2;
        Long2 numbers[kVectors];
        for (int i = 0; i < kVectors; ++i) numbers[i] = load<Long2>(list + 2 * i);
        for_each_bit(found, [&](int i) {
            const auto key = static_cast<int64_t>(key_of(distances[i], indices[i]));
            shift_in<kVectors>(numbers, Long2{} + kBeforeAll, Long2{key, key});
        });
        for (int i = 0; i < kVectors; ++i) store(list + 2 * i, numbers[i]);
    }

    // Block by block from the far end, as far as there are larger numbers.
    void insert(int64_t* list, uint64_t new_key) const {
        const auto key = static_cast<int64_t>(new_key);
        for (int block = length_ - kBlock; block >= 0; block -= kBlock) {
            const int64_t before = block > 0 ? list[block - 1] : kBeforeAll;
            Long2 numbers[kBlock / 2];
            for (int i = 0; i < kBlock / 2; ++i) numbers[i] = load<Long2>(list + block + 2 * i);
            shift_in<kBlock / 2>(numbers, Long2{before, before}, Long2{key, key});
            for (int i = 0; i < kBlock / 2; ++i) store(list + block + 2 * i, numbers[i]);
            if (before <= key) return;
        }
    }

    static constexpr int64_t kBeforeAll = std::numeric_limits<int64_t>::min();
    int k_, length_;  // the list is as long as whole blocks are; what is behind k is not used
    alignas(16) int64_t keys_[kLeaf][kMostNeighbours];
};

// The same for k = 1.
template <int C>
class Nearest {
public:
    explicit Nearest(int) {}

    uint64_t at(int lane, int) const { return keys_[lane]; }

    void begin(Group<C>& group, int lane, const Ints16& bits, const int32_t* indices) {
        keys_[lane] = key_of(group.reach[lane], 0) | kNoIndex;
        take(group, lane, bits, indices);
    }

    void take(Group<C>& group, int lane, const Ints16& bits, const int32_t* indices) {
        const int32_t least = bits.least();
        if (least > group.reach[lane]) return;
        const uint64_t key = key_of(least, indices[std::countr_zero(bits.within(least))]);
        keys_[lane] = std::min(keys_[lane], key);
        group.reach[lane] = distance_bits(keys_[lane]);
    }

private:
    uint64_t keys_[kLeaf];
};

template <int C, template <int> class Best>
void nearest(const PointTree& tree, const std::vector<const Leaves*>& queries, const Batch& batch, int32_t reach,
             View<int32_t, 2> indices, View<float, 2> distances_sq) {
    const auto k = static_cast<int>(indices.size(1));
    const bool with_distances = distances_sq.elements() > 0;
    int64_t start = 1;  // leaves that have k points
    while (start * kLeaf < k) start *= 2;
    for_each_group<C>(
        tree, queries, [=] { return Best<C>(k); },
        [&](int64_t cloud, const CloudTree& cloud_tree, const Leaves& from, int64_t number, int64_t home,
            Group<C>& group, Best<C>& best) {
            group.fill(from, number, reach);
            const int64_t rows = batch.begin(cloud);
            const Leaves& leaves = cloud_tree.leaves;
            for_each_part(cloud_tree, group, home, [&](Group<C>& part, uint32_t lanes, int64_t near) {
                // A few leaves around the queries first: they bound the walk.
                const int64_t begin = near / start * start;
                const LeafRange seen = {begin, std::min(begin + start, leaves.count())};
                for_each_bit(lanes, [&](int lane) {
                    best.begin(part, lane, distances_to_points(part, lane, leaves.at(begin)), leaves.indices_at(begin));
                    for (int64_t leaf = begin + 1; leaf < seen.end; ++leaf)
                        best.take(part, lane, distances_to_points(part, lane, leaves.at(leaf)),
                                  leaves.indices_at(leaf));
                });
                part.update_farthest();
                walk(cloud_tree, part, seen, [&](int lane, const Ints16& bits, const int32_t* leaf_indices) {
                    best.take(part, lane, bits, leaf_indices);
                });
            });
            for (int lane = 0; lane < group.lanes; ++lane) {
                const int64_t row = rows + group.rows[lane];
                for (int i = 0; i < k; ++i) indices.data()[row * k + i] = static_cast<int32_t>(best.at(lane, i));
                for (int i = 0; i < k && with_distances; ++i) {
                    const uint64_t key = best.at(lane, i);
                    const bool found = static_cast<uint32_t>(key) != kNoIndex;  // which is index -1
                    distances_sq.data()[row * k + i] =
                        found ? std::bit_cast<float>(distance_bits(key)) : std::numeric_limits<float>::infinity();
                }
            }
        });
}

template <int C>
void nearest(const PointTree& tree, const std::vector<const Leaves*>& queries, const Batch& batch, int32_t reach,
             View<int32_t, 2> indices, View<float, 2> distances_sq) {
    if (indices.size(1) == 1)
        nearest<C, Nearest>(tree, queries, batch, reach, indices, distances_sq);
    else
        nearest<C, Lists>(tree, queries, batch, reach, indices, distances_sq);
}

void write_none(int64_t row, View<int32_t, 2> indices, View<float, 2> distances_sq) {
    const int64_t k = indices.size(1);
    std::fill_n(indices.data() + row * k, k, -1);
    if (distances_sq.elements() > 0)
        std::fill_n(distances_sq.data() + row * k, k, std::numeric_limits<float>::infinity());
}

}  // namespace

void nearest_within(const PointTree& tree, const std::vector<const Leaves*>& queries, const Batch& batch, int32_t reach,
                    View<int32_t, 2> indices, View<float, 2> distances_sq) {
    if (queries.empty()) return;
    std::vector<const Leaves*> to_search = queries;
    const Leaves nobody;
    for (size_t cloud = 0; cloud < queries.size(); ++cloud) {
        const bool somewhere = tree.clouds[cloud].leaves.size > 0;
        if (!somewhere) to_search[cloud] = &nobody;
        if (somewhere && queries[cloud]->size == batch.size(static_cast<int64_t>(cloud))) continue;
        // A cloud without a finite point, or queries that are not finite: what is found is written over this.
        for (int64_t row = batch.begin(static_cast<int64_t>(cloud)); row < batch.end(static_cast<int64_t>(cloud));
             ++row)
            write_none(row, indices, distances_sq);
    }
    if (queries[0]->dimension == 3)
        nearest<3>(tree, to_search, batch, reach, indices, distances_sq);
    else
        nearest<0>(tree, to_search, batch, reach, indices, distances_sq);
}

void knn(const PointTree& tree, const Clouds& queries, View<int32_t, 2> indices, View<float, 2> distances_sq) {
    const ArrangedQueries arranged(tree, queries);
    nearest_within(tree, arranged.leaves(), queries.batch, kFarthest, indices, distances_sq);
}

}  // namespace stipple::ops::cpu
