#pragma once
// The auction of emd on CUDA. A round of few bids is made and judged by every block of the group alone, all with the
// same result: nothing is as slow as asking another block. The bids of a large round are divided among the blocks.

#include "stipple/ops/emd_scan.cuh"

namespace stipple::ops::cuda::matching {

constexpr int kRoundsOfOldPrices = 16;  // of few: how long boxes may have lower prices than needed

template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::auction() {
    const int enough = static_cast<int>(left_over(n_));
    const long long most = static_cast<long long>(kMostBids) * n_;
    long long made = 0;
    for (int round = 0; left_count_ > enough && round < kMostRounds && made < most; ++round) {
        const int count = left_count_;
        const bool few = count <= kFew;
        int2* told = few ? nullptr : next_exchange();
        made += count;
        for (int k = few ? warp_ : rank_ * kWarps + warp_; k < count; k += few ? kWarps : kWarps * task_.group) {
            const int i = left().get(k);
            const int2 bid = bid_of(i);
            if (lane_ != 0) continue;
            if (few)
                board().bids[k] = {i, bid.x, bid.y};
            else
                __stcg(&told[k], bid);
        }
        if (few)
            end_round_of_few();
        else
            end_round_of_many(told);
        if (!few || round % kRoundsOfOldPrices == 0) bound_prices();
    }
    bound_prices();
}

/// A warp for each bid compares it with all.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::end_round_of_few() {
    const int count = left_count_;
    __syncthreads();
    const Bid other = board().bids[lane_];
    for (int k = warp_; k < count; k += kWarps) {
        const Bid mine = board().bids[k];
        const bool beats = other.amount > mine.amount || (other.amount == mine.amount && other.point < mine.point);
        const bool lost = __any_sync(kAllLanes, lane_ < count && other.object == mine.object && beats);
        if (lane_ != 0) continue;
        home_[mine.point] = static_cast<Index>(mine.object);
        board().loser[k] = lost ? mine.point : hand_over(mine.object, mine.point, mine.amount);
    }
    __syncthreads();
    // Who is left, without gaps; every warp finds the same, one writes it down.
    const int loser = lane_ < count ? board().loser[lane_] : -1;
    const unsigned losers = __ballot_sync(kAllLanes, loser >= 0);
    if (warp_ == 0 && loser >= 0) next_left().set(__popc(losers & ((1u << lane_) - 1)), loser);
    left_count_ = __popc(losers);
    which_ ^= 1;
    __syncthreads();
}

/// Returns who had the object before, or -1.
template <bool squared, class Cloud>
__device__ int Replica<squared, Cloud>::hand_over(int object_index, int point, int amount) {
    const int before = some(owner()[object_index]);
    if (before >= 0) partner_[before] = kNobody;
    owner()[object_index] = static_cast<Index>(point);
    partner_[point] = static_cast<Index>(object_index);
    object()[object_index].w = __int_as_float(amount);
    return before;
}

template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::end_round_of_many(const int2* told) {
    const int count = left_count_;
    const List<Index> bidders = left();
    group_sync();
    // The highest bid for an object wins, of equal ones that of the lowest point.
    const auto rank_of_bid = [](int i, int amount) {
        return static_cast<unsigned long long>(static_cast<unsigned>(amount)) << 32 |
               static_cast<unsigned>(~static_cast<unsigned>(i));
    };
    for (int k = static_cast<int>(threadIdx.x); k < count; k += kThreads) {
        const int2 made = __ldcg(&told[k]);
        const int i = bidders.get(k);
        home_[i] = static_cast<Index>(made.x);
        atomicMax(&offer_[made.x], rank_of_bid(i, made.y));
    }
    __syncthreads();
    left_count_ = compact(count, next_left(), [&](int k) {
        const int2 made = __ldcg(&told[k]);
        const int i = bidders.get(k), j = made.x;
        if (offer_[j] != rank_of_bid(i, made.y)) return i;
        offer_[j] = 0;
        return hand_over(j, i, made.y);
    });
    which_ ^= 1;
}

}  // namespace stipple::ops::cuda::matching
