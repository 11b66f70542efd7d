#pragma once
// Scans and candidate lists of emd on CUDA: a warp looks for the objects with the least cost + price for a bidder, and
// skips the boxes that cannot hold one.

#include "stipple/ops/emd/block_solver.cuh"

namespace stipple::ops::cuda::matching {

__device__ inline float warp_min_nonnegative(float value) {  // for values >= 0
    return __uint_as_float(warp_min(__float_as_uint(value)));
}

/// A bounding box: center and half extents, these rounded up.
struct Box {
    float4 center, half;

    /// Never above the squared distance to a point of the box, rounding included.
    __device__ float distance_sq_to(const float4& p) const {
        const float dx = fmaxf(fabsf(p.x - center.x) - half.x, 0.0f);
        const float dy = fmaxf(fabsf(p.y - center.y) - half.y, 0.0f);
        const float dz = fmaxf(fabsf(p.z - center.z) - half.z, 0.0f);
        return (dx * dx + dy * dy + dz * dz) * (1.0f - 0x1p-20f);
    }
};

/// The box around the boxes (points: low == high) that `count` adjacent lanes hold.
__device__ inline Box box_of_lanes(const float4& lowest, const float4& highest, int count) {
    float low[3] = {lowest.x, lowest.y, lowest.z}, high[3] = {highest.x, highest.y, highest.z}, center[3], half[3];
    for (int axis = 0; axis < 3; ++axis) {
        for (int step = count / 2; step > 0; step /= 2) {
            low[axis] = fminf(low[axis], __shfl_xor_sync(kAllLanes, low[axis], step));
            high[axis] = fmaxf(high[axis], __shfl_xor_sync(kAllLanes, high[axis], step));
        }
        center[axis] = 0.5f * low[axis] + 0.5f * high[axis];
        half[axis] = fmaxf(high[axis] - center[axis], center[axis] - low[axis]) * kFilterFactor;
    }
    return {make_float4(center[0], center[1], center[2], 0.0f), make_float4(half[0], half[1], half[2], 0.0f)};
}

/// Leaf and node boxes; those beyond the last object are infinitely far away.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::build_boxes() {
    const float4 nowhere = make_float4(INFINITY, INFINITY, INFINITY, 0.0f), none = make_float4(0, 0, 0, 0);
    for (int base = warp_ * 32; base < nodes_ * kNodeLeaves * kLeafObjects; base += kThreads) {
        const int j = base + lane_;
        const float4 q = object()[min(j, n_ - 1)];
        const Box box = box_of_lanes(q, q, kLeafObjects);
        if (lane_ % kLeafObjects == 0) {
            center()[j / kLeafObjects] = j < n_ ? box.center : nowhere;
            half()[j / kLeafObjects] = j < n_ ? box.half : none;
        }
    }
    __syncthreads();
    for (int node = warp_; node < nodes_; node += kWarps) {
        const int leaf = min(node * kNodeLeaves + lane_, (n_ - 1) / kLeafObjects);
        const float4 m = center()[leaf], h = half()[leaf];
        const Box box = box_of_lanes(make_float4(m.x - h.x, m.y - h.y, m.z - h.z, 0.0f),
                                     make_float4(m.x + h.x, m.y + h.y, m.z + h.z, 0.0f), 32);
        if (lane_ != 0) continue;
        node_center()[node] = box.center;
        node_half()[node] = box.half;
    }
    __syncthreads();
}

/// The minimum prices of all leaves and nodes, after many prices have changed.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::update_min_prices() {
    for (int node = warp_; node < nodes_; node += kWarps) {
        const int leaf = node * kNodeLeaves + lane_;
        const float4* objects = object() + leaf * kLeafObjects;
        float least = INFINITY;
        for (int k = 0; k < kLeafObjects; ++k) least = fminf(least, objects[(k + lane_) % kLeafObjects].w);
        center()[leaf].w = least;
        least = warp_min_nonnegative(least);
        if (lane_ == 0) node_center()[node].w = least;
    }
    __syncthreads();
}

