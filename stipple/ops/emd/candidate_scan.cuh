#pragma once
// The scans of emd on CUDA: a warp looks for the objects that are worth most to a point, and passes over the boxes that
// cannot hold one.

#include "stipple/ops/emd/block_state.cuh"

namespace stipple::ops::cuda::matching {

__device__ inline float least_of_lanes(float value) {  // none negative
    return __uint_as_float(warp_min(__float_as_uint(value)));
}

/// A box of points: its middle and half its sides, these a little longer than needed.
struct Box {
    float4 middle, half;

    /// Never above the squared distance to a point of the box, roundings included.
    __device__ float distance_sq_to(const float4& p) const {
        const float dx = fmaxf(fabsf(p.x - middle.x) - half.x, 0.0f);
        const float dy = fmaxf(fabsf(p.y - middle.y) - half.y, 0.0f);
        const float dz = fmaxf(fabsf(p.z - middle.z) - half.z, 0.0f);
        return (dx * dx + dy * dy + dz * dz) * (1.0f - 0x1p-20f);
    }
};

/// Around the boxes (points: low == high) that `count` neighbouring lanes hold.
__device__ inline Box box_of_lanes(const float4& lowest, const float4& highest, int count) {
    float low[3] = {lowest.x, lowest.y, lowest.z}, high[3] = {highest.x, highest.y, highest.z}, middle[3], half[3];
    for (int axis = 0; axis < 3; ++axis) {
        for (int step = count / 2; step > 0; step /= 2) {
            low[axis] = fminf(low[axis], __shfl_xor_sync(kAllLanes, low[axis], step));
            high[axis] = fmaxf(high[axis], __shfl_xor_sync(kAllLanes, high[axis], step));
        }
        middle[axis] = 0.5f * low[axis] + 0.5f * high[axis];
        half[axis] = fmaxf(high[axis] - middle[axis], middle[axis] - low[axis]) * kFilterFactor;
    }
    return {make_float4(middle[0], middle[1], middle[2], 0.0f), make_float4(half[0], half[1], half[2], 0.0f)};
}

/// Boxes beyond the last object are infinitely far away.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::build_boxes() {
    const float4 nowhere = make_float4(INFINITY, INFINITY, INFINITY, 0.0f), none = make_float4(0, 0, 0, 0);
    for (int base = warp_ * 32; base < groups_ * kGroup * kChunk; base += kThreads) {
        const int j = base + lane_;
        const float4 q = object()[min(j, n_ - 1)];
        const Box box = box_of_lanes(q, q, kChunk);
        if (lane_ % kChunk == 0) {
            middle()[j / kChunk] = j < n_ ? box.middle : nowhere;
            half()[j / kChunk] = j < n_ ? box.half : none;
        }
    }
    __syncthreads();
    for (int group = warp_; group < groups_; group += kWarps) {
        const int chunk = min(group * kGroup + lane_, (n_ - 1) / kChunk);
        const float4 m = middle()[chunk], h = half()[chunk];
        const Box box = box_of_lanes(make_float4(m.x - h.x, m.y - h.y, m.z - h.z, 0.0f),
                                     make_float4(m.x + h.x, m.y + h.y, m.z + h.z, 0.0f), 32);
        if (lane_ != 0) continue;
        group_middle()[group] = box.middle;
        group_half()[group] = box.half;
    }
    __syncthreads();
}

/// After prices have changed in many places.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::bound_prices() {
    for (int group = warp_; group < groups_; group += kWarps) {
        const int chunk = group * kGroup + lane_;
        const float4* objects = object() + chunk * kChunk;
        float least = INFINITY;
        for (int k = 0; k < kChunk; ++k) least = fminf(least, objects[(k + lane_) % kChunk].w);
        middle()[chunk].w = least;
        least = least_of_lanes(least);
        if (lane_ == 0) group_middle()[group].w = least;
    }
    __syncthreads();
}

/// False only where no object of a box is worth `limit` to p: cost + price > limit for all.
template <bool squared, class Cloud>
__device__ bool Replica<squared, Cloud>::may_hold(const float4& middle, const float4& half, const float4& p,
                                                  float limit) const {
    return may_cost<squared>(Box{middle, half}.distance_sq_to(p), limit - middle.w);
}

