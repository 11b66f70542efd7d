// emd on CUDA: the algorithm of emd_auction.h, a group of blocks for each pair of clouds.
//
// A group is a thread block cluster (compute capability 9.0) or one block; its barrier is the hardware's. All state is
// in global scratch that stays in L2, read past L1 where another block may have written it. Row scans (bids, profits)
// give every bidder 1 to 32 lanes and read the objects from shared memory; searches give every object a thread, which
// takes the points of the front from shared memory, so a search needs no atomics on floats and no reductions but the
// lowest level. Which thread does what does not show in the result: see emd_auction.h.

#include <climits>

#include "stipple/ops/cuda_launch.h"
#include "stipple/ops/emd.h"
#include "stipple/ops/emd_auction.h"

namespace stipple::ops::cuda {
namespace {

using namespace assignment;

constexpr int kThreads = 512;
constexpr int kTile = 1024;      // objects, or points of the front, in shared memory at a time
constexpr int kMostBlocks = 16;  // of a group
constexpr unsigned kFull = 0xffffffffu;

struct Control {
    int left[2];          // points without a partner, two lists
    int front[3];         // points of the search's front, three lists in turn
    int lowest[2];        // level
    int hits;             // trees that found a free object
    int bad;              // a point is not finite
    int low[3], high[3];  // of the box, as ordered integers
    unsigned lowest_price;
    unsigned long long cost, profit, price;  // sums in fixed point, two's complement
};

struct Workspace {
    Control* control;
    float4 *point, *object;  // scaled x, y, z; profit of a point, price of an object
    unsigned long long *offer, *found;
    int *partner, *owner, *level, *parent, *settled, *reach, *root, *left, *front;
    int2* guess;
    int64_t size;  // rows of every array for one group; left and front hold two and three times as many
};

/// A block's shared memory. A segment holds what the block adds to the front, two of them in turn; the other blocks of
/// the group read it there.
struct Shared {
    float4* tile;
    int2* tile_meta;
    float4* segment;
    int2* segment_meta;  // index, root
    int4* published;     // of every block of the group, two in turn: points added, hits, lowest level
    int* counters;       // points added [2], lowest level [2], hits

    static constexpr int64_t bytes(int objects) {
        return kTile * 24 + 2 * kMostBlocks * 16 + 32 + int64_t{2} * kThreads * objects * 24;
    }
    __device__ Shared(unsigned char* memory, int objects) {
        tile = reinterpret_cast<float4*>(memory);
        segment = tile + kTile;
        published = reinterpret_cast<int4*>(segment + 2 * kThreads * objects);
        tile_meta = reinterpret_cast<int2*>(published + 2 * kMostBlocks);
        segment_meta = tile_meta + kTile;
        counters = reinterpret_cast<int*>(segment_meta + 2 * kThreads * objects);
    }
};

struct Task {
    const float *a, *b;
    int64_t stride_a, stride_b;
    DeviceBatch batch;
    double relative, absolute;
    float *cost, *bound;
    int32_t* matching;
    int group;  // blocks
};

__device__ int ordered(float value) {
    const int bits = __float_as_int(value);
    return bits >= 0 ? bits : bits ^ 0x7fffffff;
}
__device__ float unordered(int bits) {
    return __int_as_float(bits >= 0 ? bits : bits ^ 0x7fffffff);
}

/// objects: how many of a search's objects a thread holds in registers; 0 when they do not fit.
template <bool squared, int objects>
class Group {
public:
    __device__ Group(const Task& task, const Workspace& all, const Shared& shared) : task_(task), w_(all), s_(shared) {
        const int64_t slot = blockIdx.x / task.group;
        rank_ = static_cast<int>(blockIdx.x % task.group);
        w_.control += slot;
        const int64_t offset = slot * all.size;
        w_.point += offset, w_.object += offset, w_.offer += offset, w_.found += offset;
        w_.partner += offset, w_.owner += offset, w_.level += offset, w_.parent += offset, w_.settled += offset;
        w_.reach += offset, w_.root += offset, w_.guess += offset;
        w_.left += 2 * offset, w_.front += 3 * offset;
        thread_ = rank_ * kThreads + static_cast<int>(threadIdx.x);
        threads_ = task.group * kThreads;
    }

