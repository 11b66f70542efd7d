#pragma once
// The end of emd on CUDA: see emd_finish.h. A warp for every point, the points divided among the blocks of the group.

#include "stipple/ops/emd_finish.h"
#include "stipple/ops/emd_scan.cuh"

namespace stipple::ops::cuda::matching {

constexpr float kReach = 8.0f;  // eps: what points remember at the end

/// When nobody is left: returns the cost. Ends when the gap is proven to be small enough, or with nothing more to try.
template <bool squared, class Cloud>
__device__ double Replica<squared, Cloud>::finish(Schedule& schedule) {
    float octave = multiply_rounded(eps_, kFirstOctave);
    spread(octave);
    for (int round = 0; round < kMostExchanges && exchange(); ++round) continue;
    const double cost = mean_cost();
    for (int move = 0; move < kMostMoves && !schedule.proves(cost, proven_bound()); ++move) {
        move_prices(octave);
        octave = multiply_rounded(octave, kOctaveFall);
        spread(octave);
    }
    return cost;
}

/// Calls visit(j, cost, price) as scan does, from a point's memory if that reaches far enough.
template <bool squared, class Cloud>
template <class Visit>
__device__ void Replica<squared, Cloud>::look_around(int i, float limit, const Visit& visit) const {
    const float4 p = point_[i];
    const Remembered known = remember(i);
    if (limit > known.bound) {
        scan(p, limit + kFilterMargin, -kHome, visit);
        return;
    }
    for (int k = 0; k < kEach; ++k) {
        const float4 q = object()[max(known.object[k], 0)];
        visit(known.object[k], cost_of(p, q), q.w);
    }
}

/// Divides the points at the present prices and finds their profits. What objects get is in their keys.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::spread(float octave) {
    const int thread = static_cast<int>(threadIdx.x);
    unsigned long long *profits = next_exchange(), *gets = next_exchange();
    for (int j = rank_ * kThreads + thread; j < n_; j += kThreads * task_.group) __stcg(&gets[j], 0ull);
    for (int j = thread; j < n_; j += kThreads) key()[j] = 0;
    __syncthreads();
    const float inverse_octave = 1.0f / octave, window = kOctaves * octave + kFilterMargin;
    for (int i = rank_ * kWarps + warp_; i < n_; i += kWarps * task_.group) {
        const float profit = divide(i, window, inverse_octave);
        if (lane_ == 0) __stcg(&profits[i], static_cast<unsigned long long>(__float_as_uint(profit)));
    }
    group_sync();
    for (int j = thread; j < n_ && task_.group > 1; j += kThreads)
        if (key()[j] != 0) atomicAdd(&gets[j], static_cast<unsigned long long>(key()[j]));
    group_sync();
    for (int i = thread; i < n_; i += kThreads) {
        point_[i].w = __uint_as_float(static_cast<unsigned>(__ldcg(&profits[i])));
        if (task_.group > 1) key()[i] = static_cast<Key>(__ldcg(&gets[i]));
    }
    __syncthreads();
}

