#pragma once
// The searches of emd on CUDA: one forest of shortest paths from all points that are left. There is one such forest
// (see emd/auction.h), so warps need not wait for each other: each takes an object whose path has become shorter and
// offers paths through its owner, until no object waits for that.
//
// The blocks of a cluster are a team and grow the forest together, every team of the group all of it. Objects wait in
// the block whose part of them they are in, and there their paths are the shortest known; every block writes down what
// it has offered, and at the end of a stride they are put together.
//
// Paths longer than a horizon are not written down until the search gets there, so that a point offers paths to the
// objects near it only; how far the horizon is does not show in the result.

#include "stipple/ops/emd/candidate_scan.cuh"

namespace stipple::ops::cuda::matching {

/// One search forest, one augmenting path in every tree that found a free object. The first search of a phase begins
/// with the roots, the others with the trees that are left of the one before.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::place(bool first) {
    const int thread = static_cast<int>(threadIdx.x);
    const int enough = enough_found(left_count_);
    refresh_memories();
    for (int j = thread; j < n_ && first; j += kThreads) key()[j] = kNoPath;
    __syncthreads();
    Reach reach = {kStride, kHorizon};
    wait(0, reach.top, left_count_);
    for (int roots = left_count_;; roots = 0) {
        serve(roots, reach);
        put_together();
        Rim rim = rim_of(reach.top);
        int next = 0;
        for (;;) {
            next = min(rim.lowest, kTopLevel - kStride + 1) + kStride - 1;
            if (rim.free >= enough || next <= reach.horizon) break;
            reach.horizon = min(2 * reach.horizon, kTopLevel);
            offer_again(reach);
            rim = rim_of(reach.top);
        }
        if (rim.free >= enough || (rim.free > 0 && rim.lowest > kTopLevel)) break;
        if (rim.lowest > kTopLevel) {  // nobody is free within reach: prices rise, and the next search sees farther
            reach.top = kTopLevel;
            break;
        }
        wait(reach.top + 1, next, 0);
        reach.top = next;
    }
    end_search(reach.top);
}

/// The whole forest offers paths up to a farther horizon, a part of it in every block. Nobody within top gets a shorter
/// path, so that nobody has to wait.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::offer_again(const Reach& reach) {
    const int thread = static_cast<int>(threadIdx.x);
    unsigned long long* told = next_exchange();
    for (int j = rank_ * kThreads + thread; j < n_ && task_.group > 1; j += kThreads * task_.group)
        __stcg(&told[j], static_cast<unsigned long long>(kNoPath));
    group_sync();
    for (int k = warp_ * task_.group + rank_; k < left_count_ + n_; k += kWarps * task_.group) {
        const int j = k - left_count_, level = j < 0 ? 0 : level_in(key()[j]);
        const int i = j < 0 ? left().get(k) : level <= reach.top ? some(owner()[j]) : -1;
        if (i >= 0) relax(i, level, reach);
    }
    __syncthreads();
    if (task_.group == 1) return;
    for (int j = thread; j < n_; j += kThreads) {
        const Key path = key()[j];
        if (level_in(path) > reach.top && path != kNoPath) atomicMin(&told[j], static_cast<unsigned long long>(path));
    }
    group_sync();
    for (int j = thread; j < n_; j += kThreads) key()[j] = min(key()[j], static_cast<Key>(__ldcg(&told[j])));
    __syncthreads();
}

/// Free objects up to a level, and the lowest level above it that is written down (above kTopLevel: none is).
template <bool squared, class Cloud>
__device__ Rim Replica<squared, Cloud>::rim_of(int top) {
    if (threadIdx.x == 0) board().rim = {0, 0x7fffffff};
    __syncthreads();
    int free = 0, lowest = 0x7fffffff;
    for (int j = static_cast<int>(threadIdx.x); j < n_; j += kThreads) {
        const Key path = key()[j];
        const int level = level_in(path);
        if (level <= top)
            free += owner()[j] == kNobody ? 1 : 0;
        else if (path != kNoPath)
            lowest = min(lowest, level);
    }
    lowest = static_cast<int>(warp_min(static_cast<uint32_t>(lowest)));
    if (lane_ == 0) atomicMin(&board().rim.lowest, lowest);
    if (free > 0) atomicAdd(&board().rim.free, free);
    __syncthreads();
    return board().rim;
}

