#pragma once
// A group of emd on CUDA: what it keeps in global and shared memory, and its members.

#include <climits>

#include "stipple/ops/cuda_launch.h"
#include "stipple/ops/emd.h"
#include "stipple/ops/emd_auction.h"
#include "stipple/ops/emd_cluster.cuh"

namespace stipple::ops::cuda::matching {

using namespace assignment;

constexpr int kThreads = 512;
constexpr int kTile = 1024;  // objects, or points of the front, in shared memory at a time
constexpr int kFront = 512;  // points of a search's front in shared memory
constexpr int kBids = 512;   // of a round that is replicated
constexpr int kChunk = 32;   // objects that are passed over together
constexpr int kWarps = kThreads / 32;
constexpr int kMostBlocks = 16;  // of a group
constexpr unsigned kFull = 0xffffffffu;
static_assert(kBids <= kThreads && kWarps <= 32, "a thread for every bid");
static_assert(kTile % kThreads == 0, "whole warps read a tile");
static_assert(kTile <= 2 * kFront, "a tile lies where the front does");

struct Best {
    float best, second;
    int object, runner_up;
};

/// A box of points: its middle and half its sides, these a little longer than needed.
struct Box {
    float4 middle, half;

    /// Never above the squared distance to a point of the box, roundings included.
    __device__ float distance_sq_to(const float4& p) const { return distance_sq_to(p, make_float4(0, 0, 0, 0)); }

    /// Nor above that between points of this box and another.
    __device__ float distance_sq_to(const float4& p, const float4& sides) const {
        const float dx = fmaxf(fabsf(p.x - middle.x) - (half.x + sides.x), 0.0f);
        const float dy = fmaxf(fabsf(p.y - middle.y) - (half.y + sides.y), 0.0f);
        const float dz = fmaxf(fabsf(p.z - middle.z) - (half.z + sides.z), 0.0f);
        return (dx * dx + dy * dy + dz * dz) * (1.0f - 0x1p-20f);
    }
};

/// Of the points of a warp's lanes.
__device__ Box warp_box(const float4& p) {
    float low[3] = {p.x, p.y, p.z}, high[3] = {p.x, p.y, p.z}, middle[3], half[3];
    for (int axis = 0; axis < 3; ++axis) {
        for (int step = 16; step > 0; step /= 2) {
            low[axis] = fminf(low[axis], __shfl_xor_sync(kFull, low[axis], step));
            high[axis] = fmaxf(high[axis], __shfl_xor_sync(kFull, high[axis], step));
        }
        middle[axis] = 0.5f * low[axis] + 0.5f * high[axis];
        half[axis] = fmaxf(high[axis] - middle[axis], middle[axis] - low[axis]) * kFilterFactor;
    }
    return {make_float4(middle[0], middle[1], middle[2], 0.0f), make_float4(half[0], half[1], half[2], 0.0f)};
}

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
    Box* box;                // of every chunk of objects
    unsigned long long *offer, *found;
    int *partner, *owner, *level, *parent, *settled, *reach, *root, *left, *front;
    int2* guess;
    int64_t size;  // rows of every array for one group, whole chunks; left and front hold two and four times as many

    __device__ Workspace of(int64_t group) const {
        Workspace w = *this;
        const int64_t offset = group * size;
        w.control += group;
        w.box += group * (size / kChunk);
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
    Box bidders[kWarps];         // of a scan: the points of a warp
    Box chunks[kTile / kChunk];  // of the tile of a scan; middle.w is a price that none of a chunk is below
    // From here on an auction has its replica.
    alignas(16) float4 front[2 * kFront];  // also the tile of a scan
    int2 meta[2 * kFront];                 // of the front: index, root
    float4 owner[kThreads * objects + 1];  // point of the owner of every object of the block
    Box boxes[kWarps * objects + 1];       // of the objects of a warp, one for each that a lane has
};

/// What every block of a group knows in the later rounds of an auction, when the bids of all are few enough to be sent
/// to all: each block then draws the same conclusions, and a round is one exchange of messages.
struct Replica {
    float4* object;  // [n] x, y, z, price
    Box* chunks;     // as in Shared, of all objects
    int *owner, *claim;
    int2* bids;  // [2][kBids] object, amount
    int* list;   // [2][kBids] who has no partner

    static int64_t bytes(int64_t n) {
        return n * 24 + (n + kChunk - 1) / kChunk * static_cast<int64_t>(sizeof(Box)) + int64_t{kBids} * 24;
    }
    __device__ Replica(float4* memory, int n) {
        object = memory;
        chunks = reinterpret_cast<Box*>(object + n);
        owner = reinterpret_cast<int*>(chunks + (n + kChunk - 1) / kChunk);
        claim = owner + n;
        bids = reinterpret_cast<int2*>(claim + n);
        list = reinterpret_cast<int*>(bids + 2 * kBids);
    }
};

struct Task {
    const float *a, *b;  // [rows, 3] in the order of emd_auction.h, as is matching
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

struct Totals {
    int added, hits, lowest, most;  // most: that one block has added
};

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