/// False only where cost + price > limit for p and all objects of a box.
template <bool squared, class Cloud>
__device__ bool BlockSolver<squared, Cloud>::may_hold(const float4& center, const float4& half, const float4& p,
                                                      float limit) const {
    return may_cost<squared>(Box{center, half}.distance_sq_to(p), limit - center.w);
}

/// Calls visit(j, cost, price) so that every object j with cost + price <= limit for the bidder at p is visited by one
/// lane, except for the kSeedObjects objects from `except` on; j = -1: nothing for this lane. Boxes first, then
/// objects, several independent ones in every lane: a round is as fast as its slowest scan, and a scan is bound by
/// latency.
template <bool squared, class Cloud>
template <class Visit>
__device__ void BlockSolver<squared, Cloud>::scan(const float4& p, float limit, int except, const Visit& visit) const {
    constexpr int kColumns = 32 / kLeafObjects,
                  kAtOnce = 4;  // leaves side by side in a warp, and leaves in flight in every lane
    const float4* const objects = object();
    Index* leaves = block_shared().leaves[warp_];
    int base = -32;     // of the nodes
    unsigned open = 0;  // nodes to look into
    do {
        int count = 0;
        while (count <= kLeavesAtOnce - kAtOnce * kNodeLeaves) {
            if (open == 0) {
                base += 32;
                if (base >= nodes_) break;
                const int node = base + lane_, inside = min(node, nodes_ - 1);
                open = __ballot_sync(kAllLanes,
                                     node < nodes_ && may_hold(node_center()[inside], node_half()[inside], p, limit));
                continue;
            }
            bool near[kAtOnce];
            int leaf[kAtOnce];
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k) {
                near[k] = open != 0;
                leaf[k] = (base + max(__ffs(static_cast<int>(open)) - 1, 0)) * kNodeLeaves + lane_;
                open &= open - 1;
            }
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k)
                near[k] = near[k] && may_hold(center()[leaf[k]], half()[leaf[k]], p, limit) &&
                          leaf[k] / (kSeedObjects / kLeafObjects) != except / kSeedObjects;
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k) {
                const unsigned all = __ballot_sync(kAllLanes, near[k]);
                if (near[k]) leaves[count + __popc(all & ((1u << lane_) - 1))] = static_cast<Index>(leaf[k]);
                count += __popc(all);
            }
        }
        __syncwarp();
        for (int begin = 0; begin < count; begin += kAtOnce * kColumns) {
            const int first = begin + lane_ / kLeafObjects;
            int j[kAtOnce];
            float cost[kAtOnce], price[kAtOnce];
            bool within[kAtOnce];
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k) {
                const int at = first + k * kColumns;
                j[k] = leaves[min(at, count - 1)] * kLeafObjects + lane_ % kLeafObjects;
                const float4 q = objects[j[k]];
                cost[k] = cost_of(p, q);
                price[k] = q.w;
                within[k] = at < count && cost[k] <= limit - q.w;
            }
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k)
                if (__any_sync(kAllLanes, within[k])) visit(within[k] ? j[k] : -1, cost[k], price[k]);
        }
        __syncwarp();
    } while (base < nodes_);
}

template <bool squared, class Cloud>
__device__ typename BlockSolver<squared, Cloud>::LaneCandidates BlockSolver<squared, Cloud>::load_candidates(
    int i) const {
    const CandidateList<Index>& list = candidates_[i];
    const auto two = reinterpret_cast<const typename Cloud::LaneIndices*>(list.object)[lane_];
    return {{index_or_none(two.x), index_or_none(two.y)}, list.bound - price_drop_ - kFilterMargin};
}

