#pragma once
// The solver of emd on CUDA: a group of blocks for each pair of clouds. Every block of a group holds the whole state,
// and all blocks of the group go through the same steps. See auction.cu, and README.md for the terms.

#include <algorithm>
#include <cstdint>

#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/common/warp.cuh"
#include "stipple/ops/emd/auction.h"
#include "stipple/ops/emd/cluster_memory.cuh"

namespace stipple::ops::cuda::matching {

using namespace assignment;

constexpr int kThreads = 768;
constexpr int kWarps = kThreads / 32;
constexpr int kLeafObjects = 8;              // objects in a leaf box
constexpr int kNodeLeaves = 32;              // leaves in a node box, a lane for each
constexpr int kSeedObjects = 32;             // objects that bound a scan, a lane for each
constexpr int kPerLane = 2;                  // candidates of a lane
constexpr int kCandidates = 32 * kPerLane;   // candidates of a bidder
constexpr int kLeavesAtOnce = 192;           // leaves that a scan collects before it looks into them
constexpr int kLists = 2, kListHead = 1024;  // lists of bidders, and the entries of each in shared memory
constexpr int kSmallRound = 24;              // a round of so many bids is computed by every block redundantly
constexpr int kMaxSmallRound = 32;           // the same for a group of one block; a lane for each
constexpr int32_t kHorizon = 4 * 64;         // units: the longest paths recorded at first
constexpr float kCandidateWindow = 128;      // eps: how far beyond the best candidate lists for searches reach
constexpr float kSearchReach = 8;            // eps: how far they have to reach for the first search
constexpr int kOutdatedDivisor = 8;  // lists are rebuilt when more than 1 / 8 of them are too short for a search
constexpr int kBuffers = 4;          // for results that blocks of a group publish to each other
constexpr int64_t kMaxSharedPoints = 8192;
constexpr int64_t kMaxBlocks = 32;  // of a group
constexpr int kMaxCluster = 8;      // blocks of a cluster
constexpr int kRunLength = 32;      // consecutive objects that one block of a cluster queues

/// How indices and paths are stored. Both kinds of clouds run the same code.
struct SmallCloud {  // up to kMaxSharedPoints points, most of it in shared memory
    using Index = uint16_t;
    using LaneIndices = ushort2;  // kPerLane of them
    using Key = uint32_t;
    static constexpr int kRankBits = 13;
    static constexpr int kTagBits = 20;  // a bid is published with a tag, in 64 bits
    static constexpr bool kShared = true;
};
struct LargeCloud {
    using Index = uint32_t;
    using LaneIndices = uint2;
    using Key = unsigned long long;
    static constexpr int kRankBits = 32;
    static constexpr int kTagBits = 0;  // no room for a tag
    static constexpr bool kShared = false;
};

/// Where the arrays of a block are. All hot ones of a small cloud are in shared memory, and the cold ones while there
/// is room; the rest is in the block's part of a global array.
struct Layout {
    enum Hot { object, center, half, node_center, node_half, owner, key, marks, list_head, hot_arrays };
    enum Cold { parent = hot_arrays, partner, seed, point, best_bid, list_tail, arrays };

    int64_t offset[arrays] = {};
    bool shared[arrays] = {};
    int64_t shared_bytes = 0, global_bytes = 0;

    template <class Cloud>
    static Layout of(int64_t n, int64_t room) {
        using Index = typename Cloud::Index;
        const int64_t nodes = (n + kLeafObjects * kNodeLeaves - 1) / (kLeafObjects * kNodeLeaves),
                      leaves = nodes * kNodeLeaves;
        Layout layout;
        const auto take = [&](int array, int64_t bytes) {
            bytes = (bytes + 15) / 16 * 16;
            layout.shared[array] = Cloud::kShared && layout.shared_bytes + bytes <= room;
            int64_t& end = layout.shared[array] ? layout.shared_bytes : layout.global_bytes;
            layout.offset[array] = end;
            end += bytes;
        };
        take(object, leaves * kLeafObjects * sizeof(float4));
        take(center, leaves * sizeof(float4));
        take(half, leaves * sizeof(float4));
        take(node_center, nodes * sizeof(float4));
        take(node_half, nodes * sizeof(float4));
        take(owner, n * sizeof(Index));
        take(key, n * sizeof(typename Cloud::Key));
        take(marks, (n + 31) / 32 * sizeof(unsigned));
        take(list_head, kLists * kListHead * sizeof(Index));
        take(parent, n * sizeof(Index));
        take(partner, n * sizeof(Index));
        take(seed, n * sizeof(Index));
        take(point, n * sizeof(float4));
        take(best_bid, n * sizeof(unsigned long long));
        take(list_tail, kLists * n * sizeof(Index));
        return layout;
    }

