// emd on CUDA: the algorithm of emd_auction.h, a group of blocks for each pair of clouds.
//
// A group is a thread block cluster (compute capability 9.0) or one block; its barrier is the hardware's. All state is
// in global scratch that stays in L2, read past L1 where another block may have written it. Row scans (bids, profits)
// give every bidder 1 to 32 lanes and read the objects from shared memory; searches give every object a thread, which
// takes the points of the front from shared memory, so a search needs no atomics on floats and no reductions but the
// lowest level. Which thread does what does not show in the result: see emd_auction.h.

#include <climits>

#include <cstddef>

#include "stipple/ops/cuda_launch.h"
#include "stipple/ops/emd.h"
#include "stipple/ops/emd_auction.h"
#include "stipple/ops/emd_cluster.cuh"

namespace stipple::ops::cuda {
namespace {

using namespace assignment;

constexpr int kThreads = 512;
constexpr int kTile = 1024;  // objects, or points of the front, in shared memory at a time
constexpr int kFront = 512;  // points of a search's front in shared memory
constexpr int kBids = 512;   // of a round that is replicated
constexpr int kWarps = kThreads / 32;
constexpr int kMostBlocks = 16;  // of a group
constexpr unsigned kFull = 0xffffffffu;
static_assert(kBids <= kThreads && kWarps <= 32, "a thread for every bid");
static_assert(kTile <= 2 * kFront, "a tile lies where the front does");

struct Best {
    float best, second;
    int object, runner_up;
};

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
    int64_t size;  // rows of every array for one group; left and front hold two and four times as many

    __device__ Workspace of(int64_t group) const {
        Workspace w = *this;
        const int64_t offset = group * size;
        w.control += group;
        w.point += offset, w.object += offset, w.offer += offset, w.found += offset;
        w.partner += offset, w.owner += offset, w.level += offset, w.parent += offset, w.settled += offset;
        w.reach += offset, w.root += offset, w.guess += offset;
        w.left += 2 * offset, w.front += 4 * offset;
        return w;
    }
};

/// A block's shared memory. The front is the same in every block: block r of the group sends what it adds to part r of
/// all of them, in two buffers in turn. What does not fit goes through global memory.
template <int objects>
struct Shared {
    int4 headers[2 * kMostBlocks];  // points added to the front, trees that found a free object, lowest level
    Best partial[kWarps];
    uint64_t ready[6];  // barriers: headers [2], front [2], bids [2]
    Workspace workspace;
    int added[2], lowest[2], hits;  // of this block: what its next header says
    int losers[kWarps];
    // From here on an auction has its replica.
    alignas(16) float4 front[2 * kFront];  // also the tile of a scan
    int2 meta[2 * kFront];                 // of the front: index, root
    float4 owner[kThreads * objects + 1];  // point of the owner of every object of the block
};

/// What every block of a group knows in the later rounds of an auction, when the bids of all are few enough to be sent
/// to all: each block then draws the same conclusions, and a round is one exchange of messages.
struct Replica {
    float4* object;  // [n] x, y, z, price
    int *owner, *claim;
    int2* bids;  // [2][kBids] object, amount
    int* list;   // [2][kBids] who has no partner