    __device__ void solve(int64_t cloud) {
        const int64_t begin = task_.batch.begin(cloud);
        n_ = static_cast<int>(task_.batch.end(cloud) - begin);
        if (n_ == 0) {
            if (thread_ == 0) task_.cost[cloud] = task_.bound[cloud] = __int_as_float(0x7fc00000);
            return;
        }
        if (!load(begin)) {
            for (int i = thread_; i < n_; i += threads_) task_.matching[begin + i] = -1;
            if (thread_ == 0) task_.cost[cloud] = task_.bound[cloud] = __int_as_float(0x7fc00000);
            sync();  // nobody clears the control of the next cloud while it is read here
            return;
        }
        const double unit = ldexp(1.0, squared ? -2 * shift_ : -shift_);
        Schedule schedule{task_.relative, task_.absolute / unit, 0.0f, false};
        factor_ = ldexpf(1.0f, sum_shift(n_));
        update_profits();
        sum(true);
        schedule.begin(per_point(profit_sum_));
        double cost = 0.0, bound = 0.0;
        for (;;) {
            eps_ = schedule.eps;
            release();
            auction();
            if (left_count_ > 0) update_profits();
            while (left_count_ > 0) {
                if constexpr (objects > 0)
                    place_in_registers();
                else
                    place();
            }
            update_profits();
            sum(false);
            cost = per_point(cost_sum_);
            bound = per_point(profit_sum_ - price_sum_);
            schedule.advance(cost, bound);
            if (schedule.done) break;
            lower_prices();
        }
        for (int i = thread_; i < n_; i += threads_) task_.matching[begin + i] = __ldcg(&w_.partner[i]);
        if (thread_ == 0) {
            task_.cost[cloud] = static_cast<float>(cost * unit);
            task_.bound[cloud] = static_cast<float>(certified(bound) * unit);
        }
        sync();
    }

private:
    __device__ void sync() {
#if __CUDA_ARCH__ >= 900
        if (task_.group > 1) {
            asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
            return;
        }
#endif
        __syncthreads();
    }

    __device__ double per_point(long long total) const {
        return static_cast<double>(total) / static_cast<double>(factor_) / static_cast<double>(n_);
    }

    __device__ static float cost_of(const float4& p, const float4& q) {
        return pair_cost<squared>(p.x - q.x, p.y - q.y, p.z - q.z);
    }

    /// Appends `value` of the lanes that have one.
    __device__ static void push(bool has, int value, int* list, int* count) {
        const unsigned mask = __ballot_sync(kFull, has);
        if (mask == 0) return;
        const int lane = static_cast<int>(threadIdx.x & 31), leader = __ffs(static_cast<int>(mask)) - 1;
        int first = 0;
        if (lane == leader) first = atomicAdd(count, __popc(mask));
        first = __shfl_sync(kFull, first, leader);
        if (has) __stcg(&list[first + __popc(mask & ((1u << lane) - 1))], value);
    }

