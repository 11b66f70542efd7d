#pragma once
// Bidding rounds on CUDA. A small round is computed redundantly by every block of the group, all with the same result:
// nothing is as slow as communication between blocks. The bids of a large round are divided among the blocks.

#include "stipple/ops/emd/candidate_scan.cuh"

namespace stipple::ops::cuda::matching {

constexpr int kRefreshBids =
    128;  // after a round of more bids the minimum prices of all boxes are updated; before, they may be too low

template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::auction(int enough) {
    const long long most = static_cast<long long>(kMaxBids) * n_;
    long long made = 0;
    for (int word = static_cast<int>(threadIdx.x); word < (n_ + 31) / 32; word += kThreads) marks()[word] = 0;
    __syncthreads();
    for (int round = 0; unassigned_count_ > enough && round < kMaxRounds && made < most; ++round) {
        const int count = unassigned_count_;
        const bool small = count <= (task_.group > 1 ? kSmallRound : kMaxSmallRound);
        unsigned long long* published = small ? nullptr : next_buffer();
        made += count;
        // Every block publishes something in a large round, so that none can be two rounds behind: see next_buffer.
        const int parts = small ? count : max(count, task_.group), step = small ? 1 : task_.group;
        for (int k = warp_ * step + (small ? 0 : rank_); k < parts; k += kWarps * step) {
            const int i = unassigned().get(min(k, count - 1));
            const int2 bid = k < count ? bid_of(i) : make_int2(0, 0);
            if (lane_ != 0) continue;
            if (small)
                block_shared().bids[k] = {i, bid.x, bid.y};
            else
                publish_bid(&published[k], bid);
        }
        if (small)
            finish_small_round();
        else
            finish_large_round(published);
        if (count > kRefreshBids || round % (count > kMaxSmallRound ? 4 : 16) == 0) update_min_prices();
    }
    update_min_prices();
}

/// A warp for each bid compares it with all others.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::finish_small_round() {
    const int count = unassigned_count_;
    __syncthreads();
    const Bid other = block_shared().bids[lane_];
    for (int k = warp_; k < count; k += kWarps) {
        const Bid mine = block_shared().bids[k];
        const bool beats = other.amount > mine.amount || (other.amount == mine.amount && other.point < mine.point);
        const bool lost = __any_sync(kAllLanes, lane_ < count && other.object == mine.object && beats);
        if (lane_ != 0) continue;
        seed_[mine.point] = static_cast<Index>(mine.object);
        block_shared().loser[k] = lost ? mine.point : assign(mine.object, mine.point, mine.amount);
    }
    __syncthreads();
    // Compacts the bidders without an object; every warp computes the same, one writes.
    const int loser = lane_ < count ? block_shared().loser[lane_] : -1;
    const unsigned losers = __ballot_sync(kAllLanes, loser >= 0);
    if (warp_ == 0 && loser >= 0) next_unassigned().set(__popc(losers & ((1u << lane_) - 1)), loser);
    unassigned_count_ = __popc(losers);
    current_list_ ^= 1;
    __syncthreads();
}

/// Assigns an object to a bidder at this price; returns the previous owner, or -1.
template <bool squared, class Cloud>
__device__ int BlockSolver<squared, Cloud>::assign(int object_index, int point, int amount) {
    const int before = index_or_none(owner()[object_index]);
    if (before >= 0) partner_[before] = kNone;
    owner()[object_index] = static_cast<Index>(point);
    partner_[point] = static_cast<Index>(object_index);
    object()[object_index].w = __int_as_float(amount);
    return before;
}

/// Publishes a bid, object and amount as bits, to the other blocks. Where there is room, with the sequence number of
/// the buffer as a tag, so that readers can poll for it: a barrier takes three times as long.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::publish_bid(unsigned long long* published, int2 bid) const {
    unsigned long long word = static_cast<unsigned>(bid.y);
    if constexpr (Cloud::kTagBits > 0)
        word |= static_cast<unsigned long long>(sequence_) << (64 - Cloud::kTagBits) |
                static_cast<unsigned long long>(bid.x) << 31;  // amounts are not negative
    else
        word |= static_cast<unsigned long long>(bid.x) << 32;
    __stcg(published, word);
}

template <bool squared, class Cloud>
__device__ int2 BlockSolver<squared, Cloud>::read_bid(const unsigned long long* published) const {
    unsigned long long word;
    if constexpr (Cloud::kTagBits > 0) {
        do word = *static_cast<const volatile unsigned long long*>(published);
        while (word >> (64 - Cloud::kTagBits) != sequence_);
        return make_int2(static_cast<int>(word >> 31 & 0x1fff), static_cast<int>(word & 0x7fffffff));
    } else {
        word = __ldcg(published);
        return make_int2(static_cast<int>(word >> 32), static_cast<int>(word & 0xffffffff));
    }
}

/// Restarts the sequence numbers before they exceed a tag.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::restart_tags() {
    if (Cloud::kTagBits == 0 || sequence_ < 1u << (Cloud::kTagBits - 1)) return;  // a pair of clouds takes far fewer
    sequence_ = 0;
    group_sync();
    unsigned long long* buffers = task_.buffers + blockIdx.x / task_.group * kBuffers * task_.rows;
    for (int64_t k = rank_ * kThreads + static_cast<int>(threadIdx.x); k < kBuffers * task_.rows;
         k += kThreads * task_.group)
        __stcg(&buffers[k], 0ull);
    group_sync();
}

template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::finish_large_round(const unsigned long long* published) {
    const int count = unassigned_count_;
    const List<Index> bidders = unassigned();
    if (Cloud::kTagBits == 0) group_sync();
    // The highest bid for an object wins, of equal ones that of the lowest bidder.
    const auto rank_of_bid = [](int i, int amount) {
        return static_cast<unsigned long long>(static_cast<unsigned>(amount)) << 32 |
               static_cast<unsigned>(~static_cast<unsigned>(i));
    };
    const int thread = static_cast<int>(threadIdx.x);
    const int2 first =
        read_bid(&published[min(thread, max(count, task_.group) - 1)]);  // usually one per thread, read once
    const auto bid = [&](int k) { return k == thread ? first : read_bid(&published[k]); };
    for (int k = thread; k < count; k += kThreads) {
        const int2 made = bid(k);
        const int i = bidders.get(k);
        seed_[i] = static_cast<Index>(made.x);
        atomicMax(&best_bid_[made.x], rank_of_bid(i, made.y));
    }
    __syncthreads();
    unassigned_count_ = compact(count, next_unassigned(), [&](int k) {
        const int2 made = bid(k);
        const int i = bidders.get(k), j = made.x;
        if (best_bid_[j] != rank_of_bid(i, made.y)) return i;
        best_bid_[j] = 0;
        return assign(j, i, made.y);
    });
    current_list_ ^= 1;
}

}  // namespace stipple::ops::cuda::matching
