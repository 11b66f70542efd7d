#pragma once
// The searches of emd on CUDA: one forest of shortest paths from all unassigned bidders. The forest is unique (see
// auction.h), so warps need not wait for each other: each takes an object from the queue whose path has become shorter
// and relaxes the edges of its owner, until the queue is empty (label correcting, asynchronous).
//
// The blocks of a cluster grow a forest together, every cluster of the group a whole one. Every block queues its own
// part of the objects, and knows their shortest paths; it records the paths that it relaxes itself, and at the end of a
// stride the blocks merge theirs.
//
// Paths longer than a horizon are not recorded until the search gets there, so that relaxing a bidder visits near
// objects only; the horizon has no effect on the result.

#include "stipple/ops/emd/candidate_scan.cuh"

namespace stipple::ops::cuda::matching {

/// One search forest, one augmenting path in every tree that reached a free object. The first search of a phase starts
/// with the roots, the others with the trees that the search before did not use.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::augment(bool first) {
    const int thread = static_cast<int>(threadIdx.x);
    const int enough = enough_free_objects(unassigned_count_);
    refresh_candidates();
    for (int j = thread; j < n_ && first; j += kThreads) key()[j] = kNoPath;
    __syncthreads();
    SearchRange range = {kStride, kHorizon};
    enqueue_levels(0, range.top, unassigned_count_);
    for (int roots = unassigned_count_;; roots = 0) {
        process_queue(roots, range);
        merge_paths();
        Frontier frontier = find_frontier(range.top);
        int next = 0;
        for (;;) {
            next = min(frontier.lowest, kMaxLevel - kStride + 1) + kStride - 1;
            if (frontier.free >= enough || next <= range.horizon) break;
            range.horizon = min(2 * range.horizon, kMaxLevel);
            relax_forest(range);
            frontier = find_frontier(range.top);
        }
        if (frontier.free >= enough || (frontier.free > 0 && frontier.lowest > kMaxLevel)) break;
        if (frontier.lowest > kMaxLevel) {  // no free object in reach: prices rise, the next search reaches farther
            range.top = kMaxLevel;
            break;
        }
        enqueue_levels(range.top + 1, next, 0);
        range.top = next;
    }
    finish_search(range.top);
}

/// Relaxes the whole forest again up to a farther horizon, a part of it in every block. No object up to top gets a
/// shorter path, so that none is queued.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::relax_forest(const SearchRange& range) {
    const int thread = static_cast<int>(threadIdx.x);
    unsigned long long* published = next_buffer();
    for (int j = rank_ * kThreads + thread; j < n_ && task_.group > 1; j += kThreads * task_.group)
        __stcg(&published[j], static_cast<unsigned long long>(kNoPath));
    group_sync();
    for (int k = warp_ * task_.group + rank_; k < unassigned_count_ + n_; k += kWarps * task_.group) {
        const int j = k - unassigned_count_, level = j < 0 ? 0 : level_in(key()[j]);
        const int i = j < 0 ? unassigned().get(k) : level <= range.top ? index_or_none(owner()[j]) : -1;
        if (i >= 0) relax(i, level, range);
    }
    __syncthreads();
    if (task_.group == 1) return;
    for (int j = thread; j < n_; j += kThreads) {
        const Key path = key()[j];
        if (level_in(path) > range.top && path != kNoPath)
            atomicMin(&published[j], static_cast<unsigned long long>(path));
    }
    group_sync();
    for (int j = thread; j < n_; j += kThreads) key()[j] = min(key()[j], static_cast<Key>(__ldcg(&published[j])));
    __syncthreads();
}

/// Free objects up to a level, and the lowest recorded level above it (above kMaxLevel: none).
template <bool squared, class Cloud>
__device__ Frontier BlockSolver<squared, Cloud>::find_frontier(int top) {
    if (threadIdx.x == 0) block_shared().frontier = {0, 0x7fffffff};
    __syncthreads();
    int free = 0, lowest = 0x7fffffff;
    for (int j = static_cast<int>(threadIdx.x); j < n_; j += kThreads) {
        const Key path = key()[j];
        const int level = level_in(path);
        if (level <= top)
            free += owner()[j] == kNone ? 1 : 0;
        else if (path != kNoPath)
            lowest = min(lowest, level);
    }
    lowest = static_cast<int>(warp_min(static_cast<uint32_t>(lowest)));
    if (lane_ == 0) atomicMin(&block_shared().frontier.lowest, lowest);
    if (free > 0) atomicAdd(&block_shared().frontier.free, free);
    __syncthreads();
    return block_shared().frontier;
}