    /// The box and the scaled points. False when a point is not finite.
    __device__ bool load(int64_t begin) {
        Control* c = w_.control;
        if (thread_ == 0) {
            *c = Control{};
            for (int axis = 0; axis < 3; ++axis) c->low[axis] = INT_MAX, c->high[axis] = INT_MIN;
            __threadfence();
        }
        sync();
        const float *a = task_.a + begin * task_.stride_a, *b = task_.b + begin * task_.stride_b;
        int low[3] = {INT_MAX, INT_MAX, INT_MAX}, high[3] = {INT_MIN, INT_MIN, INT_MIN};
        bool finite = true;
        for (int i = thread_; i < n_; i += threads_) {
            for (int axis = 0; axis < 3; ++axis) {
                const float p = a[i * task_.stride_a + axis], q = b[i * task_.stride_b + axis];
                finite = finite && isfinite(p) && isfinite(q);
                low[axis] = min(low[axis], min(ordered(p), ordered(q)));
                high[axis] = max(high[axis], max(ordered(p), ordered(q)));
            }
        }
        for (int axis = 0; axis < 3; ++axis) {
            for (int step = 16; step > 0; step /= 2) {
                low[axis] = min(low[axis], __shfl_xor_sync(kFull, low[axis], step));
                high[axis] = max(high[axis], __shfl_xor_sync(kFull, high[axis], step));
            }
            if ((threadIdx.x & 31) == 0) {
                atomicMin(&c->low[axis], low[axis]);
                atomicMax(&c->high[axis], high[axis]);
            }
        }
        if (!finite) atomicOr(&c->bad, 1);
        sync();
        if (__ldcg(&c->bad) != 0) return false;
        Extent box;
        for (int axis = 0; axis < 3; ++axis) {
            box.low[axis] = unordered(__ldcg(&c->low[axis]));
            box.high[axis] = unordered(__ldcg(&c->high[axis]));
        }
        shift_ = scale_shift(box);
        const float scale = ldexpf(1.0f, shift_);
        for (int i = thread_; i < n_; i += threads_) {
            const float *p = a + i * task_.stride_a, *q = b + i * task_.stride_b;
            __stcg(&w_.point[i], make_float4(p[0] * scale, p[1] * scale, p[2] * scale, 0.0f));
            __stcg(&w_.object[i], make_float4(q[0] * scale, q[1] * scale, q[2] * scale, 0.0f));
            __stcg(&w_.partner[i], -1);
            __stcg(&w_.owner[i], -1);
            __stcg(&w_.guess[i], make_int2(i, i + 1 < n_ ? i + 1 : 0));
        }
        sync();
        return true;
    }

    struct Best {
        float best, second;
        int object, runner_up;
    };

    __device__ void take(Best& b, float value, int j, int i) const {
        if (value < b.best || (value == b.best && b.object >= 0 && rank_of(j, i, n_) < rank_of(b.object, i, n_))) {
            b.second = b.best, b.runner_up = b.object;
            b.best = value, b.object = j;
        } else if (value < b.second) {
            b.second = value, b.runner_up = j;
        }
    }

    /// Scans all objects for `count` bidders: bidder(k) names them, start(i, point) bounds what is looked for from
    /// above, done(i, best) is called by one lane. `two`: the second best is wanted too.
    template <bool two, class Bidder, class Start, class Done>
    __device__ void scan(int count, const Bidder& bidder, const Start& start, const Done& done) {
        int lanes = 1;
        while (lanes < 32 && static_cast<int64_t>(count) * lanes * 2 <= threads_) lanes *= 2;
        const int per_block = kThreads / lanes, lane = static_cast<int>(threadIdx.x) & (lanes - 1);
        const int passes = (count + per_block * task_.group - 1) / (per_block * task_.group);
        for (int pass = 0; pass < passes; ++pass) {
            const int slot = (pass * per_block + static_cast<int>(threadIdx.x) / lanes) * task_.group + rank_;
            const bool active = slot < count;
            const int i = active ? bidder(slot) : 0;
            const float4 p = __ldcg(&w_.point[i]);
            const float bound = active ? start(i, p) : -1.0f;
            Best b = {INFINITY, INFINITY, -1, -1};
            for (int first = 0; first < n_; first += kTile) {
                const int size = min(kTile, n_ - first);
                __syncthreads();
                for (int k = static_cast<int>(threadIdx.x); k < size; k += kThreads)
                    s_.tile[k] = __ldcg(&w_.object[first + k]);
                __syncthreads();
                if (!active) continue;
                float limit = fminf(two ? b.second : b.best, bound) * kFilterFactor;
#pragma unroll 4
                for (int k = lane; k < size; k += lanes) {
                    const float4 q = s_.tile[k];
                    const float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
                    if (may_cost<squared>(dx * dx + dy * dy + dz * dz, limit - q.w)) {
                        take(b, add_rounded(cost_of(p, q), q.w), first + k, i);
                        limit = fminf(two ? b.second : b.best, bound) * kFilterFactor;
                    }
                }
            }
            for (int step = lanes / 2; step > 0; step /= 2) {
                const Best other = {__shfl_xor_sync(kFull, b.best, step), __shfl_xor_sync(kFull, b.second, step),
                                    __shfl_xor_sync(kFull, b.object, step), __shfl_xor_sync(kFull, b.runner_up, step)};
                if (other.object >= 0) take(b, other.best, other.object, i);
                if (other.runner_up >= 0 && other.second < b.second)
                    b.second = other.second, b.runner_up = other.runner_up;
            }
            if (active && lane == 0) done(i, p, b);
        }
    }

