#pragma once
// Refinement on CUDA: see refine.h. CPU twin: refine_cpu.h. Half a warp for every bidder, the bidders divided among the
// blocks of the group: few candidates are near enough to matter, and the lists are partitioned so that they come first.

#include "stipple/ops/emd/candidate_scan.cuh"
#include "stipple/ops/emd/refine.h"

namespace stipple::ops::cuda::matching {

constexpr float kNearWindow = 2.5f;  // eps: candidates that count as near; enough for about ten steps
constexpr int kHalfWarp = 16;        // lanes

template <class Value, class Choose>
__device__ inline Value reduce_half_warp(Value value, const Choose& choose) {
    for (int step = kHalfWarp / 2; step > 0; step /= 2) value = choose(value, __shfl_xor_sync(kAllLanes, value, step));
    return value;
}

/// When all bidders are assigned: returns the cost. Ends when the gap is proven to be small enough, or after
/// kMaxPriceUpdates steps.
template <bool squared, class Cloud>
__device__ double BlockSolver<squared, Cloud>::refine(Schedule& schedule) {
    float temperature = multiply_rounded(eps_, kFirstTemperature);
    group_sync();  // all searches are done
    for_bidders_of_block([&](int i) {
        for (int half = 0; half < 2; ++half) {
            const int each = __shfl_sync(kAllLanes, i, half * kHalfWarp);
            if (each >= 0) sort_candidates(each);
        }
    });
    __syncthreads();
    soft_assign(temperature);
    for (int round = 0; round < kMaxSwapRounds && swap_partners(); ++round) continue;
    const double cost = mean_cost();
    for (int step = 0; step < kMaxPriceUpdates && !schedule.proves(cost, dual_bound()); ++step) {
        update_prices(temperature);
        temperature = multiply_rounded(temperature, kCooling);
        soft_assign(temperature);
    }
    return cost;
}

/// Calls visit(i) with a bidder for each half of a warp, -1 for none, until all bidders of this block have been
/// visited.
template <bool squared, class Cloud>
template <class Visit>
__device__ void BlockSolver<squared, Cloud>::for_bidders_of_block(const Visit& visit) const {
    for (int first = 2 * (rank_ * kWarps + warp_); first < n_; first += 2 * kWarps * task_.group) {
        const int i = first + lane_ / kHalfWarp;
        visit(i < n_ ? i : -1);
    }
}

/// Partitions a candidate list: near candidates first, as far as its bound reaches; rebuilds it first if that is not
/// far enough. By a whole warp.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::sort_candidates(int i) const {
    const float4 p = point_[i];
    CandidateList<Index>& list = candidates_[i];
    for (int tries = 0; tries < 2; ++tries) {
        const LaneCandidates known = load_candidates(i);
        float value[kPerLane], limit = INFINITY;
        values_of(known, p, value);
        for (int k = 0; k < kPerLane; ++k) limit = fminf(limit, value[k]);
        limit = warp_min_nonnegative(limit) + kNearWindow * eps_;
        if (tries == 0 && !(limit <= known.bound)) {
            build_candidates(i, 1.5f * kNearWindow * eps_, list);
            __syncwarp();
            continue;
        }
        limit = fminf(limit, known.bound);
        const unsigned before = (1u << lane_) - 1;
        int near = 0, far = kCandidates;
        for (int k = 0; k < kPerLane; ++k) {
            const unsigned all = __ballot_sync(kAllLanes, value[k] <= limit);
            const int at = value[k] <= limit ? near + __popc(all & before) : far - 1 - __popc(~all & before);
            near += __popc(all);
            far -= 32 - __popc(all);
            __stcg(&list.object[at], static_cast<Index>(known.object[k]));
        }
        if (lane_ == 0) {
            __stcg(&list.bound, limit + price_drop_);
            __stcg(&list.near_count, near);
        }
        __syncwarp();
        return;
    }
}

/// A near candidate of a bidder, for a lane: -1 and infinite for none.
template <bool squared, class Cloud>
struct BlockSolver<squared, Cloud>::Neighbour {
    int object;
    float cost, value;
};
template <bool squared, class Cloud>
__device__ typename BlockSolver<squared, Cloud>::Neighbour BlockSolver<squared, Cloud>::neighbour(
    const Neighbourhood& around, int k) const {
    const int j = k < around.near_count ? static_cast<int>(around.list->object[k]) : -1;
    const float4 q = object()[max(j, 0)];
    const float cost = cost_of(around.point, q);
    return {j, cost, j >= 0 ? add_rounded(cost, q.w) : INFINITY};
}