    bool hot_is_shared() const {
        return std::all_of(shared, shared + hot_arrays, [](bool here) { return here; });
    }
};

/// The best objects of a bidder when its profit was computed. Prices only rise until the next phase, so the best
/// candidate is the best of all objects while its value is within the bound.
template <class Index>
struct alignas(8) CandidateList {
    Index object[kCandidates];
    float bound;     // all objects with cost + price <= bound are in the list; -1: no list
    float width;     // estimate of how far bound may be above the best for all candidates to fit
    int near_count;  // in refinement: the candidates within the bound, which come first then
};

struct Task {
    const float *a, *b;               // [rows, 3] sorted along the curve
    const uint32_t *keys_a, *keys_b;  // [rows], keys on the curve
    DeviceBatch batch;
    double relative, absolute;
    float *cost, *bound;
    int32_t* matching;
    int group;                    // blocks per pair of clouds
    int cluster;                  // blocks of the group in a cluster: a power of two, 1 for large clouds
    char* state;                  // of every block, layout.global_bytes each
    unsigned long long* buffers;  // of every group, kBuffers of `rows`, initially 0
    void* candidate_lists;        // of every group, twice `rows`
    unsigned* arrived;            // barrier counter of every group: arrivals of all its blocks so far; initially 0
    int64_t rows;                 // of the largest cloud
    Layout layout;
};

/// The two best values for a bidder.
struct Best {
    float value, second;  // of the best object, and of the second best
    int object;
};

struct Bid {
    int point, object, amount;  // the amount as bits: positive floats compare like integers
};

/// A swap of objects with another bidder.
struct Swap {
    float gain;
    int with;
};
constexpr int kNoSwap = 0x7fffffff;
__device__ inline Swap better_of(const Swap& one, const Swap& other) {
    const bool first = one.gain > other.gain || (one.gain == other.gain && one.with < other.with);
    return first ? one : other;
}

/// Of a search: the free objects settled, and the lowest level of the frontier.
struct Frontier {
    int free, lowest;
};

/// Of a search: objects up to level top are settled, paths up to level horizon are recorded.
struct SearchRange {
    int top, horizon;
};

/// Static shared memory of a block.
template <class Index>
struct BlockShared {
    Bid bids[kMaxSmallRound];             // of a small round
    int loser[kMaxSmallRound];            // of each bid: the bidder unassigned by it; -1: none
    Index leaves[kWarps][kLeavesAtOnce];  // of every warp's scan: leaves to look into
    int counts[kWarps];                   // per warp, of a compaction
    unsigned pending;                     // queued and running work of a search: see pending_of
    Frontier frontier;
    long long sums[kWarps];
    float4 box[2][kWarps];
};

__device__ inline char* shared_memory() {
    extern __shared__ float4 emd_memory[];
    return reinterpret_cast<char*>(emd_memory);
}

/// A list of indices: the head in shared memory, the tail in global memory.
template <class Index>
struct List {
    Index *head, *tail;
    __device__ int get(int k) const { return k < kListHead ? head[k] : tail[k]; }
    __device__ void set(int k, int value) const {
        if (k < kListHead)
            head[k] = static_cast<Index>(value);
        else
            tail[k] = static_cast<Index>(value);
    }
};

template <bool squared, class Cloud>
class BlockSolver {
public:
    __device__ explicit BlockSolver(const Task& task)
        : task_(task),
          global_(task.state + blockIdx.x * task.layout.global_bytes),
          lane_(static_cast<int>(threadIdx.x & 31)),
          warp_(static_cast<int>(threadIdx.x / 32)),
          rank_(static_cast<int>(blockIdx.x % task.group)),
          cluster_rank_(static_cast<int>(blockIdx.x % task.cluster)) {
        const auto cold = [&](int array) {
            return (task.layout.shared[array] ? shared_memory() : global_) + task.layout.offset[array];
        };
        parent_ = reinterpret_cast<Index*>(cold(Layout::parent));
        partner_ = reinterpret_cast<Index*>(cold(Layout::partner));
        seed_ = reinterpret_cast<Index*>(cold(Layout::seed));
        point_ = reinterpret_cast<float4*>(cold(Layout::point));
        best_bid_ = reinterpret_cast<unsigned long long*>(cold(Layout::best_bid));
        list_tail_ = reinterpret_cast<Index*>(cold(Layout::list_tail));
        candidates_ = candidate_lists();
        object_at_ = static_cast<int>(task.layout.offset[Layout::object]);
        center_at_ = static_cast<int>(task.layout.offset[Layout::center]);
        half_at_ = static_cast<int>(task.layout.offset[Layout::half]);
        node_center_at_ = static_cast<int>(task.layout.offset[Layout::node_center]);
        node_half_at_ = static_cast<int>(task.layout.offset[Layout::node_half]);
        owner_at_ = static_cast<int>(task.layout.offset[Layout::owner]);
        key_at_ = static_cast<int>(task.layout.offset[Layout::key]);
        marks_at_ = static_cast<int>(task.layout.offset[Layout::marks]);
        list_head_at_ = static_cast<int>(task.layout.offset[Layout::list_head]);
    }

