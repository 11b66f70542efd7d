#pragma once
// Searching with packets: a warp takes queries that lie together and walks the hierarchy once for all of them.
//
// The lanes test the 32 children of a node at once against the box of the packet; the nearest child that some query
// still wants is entered first. A leaf's 32 points are loaded once, one by each lane, and every query reads them from
// shared memory. Bounds are exact: the gap to a box, computed with the same rounded operations as a distance, is never
// above the distance of a point inside, so pruning cannot change a result.

#include "stipple/core/numeric.h"
#include "stipple/ops/common/warp.cuh"
#include "stipple/ops/search/point_hierarchy.h"

namespace stipple::ops::cuda {

constexpr int kPacketWarps = 4;  // of a block
constexpr uint32_t kNoNode = 0xffffffffu;

/// A neighbour as a number: keys ascend by distance, then by index. Squared distances are not negative.
__device__ inline uint64_t neighbour_key(float distance_sq, uint32_t index) {
    return static_cast<uint64_t>(__float_as_uint(distance_sq)) << 32 | index;
}
__device__ inline float key_distance(uint64_t key) {
    return __uint_as_float(static_cast<uint32_t>(key >> 32));
}

__device__ inline float gap(float low, float high, float other_low, float other_high) {
    return fmaxf(fmaxf(low - other_high, other_low - high), 0.0f);
}
__device__ inline float gap_sq(float4 low, float4 high, float3 other_low, float3 other_high) {
    return distance_sq(gap(low.x, high.x, other_low.x, other_high.x), gap(low.y, high.y, other_low.y, other_high.y),
                       gap(low.z, high.z, other_low.z, other_high.z));
}

/// 32 points in three dimensions and the lane's query, read where they lie: for lanes that share the points of a leaf.
struct GlobalSource {
    const float4* leaf;
    float3 query;

    __device__ void keys(int part, uint64_t (&key)[4]) const {
#pragma unroll
        for (int i = 0; i < 4; ++i) key[i] = key_of(leaf[4 * part + i]);
    }
    __device__ uint64_t key(int i) const {
        return key_of(leaf[i]);
    }

private:
    __device__ uint64_t key_of(float4 p) const {
        return neighbour_key(distance_sq(query.x - p.x, query.y - p.y, query.z - p.z), __float_as_uint(p.w));
    }
};

/// The same, staged in shared memory: for lanes that all look at every point. Gives distances by fours and singly.
struct LeafSource {
    struct Shared {
        float4 x[8], y[8], z[8];
        uint4 index[8];
    };
    const Shared* leaf;
    float3 query;

    __device__ void four(int part, float (&d)[4]) const {
        const float4 x = leaf->x[part], y = leaf->y[part], z = leaf->z[part];
        d[0] = distance_sq(query.x - x.x, query.y - y.x, query.z - z.x);
        d[1] = distance_sq(query.x - x.y, query.y - y.y, query.z - z.y);
        d[2] = distance_sq(query.x - x.z, query.y - y.z, query.z - z.z);
        d[3] = distance_sq(query.x - x.w, query.y - y.w, query.z - z.w);
    }
    __device__ float one(int i) const {
        return distance_sq(query.x - reinterpret_cast<const float*>(leaf->x)[i],
                           query.y - reinterpret_cast<const float*>(leaf->y)[i],
                           query.z - reinterpret_cast<const float*>(leaf->z)[i]);
    }
    __device__ uint32_t index(int i) const { return reinterpret_cast<const uint32_t*>(leaf->index)[i]; }
};

/// 32 points of any dimension. Queries and points lie as [dimension, 32] in shared memory.
struct TileSource {
    const float* points;
    const float* query;  // the lane's, numbers 32 apart
    int dimension;
    uint32_t first;  // index of the first point