    __device__ void update_profits() {
        scan<false>(
            n_, [](int k) { return k; },
            [&](int i, const float4& p) {
                const int j = __ldcg(&w_.partner[i]);
                const float4 q = __ldcg(&w_.object[j >= 0 ? j : i]);
                return add_rounded(cost_of(p, q), q.w);
            },
            [&](int i, const float4& p, const Best& b) { __stcg(&w_.point[i], make_float4(p.x, p.y, p.z, b.best)); });
        sync();
    }

    __device__ void add(unsigned long long* total, long long value) const {
        for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kFull, value, step);
        if ((threadIdx.x & 31) == 0) atomicAdd(total, static_cast<unsigned long long>(value));
    }

    /// Sums of profits, prices and matched costs.
    __device__ void sum(bool profits_only) {
        Control* c = w_.control;
        if (thread_ == 0) {
            c->cost = c->profit = c->price = 0;
            c->lowest_price = 0x7f800000u;
            __threadfence();
        }
        sync();
        long long profit = 0, price = 0, cost = 0;
        float lowest = INFINITY;
        for (int i = thread_; i < n_; i += threads_) {
            const float4 p = __ldcg(&w_.point[i]), q = __ldcg(&w_.object[i]);
            profit += fixed(p.w, factor_);
            if (profits_only) continue;
            price += fixed(q.w, factor_);
            lowest = fminf(lowest, q.w);
            cost += fixed(cost_of(p, __ldcg(&w_.object[__ldcg(&w_.partner[i])])), factor_);
        }
        add(&c->profit, profit);
        if (!profits_only) {
            add(&c->price, price);
            add(&c->cost, cost);
            for (int step = 16; step > 0; step /= 2) lowest = fminf(lowest, __shfl_xor_sync(kFull, lowest, step));
            if ((threadIdx.x & 31) == 0) atomicMin(&c->lowest_price, __float_as_uint(lowest));
        }
        sync();
        profit_sum_ = static_cast<long long>(__ldcg(&c->profit));
        price_sum_ = static_cast<long long>(__ldcg(&c->price));
        cost_sum_ = static_cast<long long>(__ldcg(&c->cost));
    }

    __device__ void lower_prices() {
        const float lowest = __uint_as_float(__ldcg(&w_.control->lowest_price));
        for (int i = thread_; i < n_; i += threads_) {
            float4 p = __ldcg(&w_.point[i]), q = __ldcg(&w_.object[i]);
            p.w -= lowest, q.w -= lowest;
            __stcg(&w_.point[i], p);
            __stcg(&w_.object[i], q);
        }
        sync();
    }

    __device__ int* left_list(int which) {
        return w_.left + static_cast<int64_t>(which) * n_;
    }

    /// Everybody without a partner into the other list. Ends with a barrier.
    template <class Keep>
    __device__ void collect_left(const Keep& keep) {
        which_ ^= 1;
        if (thread_ == 0) __stcg(&w_.control->left[which_], 0);
        sync();
        for (int base = 0; base < n_; base += threads_) {
            const int i = base + thread_;
            push(i < n_ && !keep(i), i, left_list(which_), &w_.control->left[which_]);
        }
        sync();
        left_count_ = __ldcg(&w_.control->left[which_]);
    }

    __device__ void release() {
        collect_left([&](int i) {
            __stcg(&w_.offer[i], 0ull);  // prices may have fallen since
            const int j = __ldcg(&w_.partner[i]);
            if (j < 0) return false;
            const float4 p = __ldcg(&w_.point[i]), q = __ldcg(&w_.object[j]);
            if ((add_rounded(cost_of(p, q), q.w)) - p.w <= eps_) return true;
            __stcg(&w_.owner[j], -1);
            __stcg(&w_.partner[i], -1);
            return false;
        });
    }