/// The near candidates of a bidder, for half a warp.
template <bool squared, class Cloud>
struct BlockSolver<squared, Cloud>::Neighbourhood {
    float4 point;
    const CandidateList<Index>* list;
    int near_count;
    float bound;      // all objects with cost + price <= bound are near candidates
    Neighbour first;  // of this lane; usually the only one
};
template <bool squared, class Cloud>
__device__ typename BlockSolver<squared, Cloud>::Neighbourhood BlockSolver<squared, Cloud>::neighbourhood(int i) const {
    const int inside = max(i, 0);
    const CandidateList<Index>* list = &candidates_[inside];
    Neighbourhood found = {
        point_[inside], list, i >= 0 ? list->near_count : 0, list->bound - price_drop_ - kFilterMargin, {}};
    found.first = neighbour(found, lane_ % kHalfWarp);
    return found;
}
/// Calls visit(neighbour) as often as any lane of the warp has one.
template <bool squared, class Cloud>
template <class Visit>
__device__ void BlockSolver<squared, Cloud>::visit_neighbours(const Neighbourhood& around, const Visit& visit) const {
    visit(around.first);
    for (int k = lane_ % kHalfWarp + kHalfWarp; __any_sync(kAllLanes, k < around.near_count); k += kHalfWarp)
        visit(neighbour(around, k));
}

/// Soft assignment at the present prices, and profits. The mass that an object receives is left in its key.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::soft_assign(float temperature) {
    const int thread = static_cast<int>(threadIdx.x);
    unsigned long long *profits = next_buffer(), *masses = next_buffer();
    for (int j = rank_ * kThreads + thread; j < n_; j += kThreads * task_.group) __stcg(&masses[j], 0ull);
    for (int j = thread; j < n_; j += kThreads) key()[j] = 0;
    __syncthreads();
    const float inverse_temperature = 1.0f / temperature, window = kCutoff * temperature + kFilterMargin;
    for_bidders_of_block([&](int i) {
        const Neighbourhood near = neighbourhood(i);
        float profit = INFINITY;
        visit_neighbours(near, [&](const Neighbour& one) { profit = fminf(profit, one.value); });
        profit = reduce_half_warp(profit, [](float p, float q) { return fminf(p, q); });
        const bool known = i < 0 || profit + window <= near.bound;
        const auto weight = [&](const Neighbour& one) {
            return known ? weight_of(add_rounded(one.value, -profit), inverse_temperature) : 0;
        };
        uint32_t sum = 0;
        visit_neighbours(near, [&](const Neighbour& one) { sum += weight(one); });
        const uint32_t inverse =
            inverse_of_weights(reduce_half_warp(sum, [](uint32_t p, uint32_t q) { return p + q; }));
        visit_neighbours(near, [&](const Neighbour& one) {
            const uint32_t share = share_of(weight(one), inverse);
            if (share > 0) atomicAdd(&key()[one.object], static_cast<Key>(share));
        });
        for (unsigned others = __ballot_sync(kAllLanes, !known); others != 0;) {
            const int lane = __ffs(static_cast<int>(others)) - 1;
            const float found = soft_assign_by_scan(__shfl_sync(kAllLanes, i, lane), window, inverse_temperature);
            if (lane_ / kHalfWarp == lane / kHalfWarp) profit = found;
            others &= lane < kHalfWarp ? 0xffff0000u : 0u;
        }
        if (lane_ % kHalfWarp == 0 && i >= 0)
            __stcg(&profits[i], static_cast<unsigned long long>(__float_as_uint(profit)));
    });
    group_sync();
    for (int j = thread; j < n_ && task_.group > 1; j += kThreads)
        if (key()[j] != 0) atomicAdd(&masses[j], static_cast<unsigned long long>(key()[j]));
    group_sync();
    for (int i = thread; i < n_; i += kThreads) {
        point_[i].w = __uint_as_float(static_cast<unsigned>(__ldcg(&profits[i])));
        if (task_.group > 1) key()[i] = static_cast<Key>(__ldcg(&masses[i]));
    }
    __syncthreads();
}

/// The same for a bidder whose candidate list does not suffice; returns its profit. By a whole warp.
template <bool squared, class Cloud>
__device__ float BlockSolver<squared, Cloud>::soft_assign_by_scan(int i, float window, float inverse_temperature) {
    const float4 p = point_[i], own = object()[partner_[i]];
    float profit = add_rounded(cost_of(p, own), own.w);
    uint32_t sum = 0, inverse = 0;
    for (int pass = 0; pass < 3; ++pass) {  // profit, sum of weights, shares
        const auto weight = [&](float value) { return weight_of(add_rounded(value, -profit), inverse_temperature); };
        const float limit = pass == 0 ? profit * kFilterFactor : profit + window;
        float least = profit;
        scan(p, limit, -kSeedObjects, [&](int j, float cost, float price) {
            const float value = j >= 0 ? add_rounded(cost, price) : INFINITY;
            if (pass == 0) least = fminf(least, value);
            if (pass == 1) sum += weight(value);
            const uint32_t share = pass == 2 ? share_of(weight(value), inverse) : 0;
            if (share > 0) atomicAdd(&key()[j], static_cast<Key>(share));
        });
        profit = warp_min_nonnegative(least);
        const uint32_t half = reduce_half_warp(sum, [](uint32_t p, uint32_t q) { return p + q; });
        inverse = inverse_of_weights(half + __shfl_xor_sync(kAllLanes, half, kHalfWarp));
    }
    return profit;
}