/// Marks exactly the objects for which is(j); returns how many this warp has marked.
template <bool squared, class Cloud>
template <class Is>
__device__ int Replica<squared, Cloud>::mark(const Is& is) {
    int count = 0;
    for (int base = warp_ * 32; base < n_; base += kThreads) {
        const unsigned word = __ballot_sync(kAllLanes, base + lane_ < n_ && is(base + lane_));
        if (lane_ == 0) marks()[base / 32] = word;
        count += __popc(word);
    }
    return count;
}

/// All objects of these levels that somebody owns wait for him to offer paths; the roots besides, if so many are given.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::wait(int from, int to, int roots) {
    if (threadIdx.x == 0) board().work = work_of((roots - mate_ + team() - 1) / team());
    __syncthreads();
    const int count = mark([&](int j) {
        const int level = level_in(key()[j]);
        return level >= from && level <= to && owner()[j] != kNobody && mate_of(j) == mate_;
    });
    if (lane_ == 0 && count > 0) atomicAdd(&board().work, work_of(count));
    if (team() > 1)
        meet_cluster();
    else
        __syncthreads();
}

/// After a stride: the shortest of the paths that the blocks of the team have written down.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::put_together() {
    if (team() == 1) {
        __syncthreads();
        return;
    }
    if constexpr (Cloud::kShared) {
        meet_cluster();
        for (int j = static_cast<int>(threadIdx.x); j < n_; j += kThreads) {
            Key shortest = key()[j];
            for (int mate = 0; mate < team(); ++mate)
                if (mate != mate_) shortest = min(shortest, Elsewhere(&key()[j], mate).load());
            key()[j] = shortest;  // whoever reads it meanwhile finds the same
        }
        meet_cluster();
    }
}

/// An object of this block's part that waits for its owner to offer paths, for this warp alone, or -1. Looks at 1024
/// objects from `base` on, and moves it on if none of them waits.
template <bool squared, class Cloud>
__device__ int Replica<squared, Cloud>::take_waiting(int& base) {
    static_assert(kRun == 32, "a word of marks for each run");
    const int words = (n_ + 31) / 32;
    const auto word_of = [&](int k) { return k * team() + mate_; };
    const int at = word_of(base + lane_);
    const unsigned mine = at < words ? static_cast<volatile unsigned*>(marks())[at] : 0;
    const unsigned some = __ballot_sync(kAllLanes, mine != 0);
    if (some == 0) {
        base = word_of(base + 32) < words ? base + 32 : 0;
        return -1;
    }
    // Every warp begins elsewhere, so that they do not all want the same.
    const int turn = (warp_ * 11) & 31, from = (__ffs(__funnelshift_r(some, some, turn)) - 1 + turn) & 31;
    const unsigned word = __shfl_sync(kAllLanes, mine, from);
    const int bit = (__ffs(__funnelshift_r(word, word, turn)) - 1 + turn) & 31, where = word_of(base + from);
    unsigned before = 0;
    if (lane_ == 0) before = atomicAnd(&marks()[where], ~(1u << bit));
    before = __shfl_sync(kAllLanes, before, 0);
    return (before >> bit & 1) != 0 ? where * 32 + bit : -1;  // -1: another warp took it
}

/// Offers paths for so many roots, and for objects that wait, until none waits in the team and nobody is at work who
/// could make one wait.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::serve(int roots, const Reach& reach) {
    for (int k = warp_ * team() + mate_, base = 0;;) {
        int i = -1, level = 0;
        if (k < roots) {
            i = left().get(k);
            k += kWarps * team();
        } else {
            const int j = take_waiting(base);
            if (j < 0) {
                if (nothing_to_do()) return;
                continue;
            }
            level = level_in(*static_cast<volatile Key*>(&key()[j]));
            i = some(owner()[j]);
        }
        const int done = relax(i, level, reach);
        if (lane_ == 0) atomicSub(&board().work, static_cast<unsigned>(done));
        __syncwarp();
    }
}

