#pragma once
// The searches of emd on CUDA with a thread's objects in registers and the front in shared memory.

#include "stipple/ops/emd_group.cuh"

namespace stipple::ops::cuda::matching {

template <bool squared, int objects>
__device__ Totals Group<squared, objects>::publish() {
    const int turn = turn_ & 1, parity = turn_ / 2 & 1, lane = static_cast<int>(threadIdx.x & 31);
    int4* headers = s_.headers + turn * kMostBlocks;
    __syncthreads();  // counters are final, and the buffers of the last turn have been read
    if (threadIdx.x < 32) {
        const int4 header = make_int4(s_.added[turn], s_.hits, s_.lowest[turn], 0);
        __syncwarp();
        if (lane == 0) s_.added[turn ^ 1] = 0, s_.lowest[turn ^ 1] = kUnreached;
        if (task_.group == 1) {
            if (lane == 0) headers[0] = header;
        } else {
            if (lane == 0) cluster::expect(&s_.ready[turn], task_.group * static_cast<int>(sizeof(int4)));
            if (lane < task_.group) cluster::send(&headers[rank_], header, &s_.ready[turn], lane);
        }
    }
    if (task_.group == 1)
        __syncthreads();
    else
        cluster::wait(&s_.ready[turn], parity);
    const int4 mine = lane < task_.group ? headers[lane] : make_int4(0, 0, kUnreached, 0);
    const Totals totals = {warp_sum(mine.x), warp_sum(mine.y), warp_min(mine.z), -warp_min(-mine.x)};
    if (task_.group > 1) {
        if (threadIdx.x < 32) {
            const int sent = warp_sum(min(mine.x, kFront / task_.group));
            if (lane == 0) cluster::expect(&s_.ready[2 + turn], sent * static_cast<int>(sizeof(float4) + sizeof(int2)));
        }
        cluster::wait(&s_.ready[2 + turn], parity);
    }
    ++turn_;
    return totals;
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::add_to_front(bool has, const float4& point, int index, int root) {
    const unsigned mask = __ballot_sync(kFull, has);
    if (mask == 0) return;
    const int lane = static_cast<int>(threadIdx.x & 31), leader = __ffs(static_cast<int>(mask)) - 1;
    const int turn = turn_ & 1, part = kFront / task_.group;
    int first = 0;
    if (lane == leader) first = atomicAdd(&s_.added[turn], __popc(mask));
    first = __shfl_sync(kFull, first, leader);
    if (!has) return;
    const int at = first + __popc(mask & ((1u << lane) - 1)), to = turn * kFront + rank_ * part + at;
    if (at >= part) {
        int* list = overflow(turn, rank_);
        __stcg(&list[at], index);
        __stcg(&list[w_.size + at], root);
    } else if (task_.group == 1) {
        s_.front[to] = point;
        s_.meta[to] = make_int2(index, root);
    } else {
#pragma unroll 1
        for (int rank = 0; rank < task_.group; ++rank) {
            cluster::send(&s_.front[to], point, &s_.ready[2 + turn], rank);
            cluster::send(&s_.meta[to], make_int2(index, root), &s_.ready[2 + turn], rank);
        }
    }
}

template <bool squared, int objects>
template <class Offer>
__device__ void Group<squared, objects>::for_front(const Totals& totals, const Box& box, const float& limit,
                                                   const Offer& offer) {
    const int turn = (turn_ - 1) & 1, lane = static_cast<int>(threadIdx.x & 31), group = task_.group;
    const int part = kFront / group, bits = __ffs(group) - 1, most = min(totals.most, part);
    const float4* front = s_.front + turn * kFront;
    const int2* meta = s_.meta + turn * kFront;
    const int count = s_.headers[turn * kMostBlocks + (lane & (group - 1))].x;
    for (int base = 0; base < most; base += 32 >> bits) {
        const int mine = base + (lane >> bits);
        const float most_limit = warp_max(limit);  // falls as objects are reached
        bool near = mine < min(count, part);
        if (near) {
            const float4 p = front[(lane & (group - 1)) * part + mine];
            near = may_cost<squared>(box.distance_sq_to(p), most_limit + p.w);
        }
        unsigned mask = __ballot_sync(kFull, near);
        while (mask != 0) {
            const int k = __ffs(static_cast<int>(mask)) - 1;
            mask &= mask - 1;
            const int l = mask != 0 ? __ffs(static_cast<int>(mask)) - 1 : k;
            mask &= mask - 1;
            const int at = (k & (group - 1)) * part + base + (k >> bits);
            const int other = (l & (group - 1)) * part + base + (l >> bits);
            offer(front[at], &meta[at], front[other], &meta[other]);
        }
    }
    if (totals.most <= part) return;
    for (int rank = 0; rank < group; ++rank) {
        const int* list = overflow(turn, rank);
        const int size = s_.headers[turn * kMostBlocks + rank].x;
        for (int base = part; base < size; base += 32) {
            const int at = min(base + lane, size - 1);
            const int2 mine = make_int2(__ldcg(&list[at]), __ldcg(&list[w_.size + at]));
            const float4 p = __ldcg(&w_.point[mine.x]);
            const bool near = may_cost<squared>(box.distance_sq_to(p), warp_max(limit) + p.w);
            unsigned mask = __ballot_sync(kFull, near && base + lane < size);
#pragma unroll 1
            for (; mask != 0; mask &= mask - 1) {
                const int k = __ffs(static_cast<int>(mask)) - 1;
                const int2 named = make_int2(__shfl_sync(kFull, mine.x, k), __shfl_sync(kFull, mine.y, k));
                const float4 point = make_float4(__shfl_sync(kFull, p.x, k), __shfl_sync(kFull, p.y, k),
                                                 __shfl_sync(kFull, p.z, k), __shfl_sync(kFull, p.w, k));
                offer(point, &named, point, &named);
            }
        }
    }
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::place_in_registers() {
    const float inverse_eps = 1.0f / eps_;
    const int* left = left_list(which_);
    float4 q[objects], *owner_point = s_.owner + threadIdx.x;  // only this thread's
    float limit[objects];
    int reached[objects], parent[objects], root[objects], owner[objects];
    bool settled[objects];
#pragma unroll
    for (int r = 0; r < objects; ++r) {
        const int j = thread_ + r * threads_;
        settled[r] = j >= n_;
        reached[r] = kUnreached, parent[r] = root[r] = -1;
        q[r] = __ldcg(&w_.object[min(j, n_ - 1)]);
        owner[r] = j < n_ ? __ldcg(&w_.owner[j]) : -1;
        owner_point[r * kThreads] = __ldcg(&w_.point[max(owner[r], 0)]);
        if ((threadIdx.x & 31) == 0) s_.boxes[threadIdx.x / 32 * objects + r] = chunk_box(min(j, n_ - 1) / kChunk);
    }
    if (threadIdx.x == 0) {
        s_.added[turn_ & 1] = s_.hits = 0;
        s_.lowest[turn_ & 1] = kUnreached;
    }
    for (int k = thread_; k < left_count_; k += threads_) __stcg(&w_.found[__ldcg(&left[k])], ~0ull);
    sync();
    for (int base = 0; base < left_count_; base += threads_) {
        const int k = base + static_cast<int>(threadIdx.x) * task_.group + rank_;
        const int i = k < left_count_ ? __ldcg(&left[k]) : 0;
        add_to_front(k < left_count_, __ldcg(&w_.point[i]), i, i);
    }
    const int enough = static_cast<int>((static_cast<int64_t>(left_count_) * 3 + 9) / 10);
    int level = 0;
    Totals totals = publish();
    const auto settle = [&] {
#pragma unroll
        for (int r = 0; r < objects; ++r) {
            const bool now = !settled[r] && reached[r] == level;
            if (!__any_sync(kFull, now)) continue;
            settled[r] = settled[r] || now;
            add_to_front(now && owner[r] >= 0, owner_point[r * kThreads], owner[r], root[r]);
            if (now && owner[r] < 0) {
                const auto key =
                    (static_cast<unsigned long long>(level) << 32) | static_cast<unsigned>(thread_ + r * threads_);
                if (atomicMin(&w_.found[root[r]], key) == ~0ull) atomicAdd(&s_.hits, 1);
            }
        }
    };
    for (;;) {
        const float back = multiply_rounded(static_cast<float>(level), eps_);
#pragma unroll
        for (int r = 0; r < objects; ++r) limit[r] = settled[r] ? -INFINITY : limit_of(reached[r], q[r].w, back);
        const auto reach = [&](int r, const float4& p, const int2* meta) {
            const int through = level + level_of(cost_of(p, q[r]), q[r].w, p.w, inverse_eps);
            if (through > reached[r]) return;
            const int j = thread_ + r * threads_;
            const int2 named = *meta;
            if (through == reached[r] && rank_of(named.x, j, n_) > rank_of(parent[r], j, n_)) return;
            reached[r] = through, parent[r] = named.x, root[r] = named.y;
            limit[r] = limit_of(through, q[r].w, back);
        };
        if (totals.most > kFront / task_.group) sync();  // part of the front comes through global memory
#pragma unroll
        for (int r = 0; r < objects; ++r)
            for_front(totals, s_.boxes[threadIdx.x / 32 * objects + r], limit[r],
                      [&](const float4& p, const int2* meta, const float4& other, const int2* other_meta) {
                          const float dx = p.x - q[r].x, dy = p.y - q[r].y, dz = p.z - q[r].z;
                          const float ex = other.x - q[r].x, ey = other.y - q[r].y, ez = other.z - q[r].z;
                          const bool near = may_cost<squared>(dx * dx + dy * dy + dz * dz, limit[r] + p.w);
                          const bool other_near = may_cost<squared>(ex * ex + ey * ey + ez * ez, limit[r] + other.w);
                          if (near) reach(r, p, meta);
                          if (other_near) reach(r, other, other_meta);
                      });
        settle();
        int lowest = kUnreached;
#pragma unroll
        for (int r = 0; r < objects; ++r)
            if (!settled[r]) lowest = min(lowest, reached[r]);
        lowest = warp_min(lowest);
        if ((threadIdx.x & 31) == 0 && lowest != kUnreached) atomicMin(&s_.lowest[turn_ & 1], lowest);
        totals = publish();
        if (totals.hits == left_count_) break;
        if (totals.added > 0) continue;
        if (totals.lowest == kUnreached || totals.hits >= enough) break;
        level = totals.lowest;
        settle();
        totals = publish();
        if (totals.hits == left_count_) break;
    }
#pragma unroll
    for (int r = 0; r < objects; ++r) {
        const int j = thread_ + r * threads_;
        if (j >= n_ || !settled[r]) continue;
        const float raise = multiply_rounded(static_cast<float>(level - reached[r]), eps_);
        __stcg(&w_.object[j].w, add_rounded(q[r].w, raise));
        __stcg(&w_.parent[j], parent[r]);
        if (owner[r] >= 0) __stcg(&w_.point[owner[r]].w, add_rounded(owner_point[r * kThreads].w, raise));
    }
    for (int k = thread_; k < left_count_; k += threads_) {
        const int i = __ldcg(&left[k]);
        __stcg(&w_.point[i].w, add_rounded(__ldcg(&w_.point[i].w), multiply_rounded(static_cast<float>(level), eps_)));
    }
    sync();
    augment(left);
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::augment(const int* left) {
    for (int k = thread_; k < left_count_; k += threads_) {
        const unsigned long long found = __ldcg(&w_.found[__ldcg(&left[k])]);
        int j = found == ~0ull ? -1 : static_cast<int>(static_cast<unsigned>(found));
        while (j >= 0) {
            const int i = __ldcg(&w_.parent[j]), before = __ldcg(&w_.partner[i]);
            __stcg(&w_.partner[i], j);
            __stcg(&w_.owner[j], i);
            j = before;
        }
    }
    sync();
    collect_left([&](int i) { return __ldcg(&w_.partner[i]) >= 0; });
}

}  // namespace stipple::ops::cuda::matching
