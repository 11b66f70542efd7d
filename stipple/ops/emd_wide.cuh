#pragma once
// The searches of emd on CUDA for clouds with too many objects for the registers of a group: all in global memory.

#include "stipple/ops/emd_group.cuh"

namespace stipple::ops::cuda::matching {

template <bool squared, int objects>
__device__ void Group<squared, objects>::place() {
    Control* c = w_.control;
    const float inverse_eps = 1.0f / eps_;
    for (int k = thread_; k < n_; k += threads_) {
        __stcg(&w_.level[k], kUnreached);
        __stcg(&w_.parent[k], -1);
        __stcg(&w_.settled[k], 0);
        __stcg(&w_.root[k], -1);
        __stcg(&w_.reach[k], 0);
        __stcg(&w_.found[k], ~0ull);
    }
    if (thread_ == 0) {
        c->front[0] = left_count_, c->front[1] = c->front[2] = 0;
        c->lowest[0] = c->lowest[1] = kUnreached;
        c->hits = 0;
        __threadfence();
    }
    sync();
    const int* left = left_list(which_);
    for (int k = thread_; k < left_count_; k += threads_) {
        const int i = __ldcg(&left[k]);
        __stcg(&w_.root[i], i);
        __stcg(&w_.front[k], i);
    }
    sync();
    const int enough = static_cast<int>((static_cast<int64_t>(left_count_) * 3 + 9) / 10);
    int level = 0, hits = 0;
    for (unsigned round = 0;; ++round) {
        const int now = static_cast<int>(round % 3), next = static_cast<int>((round + 1) % 3);
        relax(w_.front + static_cast<int64_t>(now) * n_, __ldcg(&c->front[now]), level, inverse_eps);
        int lowest = kUnreached;
        for (int j = thread_; j < n_; j += threads_)
            if (w_.settled[j] == 0) lowest = min(lowest, w_.level[j]);
        for (int step = 16; step > 0; step /= 2) lowest = min(lowest, __shfl_xor_sync(kFull, lowest, step));
        if ((threadIdx.x & 31) == 0 && lowest != kUnreached) atomicMin(&c->lowest[round & 1], lowest);
        if (thread_ == 0) {
            __stcg(&c->lowest[(round + 1) & 1], kUnreached);
            __stcg(&c->front[(round + 2) % 3], 0);
        }
        sync();
        lowest = __ldcg(&c->lowest[round & 1]);
        if (lowest == kUnreached || (lowest > level && hits >= enough)) break;
        level = lowest;
        for (int base = 0; base < n_; base += threads_) {
            const int j = base + thread_;
            int i = -1;
            if (j < n_ && w_.settled[j] == 0 && w_.level[j] == level) {
                w_.settled[j] = 1;
                const int root = __ldcg(&w_.root[w_.parent[j]]);
                i = __ldcg(&w_.owner[j]);
                if (i >= 0) {
                    __stcg(&w_.root[i], root);
                    __stcg(&w_.reach[i], level);
                } else {
                    const auto key = (static_cast<unsigned long long>(level) << 32) | static_cast<unsigned>(j);
                    if (atomicMin(&w_.found[root], key) == ~0ull) atomicAdd(&c->hits, 1);
                }
            }
            push(i >= 0, i, w_.front + static_cast<int64_t>(next) * n_, &c->front[next]);
        }
        sync();
        hits = __ldcg(&c->hits);  // nobody raises it before the next round's first barrier
        if (hits == left_count_) break;
    }
    for (int k = thread_; k < n_; k += threads_) {
        const int reached = __ldcg(&w_.level[k]);
        if (reached < level)
            __stcg(&w_.object[k].w,
                   add_rounded(__ldcg(&w_.object[k].w), multiply_rounded(static_cast<float>(level - reached), eps_)));
        if (__ldcg(&w_.root[k]) >= 0)
            __stcg(&w_.point[k].w,
                   add_rounded(__ldcg(&w_.point[k].w),
                               multiply_rounded(static_cast<float>(level - __ldcg(&w_.reach[k])), eps_)));
    }
    augment(left);
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::relax(const int* front, int count, int level, float inverse_eps) {
    const float back = multiply_rounded(static_cast<float>(level), eps_);
    for (int first = 0; first < count; first += kTile) {
        const int size = min(kTile, count - first);
        __syncthreads();
        for (int k = static_cast<int>(threadIdx.x); k < size; k += kThreads) {
            const int i = __ldcg(&front[first + k]);
            s_.meta[k].x = i;
            s_.front[k] = __ldcg(&w_.point[i]);
        }
        __syncthreads();
        for (int j = thread_; j < n_; j += threads_) {
            if (w_.settled[j] != 0) continue;
            const float4 q = __ldcg(&w_.object[j]);
            int reached = w_.level[j], parent = w_.parent[j];
            const int reached_before = reached, parent_before = parent;
            float limit = limit_of(reached, q.w, back);
#pragma unroll 4
            for (int k = 0; k < size; ++k) {
                const float4 p = s_.front[k];
                const float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
                if (!may_cost<squared>(dx * dx + dy * dy + dz * dz, limit + p.w)) continue;
                const int through = level + level_of(cost_of(p, q), q.w, p.w, inverse_eps);
                const int i = s_.meta[k].x;
                if (through > reached) continue;
                if (through == reached && rank_of(i, j, n_) > rank_of(parent, j, n_)) continue;
                reached = through, parent = i;
                limit = limit_of(reached, q.w, back);
            }
            if (reached != reached_before) w_.level[j] = reached;
            if (parent != parent_before) w_.parent[j] = parent;
        }
    }
}

}  // namespace stipple::ops::cuda::matching