/// cost + price of the candidates of a lane for the bidder at p; infinite for none.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::values_of(const LaneCandidates& known, const float4& p,
                                                       float (&value)[kPerLane]) const {
    for (int k = 0; k < kPerLane; ++k) {
        const float4 q = object()[max(known.object[k], 0)];
        value[k] = known.object[k] >= 0 ? add_rounded(cost_of(p, q), q.w) : INFINITY;
    }
}

/// The two best values and the best object of a bidder; the same in all lanes. From the candidate list if it suffices,
/// otherwise by a scan.
template <bool squared, class Cloud>
__device__ Best BlockSolver<squared, Cloud>::best_of(int i) const {
    const float4 p = point_[i];
    float best = INFINITY, second = INFINITY;
    unsigned rank = 0xffffffffu;
    const auto consider = [&](int j, float value) {
        const auto r = static_cast<unsigned>(rank_of(j, i, n_));
        const bool better = value < best || (value == best && r < rank);
        second = better ? best : fminf(second, value);
        best = better ? value : best;
        rank = better ? r : rank;
    };
    const auto of_all = [&] {
        Best all;
        all.value = warp_min_nonnegative(best);
        const unsigned mine = best == all.value ? rank : 0xffffffffu, first = warp_min(mine);  // ranks are distinct
        all.second = warp_min_nonnegative(mine == first ? second : best);
        all.object = index_of_rank(i, first);
        return all;
    };
    float limit = INFINITY;
    int except = -kSeedObjects;
    if (!is_marked(i)) {
        const LaneCandidates known = load_candidates(i);
        float value[kPerLane];
        values_of(known, p, value);
        for (int k = 0; k < kPerLane; ++k) consider(known.object[k], value[k]);
        const Best all = of_all();
        if (all.second <= known.bound) return all;
        if (lane_ == 0)
            atomicOr(&marks()[i / 32], 1u << (i & 31));  // exhausted: prices rise, it will not suffice later
        limit = all.second;
        best = second = INFINITY;
        rank = 0xffffffffu;
    }
    if (!(limit < INFINITY)) {  // the second best of the seed objects bounds the scan
        except = seed_[i] / kSeedObjects * kSeedObjects;
        const float4 q = object()[except + lane_];
        best = add_rounded(cost_of(p, q), q.w);
        rank = static_cast<unsigned>(rank_of(except + lane_, i, n_));
        limit = of_all().second;
    }
    scan(p, limit * kFilterFactor, except,
         [&](int j, float cost, float price) { consider(j, j >= 0 ? add_rounded(cost, price) : INFINITY); });
    return of_all();
}

/// Fills the candidate list of a bidder with the objects whose value is at most window above the best, as far as there
/// is room; returns the value of the best object.
template <bool squared, class Cloud>
__device__ float BlockSolver<squared, Cloud>::build_candidates(int i, float window, CandidateList<Index>& list) const {
    const float4 p = point_[i];
    const float4 q = object()[seed_[i] / kSeedObjects * kSeedObjects + lane_];
    const float here = add_rounded(cost_of(p, q), q.w), nearest = warp_min_nonnegative(here);
    // They may not all fit: use no more than the width estimated last time, and not most of the seed objects.
    const bool first = !(eps_ > 0.0f);  // no list yet
    const int most = first ? 16 : 24;
    float limit = nearest + (first ? window : fminf(window, candidates_[i].width));
    for (int tries = 0; tries < 20 && __popc(__ballot_sync(kAllLanes, here <= limit)) >= most; ++tries)
        limit = nearest + 0.75f * (limit - nearest);
    for (int tries = 0;; ++tries) {
        float best = nearest;
        int count = 0;
        scan(p, limit * kFilterFactor, -kSeedObjects, [&](int j, float cost, float price) {
            const float value = j >= 0 ? add_rounded(cost, price) : INFINITY;
            const bool has = value <= limit;
            const unsigned all = __ballot_sync(kAllLanes, has);
            const int at = count + __popc(all & ((1u << lane_) - 1));
            if (has && at < kCandidates) __stcg(&list.object[at], static_cast<Index>(j));
            count += __popc(all);
            best = fminf(best, value);
        });
        best = warp_min_nonnegative(best);
        const bool fits = count <= kCandidates;
        if (!fits && tries < 8) {
            limit = best + 0.6f * (limit - best);
            continue;
        }
        for (int k = lane_; k < kCandidates; k += 32)
            if (!fits || k >= count) __stcg(&list.object[k], kNone);
        if (lane_ == 0) {
            __stcg(&list.bound, fits ? limit + price_drop_ : -1.0f);
            // As if objects lay on a surface: their number grows with the square of the width.
            const float more = sqrtf(0.75f * kCandidates / static_cast<float>(max(count, 1)));
            __stcg(&list.width, (limit - best) * more);
        }
        return best;
    }
}