    __device__ void solve(int64_t cloud);

private:
    using Index = typename Cloud::Index;
    using Key = typename Cloud::Key;
    static constexpr Index kNone = static_cast<Index>(-1);

    // The key of a path to an object: its length (level), then the tie rank of the bidder before the object.
    static constexpr Key kNoPath = static_cast<Key>(-1) >> 1;
    static_assert(sizeof(Key) > 4 || (kMaxLevel + 1) << Cloud::kRankBits <= 0x7fffffff, "a level fits into a key");
    __device__ static Key key_of(int level, int rank) {
        return static_cast<Key>(level) << Cloud::kRankBits | static_cast<Key>(rank);
    }
    __device__ static int level_in(Key key) { return static_cast<int>(key >> Cloud::kRankBits); }
    __device__ int parent_in(Key key, int j) const {
        return index_of_rank(j, static_cast<unsigned>(key & ((static_cast<Key>(1) << Cloud::kRankBits) - 1)));
    }
    // After a search the keys hold the state of pointer jumping: the length of the path towards the root of the tree
    // that is summed up so far, and the object (or, with kAtRoot, the root) where it ends.
    static constexpr Key kAtRoot = static_cast<Key>(1) << (8 * sizeof(Key) - 1);
    __device__ static int jump_length(Key jump) { return level_in(jump & ~kAtRoot); }
    __device__ static int jump_target(Key jump) {
        return static_cast<int>(jump & ((static_cast<Key>(1) << Cloud::kRankBits) - 1));
    }
    /// The inverse of rank_of.
    __device__ int index_of_rank(int chooser, unsigned rank) const {
        const int index = chooser + static_cast<int>(rank);
        return index < n_ ? index : index - n_;
    }
    /// The pending work of a block in a search: queued objects and bidders being relaxed; where the blocks of a cluster
    /// share a search, the upper half counts additions, so that two equal reads mean that nothing was added between.
    static constexpr unsigned kPendingMask = Cloud::kShared ? 0xffff : 0xffffffff;
    static_assert(!Cloud::kShared || kMaxSharedPoints + kThreads <= kPendingMask);
    __device__ static unsigned pending_of(int count) {
        return static_cast<unsigned>(count) * (Cloud::kShared ? 0x10001u : 1u);
    }

