#pragma once
// Tasks of packets that keep the nearest points: one, up to 32 in the registers of a lane or of four, up to 128 over a
// warp.

#include "stipple/ops/search/packet.cuh"

namespace stipple::ops::cuda {

constexpr uint64_t kBeyond = uint64_t{0x7f800000} << 32;  // the key of +infinity: what lies there is not found

/// Where the k nearest of every query go.
struct NeighbourRows {
    int32_t* indices = nullptr;  // [m, k]
    float* distances = nullptr;  // [m, k] or null
    int32_t* counts = nullptr;   // [m] or null
    uint64_t limit = kBeyond;    // keys from here on are not found
    int32_t k = 0;
    bool repeat_first = false;  // missing ones repeat the first; otherwise -1, +infinity
    bool vectors = false;       // rows begin at multiples of 16 bytes
};

struct Neighbour {
    int32_t index;
    float distance;
};

__device__ inline Neighbour neighbour_of(uint64_t key, bool found) {
    return {found ? static_cast<int32_t>(static_cast<uint32_t>(key)) : -1, found ? key_distance(key) : INFINITY};
}

/// One nearest, four lanes a query: a packet of 8 is small, so it enters few leaves, and the lanes share them.
struct NearestOne {
    static constexpr int kLanes = 4;
    static constexpr int kBlocks = 0;
    static constexpr bool kStaged = false;
    using Params = NeighbourRows;

    uint64_t best;

    __device__ bool wants(float gap, uint32_t lowest) const { return neighbour_key(gap, lowest) < best; }
    __device__ float bound() const { return key_distance(best); }

    template <class Source>
    __device__ void visit(const Source& source) {
        const int part = static_cast<int>(threadIdx.x) % 32 / (32 / kLanes);
#pragma unroll
        for (int i = 0; i < 8 / kLanes; ++i) {
            uint64_t keys[4];
            source.keys(i * kLanes + part, keys);
            best = min(min(min(best, keys[0]), min(keys[1], keys[2])), keys[3]);  // NaN is above every distance
        }
#pragma unroll
        for (int step = 32 / kLanes; step < 32; step *= 2) best = min(best, __shfl_xor_sync(kAllLanes, best, step));
    }

    template <class Packet>
    __device__ static void run(Packet& packet, const Params& rows) {
        NearestOne task{packet.active() ? rows.limit : 0};
        packet.search(task);
        if (packet.row() < 0 || packet.part() != 0) return;
        const bool found = packet.active() && task.best < rows.limit;
        const Neighbour nearest = neighbour_of(task.best, found);
        rows.indices[packet.row()] = nearest.index;
        if (rows.distances) rows.distances[packet.row()] = nearest.distance;
        if (rows.counts) rows.counts[packet.row()] = found;
    }
};

/// Up to K nearest, four lanes a query: as many times more warps in flight as with a lane a query, and packets of 8
/// that enter fewer leaves. Each lane looks at a quarter of a leaf and holds a quarter of the sorted list, filled up
/// with zeros as below.
template <int K>
struct NearestShared {
    static constexpr int kLanes = 4;
    static constexpr int kBlocks = K == 32 ? 4 : 8;
    static constexpr bool kStaged = false;
    static constexpr int kQueries = 32 / kLanes;
    static constexpr int kOwn = K / kLanes;
    static constexpr int kPoints = kLeafPoints / kLanes;
    static constexpr int kTogether = kOwn < 4 ? 4 : kOwn;
    static constexpr int kMany = 8;  // more candidates than this are sorted and merged, fewer inserted one by one
    using Params = NeighbourRows;

    uint64_t keys[kOwn];  // numbers part * kOwn, ... of the list
    uint64_t worst;       // the last of the list

    __device__ bool wants(float gap, uint32_t lowest) const { return neighbour_key(gap, lowest) < worst; }
    __device__ float bound() const { return key_distance(worst); }

    template <class Source>
    __device__ void visit(const Source& source) {
        const int part = static_cast<int>(threadIdx.x) % 32 / kQueries;
        uint32_t candidates = 0;
#pragma unroll
        for (int i = 0; i < kPoints; i += 4) {
            uint64_t four[4];
            source.keys(i + part, four);
#pragma unroll
            for (int j = 0; j < 4; ++j) candidates |= four[j] < worst ? 1u << (i + j) : 0u;
        }
        if (!__any_sync(kAllLanes, candidates != 0)) return;
        int count = __popc(candidates);
#pragma unroll
        for (int step = kQueries; step < 32; step *= 2) count += __shfl_xor_sync(kAllLanes, count, step);
        if (__any_sync(kAllLanes, count > kMany))
            merge(source, part);
        else
            insert_each(source, candidates, part);
    }