    static int64_t bytes(int64_t n) { return n * 24 + int64_t{kBids} * 24; }
    __device__ Replica(float4* memory, int n) {
        object = memory;
        owner = reinterpret_cast<int*>(object + n);
        claim = owner + n;
        bids = reinterpret_cast<int2*>(claim + n);
        list = reinterpret_cast<int*>(bids + 2 * kBids);
    }
};

struct Task {
    const float *a, *b;
    int64_t stride_a, stride_b;
    DeviceBatch batch;
    double relative, absolute;
    float *cost, *bound;
    int32_t* matching;
    int group;      // blocks
    bool replicas;  // of an auction fit into shared memory
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
    __device__ Group(const Task& task, const Workspace& all, Shared<objects>& shared)
        : task_(task), w_(shared.workspace), s_(shared) {
        rank_ = static_cast<int>(blockIdx.x % task.group);
        thread_ = rank_ * kThreads + static_cast<int>(threadIdx.x);
        threads_ = task.group * kThreads;
        if (threadIdx.x == 0) {
            s_.workspace = all.of(blockIdx.x / task.group);
            for (int k = 0; k < 6 && task.group > 1; ++k) cluster::init(&s_.ready[k]);
        }
        sync();
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
        if (task_.group > 1)
            cluster::sync();
        else
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

    __device__ void take(Best& b, float value, int j, int i) const {
        if (value < b.best || (value == b.best && b.object >= 0 && rank_of(j, i, n_) < rank_of(b.object, i, n_))) {
            b.second = b.best, b.runner_up = b.object;
            b.best = value, b.object = j;
        } else if (value < b.second) {
            b.second = value, b.runner_up = j;
        }
    }

    __device__ void merge(Best& b, const Best& other, int i) const {
        if (other.object >= 0) take(b, other.best, other.object, i);
        if (other.runner_up >= 0 && other.second < b.second) b.second = other.second, b.runner_up = other.runner_up;
    }

    __device__ void merge_lanes(Best& b, int lanes, int i) const {
        for (int step = min(lanes, 32) / 2; step > 0; step /= 2)
            merge(b,
                  {__shfl_xor_sync(kFull, b.best, step), __shfl_xor_sync(kFull, b.second, step),
                   __shfl_xor_sync(kFull, b.object, step), __shfl_xor_sync(kFull, b.runner_up, step)},
                  i);
    }

    /// A lane's part of the search for the best, or two best, of `size` objects, the first of which is object `first`.
    template <bool two>
    __device__ void search(Best& b, const float4* tile, int size, int first, int lane, int lanes, const float4& p,
                           int i, float bound) const {
        constexpr int kAhead = 4;
        float limit = fminf(two ? b.second : b.best, bound) * kFilterFactor;
        const auto passes = [&](const float4& q) {
            const float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
            return may_cost<squared>(dx * dx + dy * dy + dz * dz, limit - q.w);
        };
        const auto look = [&](const float4& q, int k) {
            take(b, add_rounded(cost_of(p, q), q.w), first + k, i);
            limit = fminf(two ? b.second : b.best, bound) * kFilterFactor;
        };
        int k = lane;
        for (; k + (kAhead - 1) * lanes < size; k += kAhead * lanes) {
            float4 q[kAhead];
            bool pass[kAhead];
#pragma unroll
            for (int u = 0; u < kAhead; ++u) q[u] = tile[k + u * lanes];
#pragma unroll
            for (int u = 0; u < kAhead; ++u) pass[u] = passes(q[u]);
            if (!(pass[0] || pass[1] || pass[2] || pass[3])) continue;
#pragma unroll
            for (int u = 0; u < kAhead; ++u)
                if (pass[u]) look(tile[k + u * lanes], k + u * lanes);
        }
        for (; k < size; k += lanes) {
            const float4 q = tile[k];
            if (passes(q)) look(q, k);
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
                    s_.front[k] = __ldcg(&w_.object[first + k]);
                __syncthreads();
                if (!active) continue;
                search<two>(b, s_.front, size, first, lane, lanes, p, i, bound);
            }
            merge_lanes(b, lanes, i);
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
            if (task_.replicas && left_count_ <= kBids) return auction_in_replicas(round);
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

    /// The rounds of an auction with few bidders.
    __device__ void auction_in_replicas(int round) {
        const Replica a(s_.front, n_);
        const int thread = static_cast<int>(threadIdx.x);
        for (int j = thread; j < n_; j += kThreads) {
            a.object[j] = __ldcg(&w_.object[j]);
            a.owner[j] = __ldcg(&w_.owner[j]);
            a.claim[j] = INT_MAX;
        }
        int* list = a.list;
        for (int k = thread; k < left_count_; k += kThreads) list[k] = __ldcg(&left_list(which_)[k]);
        __syncthreads();
        for (; round < kAuctionRounds && left_count_ > n_ / kLeftOver; ++round) {
            // A block that bids has read the bids of the round before last, whose place these take.
            if (left_count_ < task_.group) sync();
            const int turn = bid_turn_ & 1, parity = bid_turn_ / 2 & 1;
            ++bid_turn_;
            int2* bids = a.bids + turn * kBids;
            if (task_.group > 1 && thread == 0)
                cluster::expect(&s_.ready[4 + turn], left_count_ * static_cast<int>(sizeof(int2)));
            send_bids(a, list, bids, turn);
            if (task_.group > 1)
                cluster::wait(&s_.ready[4 + turn], parity);
            else
                __syncthreads();
            int* next = a.list + (list == a.list ? kBids : 0);
            left_count_ = resolve(a, list, bids, next);
            list = next;
        }
        for (int j = thread_; j < n_; j += threads_) {
            __stcg(&w_.object[j].w, a.object[j].w);
            __stcg(&w_.owner[j], a.owner[j]);
            if (a.owner[j] >= 0) __stcg(&w_.partner[a.owner[j]], j);
        }
        for (int k = thread_; k < left_count_; k += threads_) {
            __stcg(&w_.partner[list[k]], -1);
            __stcg(&left_list(which_)[k], list[k]);
        }
        sync();
    }

    /// The bids of this block's share of the list, to all blocks.
    __device__ void send_bids(const Replica& a, const int* list, int2* bids, int turn) {
        const int group = task_.group, thread = static_cast<int>(threadIdx.x);
        const int count = (left_count_ - rank_ + group - 1) / group;
        int lanes = 1;
        while (lanes < kThreads && count * lanes * 2 <= kThreads) lanes *= 2;
        const int lane = thread & (lanes - 1), slot = thread / lanes, k = slot * group + rank_;
        const bool active = slot < count;
        const int i = active ? list[k] : 0;
        Best b = {INFINITY, INFINITY, -1, -1};
        if (active) {
            // Perhaps not the latest guess, but two objects all the same.
            const float4 p = __ldcg(&w_.point[i]);
            const int2 guess = __ldcg(&w_.guess[i]);
            const float4 q = a.object[guess.x], r = a.object[guess.y];
            const float bound = fmaxf(add_rounded(cost_of(p, q), q.w), add_rounded(cost_of(p, r), r.w));
            search<true>(b, a.object, n_, 0, lane, lanes, p, i, bound);
        }
        merge_lanes(b, lanes, i);
        if (lanes > 32) {
            if ((lane & 31) == 0) s_.partial[thread / 32] = b;
            __syncthreads();
            for (int k = 1; k < lanes / 32 && lane == 0; ++k) merge(b, s_.partial[thread / 32 + k], i);
        }
        if (!active || lane != 0) return;
        const bool only = n_ == 1;
        const float amount = bid_of(a.object[b.object].w, b.best, only ? b.best : b.second, eps_);
        if (!only) __stcg(&w_.guess[i], make_int2(b.object, b.runner_up));
        const int2 bid = make_int2(b.object, __float_as_int(amount));
        if (group == 1) bids[k] = bid;
        for (int rank = 0; rank < group && group > 1; ++rank) cluster::send(&bids[k], bid, &s_.ready[4 + turn], rank);
    }

    /// The highest bid for an object wins it, the lowest bidder among equals. Returns how many are in `next`, in an
    /// order that is the same in all blocks. Ends with a barrier of the block.
    __device__ int resolve(const Replica& a, const int* list, const int2* bids, int* next) {
        const int k = static_cast<int>(threadIdx.x), lane = k & 31, warp = k / 32;
        const bool active = k < left_count_;
        const int2 bid = active ? bids[k] : make_int2(0, 0);
        const int i = active ? list[k] : -1;
        int* price = reinterpret_cast<int*>(&a.object[bid.x].w);  // not negative: ordered like an integer
        if (active) atomicMax(price, bid.y);                      // a bid is above the old price
        __syncthreads();
        const bool high = active && *price == bid.y;
        if (high) atomicMin(&a.claim[bid.x], i);
        __syncthreads();
        const bool won = high && a.claim[bid.x] == i;
        const int loser = won ? a.owner[bid.x] : i;
        const unsigned mask = __ballot_sync(kFull, loser >= 0);
        if (lane == 0) s_.losers[warp] = __popc(mask);
        __syncthreads();
        const int losers = lane < kWarps ? s_.losers[lane] : 0, before = warp_sum(lane < warp ? losers : 0);
        if (loser >= 0) next[before + __popc(mask & ((1u << lane) - 1))] = loser;
        if (won) a.owner[bid.x] = i, a.claim[bid.x] = INT_MAX;
        const int count = warp_sum(losers);
        __syncthreads();
        return count;
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

    __device__ static int warp_min(int value) {
#if __CUDA_ARCH__ >= 800
        return __reduce_min_sync(kFull, value);
#else
        for (int step = 16; step > 0; step /= 2) value = min(value, __shfl_xor_sync(kFull, value, step));
        return value;
#endif
    }
    __device__ static int warp_sum(int value) {
#if __CUDA_ARCH__ >= 800
        return __reduce_add_sync(kFull, value);
#else
        for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kFull, value, step);
        return value;
#endif
    }

    struct Totals {
        int added, hits, lowest, most;  // most: that one block has added
    };

    /// Tells the group what this block did since the last time, and waits for what the others tell. turn_ then names
    /// the turn to come.
    __device__ Totals publish() {
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
                if (lane == 0)
                    cluster::expect(&s_.ready[2 + turn], sent * static_cast<int>(sizeof(float4) + sizeof(int2)));
            }
            cluster::wait(&s_.ready[2 + turn], parity);
        }
        ++turn_;
        return totals;
    }