    __device__ void solve(int64_t cloud);

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
    __device__ bool load(int64_t begin);

    __device__ void take(Best& b, float value, int j, int i) const;

    __device__ void merge(Best& b, const Best& other, int i) const;

    __device__ void merge_lanes(Best& b, int lanes, int i) const;

    /// A lane's part of the search for the best, or two best, of `size` objects, the first of which is object `first`.
    template <bool two>
    __device__ void search(Best& b, const float4* tile, int size, int first, int lane, int lanes, const float4& p,
                           int i, float bound) const;

    /// The same by whole warps, without the chunks that no lane can want anything of. A warp has the points in `box`
    /// and every parts-th chunk.
    template <bool two>
    __device__ void search_near(Best& b, const float4* tile, const Box* chunks, int size, int first, int part,
                                int parts, int lanes, const float4& p, int i, float bound) const;

    __device__ Box chunk_box(int chunk) const { return {__ldcg(&w_.box[chunk].middle), __ldcg(&w_.box[chunk].half)}; }

    /// Notes the points of a warp's lanes, of which `lanes` have the same.
    __device__ void set_bidders(const float4& p, int lanes) {
        const Box box = lanes < 32 ? warp_box(p) : Box{p, make_float4(0.0f, 0.0f, 0.0f, 0.0f)};
        if ((threadIdx.x & 31) == 0) s_.bidders[threadIdx.x / 32] = box;
        __syncwarp();
    }

    /// The lowest price of a chunk, whose objects a warp's lanes have. Prices are not negative.
    __device__ static float lowest_price(bool has, const float4& object) {
        return __int_as_float(warp_min(has ? __float_as_int(object.w) : INT_MAX));
    }

    /// Scans all objects for `count` bidders: bidder(k) names them, start(i, point) bounds what is looked for from
    /// above, done(i, best) is called by one lane. `two`: the second best is wanted too.
    template <bool two, class Bidder, class Start, class Done>
    __device__ void scan(int count, const Bidder& bidder, const Start& start, const Done& done);

    __device__ void update_profits();

    __device__ void add(unsigned long long* total, long long value) const;

    /// Sums of profits, prices and matched costs.
    __device__ void sum(bool profits_only);

    __device__ void lower_prices();

    __device__ int* left_list(int which) { return w_.left + static_cast<int64_t>(which) * n_; }

    /// Everybody without a partner into the other list. Ends with a barrier.
    template <class Keep>
    __device__ void collect_left(const Keep& keep);

    __device__ void release();

    __device__ void auction();

    /// The rounds of an auction with few bidders.
    __device__ void auction_in_replicas(int round);

    __device__ void bound_prices(const Replica& a) const;

    /// The bids of this block's share of the list, to all blocks.
    __device__ void send_bids(const Replica& a, const int* list, int2* bids, int turn);

    /// The highest bid for an object wins it, the lowest bidder among equals. Returns how many are in `next`, in an
    /// order that is the same in all blocks. Ends with a barrier of the block.
    __device__ int resolve(const Replica& a, const int* list, const int2* bids, int* next);

    __device__ void place();

    __device__ static int warp_min(int value) {
#if __CUDA_ARCH__ >= 800
        return __reduce_min_sync(kFull, value);
#else
        for (int step = 16; step > 0; step /= 2) value = min(value, __shfl_xor_sync(kFull, value, step));
        return value;
#endif
    }
    __device__ static float warp_max(float value) {
        return unordered(~warp_min(~ordered(value)));
    }
    __device__ static int warp_sum(int value) {
#if __CUDA_ARCH__ >= 800
        return __reduce_add_sync(kFull, value);
#else
        for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kFull, value, step);
        return value;
#endif
    }

    /// Tells the group what this block did since the last time, and waits for what the others tell. turn_ then names
    /// the turn to come.
    __device__ Totals publish();

    /// Adds a point to the front of the turn to come.
    __device__ void add_to_front(bool has, const float4& point, int index, int root);

    /// Indices, and w_.size later roots, of what a block adds to the front.
    __device__ int* overflow(int turn, int rank) const {
        return w_.front + 2 * turn * w_.size + rank * kThreads * objects;
    }

    /// Calls offer(point, meta, point, meta) for all of the front that may cost at most limit + profit at a point of
    /// the box, two points at a time (the last may come twice). All lanes of a warp get the same.
    template <class Offer>
    __device__ void for_front(const Totals& totals, const Box& box, const float& limit, const Offer& offer);

    /// place() with a thread's objects in registers and the front in shared memory: a round is one exchange of
    /// messages, two where the level rises.
    __device__ void place_in_registers();

    /// One path in every tree that found a free object; trees share no point and no object.
    __device__ void augment(const int* left);

    /// Offers every object not yet settled a path through the points of the front. An object belongs to one thread.
    __device__ void relax(const int* front, int count, int level, float inverse_eps);

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

}  // namespace stipple::ops::cuda::matching