/// After soft_assign with this temperature.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::update_prices(float temperature) {
    for (int j = static_cast<int>(threadIdx.x); j < n_; j += kThreads)
        object()[j].w = updated_price(object()[j].w, key()[j], temperature);
    price_drop_ += max_drop(temperature) + kFilterMargin;
    __syncthreads();
    update_min_prices();
}

/// A round of swaps; whether there was any.
template <bool squared, class Cloud>
__device__ bool BlockSolver<squared, Cloud>::swap_partners() {
    const int thread = static_cast<int>(threadIdx.x);
    unsigned long long* published = next_buffer();
    const float window = kSwapWindow * eps_;
    for_bidders_of_block([&](int i) {
        const Neighbourhood near = neighbourhood(i);
        const int mine = partner_[max(i, 0)];
        const bool known = add_rounded(near.point.w, window) <= near.bound;
        Swap swap = {unit_, kNoSwap};
        visit_neighbours(near, [&](const Neighbour& one) {
            if (one.object >= 0 && known) swap = better_swap(swap, i, mine, one.object, one.cost);
        });
        for (unsigned others = __ballot_sync(kAllLanes, i >= 0 && !known); others != 0;) {
            const int lane = __ffs(static_cast<int>(others)) - 1, half = lane / kHalfWarp;
            const int who = __shfl_sync(kAllLanes, i, lane), whose = __shfl_sync(kAllLanes, mine, lane);
            Swap far = {unit_, kNoSwap};
            scan(point_[who], point_[who].w + window + kFilterMargin, -kSeedObjects, [&](int j, float cost, float) {
                if (j >= 0) far = better_swap(far, who, whose, j, cost);
            });
            far = better_of(far, {__shfl_xor_sync(kAllLanes, far.gain, kHalfWarp),
                                  __shfl_xor_sync(kAllLanes, far.with, kHalfWarp)});
            if (lane_ / kHalfWarp == half) swap = far;
            others &= half == 0 ? 0xffff0000u : 0u;
        }
        for (int step = kHalfWarp / 2; step > 0; step /= 2)
            swap = better_of(
                swap, {__shfl_xor_sync(kAllLanes, swap.gain, step), __shfl_xor_sync(kAllLanes, swap.with, step)});
        if (lane_ % kHalfWarp == 0 && i >= 0)
            __stcg(&published[i], static_cast<unsigned long long>(swap.with == kNoSwap ? i : swap.with));
    });
    group_sync();
    const auto chosen = [&](int i) { return static_cast<int>(__ldcg(&published[i])); };
    bool any = false;
    for (int i = thread; i < n_; i += kThreads) {
        const int k = chosen(i);
        if (k <= i || chosen(k) != i) continue;
        const Index mine = partner_[k], theirs = partner_[i];
        partner_[i] = mine, owner()[mine] = static_cast<Index>(i);
        partner_[k] = theirs, owner()[theirs] = static_cast<Index>(k);
        any = true;
    }
    return __syncthreads_or(any) != 0;
}

/// The better of `best` and the swap of bidder i, whose object is `mine`, with the owner of j; of equal ones the lowest
/// owner.
template <bool squared, class Cloud>
__device__ Swap BlockSolver<squared, Cloud>::better_swap(const Swap& best, int i, int mine, int j,
                                                         float cost_then) const {
    const float window = kSwapWindow * eps_;
    const float4 p = point_[i], my_object = object()[mine], their_object = object()[j];
    const float limit = add_rounded(p.w, window), cost = cost_of(p, my_object);
    if (!(add_rounded(cost_then, their_object.w) <= limit) || !(add_rounded(cost, my_object.w) <= limit)) return best;
    const int k = owner()[j];
    const float4 other = point_[k];
    const float other_limit = add_rounded(other.w, window);
    const float theirs = cost_of(other, their_object), theirs_then = cost_of(other, my_object);
    if (k == i || !(add_rounded(theirs, their_object.w) <= other_limit) ||
        !(add_rounded(theirs_then, my_object.w) <= other_limit))
        return best;
    const float gain = swap_gain(cost, theirs, cost_then, theirs_then);
    return gain > unit_ ? better_of(best, {gain, k}) : best;
}

}  // namespace stipple::ops::cuda::matching