    __device__ void four(int part, float (&d)[4]) const {
        d[0] = d[1] = d[2] = d[3] = 0;
        for (int axis = 0; axis < dimension; ++axis) {
            const float q = query[axis * 32];
            const float4 p = reinterpret_cast<const float4*>(points)[axis * 8 + part];
            const float delta[4] = {q - p.x, q - p.y, q - p.z, q - p.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) d[i] = __fadd_rn(d[i], __fmul_rn(delta[i], delta[i]));
        }
    }
    __device__ float one(int i) const {
        float d = 0;
        for (int axis = 0; axis < dimension; ++axis) {
            const float delta = query[axis * 32] - points[axis * 32 + i];
            d = __fadd_rn(d, __fmul_rn(delta, delta));
        }
        return d;
    }
    __device__ void keys(int part, uint64_t (&key)[4]) const {
        float d[4];
        four(part, d);
#pragma unroll
        for (int i = 0; i < 4; ++i) key[i] = neighbour_key(d[i], index(4 * part + i));
    }
    __device__ uint64_t key(int i) const {
        return neighbour_key(one(i), index(i));
    }
    __device__ uint32_t index(int i) const {
        return first + i;
    }
};

/// Which of a source's 32 points are at a squared distance of at most `limit`, as bits.
template <class Source>
__device__ uint32_t points_within(const Source& source, float limit) {
    uint32_t within = 0;
#pragma unroll
    for (int part = 0; part < 8; ++part) {
        float d[4];
        source.four(part, d);
#pragma unroll
        for (int i = 0; i < 4; ++i) within |= d[i] <= limit ? 1u << (4 * part + i) : 0u;
    }
    return within;
}

/// What a packet's search reads: the index, and the queries in their order.
struct PacketJob {
    HierarchyView index, queries;
    RowsView rows;  // where the queries' coordinates lie, when only the order is to be taken from `queries`
};

/// One packet of 32 / Lanes queries, Lanes lanes each: query i has the lanes i, i + 32 / Lanes, ...
///
/// A visitor, one copy in each lane, has
///   wants(gap_sq, lowest_index)  whether the lane's query may find something in such a box
///   bound()                      no box further away than this squared distance is wanted; only falls
///   visit(source)                takes the 32 points of a leaf
///   kStaged                      whether it takes them from shared memory
template <int Lanes>
class LeafPacket {
public:
    static constexpr int kQueries = 32 / Lanes;

    struct Shared {
        uint32_t order[kMaxLevels][32];  // of the levels above the current one; a lane reads what it wrote
        float gaps[kMaxLevels][32];
        LeafSource::Shared leaf;
        float3 low, high;  // of the queries; here because registers are scarce
    };

    __device__ LeafPacket(const PacketJob& job, int64_t packet, Shared& shared)
        : index_(job.index), batch_(job.queries.batch), shared_(shared), lane_(static_cast<int>(threadIdx.x) % 32) {
        const auto leaf = static_cast<int32_t>(packet / Lanes);
        cloud_ = job.queries.cloud_of(0, leaf);
        float4 query = job.queries.points[packet * kQueries + lane_ % kQueries];
        at_ = __float_as_uint(query.w);
        if (job.rows.data && at_ != kNoNode) query = job.rows.leaf_point(job.queries.batch.begin(cloud_) + at_, at_);
        query_ = make_float3(query.x, query.y, query.z);
        active_ = !isnan(query.x);
        const float3 low = make_float3(warp_min(active_ ? query.x : INFINITY), warp_min(active_ ? query.y : INFINITY),
                                       warp_min(active_ ? query.z : INFINITY));
        const float3 high =
            make_float3(warp_max(active_ ? query.x : -INFINITY), warp_max(active_ ? query.y : -INFINITY),
                        warp_max(active_ ? query.z : -INFINITY));
        if (lane_ == 0) {
            shared_.low = low;
            shared_.high = high;
        }
        __syncwarp();
    }

    __device__ bool active() const { return active_; }  // the lane's query is a finite point
    __device__ int64_t row() const {                    // of the lane's query; -1 where there is none
        return at_ == kNoNode ? -1 : batch_.begin(cloud_) + at_;
    }
    __device__ int lane() const { return lane_; }
    __device__ int part() const { return lane_ / kQueries; }  // which of the query's lanes