    __device__ void auction() {
        for (int round = 0; round < kAuctionRounds && left_count_ > n_ / kLeftOver; ++round) {
            const int* left = left_list(which_);
            scan<true>(
                left_count_, [&](int k) { return __ldcg(&left[k]); },
                [&](int i, const float4& p) {
                    const int2 guess = __ldcg(&w_.guess[i]);
                    const float4 q = __ldcg(&w_.object[guess.x]), r = __ldcg(&w_.object[guess.y]);
                    return fmaxf(add_rounded(cost_of(p, q), q.w), add_rounded(cost_of(p, r), r.w));
                },
                [&](int i, const float4&, const Best& b) {
                    const bool only = n_ == 1;
                    const float price = __ldcg(&w_.object[b.object].w);
                    const float amount = bid_of(price, b.best, only ? b.best : b.second, eps_);
                    if (!only) __stcg(&w_.guess[i], make_int2(b.object, b.runner_up));
                    atomicMax(&w_.offer[b.object], (static_cast<unsigned long long>(__float_as_uint(amount)) << 32) |
                                                       (0xffffffffu - static_cast<unsigned>(i)));
                });
            const int next = which_ ^ 1;
            if (thread_ == 0) __stcg(&w_.control->left[next], 0);
            sync();
            // Bidders look whether they won. An object's offers need no clearing: its price is its highest, and the
            // next bid is above the price.
            for (int base = 0; base < left_count_; base += threads_) {
                int loser = -1;
                if (base + thread_ < left_count_) {
                    const int i = __ldcg(&left[base + thread_]), j = __ldcg(&w_.guess[i].x);
                    const unsigned long long offer = __ldcg(&w_.offer[j]);
                    loser = i;
                    if (i == static_cast<int>(0xffffffffu - static_cast<unsigned>(offer))) {
                        loser = __ldcg(&w_.owner[j]);
                        if (loser >= 0) __stcg(&w_.partner[loser], -1);
                        __stcg(&w_.owner[j], i);
                        __stcg(&w_.partner[i], j);
                        __stcg(&w_.object[j].w, __uint_as_float(static_cast<unsigned>(offer >> 32)));
                    }
                }
                push(loser >= 0, loser, left_list(next), &w_.control->left[next]);
            }
            sync();
            which_ = next;
            left_count_ = __ldcg(&w_.control->left[next]);
        }
    }

    __device__ void place() {
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
                __stcg(&w_.object[k].w, add_rounded(__ldcg(&w_.object[k].w),
                                                    multiply_rounded(static_cast<float>(level - reached), eps_)));
            if (__ldcg(&w_.root[k]) >= 0)
                __stcg(&w_.point[k].w,
                       add_rounded(__ldcg(&w_.point[k].w),
                                   multiply_rounded(static_cast<float>(level - __ldcg(&w_.reach[k])), eps_)));
        }
        augment(left);
    }