/// Calls visit(j, cost, price) until some lane has seen every object j whose cost + price may be within limit to the
/// point at p, except for the kHome objects from `except` on; j = -1: nothing for this lane. Boxes first, then objects,
/// several independent ones in every lane: a round is as fast as its slowest scan, and a scan is a chain of latencies.
template <bool squared, class Cloud>
template <class Visit>
__device__ void Replica<squared, Cloud>::scan(const float4& p, float limit, int except, const Visit& visit) const {
    constexpr int kColumns = 32 / kChunk, kAtOnce = 4;  // of groups, and of chunks in every column
    const float4* const objects = object();
    Index* chunks = board().chunks[warp_];
    int base = -32;     // of the groups
    unsigned open = 0;  // groups to look into
    do {
        int count = 0;
        while (count <= kChunksAtOnce - kAtOnce * kGroup) {
            if (open == 0) {
                base += 32;
                if (base >= groups_) break;
                const int group = base + lane_, inside = min(group, groups_ - 1);
                open = __ballot_sync(
                    kAllLanes, group < groups_ && may_hold(group_middle()[inside], group_half()[inside], p, limit));
                continue;
            }
            bool near[kAtOnce];
            int chunk[kAtOnce];
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k) {
                near[k] = open != 0;
                chunk[k] = (base + max(__ffs(static_cast<int>(open)) - 1, 0)) * kGroup + lane_;
                open &= open - 1;
            }
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k)
                near[k] = near[k] && may_hold(middle()[chunk[k]], half()[chunk[k]], p, limit) &&
                          chunk[k] / (kHome / kChunk) != except / kHome;
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k) {
                const unsigned all = __ballot_sync(kAllLanes, near[k]);
                if (near[k]) chunks[count + __popc(all & ((1u << lane_) - 1))] = static_cast<Index>(chunk[k]);
                count += __popc(all);
            }
        }
        __syncwarp();
        for (int begin = 0; begin < count; begin += kAtOnce * kColumns) {
            const int first = begin + lane_ / kChunk;
            int j[kAtOnce];
            float cost[kAtOnce], price[kAtOnce];
            bool within[kAtOnce];
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k) {
                const int at = first + k * kColumns;
                j[k] = chunks[min(at, count - 1)] * kChunk + lane_ % kChunk;
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
    } while (base < groups_);
}

template <bool squared, class Cloud>
__device__ typename Replica<squared, Cloud>::Remembered Replica<squared, Cloud>::remember(int i) const {
    const Memory<Index>& memory = memory_[i];
    const auto two = reinterpret_cast<const typename Cloud::Indices*>(memory.object)[lane_];
    return {{some(two.x), some(two.y)}, memory.bound - lowered_ - kFilterMargin};
}

/// What the objects that a lane remembers are worth to the point at p; infinite for none.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::values_of(const Remembered& known, const float4& p,
                                                   float (&value)[kEach]) const {
    for (int k = 0; k < kEach; ++k) {
        const float4 q = object()[max(known.object[k], 0)];
        value[k] = known.object[k] >= 0 ? add_rounded(cost_of(p, q), q.w) : INFINITY;
    }
}

/// The best object for a point; the same in all lanes.
template <bool squared, class Cloud>
__device__ Best Replica<squared, Cloud>::best_of(int i) const {
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
        all.value = least_of_lanes(best);
        const unsigned mine = best == all.value ? rank : 0xffffffffu, first = warp_min(mine);  // all are different
        all.second = least_of_lanes(mine == first ? second : best);
        all.object = seen_from(i, first);
        return all;
    };
    float limit = INFINITY;
    int except = -kHome;
    if (!is_marked(i)) {
        const Remembered known = remember(i);
        float value[kEach];
        values_of(known, p, value);
        for (int k = 0; k < kEach; ++k) consider(known.object[k], value[k]);
        const Best all = of_all();
        if (all.second <= known.bound) return all;
        if (lane_ == 0) atomicOr(&marks()[i / 32], 1u << (i & 31));  // prices rise: the next time it would be the same
        limit = all.second;
        best = second = INFINITY;
        rank = 0xffffffffu;
    }
    if (!(limit < INFINITY)) {  // what is second best at home bounds what is worth a look
        except = home_[i] / kHome * kHome;
        const float4 q = object()[except + lane_];
        best = add_rounded(cost_of(p, q), q.w);
        rank = static_cast<unsigned>(rank_of(except + lane_, i, n_));
        limit = of_all().second;
    }
    scan(p, limit * kFilterFactor, except,
         [&](int j, float cost, float price) { consider(j, j >= 0 ? add_rounded(cost, price) : INFINITY); });
    return of_all();
}