    template <class Visitor>
    __device__ void search(Visitor& visitor) {
        if (!__any_sync(kAllLanes, active_)) return;
        const int top = index_.levels - 1;
        int level = top;
        int32_t first = index_.first_node(level, cloud_);  // child, counted from the hierarchy's first node
        uint32_t order = kNoNode;
        float box_gap = 0;
        load_children(first, index_.nodes(level, cloud_), order, box_gap);
        float packet_bound = bound_of(visitor);
        while (true) {
            const uint32_t next = warp_min(box_gap <= packet_bound ? order : kNoNode);
            if (next == kNoNode) {
                if (level == top) return;
                const int32_t parent = (first - index_.first_node(level, cloud_)) / kFanout;
                ++level;
                order = shared_.order[level][lane_];
                box_gap = shared_.gaps[level][lane_];
                first = index_.first_node(level, cloud_) + parent / kFanout * kFanout;
                continue;
            }
            const int child = static_cast<int>(next % 32);
            if (lane_ == child) order = kNoNode;
            const int64_t at = int64_t{first} + child;
            const float4 low = index_.lows[at], high = index_.highs[at];
            const bool wanted = active_ && visitor.wants(gap_sq(low, high, query_, query_), __float_as_uint(low.w));
            if (!__any_sync(kAllLanes, wanted)) continue;
            if (level == 0) {
                const float4* leaf = index_.points + at * kLeafPoints;
                if constexpr (Visitor::kStaged) {
                    stage(leaf);
                    visitor.visit(LeafSource{&shared_.leaf, query_});
                } else {
                    visitor.visit(GlobalSource{leaf, query_});
                }
                packet_bound = bound_of(visitor);
            } else {
                shared_.order[level][lane_] = order;
                shared_.gaps[level][lane_] = box_gap;
                const int32_t below = (static_cast<int32_t>(at) - index_.first_node(level, cloud_)) * kFanout;
                --level;
                first = index_.first_node(level, cloud_) + below;
                load_children(first, index_.nodes(level, cloud_) - below, order, box_gap);
            }
        }
    }

private:
    /// Each lane a child: its gap to the packet's box, and its turn: the nearer to the packet's centre the earlier,
    /// ties to the lower lane.
    __device__ void load_children(int32_t first, int32_t count, uint32_t& order, float& box_gap) const {
        order = kNoNode;
        box_gap = INFINITY;
        if (lane_ >= count) return;
        const int64_t at = int64_t{first} + lane_;
        const float4 low = index_.lows[at], high = index_.highs[at];
        const float3 from = shared_.low, to = shared_.high;
        box_gap = gap_sq(low, high, from, to);
        const float3 centre =
            make_float3(0.5f * from.x + 0.5f * to.x, 0.5f * from.y + 0.5f * to.y, 0.5f * from.z + 0.5f * to.z);
        order = (__float_as_uint(gap_sq(low, high, centre, centre)) & ~31u) | static_cast<uint32_t>(lane_);
    }

    __device__ void stage(const float4* leaf) {
        __syncwarp();  // all have read the leaf before
        const float4 p = leaf[lane_];
        reinterpret_cast<float*>(shared_.leaf.x)[lane_] = p.x;
        reinterpret_cast<float*>(shared_.leaf.y)[lane_] = p.y;
        reinterpret_cast<float*>(shared_.leaf.z)[lane_] = p.z;
        reinterpret_cast<float*>(shared_.leaf.index)[lane_] = p.w;
        __syncwarp();
    }

    template <class Visitor>
    __device__ float bound_of(const Visitor& visitor) const {
        return __uint_as_float(warp_max(active_ ? __float_as_uint(visitor.bound()) : 0u));
    }

    const HierarchyView& index_;
    const DeviceBatch& batch_;  // of the queries
    Shared& shared_;
    int lane_;
    int32_t cloud_;
    float3 query_;
    uint32_t at_;  // the query in its cloud
    bool active_;
};

/// The same over features, without boxes: every leaf of the cloud is visited.
template <int Lanes>
class TilePacket {
public:
    static constexpr int kQueries = 32 / Lanes;