/// Whether no block of the team has work. Nobody has got any between two looks in which there was none.
template <bool squared, class Cloud>
__device__ bool Replica<squared, Cloud>::nothing_to_do() const {
    const unsigned mine = *static_cast<volatile unsigned*>(&board().work);
    if (__any_sync(kAllLanes, (mine & kWorkMask) != 0)) return false;
    if (team() == 1) return true;
    const Elsewhere work(&board().work, lane_ & (team() - 1));
    const unsigned before = work.load();
    if (__any_sync(kAllLanes, (before & kWorkMask) != 0)) return false;
    return __all_sync(kAllLanes, work.load() == before);
}

/// Offers every object a path through i, which is at this level itself. Whoever gets a shorter one within top waits to
/// offer it further. Returns what has been done of this block's work: i, and objects that waited already.
template <bool squared, class Cloud>
__device__ int Replica<squared, Cloud>::relax(int i, int level, const Reach& reach) {
    const Remembered known = remember(i);
    const float4 p = point_[i];
    const float limit = (p.w + static_cast<float>(reach.horizon - level) * unit_) + kFilterMargin;
    // Whether j has to wait now.
    const auto offer = [&](int j, float cost, float price) {
        const int reached = level + step_of(cost, price, p.w, inverse_unit_);
        const Key path = key_of(reached, rank_of(i, j, n_));
        Key before = 0;
        if (j >= 0 && reached <= reach.horizon && *static_cast<volatile Key*>(&key()[j]) > path)
            before = atomicMin(&key()[j], path);
        __syncwarp();
        return level_in(before) > reached && reached <= reach.top && owner()[j] != kNobody;
    };
    int done = 1;
    // Counted before others can see it, so that there seems to be no work only when there is none.
    const auto enlist = [&]<int kCount>(const int(&j)[kCount], const bool(&waits)[kCount]) {
        int here = 0;
#pragma unroll
        for (int k = 0; k < kCount; ++k) here += __popc(__ballot_sync(kAllLanes, waits[k] && mate_of(j[k]) == mate_));
        if (here > 0 && lane_ == 0) atomicAdd(&board().work, work_of(here));
        __syncwarp();
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
            const unsigned bit = 1u << (j[k] & 31);
            bool twice = false;
            if (waits[k] && mate_of(j[k]) == mate_)
                twice = (atomicOr(&marks()[j[k] / 32], bit) & bit) != 0;
            else if (waits[k])
                tell_mate(j[k]);
            done += __popc(__ballot_sync(kAllLanes, twice));
        }
    };
    if (limit > known.bound) {
        scan(p, limit, -kHome, [&](int j, float cost, float price) {
            const bool waits[1] = {offer(j, cost, price)};
            if (__any_sync(kAllLanes, waits[0])) enlist({j}, waits);
        });
    } else {
        float cost[kEach], price[kEach];
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            const float4 q = object()[max(known.object[k], 0)];
            cost[k] = cost_of(p, q);
            price[k] = q.w;
        }
        bool waits[kEach], any = false;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            waits[k] = offer(known.object[k], cost[k], price[k]);
            any = any || waits[k];
        }
        if (__any_sync(kAllLanes, any)) enlist(known.object, waits);
    }
    __syncwarp();
    return done;
}

/// In the block where j may have to wait: its path, and that it waits if this is shorter than what is known there.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::tell_mate(int j) {
    if constexpr (Cloud::kShared) {
        const int mate = mate_of(j);
        const Key path = *static_cast<volatile Key*>(&key()[j]);
        if (level_in(Elsewhere(&key()[j], mate).least(path)) <= level_in(path)) return;
        const Elsewhere work(&board().work, mate);
        const unsigned bit = 1u << (j & 31), none = work.add(work_of(1)) & 0u;  // the mark comes after the count
        if ((Elsewhere(&marks()[j / 32], mate).set_bits(bit | none) & bit) != 0) work.add(0u - 1u);
    }
}

