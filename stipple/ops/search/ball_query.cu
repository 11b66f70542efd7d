#include <bit>
#include <cmath>

#include "stipple/ops/ball_query.h"
#include "stipple/ops/common/segment_sort.h"
#include "stipple/ops/search/nearest_tasks.cuh"
#include "stipple/ops/search/neighbours_cuda.h"
#include "stipple/ops/search/within_tasks.cuh"

namespace stipple::ops::cuda {
namespace {

constexpr int kBallQueryThreads = 256;

struct BallRows {
    float limit;       // the largest squared distance in the ball
    int32_t* indices;  // [m, s]
    int32_t* counts;   // [m] or null
    int64_t s;
};

/// The lowest s <= S indices, a lane a query: an ascending list in registers; of a shorter one the first S - s are 0,
/// which nothing displaces.
template <int S>
struct LowestIndices {
    static constexpr int kLanes = 1;
    static constexpr int kBlocks = 0;
    static constexpr bool kStaged = true;
    using Params = BallRows;

    uint32_t list[S];
    float limit;

    __device__ bool wants(float gap, uint32_t lowest) const { return gap <= limit && lowest < list[S - 1]; }
    __device__ float bound() const { return limit; }

    template <class Source>
    __device__ void visit(const Source& source) {
        uint32_t candidates = points_within(source, limit);
        while (__any_sync(kAllLanes, candidates != 0)) {
            uint32_t index = kNoNode;
            if (candidates != 0) {
                index = source.index(__ffs(static_cast<int>(candidates)) - 1);
                candidates &= candidates - 1;
            }
            if (!__any_sync(kAllLanes, index < list[S - 1])) continue;
#pragma unroll
            for (int i = S - 1; i > 0; --i) list[i] = min(list[i], max(list[i - 1], index));
            list[0] = min(list[0], index);
        }
    }

    template <class Packet>
    __device__ static void run(Packet& packet, const Params& params) {
        LowestIndices task;
        task.limit = params.limit;
#pragma unroll
        for (int i = 0; i < S; ++i) task.list[i] = i < S - params.s ? 0 : kNoNode;
        packet.search(task);
        if (packet.row() < 0) return;
        int32_t first = -1, count = 0;
        int32_t* to = params.indices + packet.row() * params.s;
#pragma unroll
        for (int i = 0; i < S; ++i) {
            const int slot = i - (S - static_cast<int>(params.s));
            if (slot < 0) continue;
            const bool found = task.list[i] != kNoNode;
            if (slot == 0 && found) first = static_cast<int32_t>(task.list[i]);
            count += found;
            to[slot] = found ? static_cast<int32_t>(task.list[i]) : first;
        }
        if (params.counts) params.counts[packet.row()] = count;
    }
};

/// Any s: finds by bisection the index below which exactly s points of the ball lie, where there are more, and writes
/// those to the query's run, unordered. About 32 searches for a query of more than s points.
struct CollectLowest {
    static constexpr int kLanes = 1;
    static constexpr int kBlocks = 0;
    struct Params {
        BallRows rows;
        int64_t *begins, *ends;
        uint64_t* keys;  // [m, s]
    };

    template <class Packet>
    __device__ static void run(Packet& packet, const Params& params) {
        const int64_t s = params.rows.s;
        uint32_t below = kNoNode;
        const bool more = count_within(packet, params.rows.limit, below) > s;
        if (__any_sync(kAllLanes, more)) {
            uint32_t low = 0, high = 0x80000000u;  // at most s points below low, more below high
            for (int round = 0; round < 31; ++round) {
                const uint32_t middle = low + (high - low) / 2;
                const bool enough = count_within(packet, params.rows.limit, more ? middle : 0u) > s;
                (enough ? high : low) = middle;
            }
            if (more) below = low;
        }
        const int64_t row = packet.row();
        int64_t at = row * s;
        if (row >= 0) params.begins[row] = at;
        visit_within(packet, params.rows.limit, below, [&](float, uint32_t index) { params.keys[at++] = index; });
        if (row >= 0) params.ends[row] = at;
    }
};

__global__ void __launch_bounds__(kBallQueryThreads)
    write_groups(BallRows rows, int64_t m, const uint64_t* keys, const int64_t* ends) {
    const int64_t i = int64_t{blockIdx.x} * kBallQueryThreads + threadIdx.x;
    if (i >= m * rows.s) return;
    const int64_t row = i / rows.s, begin = row * rows.s, count = ends[row] - begin;
    rows.indices[i] = count == 0 ? -1 : static_cast<int32_t>(keys[i - begin < count ? i : begin]);
    if (rows.counts && i == begin) rows.counts[row] = static_cast<int32_t>(count);
}

void collect_lowest(const PacketJob& job, const BallRows& rows, int64_t m, cudaStream_t stream) {
    const int64_t total = checked_mul(m, rows.s);
    const Scratch<uint64_t> keys(checked_mul(total, 2), stream);
    const Scratch<int64_t> runs(checked_mul(m, 2), stream);
    const CollectLowest::Params params = {rows, runs.get(), runs.get() + m, keys.get()};
    launch_packets<CollectLowest>(job, params, stream);
    const uint64_t* sorted =
        sort_segments(keys.get(), keys.get() + total, total, params.begins, params.ends, m, stream);
    write_groups<<<blocks_for(total, kBallQueryThreads), kBallQueryThreads, 0, stream>>>(rows, m, sorted, params.ends);
    STIPPLE_CHECK_LAUNCH(write_groups);
}

}  // namespace

void ball_query(const PointIndex& index, const Clouds& queries, float radius, View<int32_t, 2> indices,
                View<int32_t, 1> counts, NeighbourOrder order, Stream stream) {
    const CurrentDevice current(index.device());
    const int64_t m = queries.batch.rows(), s = indices.size(1);
    if (m == 0) return;
    const PointHierarchy& nodes = index.on_cuda();
    const float radius_sq = radius * radius;
    int32_t* count_data = counts.elements() == 0 ? nullptr : counts.data();
    if (order == NeighbourOrder::nearest) {
        NeighbourRows rows;
        rows.indices = indices.data();
        rows.counts = count_data;
        rows.limit = static_cast<uint64_t>(std::bit_cast<uint32_t>(radius_sq)) << 32;  // strictly inside
        rows.k = static_cast<int32_t>(s);
        rows.repeat_first = true;
        find_nearest(nodes, queries, rows, raw(stream));
        return;
    }
    const OrderedQueries ordered(nodes, queries, raw(stream));
    const PacketJob job = {nodes.view, ordered.view, ordered.rows};
    // Strictly inside: at most the float before. Of radius 0 that is below every distance.
    const BallRows rows = {std::nextafter(radius_sq, -1.0f), indices.data(), count_data, s};
    if (s <= 16)
        launch_packets<LowestIndices<16>>(job, rows, raw(stream));
    else if (s <= 32)
        launch_packets<LowestIndices<32>>(job, rows, raw(stream));
    else if (s <= 64)
        launch_packets<LowestIndices<64>>(job, rows, raw(stream));
    else
        collect_lowest(job, rows, m, raw(stream));
}

}  // namespace stipple::ops::cuda