/// Marks exactly the objects for which is(j); returns how many this warp has marked.
template <bool squared, class Cloud>
template <class Is>
__device__ int BlockSolver<squared, Cloud>::mark(const Is& is) {
    int count = 0;
    for (int base = warp_ * 32; base < n_; base += kThreads) {
        const unsigned word = __ballot_sync(kAllLanes, base + lane_ < n_ && is(base + lane_));
        if (lane_ == 0) marks()[base / 32] = word;
        count += __popc(word);
    }
    return count;
}

/// Queues all assigned objects of these levels, and counts so many roots as pending.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::enqueue_levels(int from, int to, int roots) {
    if (threadIdx.x == 0)
        block_shared().pending = pending_of((roots - cluster_rank_ + cluster_size() - 1) / cluster_size());
    __syncthreads();
    const int count = mark([&](int j) {
        const int level = level_in(key()[j]);
        return level >= from && level <= to && owner()[j] != kNone && queue_block(j) == cluster_rank_;
    });
    if (lane_ == 0 && count > 0) atomicAdd(&block_shared().pending, pending_of(count));
    if (cluster_size() > 1)
        cluster_barrier();
    else
        __syncthreads();
}

/// After a stride: the shortest of the paths that the blocks of the cluster have recorded.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::merge_paths() {
    if (cluster_size() == 1) {
        __syncthreads();
        return;
    }
    if constexpr (Cloud::kShared) {
        cluster_barrier();
        for (int j = static_cast<int>(threadIdx.x); j < n_; j += kThreads) {
            Key shortest = key()[j];
            for (int block = 0; block < cluster_size(); ++block)
                if (block != cluster_rank_) shortest = min(shortest, RemoteShared(&key()[j], block).load());
            key()[j] = shortest;  // a block that reads it meanwhile computes the same minimum
        }
        cluster_barrier();
    }
}

/// Takes an object of this block's part from the queue, for this warp alone, or -1. Looks at 1024 objects from `base`
/// on, and moves it on if none of them is queued.
template <bool squared, class Cloud>
__device__ int BlockSolver<squared, Cloud>::dequeue(int& base) {
    static_assert(kRunLength == 32, "a word of marks for each run");
    const int words = (n_ + 31) / 32;
    const auto word_of = [&](int k) { return k * cluster_size() + cluster_rank_; };
    const int at = word_of(base + lane_);
    const unsigned mine = at < words ? static_cast<volatile unsigned*>(marks())[at] : 0;
    const unsigned some = __ballot_sync(kAllLanes, mine != 0);
    if (some == 0) {
        base = word_of(base + 32) < words ? base + 32 : 0;
        return -1;
    }
    // Every warp starts at another bit, so that they do not all take the same object.
    const int start = (warp_ * 11) & 31, from = (__ffs(__funnelshift_r(some, some, start)) - 1 + start) & 31;
    const unsigned word = __shfl_sync(kAllLanes, mine, from);
    const int bit = (__ffs(__funnelshift_r(word, word, start)) - 1 + start) & 31, where = word_of(base + from);
    unsigned before = 0;
    if (lane_ == 0) before = atomicAnd(&marks()[where], ~(1u << bit));
    before = __shfl_sync(kAllLanes, before, 0);
    return (before >> bit & 1) != 0 ? where * 32 + bit : -1;  // -1: another warp took it
}

/// Relaxes so many roots, and the owners of queued objects, until the queues of the cluster are empty and no warp is at
/// work that could queue another.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::process_queue(int roots, const SearchRange& range) {
    for (int k = warp_ * cluster_size() + cluster_rank_, base = 0;;) {
        int i = -1, level = 0;
        if (k < roots) {
            i = unassigned().get(k);
            k += kWarps * cluster_size();
        } else {
            const int j = dequeue(base);
            if (j < 0) {
                if (queue_is_empty()) return;
                continue;
            }
            level = level_in(*static_cast<volatile Key*>(&key()[j]));
            i = index_or_none(owner()[j]);
        }
        const int done = relax(i, level, range);
        if (lane_ == 0) atomicSub(&block_shared().pending, static_cast<unsigned>(done));
        __syncwarp();
    }
}

