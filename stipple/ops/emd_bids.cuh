#pragma once
// The row scans of emd on CUDA: profits, and the rounds of an auction.

#include "stipple/ops/emd_group.cuh"

namespace stipple::ops::cuda::matching {

template <bool squared, int objects>
__device__ void Group<squared, objects>::take(Best& b, float value, int j, int i) const {
    if (value < b.best || (value == b.best && b.object >= 0 && rank_of(j, i, n_) < rank_of(b.object, i, n_))) {
        b.second = b.best, b.runner_up = b.object;
        b.best = value, b.object = j;
    } else if (value < b.second) {
        b.second = value, b.runner_up = j;
    }
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::merge(Best& b, const Best& other, int i) const {
    if (other.object >= 0) take(b, other.best, other.object, i);
    if (other.runner_up >= 0 && other.second < b.second) b.second = other.second, b.runner_up = other.runner_up;
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::merge_lanes(Best& b, int lanes, int i) const {
    for (int step = min(lanes, 32) / 2; step > 0; step /= 2)
        merge(b,
              {__shfl_xor_sync(kFull, b.best, step), __shfl_xor_sync(kFull, b.second, step),
               __shfl_xor_sync(kFull, b.object, step), __shfl_xor_sync(kFull, b.runner_up, step)},
              i);
}

template <bool squared, int objects>
template <bool two>
__device__ void Group<squared, objects>::search(Best& b, const float4* tile, int size, int first, int lane, int lanes,
                                                const float4& p, int i, float bound) const {
    constexpr int kAhead = 2;
    float limit = fminf(two ? b.second : b.best, bound) * kFilterFactor;
    const auto passes = [&](const float4& q) {
        const float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
        return may_cost<squared>(dx * dx + dy * dy + dz * dz, limit - q.w);
    };
    const auto look = [&](const float4& q, int k) {
        take(b, add_rounded(cost_of(p, q), q.w), first + k, i);
        limit = fminf(two ? b.second : b.best, bound) * kFilterFactor;
    };
    int k = lane;
    for (; k + (kAhead - 1) * lanes < size; k += kAhead * lanes) {
        float4 q[kAhead];
        bool pass[kAhead];
#pragma unroll
        for (int u = 0; u < kAhead; ++u) q[u] = tile[k + u * lanes];
#pragma unroll
        for (int u = 0; u < kAhead; ++u) pass[u] = passes(q[u]);
        if (!(pass[0] || pass[1])) continue;
#pragma unroll
        for (int u = 0; u < kAhead; ++u)
            if (pass[u]) look(tile[k + u * lanes], k + u * lanes);
    }
    for (; k < size; k += lanes) {
        const float4 q = tile[k];
        if (passes(q)) look(q, k);
    }
}

template <bool squared, int objects>
template <bool two>
__device__ void Group<squared, objects>::search_near(Best& b, const float4* tile, const Box* chunks, int size,
                                                     int first, int part, int parts, int lanes, const float4& p, int i,
                                                     float bound) const {
    const int warp_lane = static_cast<int>(threadIdx.x & 31), count = (size + kChunk - 1) / kChunk;
#pragma unroll 1
    for (int base = part; base < count; base += 32 * parts) {
        const int mine = base + warp_lane * parts;
        const float limit = warp_max(fminf(two ? b.second : b.best, bound) * kFilterFactor);
        bool near = mine < count;
        if (near) {
            const Box& box = s_.bidders[threadIdx.x / 32];
            near = may_cost<squared>(chunks[mine].distance_sq_to(box.middle, box.half), limit - chunks[mine].middle.w);
        }
        unsigned mask = __ballot_sync(kFull, near);
#pragma unroll 1
        while (mask != 0) {
            const int begin = (base + (__ffs(static_cast<int>(mask)) - 1) * parts) * kChunk;
            mask &= mask - 1;
            search<two>(b, tile + begin, min(kChunk, size - begin), first + begin, warp_lane & (lanes - 1), lanes, p, i,
                        bound);
        }
    }
}

template <bool squared, int objects>
template <bool two, class Bidder, class Start, class Done>
__device__ void Group<squared, objects>::scan(int count, const Bidder& bidder, const Start& start, const Done& done) {
    int lanes = 1;
    while (lanes < 32 && static_cast<int64_t>(count) * lanes * 2 <= threads_) lanes *= 2;
    // A warp has consecutive bidders, which are near each other more often than not.
    const int lane = static_cast<int>(threadIdx.x) & (lanes - 1), warp = static_cast<int>(threadIdx.x / 32);
    const int per_warp = 32 / lanes, per_pass = threads_ / lanes;
    for (int pass = 0; pass < count; pass += per_pass) {
        const int slot = pass + (warp * task_.group + rank_) * per_warp + static_cast<int>(threadIdx.x & 31) / lanes;
        const bool active = slot < count;
        const int i = bidder(min(slot, count - 1));
        const float4 p = __ldcg(&w_.point[i]);
        const float bound = active ? start(i, p) : -1.0f;  // nothing is that near
        set_bidders(p, lanes);
        Best b = {INFINITY, INFINITY, -1, -1};
        for (int first = 0; first < n_; first += kTile) {
            const int size = min(kTile, n_ - first);
            __syncthreads();
            for (int k = static_cast<int>(threadIdx.x); k < kTile; k += kThreads) {
                const bool has = k < size;
                const float4 object = __ldcg(&w_.object[first + min(k, size - 1)]);
                const float lowest = lowest_price(has, object);
                if (has) s_.front[k] = object;
                if (has && k % kChunk == 0) {
                    s_.chunks[k / kChunk] = chunk_box((first + k) / kChunk);
                    s_.chunks[k / kChunk].middle.w = lowest;
                }
            }
            __syncthreads();
            search_near<two>(b, s_.front, s_.chunks, size, first, 0, 1, lanes, p, i, bound);
        }
        merge_lanes(b, lanes, i);
        if (active && lane == 0) done(i, p, b);
    }
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::update_profits() {
    scan<false>(
        n_, [](int k) { return k; },
        [&](int i, const float4& p) {
            const int j = __ldcg(&w_.partner[i]);
            const float4 q = __ldcg(&w_.object[j >= 0 ? j : i]);
            return add_rounded(cost_of(p, q), q.w);
        },
        [&](int i, const float4& p, const Best& b) { __stcg(&w_.point[i], make_float4(p.x, p.y, p.z, b.best)); });
    sync();
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::auction() {
    for (int round = 0; round < kAuctionRounds && left_count_ > n_ / kLeftOver; ++round) {
        if (task_.replicas && left_count_ <= kBids) return auction_in_replicas(round);
        const int* left = left_list(which_);
        scan<true>(
            left_count_, [&](int k) { return __ldcg(&left[k]); },
            [&](int i, const float4& p) {
                const int2 guess = __ldcg(&w_.guess[i]);
                const float4 q = __ldcg(&w_.object[guess.x]), r = __ldcg(&w_.object[guess.y]);
                return fmaxf(add_rounded(cost_of(p, q), q.w), add_rounded(cost_of(p, r), r.w));
            },
            [&](int i, const float4&, const Best& b) {
                const bool only = n_ == 1;
                const float price = __ldcg(&w_.object[b.object].w);
                const float amount = bid_of(price, b.best, only ? b.best : b.second, eps_);
                if (!only) __stcg(&w_.guess[i], make_int2(b.object, b.runner_up));
                atomicMax(&w_.offer[b.object], (static_cast<unsigned long long>(__float_as_uint(amount)) << 32) |
                                                   (0xffffffffu - static_cast<unsigned>(i)));
            });
        const int next = which_ ^ 1;
        if (thread_ == 0) __stcg(&w_.control->left[next], 0);
        sync();
        // Bidders look whether they won. An object's offers need no clearing: its price is its highest, and the
        // next bid is above the price.
        for (int base = 0; base < left_count_; base += threads_) {
            int loser = -1;
            if (base + thread_ < left_count_) {
                const int i = __ldcg(&left[base + thread_]), j = __ldcg(&w_.guess[i].x);
                const unsigned long long offer = __ldcg(&w_.offer[j]);
                loser = i;
                if (i == static_cast<int>(0xffffffffu - static_cast<unsigned>(offer))) {
                    loser = __ldcg(&w_.owner[j]);
                    if (loser >= 0) __stcg(&w_.partner[loser], -1);
                    __stcg(&w_.owner[j], i);
                    __stcg(&w_.partner[i], j);
                    __stcg(&w_.object[j].w, __uint_as_float(static_cast<unsigned>(offer >> 32)));
                }
            }
            push(loser >= 0, loser, left_list(next), &w_.control->left[next]);
        }
        sync();
        which_ = next;
        left_count_ = __ldcg(&w_.control->left[next]);
    }
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::auction_in_replicas(int round) {
    constexpr int kPriceRounds = 4;  // prices rise slowly, and an old one is a bound all the same
    const Replica a(s_.front, n_);
    const int first = round, thread = static_cast<int>(threadIdx.x);
    for (int j = thread; j < n_; j += kThreads) {
        a.object[j] = __ldcg(&w_.object[j]);
        a.owner[j] = __ldcg(&w_.owner[j]);
        a.claim[j] = INT_MAX;
        if (j % kChunk == 0) a.chunks[j / kChunk] = chunk_box(j / kChunk);
    }
    int* list = a.list;
    for (int k = thread; k < left_count_; k += kThreads) list[k] = __ldcg(&left_list(which_)[k]);
    __syncthreads();
    for (; round < kAuctionRounds && left_count_ > n_ / kLeftOver; ++round) {
        if ((round - first) % kPriceRounds == 0) bound_prices(a);
        // A block that bids has read the bids of the round before last, whose place these take.
        if (left_count_ < task_.group) sync();
        const int turn = bid_turn_ & 1, parity = bid_turn_ / 2 & 1;
        ++bid_turn_;
        int2* bids = a.bids + turn * kBids;
        if (task_.group > 1 && thread == 0)
            cluster::expect(&s_.ready[4 + turn], left_count_ * static_cast<int>(sizeof(int2)));
        send_bids(a, list, bids, turn);
        if (task_.group > 1)
            cluster::wait(&s_.ready[4 + turn], parity);
        else
            __syncthreads();
        int* next = a.list + (list == a.list ? kBids : 0);
        left_count_ = resolve(a, list, bids, next);
        list = next;
    }
    for (int j = thread_; j < n_; j += threads_) {
        __stcg(&w_.object[j].w, a.object[j].w);
        __stcg(&w_.owner[j], a.owner[j]);
        if (a.owner[j] >= 0) __stcg(&w_.partner[a.owner[j]], j);
    }
    for (int k = thread_; k < left_count_; k += threads_) {
        __stcg(&w_.partner[list[k]], -1);
        __stcg(&left_list(which_)[k], list[k]);
    }
    sync();
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::bound_prices(const Replica& a) const {
    const int lane = static_cast<int>(threadIdx.x & 31);
    for (int first = static_cast<int>(threadIdx.x) - lane; first < n_; first += kThreads) {
        const float lowest = lowest_price(first + lane < n_, a.object[min(first + lane, n_ - 1)]);
        if (lane == 0) a.chunks[first / kChunk].middle.w = lowest;
    }
    __syncthreads();
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::send_bids(const Replica& a, const int* list, int2* bids, int turn) {
    const int group = task_.group, thread = static_cast<int>(threadIdx.x);
    // Bidders that share a warp are next to each other in the list.
    int lanes = 1;
    while (lanes < kThreads && left_count_ * lanes * 2 <= threads_) lanes *= 2;
    const int per_warp = max(1, 32 / lanes), warps = max(1, lanes / 32);
    const int lane = thread & (lanes - 1), warp_lane = thread & 31, in_warp = min(lanes, 32);
    const int k = (thread / 32 / warps * group + rank_) * per_warp + warp_lane / in_warp;
    const bool active = k < left_count_;
    const int i = list[min(k, left_count_ - 1)];
    Best b = {INFINITY, INFINITY, -1, -1};
    {
        // Perhaps not the latest guess, but two objects all the same.
        const float4 p = __ldcg(&w_.point[i]);
        const int2 guess = __ldcg(&w_.guess[i]);
        const float4 q = a.object[guess.x], r = a.object[guess.y];
        const float bound = active ? fmaxf(add_rounded(cost_of(p, q), q.w), add_rounded(cost_of(p, r), r.w)) : -1.0f;
        set_bidders(p, lanes);
        search_near<true>(b, a.object, a.chunks, n_, 0, lane / 32, warps, in_warp, p, i, bound);
    }
    merge_lanes(b, lanes, i);
    if (lanes > 32) {
        if ((lane & 31) == 0) s_.partial[thread / 32] = b;
        __syncthreads();
        for (int k = 1; k < lanes / 32 && lane == 0; ++k) merge(b, s_.partial[thread / 32 + k], i);
    }
    if (!active || lane != 0) return;
    const bool only = n_ == 1;
    const float amount = bid_of(a.object[b.object].w, b.best, only ? b.best : b.second, eps_);
    if (!only) __stcg(&w_.guess[i], make_int2(b.object, b.runner_up));
    const int2 bid = make_int2(b.object, __float_as_int(amount));
    if (group == 1) bids[k] = bid;
#pragma unroll 1
    for (int rank = 0; rank < group && group > 1; ++rank) cluster::send(&bids[k], bid, &s_.ready[4 + turn], rank);
}

template <bool squared, int objects>
__device__ int Group<squared, objects>::resolve(const Replica& a, const int* list, const int2* bids, int* next) {
    const int k = static_cast<int>(threadIdx.x), lane = k & 31, warp = k / 32;
    const bool active = k < left_count_;
    const int2 bid = active ? bids[k] : make_int2(0, 0);
    const int i = active ? list[k] : -1;
    int* price = reinterpret_cast<int*>(&a.object[bid.x].w);  // not negative: ordered like an integer
    if (active) atomicMax(price, bid.y);                      // a bid is above the old price
    __syncthreads();
    const bool high = active && *price == bid.y;
    if (high) atomicMin(&a.claim[bid.x], i);
    __syncthreads();
    const bool won = high && a.claim[bid.x] == i;
    const int loser = won ? a.owner[bid.x] : i;
    const unsigned mask = __ballot_sync(kFull, loser >= 0);
    if (lane == 0) s_.losers[warp] = __popc(mask);
    __syncthreads();
    const int losers = lane < kWarps ? s_.losers[lane] : 0, before = warp_sum(lane < warp ? losers : 0);
    if (loser >= 0) next[before + __popc(mask & ((1u << lane) - 1))] = loser;
    if (won) a.owner[bid.x] = i, a.claim[bid.x] = INT_MAX;
    const int count = warp_sum(losers);
    __syncthreads();
    return count;
}

}  // namespace stipple::ops::cuda::matching