/// Fills the memory of a point with what is worth no more than window less than the best, as far as there is room;
/// returns the value of the best object.
template <bool squared, class Cloud>
__device__ float Replica<squared, Cloud>::memorise(int i, float window, Memory<Index>& memory) const {
    const float4 p = point_[i];
    const float4 q = object()[home_[i] / kHome * kHome + lane_];
    const float here = add_rounded(cost_of(p, q), q.w), nearest = least_of_lanes(here);
    // There may be no room for all: no more than seemed to fit last time, and not most of the objects at home.
    const bool first = !(eps_ > 0.0f);  // nothing is remembered yet
    const int most = first ? 16 : 24;
    float limit = nearest + (first ? window : fminf(window, memory_[i].width));
    for (int tries = 0; tries < 20 && __popc(__ballot_sync(kAllLanes, here <= limit)) >= most; ++tries)
        limit = nearest + 0.75f * (limit - nearest);
    for (int tries = 0;; ++tries) {
        float best = nearest;
        int count = 0;
        scan(p, limit * kFilterFactor, -kHome, [&](int j, float cost, float price) {
            const float value = j >= 0 ? add_rounded(cost, price) : INFINITY;
            const bool has = value <= limit;
            const unsigned all = __ballot_sync(kAllLanes, has);
            const int at = count + __popc(all & ((1u << lane_) - 1));
            if (has && at < kCandidates) __stcg(&memory.object[at], static_cast<Index>(j));
            count += __popc(all);
            best = fminf(best, value);
        });
        best = least_of_lanes(best);
        const bool fits = count <= kCandidates;
        if (!fits && tries < 8) {
            limit = best + 0.6f * (limit - best);
            continue;
        }
        for (int k = lane_; k < kCandidates; k += 32)
            if (!fits || k >= count) __stcg(&memory.object[k], kNobody);
        if (lane_ == 0) {
            __stcg(&memory.bound, fits ? limit + lowered_ : -1.0f);
            // As if objects lay on a surface.
            const float more = sqrtf(0.75f * kCandidates / static_cast<float>(max(count, 1)));
            __stcg(&memory.width, (limit - best) * more);
        }
        return best;
    }
}

/// The object that a point wants and the price it offers, as bits.
template <bool squared, class Cloud>
__device__ int2 Replica<squared, Cloud>::bid_of(int i) const {
    const Best best = best_of(i);
    const float price = object()[best.object].w;
    return make_int2(best.object, __float_as_int(assignment::bid_of(price, best.value, best.second, eps_)));
}

/// Whether a point remembers all objects that are worth no more than reach less than the best, which is found then.
template <bool squared, class Cloud>
__device__ bool Replica<squared, Cloud>::remembers(int i, float reach, float& best) const {
    const float4 p = point_[i];
    const Remembered known = remember(i);
    best = INFINITY;
    for (int k = 0; k < kEach; ++k) {
        const float4 q = object()[max(known.object[k], 0)];
        if (known.object[k] >= 0) best = fminf(best, add_rounded(cost_of(p, q), q.w));
    }
    best = least_of_lanes(best);
    return best + reach <= known.bound;
}

/// profit = min over objects of cost + price. Points memorise what is best for them now; with a reach, only those whose
/// memory does not reach so far any more.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::update_profits(float window, float reach) {
    const bool anew = !(reach > 0.0f);
    unsigned long long* told = next_exchange();
    Memory<Index>* memory = anew ? next_memory() : memory_;
    if (anew)
        lowered_ = 0.0f;
    else
        group_sync();  // nobody uses what is changed
    for (int i = rank_ * kWarps + warp_; i < n_; i += kWarps * task_.group) {
        float value = 0.0f;
        if (anew || !remembers(i, reach, value)) value = memorise(i, window, memory[i]);
        if (lane_ == 0) __stcg(&told[i], static_cast<unsigned long long>(__float_as_uint(value)));
    }
    group_sync();
    memory_ = memory;
    for (int i = static_cast<int>(threadIdx.x); i < n_; i += kThreads)
        point_[i].w = __uint_as_float(static_cast<unsigned>(__ldcg(&told[i])));
    __syncthreads();
}

/// If many memories do not reach as far as a search's first horizon, because profits have risen in the search before:
/// these memorise anew.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::refresh_memories() {
    const float reach = unit_ * static_cast<float>(kHorizon) + 2.0f * kFilterMargin;
    const auto outdated = [&](int i) {
        return memory_[i].width > reach && memory_[i].bound - lowered_ < point_[i].w + reach;
    };
    int count = 0;
    for (int base = 0; base < n_; base += kThreads) {
        const int i = base + static_cast<int>(threadIdx.x);
        count += __syncthreads_count(i < n_ && outdated(i));
    }
    if (count <= n_ / kFewOutdated) return;
    group_sync();
    for (int i = rank_ * kWarps + warp_; i < n_; i += kWarps * task_.group)
        if (outdated(i)) memorise(i, kWindow * eps_, memory_[i]);
    group_sync();
}

}  // namespace stipple::ops::cuda::matching
