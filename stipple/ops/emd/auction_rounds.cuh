#pragma once
// The auction of emd on CUDA. A round of few bids is made and judged by every block of the group alone, all with the
// same result: nothing is as slow as asking another block. The bids of a large round are divided among the blocks.

#include "stipple/ops/emd/candidate_scan.cuh"

namespace stipple::ops::cuda::matching {

constexpr int kManyBids = 128;  // of a round: boxes get new prices; after fewer, theirs may be lower than needed

template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::auction(int enough) {
    const long long most = static_cast<long long>(kMostBids) * n_;
    long long made = 0;
    for (int word = static_cast<int>(threadIdx.x); word < (n_ + 31) / 32; word += kThreads) marks()[word] = 0;
    __syncthreads();
    for (int round = 0; left_count_ > enough && round < kMostRounds && made < most; ++round) {
        const int count = left_count_;
        const bool few = count <= (task_.group > 1 ? kFew : kMostFew);
        unsigned long long* told = few ? nullptr : next_exchange();
        made += count;
        // Every block tells something in a large round, so that none can be two rounds behind: see next_exchange.
        const int parts = few ? count : max(count, task_.group), step = few ? 1 : task_.group;
        for (int k = warp_ * step + (few ? 0 : rank_); k < parts; k += kWarps * step) {
            const int i = left().get(min(k, count - 1));
            const int2 bid = k < count ? bid_of(i) : make_int2(0, 0);
            if (lane_ != 0) continue;
            if (few)
                board().bids[k] = {i, bid.x, bid.y};
            else
                tell(&told[k], bid);
        }
        if (few)
            end_round_of_few();
        else
            end_round_of_many(told);
        if (count > kManyBids || round % (count > kMostFew ? 4 : 16) == 0) bound_prices();
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

/// Tells the other blocks an object and the price offered for it, as bits. With the number of the exchange if there is
/// room, so that they can see whether it is there: to meet them takes three times as long.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::tell(unsigned long long* told, int2 bid) const {
    unsigned long long text = static_cast<unsigned>(bid.y);
    if constexpr (Cloud::kTagBits > 0)
        text |= static_cast<unsigned long long>(turn_) << (64 - Cloud::kTagBits) |
                static_cast<unsigned long long>(bid.x) << 31;  // amounts are not negative
    else
        text |= static_cast<unsigned long long>(bid.x) << 32;
    __stcg(told, text);
}

template <bool squared, class Cloud>
__device__ int2 Replica<squared, Cloud>::hear(const unsigned long long* told) const {
    unsigned long long text;
    if constexpr (Cloud::kTagBits > 0) {
        do text = *static_cast<const volatile unsigned long long*>(told);
        while (text >> (64 - Cloud::kTagBits) != turn_);
        return make_int2(static_cast<int>(text >> 31 & 0x1fff), static_cast<int>(text & 0x7fffffff));
    } else {
        text = __ldcg(told);
        return make_int2(static_cast<int>(text >> 32), static_cast<int>(text & 0xffffffff));
    }
}

/// Before the numbers of exchanges do not fit into a tag any more: from the beginning.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::renew_tags() {
    if (Cloud::kTagBits == 0 || turn_ < 1u << (Cloud::kTagBits - 1)) return;  // a pair of clouds takes far fewer
    turn_ = 0;
    group_sync();
    unsigned long long* exchange = task_.exchange + blockIdx.x / task_.group * kBuffers * task_.rows;
    for (int64_t k = rank_ * kThreads + static_cast<int>(threadIdx.x); k < kBuffers * task_.rows;
         k += kThreads * task_.group)
        __stcg(&exchange[k], 0ull);
    group_sync();
}

template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::end_round_of_many(const unsigned long long* told) {
    const int count = left_count_;
    const List<Index> bidders = left();
    if (Cloud::kTagBits == 0) group_sync();
    // The highest bid for an object wins, of equal ones that of the lowest point.
    const auto rank_of_bid = [](int i, int amount) {
        return static_cast<unsigned long long>(static_cast<unsigned>(amount)) << 32 |
               static_cast<unsigned>(~static_cast<unsigned>(i));
    };
    const int thread = static_cast<int>(threadIdx.x);
    const int2 first = hear(&told[min(thread, max(count, task_.group) - 1)]);  // mostly one for a thread, read once
    const auto bid = [&](int k) { return k == thread ? first : hear(&told[k]); };
    for (int k = thread; k < count; k += kThreads) {
        const int2 made = bid(k);
        const int i = bidders.get(k);
        home_[i] = static_cast<Index>(made.x);
        atomicMax(&offer_[made.x], rank_of_bid(i, made.y));
    }
    __syncthreads();
    left_count_ = compact(count, next_left(), [&](int k) {
        const int2 made = bid(k);
        const int i = bidders.get(k), j = made.x;
        if (offer_[j] != rank_of_bid(i, made.y)) return i;
        offer_[j] = 0;
        return hand_over(j, i, made.y);
    });
    which_ ^= 1;
}

}  // namespace stipple::ops::cuda::matching