    /// One candidate of every query at a time.
    template <class Source>
    __device__ void insert_each(const Source& source, uint32_t candidates, int part) {
        const int lane = static_cast<int>(threadIdx.x) % 32, query = lane % kQueries;
        uint64_t mine = ~uint64_t{0};
        while (true) {
            if (mine >= worst && candidates != 0) {
                const int i = __ffs(static_cast<int>(candidates)) - 1;
                candidates &= candidates - 1;
                mine = source.key((i & ~3) * kLanes + 4 * part + (i & 3));
            }
            const uint32_t pending = __ballot_sync(kAllLanes, mine < worst || candidates != 0);
            if (pending == 0) return;
            const uint32_t of_query = pending & 0x01010101u << query;
            const int from = of_query != 0 ? __ffs(static_cast<int>(of_query)) - 1 : lane;
            const uint64_t key = __shfl_sync(kAllLanes, mine, from);  // without candidates: one that changes nothing
            if (from == lane) mine = ~uint64_t{0};

            uint64_t below = __shfl_up_sync(kAllLanes, keys[kOwn - 1], kQueries);
            if (part == 0) below = 0;
#pragma unroll
            for (int i = kOwn - 1; i > 0; --i) keys[i] = key < keys[i - 1] ? keys[i - 1] : min(keys[i], key);
            keys[0] = key < below ? below : min(keys[0], key);
            worst = __shfl_sync(kAllLanes, keys[kOwn - 1], query + 32 - kQueries);
        }
    }

    /// All points of the leaf, kTogether of every lane at a time. They are taken as blocks of K in the layout of the
    /// list, sorted falling and rising in turns; of two such blocks, or of a block and the list, the lower of every two
    /// opposite keys are the lowest K, in an order that merges.
    template <class Source>
    __device__ void merge(const Source& source, int part) {
#pragma unroll 1
        for (int first = 0; first < kPoints; first += kTogether) {
            uint64_t points[kTogether];
#pragma unroll
            for (int i = 0; i < kTogether; i += 4) {
                uint64_t four[4];
                source.keys(first + i + part, four);
#pragma unroll
                for (int j = 0; j < 4; ++j) points[i + j] = four[j];
            }
#pragma unroll
            for (int size = 2; size <= K; size *= 2) {
#pragma unroll
                for (int step = size / 2; step > 0; step /= 2) exchange(points, kTogether, size, step, part, false);
            }
#pragma unroll
            for (int left = kTogether / 2; left >= kOwn; left /= 2) {
#pragma unroll
                for (int i = 0; i < left; ++i) {
                    const int from = i / kOwn * 2 * kOwn + i % kOwn;
                    points[i] = min(points[from], points[from + kOwn]);
                }
#pragma unroll
                for (int step = K / 2; step > 0; step /= 2) exchange(points, left, K, step, part, false);
            }
#pragma unroll
            for (int i = 0; i < kOwn; ++i) keys[i] = min(keys[i], points[i]);
#pragma unroll
            for (int step = K / 2; step > 0; step /= 2) exchange(keys, kOwn, K, step, part, true);
        }
        const int query = static_cast<int>(threadIdx.x) % kQueries;
        worst = __shfl_sync(kAllLanes, keys[kOwn - 1], query + 32 - kQueries);
    }

    /// A step of a bitonic sort: runs of `size` keys, the first falling, or rising.
    template <int Count>
    __device__ static void exchange(uint64_t (&values)[Count], int used, int size, int step, int part, bool rising) {
#pragma unroll
        for (int i = 0; i < Count; ++i) {
            if (i >= used) break;
            const int at = i / kOwn * K + part * kOwn + i % kOwn;
            const bool rises = ((at & size) != 0) != rising;
            if (step >= kOwn) {
                const uint64_t other = __shfl_xor_sync(kAllLanes, values[i], step / kOwn * kQueries);
                values[i] = ((at & step) == 0) == rises ? min(values[i], other) : max(values[i], other);
            } else if ((i & step) == 0) {
                const uint64_t a = values[i], b = values[i + step];
                const bool keep = (a < b) == rises;
                values[i] = keep ? a : b;
                values[i + step] = keep ? b : a;
            }
        }
    }

    template <class Packet>
    __device__ static void run(Packet& packet, const Params& rows) {
        NearestShared task;
#pragma unroll
        for (int i = 0; i < kOwn; ++i)
            task.keys[i] = packet.active() && packet.part() * kOwn + i >= K - rows.k ? rows.limit : 0;
        task.worst = packet.active() ? rows.limit : 0;
        packet.search(task);
        task.write(packet, rows);
    }