    struct Shared {
        float4 queries[32 * 8], points[32 * 8];  // [dimension, 32]
    };

    __device__ TilePacket(const PacketJob& job, int64_t packet, Shared& shared)
        : index_(job.index), shared_(shared), lane_(static_cast<int>(threadIdx.x) % 32) {
        const auto leaf = static_cast<int32_t>(packet / Lanes);
        cloud_ = job.queries.cloud_of(0, leaf);
        const float* tile = job.queries.tiles + int64_t{leaf} * kLeafPoints * job.queries.dimension;
        auto* queries = reinterpret_cast<float*>(shared_.queries);
        for (int i = lane_; i < kLeafPoints * job.queries.dimension; i += 32) queries[i] = tile[i];
        __syncwarp();
        const int slot = static_cast<int>(packet % Lanes) * kQueries + lane_ % kQueries;
        query_ = queries + slot;
        const int64_t begin = job.queries.batch.begin(cloud_);
        row_ = begin + int64_t{leaf - job.queries.first_node(0, cloud_)} * kLeafPoints + slot;
        if (row_ >= job.queries.batch.end(cloud_)) row_ = -1;
        active_ = row_ >= 0 && !isnan(query_[0]);
    }

    __device__ bool active() const { return active_; }
    __device__ int64_t row() const { return row_; }
    __device__ int lane() const { return lane_; }
    __device__ int part() const { return lane_ / kQueries; }

    template <class Visitor>
    __device__ void search(Visitor& visitor) {
        if (!__any_sync(kAllLanes, active_)) return;
        const int32_t leaves = index_.nodes(0, cloud_);
        const int numbers = kLeafPoints * index_.dimension;
        const float* tile = index_.tiles + int64_t{index_.first_node(0, cloud_)} * numbers;
        auto* points = reinterpret_cast<float*>(shared_.points);
        for (int32_t leaf = 0; leaf < leaves; ++leaf, tile += numbers) {
            __syncwarp();
            for (int i = lane_; i < numbers; i += 32) points[i] = tile[i];
            __syncwarp();
            visitor.visit(
                TileSource{points, query_, index_.dimension, static_cast<uint32_t>(leaf) * uint32_t{kLeafPoints}});
        }
    }

private:
    const HierarchyView& index_;
    Shared& shared_;
    int lane_;
    int32_t cloud_;
    const float* query_;
    int64_t row_;
    bool active_;
};

/// Task::run(packet, params) for every packet of a job. Task::kLanes lanes a query.
/// Task::kBlocks: how many blocks registers must allow on a multiprocessor, 0 for what the compiler finds best.
template <class Task, template <int> class Packet>
__global__ void __launch_bounds__(32 * kPacketWarps, Task::kBlocks)
    for_packets(const __grid_constant__ PacketJob job, const __grid_constant__ typename Task::Params params) {
    __shared__ typename Packet<Task::kLanes>::Shared shared[kPacketWarps];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int64_t number = int64_t{blockIdx.x} * kPacketWarps + warp;
    if (number >= int64_t{job.queries.leaves} * Task::kLanes) return;
    Packet<Task::kLanes> packet(job, number, shared[warp]);
    Task::run(packet, params);
}

/// OnPoints in three dimensions, OnTiles otherwise.
template <class OnPoints, class OnTiles = OnPoints>
void launch_packets(const PacketJob& job, const typename OnPoints::Params& params, cudaStream_t stream) {
    const bool points = job.queries.dimension == 3;
    const int64_t packets = int64_t{job.queries.leaves} * (points ? OnPoints::kLanes : OnTiles::kLanes);
    if (packets == 0) return;
    const unsigned blocks = blocks_for(packets, kPacketWarps);
    if (points)
        for_packets<OnPoints, LeafPacket><<<blocks, 32 * kPacketWarps, 0, stream>>>(job, params);
    else
        for_packets<OnTiles, TilePacket><<<blocks, 32 * kPacketWarps, 0, stream>>>(job, params);
    STIPPLE_CHECK_LAUNCH(for_packets);
}

}  // namespace stipple::ops::cuda