/// Divides a point among the objects near it; returns its profit.
template <bool squared, class Cloud>
__device__ float Replica<squared, Cloud>::divide(int i, float window, float inverse_octave) {
    const float4 p = point_[i];
    uint32_t sum = 0;
    for (int tries = 0; tries < 2; ++tries) {
        const Remembered known = remember(i);
        float value[kEach], profit = INFINITY;
        for (int k = 0; k < kEach; ++k) {
            const float4 q = object()[max(known.object[k], 0)];
            value[k] = known.object[k] >= 0 ? add_rounded(cost_of(p, q), q.w) : INFINITY;
            profit = fminf(profit, value[k]);
        }
        profit = least_of_lanes(profit);
        if (!(profit + window <= known.bound)) {
            if (tries == 0) memorise(i, kReach * eps_, memory_[i]);
            __syncwarp();
            continue;
        }
        uint32_t weight[kEach];
        for (int k = 0; k < kEach; ++k) {
            weight[k] = weight_of(add_rounded(value[k], -profit), inverse_octave);
            sum += weight[k];
        }
        const uint32_t whole = inverse_of_weights(__reduce_add_sync(kAllLanes, sum));
        for (int k = 0; k < kEach; ++k)
            if (weight[k] > 0) atomicAdd(&key()[known.object[k]], static_cast<Key>(share_of(weight[k], whole)));
        return profit;
    }
    const float4 own = object()[partner_[i]];
    float profit = add_rounded(cost_of(p, own), own.w);
    scan(p, profit * kFilterFactor, -kHome, [&](int j, float cost, float price) {
        profit = j >= 0 ? fminf(profit, add_rounded(cost, price)) : profit;
    });
    profit = least_of_lanes(profit);
    const auto weight = [&](int j, float cost, float price) {
        return j >= 0 ? weight_of(add_rounded(add_rounded(cost, price), -profit), inverse_octave) : 0;
    };
    scan(p, profit + window, -kHome, [&](int j, float cost, float price) { sum += weight(j, cost, price); });
    const uint32_t whole = inverse_of_weights(__reduce_add_sync(kAllLanes, sum));
    scan(p, profit + window, -kHome, [&](int j, float cost, float price) {
        const uint32_t share = share_of(weight(j, cost, price), whole);
        if (share > 0) atomicAdd(&key()[j], static_cast<Key>(share));
    });
    return profit;
}

/// After spread with this octave.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::move_prices(float octave) {
    for (int j = static_cast<int>(threadIdx.x); j < n_; j += kThreads)
        object()[j].w = moved_price(object()[j].w, key()[j], octave);
    lowered_ += most_drop(octave) + kFilterMargin;
    __syncthreads();
    bound_prices();
}

/// With whom the point gains most by an exchange of partners, of equal ones the lowest; -1: with nobody.
template <bool squared, class Cloud>
__device__ int Replica<squared, Cloud>::best_exchange(int i) const {
    const float window = kExchangeWindow * eps_;
    const float4 p = point_[i], mine = object()[partner_[i]];
    const float cost = cost_of(p, mine), limit = add_rounded(p.w, window);
    if (!(add_rounded(cost, mine.w) <= limit)) return -1;
    float most = unit_;
    unsigned best = 0xffffffffu;
    look_around(i, limit, [&](int j, float cost_then, float price) {
        if (j < 0 || !(add_rounded(cost_then, price) <= limit)) return;
        const int k = owner()[j];
        const float4 other = point_[k];
        const float other_limit = add_rounded(other.w, window), theirs = cost_of(other, object()[j]);
        const float theirs_then = cost_of(other, mine);
        if (k == i || !(add_rounded(theirs, price) <= other_limit) ||
            !(add_rounded(theirs_then, mine.w) <= other_limit))
            return;
        const float gain = gain_of(cost, theirs, cost_then, theirs_then);
        if (!(gain > most || (gain == most && static_cast<unsigned>(k) < best && best != 0xffffffffu))) return;
        most = gain;
        best = static_cast<unsigned>(k);
    });
    const uint32_t most_of_all = __reduce_max_sync(kAllLanes, __float_as_uint(most));
    return static_cast<int>(warp_min(__float_as_uint(most) == most_of_all ? best : 0xffffffffu));
}

/// A round of exchanges; whether anybody has exchanged his partner.
template <bool squared, class Cloud>
__device__ bool Replica<squared, Cloud>::exchange() {
    const int thread = static_cast<int>(threadIdx.x);
    unsigned long long* told = next_exchange();
    for (int i = rank_ * kWarps + warp_; i < n_; i += kWarps * task_.group) {
        const int k = best_exchange(i);
        if (lane_ == 0) __stcg(&told[i], static_cast<unsigned long long>(k < 0 ? i : k));
    }
    group_sync();
    const auto wish = [&](int i) { return static_cast<int>(__ldcg(&told[i])); };
    bool any = false;
    for (int i = thread; i < n_; i += kThreads) {
        const int k = wish(i);
        if (k <= i || wish(k) != i) continue;
        const Index mine = partner_[k], theirs = partner_[i];
        partner_[i] = mine, owner()[mine] = static_cast<Index>(i);
        partner_[k] = theirs, owner()[theirs] = static_cast<Index>(k);
        any = true;
    }
    return __syncthreads_or(any) != 0;
}

}  // namespace stipple::ops::cuda::matching