    template <class Packet>
    __device__ void write(const Packet& packet, const NeighbourRows& rows) const {
        const int64_t row = packet.row();
        const int part = packet.part(), skipped = K - rows.k;
        Neighbour n[kOwn];
        int32_t first = -1, count = 0;
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
            const bool found = part * kOwn + i >= skipped && packet.active() && keys[i] < rows.limit;
            n[i] = neighbour_of(keys[i], found);
            if (part * kOwn + i == skipped) first = n[i].index;
            count += found;
        }
        if (rows.vectors && rows.k == K && !rows.repeat_first) {
            if (row < 0) return;
            constexpr int kWide = kOwn < 4 ? 2 : 4;
#pragma unroll
            for (int i = 0; i < kOwn; i += kWide) {
                const int64_t at = row * K + part * kOwn + i;
                if constexpr (kWide == 4) {
                    *reinterpret_cast<int4*>(rows.indices + at) =
                        make_int4(n[i].index, n[i + 1].index, n[i + 2].index, n[i + 3].index);
                    if (rows.distances)
                        *reinterpret_cast<float4*>(rows.distances + at) =
                            make_float4(n[i].distance, n[i + 1].distance, n[i + 2].distance, n[i + 3].distance);
                } else {
                    *reinterpret_cast<int2*>(rows.indices + at) = make_int2(n[i].index, n[i + 1].index);
                    if (rows.distances)
                        *reinterpret_cast<float2*>(rows.distances + at) = make_float2(n[i].distance, n[i + 1].distance);
                }
            }
            return;
        }
        first = __shfl_sync(kAllLanes, first, packet.lane() % kQueries + skipped / kOwn * kQueries);
#pragma unroll
        for (int step = kQueries; step < 32; step *= 2) count += __shfl_xor_sync(kAllLanes, count, step);
        if (row < 0) return;
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
            const int slot = part * kOwn + i - skipped;
            if (slot < 0) continue;
            const bool repeat = rows.repeat_first && n[i].index < 0;
            rows.indices[row * rows.k + slot] = repeat ? first : n[i].index;
            if (rows.distances) rows.distances[row * rows.k + slot] = n[i].distance;
        }
        if (rows.counts && part == 0) rows.counts[row] = count;
    }
};

/// Up to K nearest, a lane a query, for tiles, which every packet has to load: a sorted list in registers. Of a shorter
/// list the first K - k keys are 0, which nothing displaces, so the last is always the k-th.
template <int K>
struct NearestList {
    static constexpr int kLanes = 1;
    static constexpr int kBlocks = 0;
    static constexpr bool kStaged = true;
    using Params = NeighbourRows;

    uint64_t keys[K];

    __device__ bool wants(float gap, uint32_t lowest) const { return neighbour_key(gap, lowest) < keys[K - 1]; }
    __device__ float bound() const { return key_distance(keys[K - 1]); }

    /// Distances of all first, then the insertions, as many as the lane with the most has: other lanes' candidates do
    /// not make a lane wait once for each.
    template <class Source>
    __device__ void visit(const Source& source) {
        uint32_t candidates = points_within(source, bound());
        while (__any_sync(kAllLanes, candidates != 0)) {
            uint64_t key = ~uint64_t{0};
            if (candidates != 0) {
                const int i = __ffs(static_cast<int>(candidates)) - 1;
                candidates &= candidates - 1;
                key = neighbour_key(source.one(i), source.index(i));
            }
            if (__any_sync(kAllLanes, key < keys[K - 1])) insert(key);
        }
    }

    __device__ void insert(uint64_t key) {
#pragma unroll
        for (int i = K - 1; i > 0; --i) keys[i] = key < keys[i - 1] ? keys[i - 1] : min(keys[i], key);
        keys[0] = min(keys[0], key);
    }

    template <class Packet>
    __device__ static void run(Packet& packet, const Params& rows) {
        NearestList task;
#pragma unroll
        for (int i = 0; i < K; ++i) task.keys[i] = packet.active() && i >= K - rows.k ? rows.limit : 0;
        packet.search(task);
        if (packet.row() >= 0) task.write(packet.row(), packet.active(), rows);
    }

