#pragma once
// The end of emd on CUDA: see emd/refine.h. Half a warp for every point, the points divided among the blocks of the
// group: few objects are near enough to matter, and the others of a point's memory are put behind them first.

#include "stipple/ops/emd/candidate_scan.cuh"
#include "stipple/ops/emd/refine.h"

namespace stipple::ops::cuda::matching {

constexpr float kReach = 2.5f;  // eps: what is near; enough for some ten moves
constexpr int kHalf = 16;       // lanes

template <class Value, class Choose>
__device__ inline Value over_half(Value value, const Choose& choose) {
    for (int step = kHalf / 2; step > 0; step /= 2) value = choose(value, __shfl_xor_sync(kAllLanes, value, step));
    return value;
}

/// When nobody is left: returns the cost. Ends when the gap is proven to be small enough, or with nothing more to try.
template <bool squared, class Cloud>
__device__ double Replica<squared, Cloud>::finish(Schedule& schedule) {
    float octave = multiply_rounded(eps_, kFirstOctave);
    group_sync();  // nobody searches any more
    for_my_points([&](int i) {
        for (int half = 0; half < 2; ++half) {
            const int each = __shfl_sync(kAllLanes, i, half * kHalf);
            if (each >= 0) sort_memory(each);
        }
    });
    __syncthreads();
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

/// Calls visit(i) with a point for each half of a warp, -1 for none, until every point of this block has had its turn.
template <bool squared, class Cloud>
template <class Visit>
__device__ void Replica<squared, Cloud>::for_my_points(const Visit& visit) const {
    for (int first = 2 * (rank_ * kWarps + warp_); first < n_; first += 2 * kWarps * task_.group) {
        const int i = first + lane_ / kHalf;
        visit(i < n_ ? i : -1);
    }
}

/// Puts the objects near a point in front in its memory, as far as it reaches; makes it anew if that is not far. By a
/// whole warp.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::sort_memory(int i) const {
    const float4 p = point_[i];
    Memory<Index>& memory = memory_[i];
    for (int tries = 0; tries < 2; ++tries) {
        const Remembered known = remember(i);
        float value[kEach], limit = INFINITY;
        values_of(known, p, value);
        for (int k = 0; k < kEach; ++k) limit = fminf(limit, value[k]);
        limit = least_of_lanes(limit) + kReach * eps_;
        if (tries == 0 && !(limit <= known.bound)) {
            memorise(i, 1.5f * kReach * eps_, memory);
            __syncwarp();
            continue;
        }
        limit = fminf(limit, known.bound);
        const unsigned before = (1u << lane_) - 1;
        int near = 0, far = kCandidates;
        for (int k = 0; k < kEach; ++k) {
            const unsigned all = __ballot_sync(kAllLanes, value[k] <= limit);
            const int at = value[k] <= limit ? near + __popc(all & before) : far - 1 - __popc(~all & before);
            near += __popc(all);
            far -= 32 - __popc(all);
            __stcg(&memory.object[at], static_cast<Index>(known.object[k]));
        }
        if (lane_ == 0) {
            __stcg(&memory.bound, limit + lowered_);
            __stcg(&memory.near, near);
        }
        __syncwarp();
        return;
    }
}

/// An object near a point, for a lane: -1 and infinite for none.
template <bool squared, class Cloud>
struct Replica<squared, Cloud>::Neighbour {
    int object;
    float cost, value;
};
template <bool squared, class Cloud>
__device__ typename Replica<squared, Cloud>::Neighbour Replica<squared, Cloud>::neighbour(const Around& around,
                                                                                          int k) const {
    const int j = k < around.near ? static_cast<int>(around.memory->object[k]) : -1;
    const float4 q = object()[max(j, 0)];
    const float cost = cost_of(around.point, q);
    return {j, cost, j >= 0 ? add_rounded(cost, q.w) : INFINITY};
}

/// What half a warp finds near a point.
template <bool squared, class Cloud>
struct Replica<squared, Cloud>::Around {
    float4 point;
    const Memory<Index>* memory;
    int near;
    float bound;      // all objects of which cost + price is not above this are near
    Neighbour first;  // of this lane; mostly there are no more
};
template <bool squared, class Cloud>
__device__ typename Replica<squared, Cloud>::Around Replica<squared, Cloud>::around(int i) const {
    const int inside = max(i, 0);
    const Memory<Index>* memory = &memory_[inside];
    Around found = {point_[inside], memory, i >= 0 ? memory->near : 0, memory->bound - lowered_ - kFilterMargin, {}};
    found.first = neighbour(found, lane_ % kHalf);
    return found;
}
/// Calls visit(neighbour) as often as there is one for any lane of the warp.
template <bool squared, class Cloud>
template <class Visit>
__device__ void Replica<squared, Cloud>::visit_near(const Around& around, const Visit& visit) const {
    visit(around.first);
    for (int k = lane_ % kHalf + kHalf; __any_sync(kAllLanes, k < around.near); k += kHalf) visit(neighbour(around, k));
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
    for_my_points([&](int i) {
        const Around near = around(i);
        float profit = INFINITY;
        visit_near(near, [&](const Neighbour& one) { profit = fminf(profit, one.value); });
        profit = over_half(profit, [](float p, float q) { return fminf(p, q); });
        const bool known = i < 0 || profit + window <= near.bound;
        const auto weight = [&](const Neighbour& one) {
            return known ? weight_of(add_rounded(one.value, -profit), inverse_octave) : 0;
        };
        uint32_t sum = 0;
        visit_near(near, [&](const Neighbour& one) { sum += weight(one); });
        const uint32_t whole = inverse_of_weights(over_half(sum, [](uint32_t p, uint32_t q) { return p + q; }));
        visit_near(near, [&](const Neighbour& one) {
            const uint32_t share = share_of(weight(one), whole);
            if (share > 0) atomicAdd(&key()[one.object], static_cast<Key>(share));
        });
        for (unsigned others = __ballot_sync(kAllLanes, !known); others != 0;) {
            const int lane = __ffs(static_cast<int>(others)) - 1;
            const float found = spread_far(__shfl_sync(kAllLanes, i, lane), window, inverse_octave);
            if (lane_ / kHalf == lane / kHalf) profit = found;
            others &= lane < kHalf ? 0xffff0000u : 0u;
        }
        if (lane_ % kHalf == 0 && i >= 0) __stcg(&profits[i], static_cast<unsigned long long>(__float_as_uint(profit)));
    });
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

/// Divides a point whose memory is of no use; returns its profit. By a whole warp.
template <bool squared, class Cloud>
__device__ float Replica<squared, Cloud>::spread_far(int i, float window, float inverse_octave) {
    const float4 p = point_[i], own = object()[partner_[i]];
    float profit = add_rounded(cost_of(p, own), own.w);
    uint32_t sum = 0, whole = 0;
    for (int pass = 0; pass < 3; ++pass) {  // profit, sum of weights, shares
        const auto weight = [&](float value) { return weight_of(add_rounded(value, -profit), inverse_octave); };
        const float limit = pass == 0 ? profit * kFilterFactor : profit + window;
        float least = profit;
        scan(p, limit, -kHome, [&](int j, float cost, float price) {
            const float value = j >= 0 ? add_rounded(cost, price) : INFINITY;
            if (pass == 0) least = fminf(least, value);
            if (pass == 1) sum += weight(value);
            const uint32_t share = pass == 2 ? share_of(weight(value), whole) : 0;
            if (share > 0) atomicAdd(&key()[j], static_cast<Key>(share));
        });
        profit = least_of_lanes(least);
        const uint32_t half = over_half(sum, [](uint32_t p, uint32_t q) { return p + q; });
        whole = inverse_of_weights(half + __shfl_xor_sync(kAllLanes, half, kHalf));
    }
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

/// A round of exchanges; whether anybody has exchanged his partner.
template <bool squared, class Cloud>
__device__ bool Replica<squared, Cloud>::exchange() {
    const int thread = static_cast<int>(threadIdx.x);
    unsigned long long* told = next_exchange();
    const float window = kExchangeWindow * eps_;
    for_my_points([&](int i) {
        const Around near = around(i);
        const int mine = partner_[max(i, 0)];
        const bool known = add_rounded(near.point.w, window) <= near.bound;
        Wish wish = {unit_, kNoWish};
        visit_near(near, [&](const Neighbour& one) {
            if (one.object >= 0 && known) wish = better(wish, i, mine, one.object, one.cost);
        });
        for (unsigned others = __ballot_sync(kAllLanes, i >= 0 && !known); others != 0;) {
            const int lane = __ffs(static_cast<int>(others)) - 1, half = lane / kHalf;
            const int who = __shfl_sync(kAllLanes, i, lane), whose = __shfl_sync(kAllLanes, mine, lane);
            Wish far = {unit_, kNoWish};
            scan(point_[who], point_[who].w + window + kFilterMargin, -kHome, [&](int j, float cost, float) {
                if (j >= 0) far = better(far, who, whose, j, cost);
            });
            far = best_of_two(
                far, {__shfl_xor_sync(kAllLanes, far.gain, kHalf), __shfl_xor_sync(kAllLanes, far.with, kHalf)});
            if (lane_ / kHalf == half) wish = far;
            others &= half == 0 ? 0xffff0000u : 0u;
        }
        for (int step = kHalf / 2; step > 0; step /= 2)
            wish = best_of_two(
                wish, {__shfl_xor_sync(kAllLanes, wish.gain, step), __shfl_xor_sync(kAllLanes, wish.with, step)});
        if (lane_ % kHalf == 0 && i >= 0)
            __stcg(&told[i], static_cast<unsigned long long>(wish.with == kNoWish ? i : wish.with));
    });
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

/// The wish, or that point i, whose partner is `mine`, and the owner of j exchange their partners if i gains more then;
/// of equal ones the lowest owner.
template <bool squared, class Cloud>
__device__ Wish Replica<squared, Cloud>::better(const Wish& wish, int i, int mine, int j, float cost_then) const {
    const float window = kExchangeWindow * eps_;
    const float4 p = point_[i], my_object = object()[mine], their_object = object()[j];
    const float limit = add_rounded(p.w, window), cost = cost_of(p, my_object);
    if (!(add_rounded(cost_then, their_object.w) <= limit) || !(add_rounded(cost, my_object.w) <= limit)) return wish;
    const int k = owner()[j];
    const float4 other = point_[k];
    const float other_limit = add_rounded(other.w, window);
    const float theirs = cost_of(other, their_object), theirs_then = cost_of(other, my_object);
    if (k == i || !(add_rounded(theirs, their_object.w) <= other_limit) ||
        !(add_rounded(theirs_then, my_object.w) <= other_limit))
        return wish;
    const float gain = gain_of(cost, theirs, cost_then, theirs_then);
    return gain > unit_ ? best_of_two(wish, {gain, k}) : wish;
}

}  // namespace stipple::ops::cuda::matching
