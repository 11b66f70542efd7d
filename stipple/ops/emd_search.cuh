#pragma once
// The searches of emd on CUDA: one forest of shortest paths from all points that are left, grown level by level. Every
// block of the group grows all of it. Paths longer than a horizon are not written down until the search gets there, so
// that a point offers paths to the objects near it only; how far the horizon is does not show in the result.

#include "stipple/ops/emd_scan.cuh"

namespace stipple::ops::cuda::matching {

constexpr int kHorizon = 24;  // eps, at first

/// One search forest, one augmenting path in every tree that found a free object.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::place() {
    const int thread = static_cast<int>(threadIdx.x);
    const int enough = enough_found(left_count_);
    for (int j = thread; j < n_; j += kThreads) key()[j] = kNoPath;
    for (int k = thread; k < left_count_; k += kThreads) {
        root_[left().get(k)] = static_cast<Index>(k);
        offer_[k] = ~0ull;
    }
    if (thread == 0) board().hits = board().ready = 0;
    int level = 0, horizon = kHorizon, count = left_count_, settled = 0;
    bool again = false;  // the whole forest, with a farther horizon
    List<Index> points = left();
    __syncthreads();
    for (;;) {
        for (int k = warp_; k < (again ? left_count_ + n_ : count); k += kWarps) {
            const int j = again ? k - left_count_ : -1;
            if (j >= 0 && ((key()[j] & kOpen) != 0 || owner()[j] == kNobody)) continue;
            relax(j >= 0 ? owner()[j] : points.get(k), again ? (j >= 0 ? level_in(key()[j]) : 0) : level, horizon);
        }
        __syncthreads();
        if (board().ready == 0) {
            if (board().hits >= enough || settled == n_) break;
            const int lowest = lowest_level();
            again = lowest > horizon && horizon < kTopLevel;
            if (again) {
                horizon = min(2 * horizon, kTopLevel);
                points = left();
                continue;
            }
            level = lowest;
            collect_ready(level);
        }
        again = false;
        settled += board().ready;
        settle(level);
        points = front();
        count = board().front;
        if (board().hits == left_count_) break;
    }
    end_search(level);
}

/// Offers every object not yet settled a path through i.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::relax(int i, int level, int horizon) {
    const Remembered known = remember(i);
    const float4 p = point_[i];
    const float inverse_eps = 1.0f / eps_;
    const float limit = (p.w + static_cast<float>(horizon + 1 - level) * eps_) + kFilterMargin;
    const auto offer = [&](int j, float sq, float price) {
        const int reached = farther(level, level_of(root_of<squared>(sq), price, p.w, inverse_eps));
        const Key path = key_of(reached, rank_of(i, j, n_));
        if (j < 0 || reached > horizon || key()[j] <= path) return;
        const Key before = atomicMin(&key()[j], path);
        if (reached == level && before > path && level_in(before) > level) ready().set(atomicAdd(&board().ready, 1), j);
    };
    if (limit > known.bound) {
        scan(p, limit, -kHome, offer);
        return;
    }
    for (int k = 0; k < kEach; ++k) {
        const float4 q = object()[max(known.object[k], 0)];
        offer(known.object[k], distance_sq(p.x - q.x, p.y - q.y, p.z - q.z), q.w);
    }
}

/// Of the objects not yet settled; above kTopLevel if no path is written down.
template <bool squared, class Cloud>
__device__ int Replica<squared, Cloud>::lowest_level() {
    if (threadIdx.x == 0) board().lowest = 0x7fffffffu;
    __syncthreads();
    unsigned lowest = 0x7fffffffu;
    for (int j = static_cast<int>(threadIdx.x); j < n_; j += kThreads) {
        const Key path = key()[j];
        if ((path & kOpen) != 0 && path != kNoPath) lowest = min(lowest, static_cast<unsigned>(level_in(path)));
    }
    lowest = warp_min(lowest);
    if (lane_ == 0) atomicMin(&board().lowest, lowest);
    __syncthreads();
    return static_cast<int>(board().lowest);
}

template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::collect_ready(int level) {
    for (int j = static_cast<int>(threadIdx.x); j < n_; j += kThreads) {
        const Key path = key()[j];
        if ((path & kOpen) != 0 && path != kNoPath && level_in(path) == level)
            ready().set(atomicAdd(&board().ready, 1), j);
    }
    __syncthreads();
}

/// The objects that are ready join the forest; their owners are the next front.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::settle(int level) {
    const int count = board().ready;
    if (threadIdx.x == 0) board().front = 0;
    __syncthreads();
    for (int k = static_cast<int>(threadIdx.x); k < count; k += kThreads) {
        const int j = ready().get(k);
        const Key path = key()[j];
        key()[j] = path & ~kOpen;
        const Index root = root_[parent_in(path, j)], i = owner()[j];
        if (i != kNobody) {
            root_[i] = root;
            front().set(atomicAdd(&board().front, 1), i);
        } else {
            const auto found = static_cast<unsigned long long>(level) << 32 | static_cast<unsigned>(j);
            if (atomicMin(&offer_[root], found) == ~0ull) atomicAdd(&board().hits, 1);
        }
    }
    if (threadIdx.x == 0) board().ready = 0;
    __syncthreads();
}

/// Prices and profits of the forest, the paths found, and who is left now.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::end_search(int level) {
    const int thread = static_cast<int>(threadIdx.x);
    const auto raise = [&](float& value, int since) {
        value = add_rounded(value, multiply_rounded(static_cast<float>(level - since), eps_));
    };
    for (int j = thread; j < n_; j += kThreads) {
        const Key path = key()[j];
        if ((path & kOpen) != 0) continue;
        raise(object()[j].w, level_in(path));
        if (owner()[j] != kNobody) raise(point_[owner()[j]].w, level_in(path));
    }
    for (int k = thread; k < left_count_; k += kThreads) raise(point_[left().get(k)].w, 0);
    __syncthreads();
    bound_prices();
    const List<Index> roots = left();
    left_count_ = compact(left_count_, next_left(), [&](int k) {
        const unsigned long long found = offer_[k];
        if (found == ~0ull) return roots.get(k);
        Index j = static_cast<Index>(found & 0xffffffffu);
        while (j != kNobody) {  // trees share no object, so nobody else is on this path
            const int i = parent_in(key()[j], j);
            const Index before = partner_[i];
            partner_[i] = j;
            owner()[j] = static_cast<Index>(i);
            j = before;
        }
        return -1;
    });
    which_ ^= 1;
    for (int k = thread; k < n_; k += kThreads) offer_[k] = 0;  // as rounds expect it
    __syncthreads();
}

}  // namespace stipple::ops::cuda::matching