    __device__ void write(int64_t row, bool active, const NeighbourRows& rows) const {
        if (rows.vectors && rows.k == K && !rows.repeat_first) {
#pragma unroll
            for (int i = 0; i < K; i += 4) {
                Neighbour n[4];
#pragma unroll
                for (int j = 0; j < 4; ++j) n[j] = neighbour_of(keys[i + j], active && keys[i + j] < rows.limit);
                *reinterpret_cast<int4*>(rows.indices + row * K + i) =
                    make_int4(n[0].index, n[1].index, n[2].index, n[3].index);
                if (rows.distances)
                    *reinterpret_cast<float4*>(rows.distances + row * K + i) =
                        make_float4(n[0].distance, n[1].distance, n[2].distance, n[3].distance);
            }
            return;
        }
        int32_t first = -1, count = 0;
#pragma unroll
        for (int i = 0; i < K; ++i) {
            const int slot = i - (K - rows.k);
            if (slot < 0) continue;
            const bool found = active && keys[i] < rows.limit;
            Neighbour n = neighbour_of(keys[i], found);
            if (slot == 0) first = n.index;
            if (!found && rows.repeat_first) n.index = first;
            count += found;
            rows.indices[row * rows.k + slot] = n.index;
            if (rows.distances) rows.distances[row * rows.k + slot] = n.distance;
        }
        if (rows.counts) rows.counts[row] = count;
    }
};

/// Up to 32 * Rows nearest, a warp a query: a sorted list over the lanes, row by row, filled up with zeros as above.
template <int Rows>
struct NearestWide {
    static constexpr int kLanes = 32;
    static constexpr int kBlocks = 0;
    static constexpr bool kStaged = true;
    using Params = NeighbourRows;

    uint64_t keys[Rows];  // key number row * 32 + lane
    uint64_t worst;

    __device__ bool wants(float gap, uint32_t lowest) const { return neighbour_key(gap, lowest) < worst; }
    __device__ float bound() const { return key_distance(worst); }

    template <class Source>
    __device__ void visit(const Source& source) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        uint64_t key = neighbour_key(source.one(lane), source.index(lane));
        if (key >= worst) key = ~uint64_t{0};
        if (!__any_sync(kAllLanes, key < worst)) return;
        for (int size = 2; size <= 32; size *= 2) {  // bitonic sort of the candidates
            for (int step = size / 2; step > 0; step /= 2)
                key = exchange(key, step, ((lane & size) != 0) != ((lane & step) != 0));
        }
#pragma unroll
        for (int row = 0; row < Rows; ++row) {  // the lower 32 of a row and the candidates stay, the others go on
            const uint64_t reversed = __shfl_sync(kAllLanes, key, 31 - lane);
            key = max(keys[row], reversed);
            keys[row] = merge(min(keys[row], reversed), lane);
            if (row + 1 < Rows) key = merge(key, lane);
        }
        worst = __shfl_sync(kAllLanes, keys[Rows - 1], 31);
    }

    __device__ static uint64_t exchange(uint64_t key, int step, bool keep_higher) {
        const uint64_t other = __shfl_xor_sync(kAllLanes, key, step);
        return keep_higher ? max(key, other) : min(key, other);
    }

    /// Sorts 32 keys that first rise and then fall, or the other way round.
    __device__ static uint64_t merge(uint64_t key, int lane) {
#pragma unroll
        for (int step = 16; step > 0; step /= 2) key = exchange(key, step, (lane & step) != 0);
        return key;
    }

    template <class Packet>
    __device__ static void run(Packet& packet, const Params& rows) {
        if (packet.row() < 0) return;  // the whole warp: its lanes have the same query
        NearestWide task;
        const int lane = packet.lane();
#pragma unroll
        for (int row = 0; row < Rows; ++row)
            task.keys[row] = packet.active() && row * 32 + lane >= 32 * Rows - rows.k ? rows.limit : 0;
        task.worst = packet.active() ? rows.limit : 0;
        packet.search(task);

        const int skipped = 32 * Rows - rows.k;
        int32_t first = -1, count = 0;
#pragma unroll
        for (int row = 0; row < Rows; ++row) {
            const int slot = row * 32 + lane - skipped;
            const bool found = slot >= 0 && packet.active() && task.keys[row] < rows.limit;
            Neighbour n = neighbour_of(task.keys[row], found);
            if (row == skipped / 32) first = __shfl_sync(kAllLanes, n.index, skipped % 32);
            if (!found && rows.repeat_first) n.index = first;
            count += __popc(__ballot_sync(kAllLanes, found));
            if (slot < 0) continue;
            rows.indices[packet.row() * rows.k + slot] = n.index;
            if (rows.distances) rows.distances[packet.row() * rows.k + slot] = n.distance;
        }
        if (rows.counts && lane == 0) rows.counts[packet.row()] = count;
    }
};

/// The nearest rows.k, at most 128, of every query. In knn.cu.
void find_nearest(const PointHierarchy& index, const Clouds& queries, NeighbourRows rows, cudaStream_t stream);

}  // namespace stipple::ops::cuda