    // The blocks of a cluster, and the one of them that queues object j.
    __device__ int cluster_size() const { return Cloud::kShared ? task_.cluster : 1; }
    __device__ bool group_is_cluster() const { return cluster_size() > 1 && cluster_size() == task_.group; }
    __device__ int queue_block(int j) const { return j / kRunLength & (cluster_size() - 1); }
    /// -1 for kNone.
    __device__ static int index_or_none(Index index) { return index == kNone ? -1 : static_cast<int>(index); }

    // auction.cu: the phases
    __device__ bool load(int64_t begin);
    __device__ int nearest_on_curve(int64_t begin, int i) const;
    __device__ void unassign_violators();
    __device__ void normalise_prices();
    __device__ double mean_cost();
    __device__ double dual_bound();
    __device__ double per_point(long long sum);
    template <class Item>
    __device__ int compact(int count, const List<Index>& to, const Item& item);

    // candidate_scan.cuh: scans and candidate lists
    __device__ void build_boxes();
    __device__ void update_min_prices();
    __device__ bool may_hold(const float4& center, const float4& half, const float4& p, float limit) const;
    template <class Visit>
    __device__ void scan(const float4& p, float limit, int except, const Visit& visit) const;
    struct LaneCandidates {    // of a lane
        int object[kPerLane];  // -1: none
        float bound;
    };
    __device__ LaneCandidates load_candidates(int i) const;
    __device__ void values_of(const LaneCandidates& known, const float4& p, float (&value)[kPerLane]) const;
    __device__ float build_candidates(int i, float window, CandidateList<Index>& list) const;
    __device__ Best best_of(int i) const;
    __device__ int2 bid_of(int i) const;
    __device__ bool candidates_reach(int i, float reach, float& best) const;
    __device__ void update_profits(float window, float reach);
    __device__ void refresh_candidates();

    // auction_rounds.cuh: bidding rounds
    __device__ void auction(int enough);
    __device__ void finish_small_round();
    __device__ void finish_large_round(const unsigned long long* published);
    __device__ void publish_bid(unsigned long long* published, int2 bid) const;
    __device__ int2 read_bid(const unsigned long long* published) const;
    __device__ void restart_tags();
    __device__ int assign(int object_index, int point, int amount);

    // augmenting_paths.cuh: searches
    __device__ void augment(bool first);
    __device__ Frontier find_frontier(int top);
    template <class Is>
    __device__ int mark(const Is& is);
    __device__ void enqueue_levels(int from, int to, int roots);
    __device__ void merge_paths();
    __device__ void relax_forest(const SearchRange& range);
    __device__ void process_queue(int roots, const SearchRange& range);
    __device__ bool queue_is_empty() const;
    __device__ int dequeue(int& base);
    __device__ int relax(int i, int level, const SearchRange& range);
    __device__ void enqueue_remote(int j);
    __device__ void finish_search(int top);
    __device__ void measure_tree_paths(int top);

    // refine.cuh: when all bidders are assigned
    __device__ double refine(Schedule& schedule);
    template <class Visit>
    __device__ void for_bidders_of_block(const Visit& visit) const;
    __device__ void sort_candidates(int i) const;
    struct Neighbourhood;
    struct Neighbour;
    __device__ Neighbourhood neighbourhood(int i) const;
    __device__ Neighbour neighbour(const Neighbourhood& around, int k) const;
    template <class Visit>
    __device__ void visit_neighbours(const Neighbourhood& around, const Visit& visit) const;
    __device__ void soft_assign(float temperature);
    __device__ float soft_assign_by_scan(int i, float window, float inverse_temperature);
    __device__ void update_prices(float temperature);
    __device__ bool swap_partners();
    __device__ Swap better_swap(const Swap& best, int i, int mine, int j, float cost_then) const;