    /// The same address in the shared memory of another block of the group.
    template <class T>
    __device__ T* of_block(T* address, int rank) const {
#if __CUDA_ARCH__ >= 900
        if (task_.group > 1) {
            T* mapped = nullptr;
            asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(address), "r"(rank));
            return mapped;
        }
#endif
        return address;
    }

    struct Totals {
        int added, hits, lowest;
    };

    /// Tells the group what this block did since the last time; a barrier. turn_ then names the turn to come.
    __device__ Totals publish() {
        const int turn = turn_;
        __syncthreads();
        if (static_cast<int>(threadIdx.x) < task_.group)
            *of_block(&s_.published[turn * kMostBlocks + rank_], static_cast<int>(threadIdx.x)) =
                make_int4(s_.counters[turn], s_.counters[4], s_.counters[2 + turn], 0);
        if (threadIdx.x == kThreads - 1) s_.counters[turn ^ 1] = 0, s_.counters[2 + (turn ^ 1)] = kUnreached;
        sync();
        Totals totals = {0, 0, kUnreached};
        for (int rank = 0; rank < task_.group; ++rank) {
            const int4 block = s_.published[turn * kMostBlocks + rank];
            totals.added += block.x, totals.hits += block.y, totals.lowest = min(totals.lowest, block.z);
        }
        turn_ = turn ^ 1;
        return totals;
    }

    /// Adds a point to this block's part of the front.
    __device__ void add_to_front(bool has, const float4& point, int index, int root, int buffer) {
        const unsigned mask = __ballot_sync(kFull, has);
        if (mask == 0) return;
        const int lane = static_cast<int>(threadIdx.x & 31), leader = __ffs(static_cast<int>(mask)) - 1;
        int first = 0;
        if (lane == leader) first = atomicAdd(&s_.counters[turn_], __popc(mask));
        first = __shfl_sync(kFull, first, leader) + buffer * kThreads * objects;
        if (!has) return;
        first += __popc(mask & ((1u << lane) - 1));
        s_.segment[first] = point;
        s_.segment_meta[first] = make_int2(index, root);
    }

    /// place() with a thread's objects in registers and the front in shared memory: a round is one barrier of the
    /// group, two where the level rises.
    __device__ void place_in_registers() {
        const float inverse_eps = 1.0f / eps_;
        const int* left = left_list(which_);
        float4 q[objects], owner_point[objects];
        int reached[objects], parent[objects], root[objects], owner[objects];
        bool settled[objects];
#pragma unroll
        for (int r = 0; r < objects; ++r) {
            const int j = thread_ + r * threads_;
            settled[r] = j >= n_;
            reached[r] = kUnreached, parent[r] = root[r] = -1;
            q[r] = __ldcg(&w_.object[min(j, n_ - 1)]);
            owner[r] = j < n_ ? __ldcg(&w_.owner[j]) : -1;
            owner_point[r] = __ldcg(&w_.point[max(owner[r], 0)]);
        }
        if (threadIdx.x == 0) {
            s_.counters[0] = s_.counters[1] = s_.counters[4] = 0;
            s_.counters[2] = s_.counters[3] = kUnreached;
        }
        __syncthreads();
        for (int base = 0; base < left_count_; base += threads_) {
            const bool has = base + thread_ < left_count_;
            const int i = has ? __ldcg(&left[base + thread_]) : 0;
            if (has) __stcg(&w_.found[i], ~0ull);
            add_to_front(has, __ldcg(&w_.point[i]), i, i, 0);
        }
        const int enough = static_cast<int>((static_cast<int64_t>(left_count_) * 3 + 9) / 10);
        int level = 0, buffer = 0;
        Totals totals = publish();
        const auto settle = [&] {
#pragma unroll
            for (int r = 0; r < objects; ++r) {
                const bool now = !settled[r] && reached[r] == level;
                settled[r] = settled[r] || now;
                add_to_front(now && owner[r] >= 0, owner_point[r], owner[r], root[r], buffer);
                if (now && owner[r] < 0) {
                    const auto key =
                        (static_cast<unsigned long long>(level) << 32) | static_cast<unsigned>(thread_ + r * threads_);
                    if (atomicMin(&w_.found[root[r]], key) == ~0ull) atomicAdd(&s_.counters[4], 1);
                }
            }
        };
        for (;;) {
            const float back = multiply_rounded(static_cast<float>(level), eps_);
            for (int first = 0; first < totals.added; first += kTile) {
                const int size = min(kTile, totals.added - first);
                __syncthreads();
                gather_front(first, size, buffer);
                __syncthreads();
#pragma unroll
                for (int r = 0; r < objects; ++r) {
                    if (settled[r]) continue;
                    const int j = thread_ + r * threads_;
                    float limit = limit_of(reached[r], q[r].w, back);
#pragma unroll 4
                    for (int k = 0; k < size; ++k) {
                        const float4 p = s_.tile[k];
                        const float dx = p.x - q[r].x, dy = p.y - q[r].y, dz = p.z - q[r].z;
                        if (!may_cost<squared>(dx * dx + dy * dy + dz * dz, limit + p.w)) continue;
                        const int through = level + level_of(cost_of(p, q[r]), q[r].w, p.w, inverse_eps);
                        const int2 meta = s_.tile_meta[k];
                        if (through > reached[r]) continue;
                        if (through == reached[r] && rank_of(meta.x, j, n_) > rank_of(parent[r], j, n_)) continue;
                        reached[r] = through, parent[r] = meta.x, root[r] = meta.y;
                        limit = limit_of(reached[r], q[r].w, back);
                    }
                }
            }
            buffer ^= 1;
            settle();
            int lowest = kUnreached;
#pragma unroll
            for (int r = 0; r < objects; ++r)
                if (!settled[r]) lowest = min(lowest, reached[r]);
            for (int step = 16; step > 0; step /= 2) lowest = min(lowest, __shfl_xor_sync(kFull, lowest, step));
            if ((threadIdx.x & 31) == 0 && lowest != kUnreached) atomicMin(&s_.counters[2 + turn_], lowest);
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
            if (owner[r] >= 0) __stcg(&w_.point[owner[r]].w, add_rounded(owner_point[r].w, raise));
        }
        for (int k = thread_; k < left_count_; k += threads_) {
            const int i = __ldcg(&left[k]);
            __stcg(&w_.point[i].w,
                   add_rounded(__ldcg(&w_.point[i].w), multiply_rounded(static_cast<float>(level), eps_)));
        }
        sync();
        augment(left);
    }

    /// Copies points [first, first + size) of the group's front into the tile.
    __device__ void gather_front(int first, int size, int buffer) {
        for (int k = static_cast<int>(threadIdx.x); k < size; k += kThreads) {
            int at = first + k, rank = 0;
            const int4* counts = s_.published + (turn_ ^ 1) * kMostBlocks;
            while (at >= counts[rank].x) at -= counts[rank++].x;
            at += buffer * kThreads * objects;
            s_.tile[k] = *of_block(&s_.segment[at], rank);
            s_.tile_meta[k] = *of_block(&s_.segment_meta[at], rank);
        }
    }

    /// One path in every tree that found a free object; trees share no point and no object.
    __device__ void augment(const int* left) {
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

    /// Offers every object not yet settled a path through the points of the front. An object belongs to one thread.
    __device__ void relax(const int* front, int count, int level, float inverse_eps) {
        const float back = multiply_rounded(static_cast<float>(level), eps_);
        for (int first = 0; first < count; first += kTile) {
            const int size = min(kTile, count - first);
            __syncthreads();
            for (int k = static_cast<int>(threadIdx.x); k < size; k += kThreads) {
                const int i = __ldcg(&front[first + k]);
                s_.tile_meta[k].x = i;
                s_.tile[k] = __ldcg(&w_.point[i]);
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
                    const float4 p = s_.tile[k];
                    const float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
                    if (!may_cost<squared>(dx * dx + dy * dy + dz * dz, limit + p.w)) continue;
                    const int through = level + level_of(cost_of(p, q), q.w, p.w, inverse_eps);
                    const int i = s_.tile_meta[k].x;
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

    /// A path through a point whose cost is above limit + profit is longer than `reached`.
    __device__ float limit_of(int reached, float price, float back) const {
        if (reached == kUnreached) return INFINITY;
        return (static_cast<float>(reached + 1) * eps_ - price) - back + kFilterMargin;
    }

    const Task& task_;
    Workspace w_;
    const Shared s_;
    int rank_, thread_, threads_, n_ = 0, shift_ = 0, which_ = 0, left_count_ = 0, turn_ = 0;
    float eps_ = 0.0f, factor_ = 1.0f;
    long long profit_sum_ = 0, price_sum_ = 0, cost_sum_ = 0;
};

template <bool squared, int objects>
__global__ void __launch_bounds__(kThreads, 1) emd_kernel(const Task task, const Workspace workspace) {
    extern __shared__ float4 memory[];
    Group<squared, objects> group(task, workspace, Shared(reinterpret_cast<unsigned char*>(memory), objects));
    const int64_t groups = gridDim.x / task.group;
    for (int64_t cloud = blockIdx.x / task.group; cloud < task.batch.clouds; cloud += groups) group.solve(cloud);
}

struct Launch {
    int group;
    int64_t groups;
    cudaLaunchAttribute attribute;
    cudaLaunchConfig_t config;
};

void set_group(Launch& launch, int group) {
    launch.group = group;
    launch.attribute.id = cudaLaunchAttributeClusterDimension;
    launch.attribute.val.clusterDim = {static_cast<unsigned>(group), 1, 1};
    launch.config.attrs = &launch.attribute;
    launch.config.numAttrs = group > 1 ? 1 : 0;
}

template <bool squared, int objects>
void launch_kernel(Launch& launch, Task task, const Workspace& w) {
    const auto kernel = emd_kernel<squared, objects>;
    const auto bytes = static_cast<int>(Shared::bytes(objects));
    STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    launch.config.dynamicSmemBytes = static_cast<size_t>(bytes);
    if (launch.group > 8)  // what not every device grants; the caller has asked whether this one does
        STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    task.group = launch.group;
    launch.config.gridDim = dim3(static_cast<unsigned>(launch.groups * launch.group));
    STIPPLE_CHECK_CUDA(cudaLaunchKernelEx(&launch.config, kernel, task, w));
    STIPPLE_CHECK_LAUNCH(emd_kernel);
}

/// Whether the device can run a cluster of 16 blocks of the kernel.
template <bool squared>
bool grants_sixteen() {
    const auto kernel = emd_kernel<squared, 1>;
    Launch launch = {};
    set_group(launch, 16);
    launch.config.gridDim = dim3(16);
    launch.config.blockDim = dim3(kThreads);
    launch.config.dynamicSmemBytes = static_cast<size_t>(Shared::bytes(1));
    int fit = 0;
    const bool asked = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(Shared::bytes(1))) == cudaSuccess &&
                       cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess &&
                       cudaOccupancyMaxActiveClusters(&fit, kernel, &launch.config) == cudaSuccess;
    if (!asked) cudaGetLastError();
    return asked && fit > 0;
}

template <bool squared>
void launch(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options, cudaStream_t stream) {
    const int64_t clouds = a.batch.clouds(), largest = std::max<int64_t>(a.batch.largest(), 1);
    int device = 0, processors = 0, major = 0, shared_bytes = 0;
    STIPPLE_CHECK_CUDA(cudaGetDevice(&device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    // As many blocks for a pair of clouds as have an object for every thread, while all pairs run at once.
    int group = 1;
    const int most = major < 9 ? 1 : kMostBlocks;
    while (group < most && int64_t{group} * kThreads < largest && clouds * group * 2 <= processors) group *= 2;
    if (group > 8 && !grants_sixteen<squared>()) group = 8;
    const int64_t threads = int64_t{group} * kThreads;
    const int wanted = largest <= threads ? 1 : largest <= 2 * threads ? 2 : largest <= 4 * threads ? 4 : 0;
    const int objects = Shared::bytes(wanted) <= shared_bytes ? wanted : 0;

    Launch launch = {};
    set_group(launch, group);
    launch.groups = std::min<int64_t>(clouds, std::max(1, 2 * processors / group));
    launch.config.blockDim = dim3(kThreads);
    launch.config.stream = stream;
    const int64_t rows = checked_mul(launch.groups, largest);
    const Scratch<Control> control(launch.groups, stream);
    const Scratch<float4> points(2 * rows, stream);
    const Scratch<unsigned long long> keys(2 * rows, stream);
    const Scratch<int2> guess(rows, stream);
    const Scratch<int> ints(12 * rows, stream);
    const UploadedBatch batch(a.batch, stream);
    int* next = ints.get();
    const auto take = [&](int64_t count) {
        int* taken = next;
        next += count * rows;
        return taken;
    };
    Workspace w = {};
    w.control = control.get();
    w.point = points.get();
    w.object = points.get() + rows;
    w.offer = keys.get();
    w.found = keys.get() + rows;
    w.guess = guess.get();
    w.partner = take(1);
    w.owner = take(1);
    w.level = take(1);
    w.parent = take(1);
    w.settled = take(1);
    w.reach = take(1);
    w.root = take(1);
    w.left = take(2);
    w.front = take(3);
    w.size = largest;
    Task task = {};
    task.a = a.rows.data();
    task.b = b.rows.data();
    task.stride_a = a.rows.stride(0);
    task.stride_b = b.rows.stride(0);
    task.batch = batch.view();
    task.relative = options.relative;
    task.absolute = options.absolute;
    task.cost = out.cost.data();
    task.bound = out.lower_bound.data();
    task.matching = out.matching.data();
    switch (objects) {
        case 1: return launch_kernel<squared, 1>(launch, task, w);
        case 2: return launch_kernel<squared, 2>(launch, task, w);
        case 4: return launch_kernel<squared, 4>(launch, task, w);
        default: return launch_kernel<squared, 0>(launch, task, w);
    }
}

}  // namespace

void emd(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options, Stream stream) {
    const CurrentDevice current(a.device());
    if (options.squared)
        launch<true>(a, b, out, options, raw(stream));
    else
        launch<false>(a, b, out, options, raw(stream));
}

}  // namespace stipple::ops::cuda