/// Prices and profits of the forest up to a level, the paths found, who is left now, and the trees of these.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::end_search(int top) {
    const int thread = static_cast<int>(threadIdx.x);
    const auto raise = [&](float& value, int level) {
        value = add_rounded(value, multiply_rounded(static_cast<float>(top - level), unit_));
    };
    for (int j = thread; j < n_; j += kThreads) {
        const Key path = key()[j];
        if (level_in(path) > top) continue;
        raise(object()[j].w, level_in(path));
        const int i = some(owner()[j]);
        if (i < 0) continue;
        raise(point_[i].w, level_in(path));
        parent_[i] = static_cast<Index>(parent_in(path, j));
    }
    const List<Index> roots = left();
    for (int k = thread; k < left_count_; k += kThreads) {
        const int i = roots.get(k);
        raise(point_[i].w, 0);
        offer_[i] = ~0ull;
    }
    __syncthreads();
    bound_prices();
    measure_paths(top);
    for (int j = thread; j < n_; j += kThreads) {
        const Key path = key()[j];
        if (owner()[j] != kNobody || level_in(path) > top) continue;
        const int i = parent_in(path, j);
        const Index before = partner_[i];
        const int root = before == kNobody ? i : goal_in(key()[before]);
        atomicMin(&offer_[root], static_cast<unsigned long long>(level_in(path)) << 32 | static_cast<unsigned>(j));
    }
    __syncthreads();
    // Trees whose root has found somebody are cut down; paths to free objects are still needed.
    for (int j = thread; j < n_; j += kThreads) {
        if (owner()[j] == kNobody) continue;
        const Key way = key()[j];
        const int length = length_in(way);
        const bool stays = is_marked(j) && offer_[goal_in(way)] == ~0ull && length < kTopLevel;
        key()[j] = stays ? key_of(length, rank_of(parent_[owner()[j]], j, n_)) : kNoPath;
    }
    __syncthreads();
    left_count_ = compact(left_count_, next_left(), [&](int k) {
        const int root = roots.get(k);
        const unsigned long long found = offer_[root];
        offer_[root] = 0;  // as rounds expect it
        if (found == ~0ull) return root;
        Index j = static_cast<Index>(found & 0xffffffffu);
        int i = parent_in(key()[j], j);
        for (;;) {  // trees share no object, so nobody else is on this path
            const Index before = partner_[i];
            partner_[i] = j;
            owner()[j] = static_cast<Index>(i);
            key()[j] = kNoPath;
            if (before == kNobody) break;
            j = before;
            i = parent_[i];
        }
        return -1;
    });
    which_ ^= 1;
    for (int j = thread; j < n_; j += kThreads)
        if (owner()[j] == kNobody) key()[j] = kNoPath;
    __syncthreads();
}

/// Marks the objects of the forest that somebody owns, and turns their keys into ways to the root of their tree: how
/// long they are with the prices of now, and where they end. Twice as far each time.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::measure_paths(int top) {
    mark([&](int j) {
        const int i = some(owner()[j]);
        if (i < 0 || level_in(key()[j]) > top) return false;
        const int parent = parent_[i];
        const float4 p = point_[parent], q = object()[j];
        const int step = step_of(cost_of(p, q), q.w, p.w, inverse_unit_);
        const Index before = partner_[parent];
        key()[j] = before == kNobody ? kAtRoot | key_of(step, parent) : key_of(step, before);
        return true;
    });
    __syncthreads();
    for (bool more = true; more;) {
        bool moved = false;
        for (int j = static_cast<int>(threadIdx.x); j < n_; j += kThreads) {
            volatile Key* const ways = key();
            const Key way = ways[j];
            if (!is_marked(j) || (way & kAtRoot) != 0) continue;
            const Key rest = ways[goal_in(way)];
            const int length = min(length_in(way) + length_in(rest), kTopLevel);
            ways[j] = (rest & kAtRoot) | key_of(length, goal_in(rest));
            moved = true;
        }
        more = __syncthreads_or(moved) != 0;
    }
}

}  // namespace stipple::ops::cuda::matching