    /// The buffer for the next results that the blocks of the group publish. All blocks have read the results of two
    /// buffers ago, so the previous contents of this one are no longer needed.
    __device__ unsigned long long* next_buffer() {
        ++sequence_;
        return task_.buffers + (blockIdx.x / task_.group * kBuffers + sequence_ % kBuffers) * task_.rows;
    }
    /// Candidate lists are double-buffered likewise: blocks that are behind still use the old ones.
    __device__ CandidateList<Index>* candidate_lists() const {
        return static_cast<CandidateList<Index>*>(task_.candidate_lists) + blockIdx.x / task_.group * 2 * task_.rows;
    }
    __device__ CandidateList<Index>* next_candidates() const {
        return candidates_ == candidate_lists() ? candidate_lists() + task_.rows : candidate_lists();
    }
    /// Barrier of the group: what any of its threads wrote before is visible to all of them afterwards.
    __device__ void group_sync() {
        if (group_is_cluster()) {
            cluster_barrier();
            return;
        }
        __syncthreads();
        if (task_.group == 1) return;
        if (threadIdx.x == 0) {
            unsigned* arrived = task_.arrived + blockIdx.x / task_.group;
            arrivals_ += task_.group;
            __threadfence();
            atomicAdd(arrived, 1);
            unsigned now = 0;
            do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
            while (static_cast<int>(now - arrivals_) < 0);
        }
        __syncthreads();
    }

    __device__ static BlockShared<Index>& block_shared() {
        __shared__ BlockShared<Index> shared;
        return shared;
    }

    // Hot arrays by offset and not by pointer, so that the compiler knows the address space.
    template <class T>
    __device__ T* hot(int offset) const {
        return reinterpret_cast<T*>((Cloud::kShared ? shared_memory() : global_) + offset);
    }
    __device__ float4* object() const { return hot<float4>(object_at_); }  // x, y, z, price
    __device__ float4* center() const { return hot<float4>(center_at_); }  // of leaves; w: their minimum price
    __device__ float4* half() const { return hot<float4>(half_at_); }
    __device__ float4* node_center() const { return hot<float4>(node_center_at_); }  // of nodes, likewise
    __device__ float4* node_half() const { return hot<float4>(node_half_at_); }
    __device__ Index* owner() const { return hot<Index>(owner_at_); }  // of objects
    __device__ Key* key() const { return hot<Key>(key_at_); }          // of objects: paths
    /// A bit set. In an auction: bidders whose candidate list is exhausted; in a search: queued objects.
    __device__ unsigned* marks() const { return hot<unsigned>(marks_at_); }
    __device__ bool is_marked(int j) const { return (marks()[j / 32] >> (j & 31) & 1) != 0; }

    /// The unassigned bidders, and room for those after the next round.
    __device__ List<Index> unassigned() const { return list(current_list_); }
    __device__ List<Index> next_unassigned() const { return list(current_list_ ^ 1); }
    __device__ List<Index> list(int which) const {
        return {hot<Index>(list_head_at_) + which * kListHead, list_tail_ + which * task_.rows};
    }

    __device__ float cost_of(const float4& p, const float4& q) const {
        return pair_cost<squared>(p.x - q.x, p.y - q.y, p.z - q.z);
    }

    const Task& task_;
    char* const global_;
    const int lane_, warp_, rank_, cluster_rank_;
    int n_ = 0, nodes_ = 0, shift_ = 0;
    unsigned arrivals_ = 0, sequence_ = 0;
    int current_list_ = 0, unassigned_count_ = 0;  // of the unassigned bidders: which list, and how many
    float eps_ = 0, unit_ = 0, inverse_unit_ = 0, factor_ = 0;
    Index *parent_, *partner_,
        *seed_;                     // of bidders: the parent in its search tree; its object; the last object bid for
    float4* point_;                 // x, y, z, profit
    unsigned long long* best_bid_;  // of objects: the best bid of a round; of roots: the free object found
    Index* list_tail_;
    CandidateList<Index>* candidates_;  // of bidders; shared by the group
    float price_drop_ = 0;              // bound of how much prices have fallen since the lists were built
    int object_at_, center_at_, half_at_, node_center_at_, node_half_at_, owner_at_, key_at_, marks_at_, list_head_at_;
};

}  // namespace stipple::ops::cuda::matching