/// Whether no block of the cluster has pending work: read twice, with no addition between (see pending_of).
template <bool squared, class Cloud>
__device__ bool BlockSolver<squared, Cloud>::queue_is_empty() const {
    const unsigned mine = *static_cast<volatile unsigned*>(&block_shared().pending);
    if (__any_sync(kAllLanes, (mine & kPendingMask) != 0)) return false;
    if (cluster_size() == 1) return true;
    const RemoteShared pending(&block_shared().pending, lane_ & (cluster_size() - 1));
    const unsigned before = pending.load();
    if (__any_sync(kAllLanes, (before & kPendingMask) != 0)) return false;
    return __all_sync(kAllLanes, pending.load() == before);
}

/// Relaxes the edges of bidder i, which is at this level. Objects up to top that get a shorter path are queued. Returns
/// how much of this block's pending work is done: i, and objects that were queued already.
template <bool squared, class Cloud>
__device__ int BlockSolver<squared, Cloud>::relax(int i, int level, const SearchRange& range) {
    const LaneCandidates known = load_candidates(i);
    const float4 p = point_[i];
    const float limit = (p.w + static_cast<float>(range.horizon - level) * unit_) + kFilterMargin;
    // Whether j is to be queued now.
    const auto relax_edge = [&](int j, float cost, float price) {
        const int reached = level + edge_length(cost, price, p.w, inverse_unit_);
        const Key path = key_of(reached, rank_of(i, j, n_));
        Key before = 0;
        if (j >= 0 && reached <= range.horizon && *static_cast<volatile Key*>(&key()[j]) > path)
            before = atomicMin(&key()[j], path);
        __syncwarp();
        return level_in(before) > reached && reached <= range.top && owner()[j] != kNone;
    };
    int done = 1;
    // Counted as pending before other warps can see it, so that pending is 0 only when there is no work.
    const auto enqueue = [&]<int kCount>(const int(&j)[kCount], const bool(&queued)[kCount]) {
        int here = 0;
#pragma unroll
        for (int k = 0; k < kCount; ++k)
            here += __popc(__ballot_sync(kAllLanes, queued[k] && queue_block(j[k]) == cluster_rank_));
        if (here > 0 && lane_ == 0) atomicAdd(&block_shared().pending, pending_of(here));
        __syncwarp();
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
            const unsigned bit = 1u << (j[k] & 31);
            bool already_queued = false;
            if (queued[k] && queue_block(j[k]) == cluster_rank_)
                already_queued = (atomicOr(&marks()[j[k] / 32], bit) & bit) != 0;
            else if (queued[k])
                enqueue_remote(j[k]);
            done += __popc(__ballot_sync(kAllLanes, already_queued));
        }
    };
    if (limit > known.bound) {
        scan(p, limit, -kSeedObjects, [&](int j, float cost, float price) {
            const bool queued[1] = {relax_edge(j, cost, price)};
            if (__any_sync(kAllLanes, queued[0])) enqueue({j}, queued);
        });
    } else {
        float cost[kPerLane], price[kPerLane];
#pragma unroll
        for (int k = 0; k < kPerLane; ++k) {
            const float4 q = object()[max(known.object[k], 0)];
            cost[k] = cost_of(p, q);
            price[k] = q.w;
        }
        bool queued[kPerLane], any = false;
#pragma unroll
        for (int k = 0; k < kPerLane; ++k) {
            queued[k] = relax_edge(known.object[k], cost[k], price[k]);
            any = any || queued[k];
        }
        if (__any_sync(kAllLanes, any)) enqueue(known.object, queued);
    }
    __syncwarp();
    return done;
}

/// Records the path of j in the block that queues it, and queues it there if the path is shorter than the one known.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::enqueue_remote(int j) {
    if constexpr (Cloud::kShared) {
        const int block = queue_block(j);
        const Key path = *static_cast<volatile Key*>(&key()[j]);
        if (level_in(RemoteShared(&key()[j], block).fetch_min(path)) <= level_in(path)) return;
        const RemoteShared pending(&block_shared().pending, block);
        const unsigned bit = 1u << (j & 31),
                       none = pending.fetch_add(pending_of(1)) & 0u;  // orders the mark after the count
        if ((RemoteShared(&marks()[j / 32], block).fetch_or(bit | none) & bit) != 0) pending.fetch_add(0u - 1u);
    }
}