/// The object that a bidder bids for, and the amount as bits.
template <bool squared, class Cloud>
__device__ int2 BlockSolver<squared, Cloud>::bid_of(int i) const {
    const Best best = best_of(i);
    const float price = object()[best.object].w;
    return make_int2(best.object, __float_as_int(assignment::bid_of(price, best.value, best.second, eps_)));
}

/// Whether the candidate list holds all objects whose value is at most reach above the best; best is set in any case.
template <bool squared, class Cloud>
__device__ bool BlockSolver<squared, Cloud>::candidates_reach(int i, float reach, float& best) const {
    const float4 p = point_[i];
    const LaneCandidates known = load_candidates(i);
    best = INFINITY;
    for (int k = 0; k < kPerLane; ++k) {
        const float4 q = object()[max(known.object[k], 0)];
        if (known.object[k] >= 0) best = fminf(best, add_rounded(cost_of(p, q), q.w));
    }
    best = warp_min_nonnegative(best);
    return best + reach <= known.bound;
}

/// profit = min over objects of cost + price. Rebuilds the candidate lists; with a reach, only those that do not cover
/// it any more.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::update_profits(float window, float reach) {
    const bool rebuild = !(reach > 0.0f);
    unsigned long long* published = next_buffer();
    CandidateList<Index>* list = rebuild ? next_candidates() : candidates_;
    if (rebuild)
        price_drop_ = 0.0f;
    else
        group_sync();  // no block reads what is changed
    for (int i = rank_ * kWarps + warp_; i < n_; i += kWarps * task_.group) {
        float value = 0.0f;
        if (rebuild || !candidates_reach(i, reach, value)) value = build_candidates(i, window, list[i]);
        if (lane_ == 0) __stcg(&published[i], static_cast<unsigned long long>(__float_as_uint(value)));
    }
    group_sync();
    candidates_ = list;
    for (int i = static_cast<int>(threadIdx.x); i < n_; i += kThreads)
        point_[i].w = __uint_as_float(static_cast<unsigned>(__ldcg(&published[i])));
    __syncthreads();
}

/// Rebuilds the candidate lists that do not cover a search's first horizon, because profits have risen in the search
/// before, if there are many.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::refresh_candidates() {
    const float reach = unit_ * static_cast<float>(kHorizon) + 2.0f * kFilterMargin;
    const auto outdated = [&](int i) {
        return candidates_[i].width > reach && candidates_[i].bound - price_drop_ < point_[i].w + reach;
    };
    int count = 0;
    for (int base = 0; base < n_; base += kThreads) {
        const int i = base + static_cast<int>(threadIdx.x);
        count += __syncthreads_count(i < n_ && outdated(i));
    }
    if (count <= n_ / kOutdatedDivisor) return;
    group_sync();
    for (int i = rank_ * kWarps + warp_; i < n_; i += kWarps * task_.group)
        if (outdated(i)) build_candidates(i, kCandidateWindow * eps_, candidates_[i]);
    group_sync();
}

}  // namespace stipple::ops::cuda::matching