    /// Adds a point to the front of the turn to come.
    __device__ void add_to_front(bool has, const float4& point, int index, int root) {
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
            for (int rank = 0; rank < task_.group; ++rank) {
                cluster::send(&s_.front[to], point, &s_.ready[2 + turn], rank);
                cluster::send(&s_.meta[to], make_int2(index, root), &s_.ready[2 + turn], rank);
            }
        }
    }

    /// Indices, and w_.size later roots, of what a block adds to the front.
    __device__ int* overflow(int turn, int rank) const {
        return w_.front + 2 * turn * w_.size + rank * kThreads * objects;
    }

    /// Calls offer(point, meta, point, meta) for all of the front, two points at a time (the last may come twice). All
    /// lanes of a warp get the same.
    template <class Offer>
    __device__ void for_front(const Totals& totals, const Offer& offer) {
        const int turn = (turn_ - 1) & 1, lane = static_cast<int>(threadIdx.x & 31), group = task_.group;
        const int part = kFront / group, bits = __ffs(group) - 1, most = min(totals.most, part);
        const float4* front = s_.front + turn * kFront;
        const int2* meta = s_.meta + turn * kFront;
        const int count = s_.headers[turn * kMostBlocks + (lane & (group - 1))].x;
        for (int base = 0; base < most; base += 32 >> bits) {
            unsigned mask = __ballot_sync(kFull, base + (lane >> bits) < min(count, part));
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
        sync();
        for (int rank = 0; rank < group; ++rank) {
            const int* list = overflow(turn, rank);
            const int size = s_.headers[turn * kMostBlocks + rank].x;
            for (int at = part; at < size; ++at) {
                const int2 named = make_int2(__ldcg(&list[at]), __ldcg(&list[w_.size + at]));
                const float4 point = __ldcg(&w_.point[named.x]);
                offer(point, &named, point, &named);
            }
        }
    }

    /// place() with a thread's objects in registers and the front in shared memory: a round is one exchange of
    /// messages, two where the level rises.
    __device__ void place_in_registers() {
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
            for_front(totals, [&](const float4& p, const int2* meta, const float4& other, const int2* other_meta) {
#pragma unroll
                for (int r = 0; r < objects; ++r) {
                    const float dx = p.x - q[r].x, dy = p.y - q[r].y, dz = p.z - q[r].z;
                    const float ex = other.x - q[r].x, ey = other.y - q[r].y, ez = other.z - q[r].z;
                    const bool near = may_cost<squared>(dx * dx + dy * dy + dz * dz, limit[r] + p.w);
                    const bool other_near = may_cost<squared>(ex * ex + ey * ey + ez * ez, limit[r] + other.w);
                    if (near) reach(r, p, meta);
                    if (other_near) reach(r, other, other_meta);
                }
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
            __stcg(&w_.point[i].w,
                   add_rounded(__ldcg(&w_.point[i].w), multiply_rounded(static_cast<float>(level), eps_)));
        }
        sync();
        augment(left);
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

    /// A path through a point whose cost is above limit + profit is longer than `reached`.
    __device__ float limit_of(int reached, float price, float back) const {
        if (reached == kUnreached) return INFINITY;
        return (static_cast<float>(reached + 1) * eps_ - price) - back + kFilterMargin;
    }

    const Task& task_;
    const Workspace& w_;
    Shared<objects>& s_;
    int rank_, thread_, threads_, n_ = 0, shift_ = 0, which_ = 0, left_count_ = 0, turn_ = 0, bid_turn_ = 0;
    float eps_ = 0.0f, factor_ = 1.0f;
    long long profit_sum_ = 0, price_sum_ = 0, cost_sum_ = 0;
};

template <bool squared, int objects>
__global__ void __launch_bounds__(kThreads, objects == 1 ? 2 : 1)
    emd_kernel(const Task task, const Workspace workspace) {
    extern __shared__ float4 memory[];
    Group<squared, objects> group(task, workspace, *reinterpret_cast<Shared<objects>*>(memory));
    const int64_t groups = gridDim.x / task.group;
    for (int64_t cloud = blockIdx.x / task.group; cloud < task.batch.clouds; cloud += groups) group.solve(cloud);
}

struct Launch {
    int group = 1, objects = 0;
    bool replicas = false;
    int64_t groups = 0;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};

    /// Calls with a kernel that holds all objects of a search in registers, if there is one.
    template <bool squared, class Call>
    auto with_kernel(const Call& call) const {
        switch (objects) {
            case 1: return call(emd_kernel<squared, 1>);
            case 2: return call(emd_kernel<squared, 2>);
            case 4: return call(emd_kernel<squared, 4>);
            default: return call(emd_kernel<squared, 0>);
        }
    }

    template <int objects>
    static size_t bytes(int64_t replica) {
        return std::max(sizeof(Shared<objects>), offsetof(Shared<objects>, front) + static_cast<size_t>(replica));
    }
    static size_t bytes_for(int objects, int64_t replica) {
        return objects == 0   ? bytes<0>(replica)
               : objects == 1 ? bytes<1>(replica)
               : objects == 2 ? bytes<2>(replica)
                              : bytes<4>(replica);
    }

    void set_group(int blocks, int64_t largest, int shared_bytes) {
        group = blocks;
        const int64_t threads = int64_t{group} * kThreads;
        objects = largest <= threads ? 1 : largest <= 2 * threads ? 2 : largest <= 4 * threads ? 4 : 0;
        if (bytes_for(objects, 0) > static_cast<size_t>(shared_bytes)) objects = 0;
        config.dynamicSmemBytes = bytes_for(objects, Replica::bytes(largest));
        replicas = config.dynamicSmemBytes <= static_cast<size_t>(shared_bytes);
        if (!replicas) config.dynamicSmemBytes = bytes_for(objects, 0);
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim = {static_cast<unsigned>(group), 1, 1};
        config.attrs = &attribute;
        config.numAttrs = group > 1 ? 1 : 0;
        config.blockDim = dim3(kThreads);
    }

    /// How many groups run at once; 0 when the device grants no such group.
    template <bool squared>
    int resident() {
        return with_kernel<squared>([&](auto kernel) {
            config.gridDim = dim3(static_cast<unsigned>(group));
            int fit = 0;
            const bool asked =
                cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(config.dynamicSmemBytes)) == cudaSuccess &&
                (group <= 8 ||
                 cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess) &&
                cudaOccupancyMaxActiveClusters(&fit, kernel, &config) == cudaSuccess;
            if (!asked) cudaGetLastError();
            return asked ? fit : 0;
        });
    }
};

template <bool squared>
void launch(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options, cudaStream_t stream) {
    const int64_t clouds = a.batch.clouds(), largest = std::max<int64_t>(a.batch.largest(), 1);
    int device = 0, processors = 0, major = 0, shared_bytes = 0;
    STIPPLE_CHECK_CUDA(cudaGetDevice(&device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    // As many blocks for a pair of clouds as have an object for every thread, while all pairs run at once.
    Launch launch;
    int group = 1;
    while (major >= 9 && group < kMostBlocks && int64_t{group} * kThreads < largest) group *= 2;
    for (launch.set_group(group, largest, shared_bytes); group > 1; launch.set_group(group, largest, shared_bytes)) {
        if (clouds * group <= 2 * processors && launch.resident<squared>() >= clouds) break;
        group /= 2;
    }
    launch.groups = std::min<int64_t>(clouds, std::max(1, 2 * processors / group));
    launch.config.stream = stream;
    launch.config.gridDim = dim3(static_cast<unsigned>(launch.groups * group));
    const int64_t size = std::max(largest, int64_t{group} * kThreads * launch.objects);
    const int64_t rows = checked_mul(launch.groups, size);
    const Scratch<Control> control(launch.groups, stream);
    const Scratch<float4> points(2 * rows, stream);
    const Scratch<unsigned long long> keys(2 * rows, stream);
    const Scratch<int2> guess(rows, stream);
    const Scratch<int> ints(13 * rows, stream);
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
    w.front = take(4);
    w.size = size;
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
    task.group = group;
    task.replicas = launch.replicas;
    launch.with_kernel<squared>([&](auto kernel) {
        STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                static_cast<int>(launch.config.dynamicSmemBytes)));
        STIPPLE_CHECK_CUDA(cudaLaunchKernelEx(&launch.config, kernel, task, w));
    });
    STIPPLE_CHECK_LAUNCH(emd_kernel);
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