/// After a search: raises the prices and profits of the forest up to a level, augments, compacts the bidders still
/// unassigned, and keeps their trees.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::finish_search(int top) {
    const int thread = static_cast<int>(threadIdx.x);
    const auto raise = [&](float& value, int level) {
        value = add_rounded(value, multiply_rounded(static_cast<float>(top - level), unit_));
    };
    for (int j = thread; j < n_; j += kThreads) {
        const Key path = key()[j];
        if (level_in(path) > top) continue;
        raise(object()[j].w, level_in(path));
        const int i = index_or_none(owner()[j]);
        if (i < 0) continue;
        raise(point_[i].w, level_in(path));
        parent_[i] = static_cast<Index>(parent_in(path, j));
    }
    const List<Index> roots = unassigned();
    for (int k = thread; k < unassigned_count_; k += kThreads) {
        const int i = roots.get(k);
        raise(point_[i].w, 0);
        best_bid_[i] = ~0ull;
    }
    __syncthreads();
    update_min_prices();
    measure_tree_paths(top);
    for (int j = thread; j < n_; j += kThreads) {
        const Key path = key()[j];
        if (owner()[j] != kNone || level_in(path) > top) continue;
        const int i = parent_in(path, j);
        const Index before = partner_[i];
        const int root = before == kNone ? i : jump_target(key()[before]);
        atomicMin(&best_bid_[root], static_cast<unsigned long long>(level_in(path)) << 32 | static_cast<unsigned>(j));
    }
    __syncthreads();
    // Trees whose root is assigned now are removed; paths to free objects are still needed.
    for (int j = thread; j < n_; j += kThreads) {
        if (owner()[j] == kNone) continue;
        const Key jump = key()[j];
        const int length = jump_length(jump);
        const bool stays = is_marked(j) && best_bid_[jump_target(jump)] == ~0ull && length < kMaxLevel;
        key()[j] = stays ? key_of(length, rank_of(parent_[owner()[j]], j, n_)) : kNoPath;
    }
    __syncthreads();
    unassigned_count_ = compact(unassigned_count_, next_unassigned(), [&](int k) {
        const int root = roots.get(k);
        const unsigned long long found = best_bid_[root];
        best_bid_[root] = 0;  // as bidding rounds expect it
        if (found == ~0ull) return root;
        Index j = static_cast<Index>(found & 0xffffffffu);
        int i = parent_in(key()[j], j);
        for (;;) {  // trees are disjoint, so no other thread is on this path
            const Index before = partner_[i];
            partner_[i] = j;
            owner()[j] = static_cast<Index>(i);
            key()[j] = kNoPath;
            if (before == kNone) break;
            j = before;
            i = parent_[i];
        }
        return -1;
    });
    current_list_ ^= 1;
    for (int j = thread; j < n_; j += kThreads)
        if (owner()[j] == kNone) key()[j] = kNoPath;
    __syncthreads();
}

/// Marks the assigned objects of the forest, and turns their keys into the length of the path to the root of their
/// tree, at the new prices, and that root: pointer jumping, twice as far each time.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::measure_tree_paths(int top) {
    mark([&](int j) {
        const int i = index_or_none(owner()[j]);
        if (i < 0 || level_in(key()[j]) > top) return false;
        const int parent = parent_[i];
        const float4 p = point_[parent], q = object()[j];
        const int step = edge_length(cost_of(p, q), q.w, p.w, inverse_unit_);
        const Index before = partner_[parent];
        key()[j] = before == kNone ? kAtRoot | key_of(step, parent) : key_of(step, before);
        return true;
    });
    __syncthreads();
    for (bool more = true; more;) {
        bool moved = false;
        for (int j = static_cast<int>(threadIdx.x); j < n_; j += kThreads) {
            volatile Key* const jumps = key();
            const Key jump = jumps[j];
            if (!is_marked(j) || (jump & kAtRoot) != 0) continue;
            const Key rest = jumps[jump_target(jump)];
            const int length = min(jump_length(jump) + jump_length(rest), kMaxLevel);
            jumps[j] = (rest & kAtRoot) | key_of(length, jump_target(rest));
            moved = true;
        }
        more = __syncthreads_or(moved) != 0;
    }
}

}  // namespace stipple::ops::cuda::matching
