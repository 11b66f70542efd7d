#pragma once
// The state of emd on CUDA: every block of a group holds all of it, and all blocks of the group go through the same
// steps. See emd/auction.cu.

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
constexpr int kChunk = 8;                // objects with a box of their own
constexpr int kGroup = 32;               // chunks with a box around them, a lane for each
constexpr int kHome = 32;                // objects that a scan looks at first, a lane for each
constexpr int kEach = 2;                 // objects that a lane remembers of a point
constexpr int kCandidates = 32 * kEach;  // objects that a point remembers
constexpr int kChunksAtOnce = 192;       // of a scan
constexpr int kLists = 2, kNear = 1024;  // lists, and how much of each is in shared memory
constexpr int kFew = 24;                 // bids of a round that a block makes and judges alone
constexpr int kMostFew = 32;             // if there is no other block; a lane for each
constexpr int32_t kHorizon = 4 * 64;     // units: the longest paths that a search writes down at first
constexpr float kWindow = 128;           // eps: what points remember for searches
constexpr float kSearchReach = 8;        // eps: what they have to remember for the first of them
constexpr int kFewOutdated = 8;          // of so many memories, one may be too short at the beginning of a search
constexpr int kBuffers = 4;              // through which the blocks of a group tell each other things
constexpr int64_t kMostInShared = 8192;
constexpr int64_t kMostBlocks = 32;  // of a group
constexpr int kMostTeam = 8;         // blocks of a cluster
constexpr int kRun = 32;             // so many objects after each other are in one block of a team's part

/// How objects, points and paths are written down. Both sorts of clouds run the same code.
struct SmallCloud {  // up to kMostInShared points, most of it in shared memory
    using Index = uint16_t;
    using Indices = ushort2;  // kEach
    using Key = uint32_t;
    static constexpr int kRankBits = 13;
    static constexpr int kTagBits = 20;  // a bid is told with a tag in 64 bits
    static constexpr bool kShared = true;
};
struct LargeCloud {
    using Index = uint32_t;
    using Indices = uint2;
    using Key = unsigned long long;
    static constexpr int kRankBits = 32;
    static constexpr int kTagBits = 0;  // there is no room for one
    static constexpr bool kShared = false;
};

/// Where a block's arrays lie. All hot ones of a small cloud are in its shared memory, and the cold ones while there is
/// room; the rest is in the block's part of a global array.
struct Layout {
    enum Hot { object, middle, half, group_middle, group_half, owner, key, marks, near, hot_arrays };
    enum Cold { parent = hot_arrays, partner, home, point, offer, far, arrays };

    int64_t offset[arrays] = {};
    bool shared[arrays] = {};
    int64_t shared_bytes = 0, global_bytes = 0;

    template <class Cloud>
    static Layout of(int64_t n, int64_t room) {
        using Index = typename Cloud::Index;
        const int64_t groups = (n + kChunk * kGroup - 1) / (kChunk * kGroup), chunks = groups * kGroup;
        Layout layout;
        const auto take = [&](int array, int64_t bytes) {
            bytes = (bytes + 15) / 16 * 16;
            layout.shared[array] = Cloud::kShared && layout.shared_bytes + bytes <= room;
            int64_t& end = layout.shared[array] ? layout.shared_bytes : layout.global_bytes;
            layout.offset[array] = end;
            end += bytes;
        };
        take(object, chunks * kChunk * sizeof(float4));
        take(middle, chunks * sizeof(float4));
        take(half, chunks * sizeof(float4));
        take(group_middle, groups * sizeof(float4));
        take(group_half, groups * sizeof(float4));
        take(owner, n * sizeof(Index));
        take(key, n * sizeof(typename Cloud::Key));
        take(marks, (n + 31) / 32 * sizeof(unsigned));
        take(near, kLists * kNear * sizeof(Index));
        take(parent, n * sizeof(Index));
        take(partner, n * sizeof(Index));
        take(home, n * sizeof(Index));
        take(point, n * sizeof(float4));
        take(offer, n * sizeof(unsigned long long));
        take(far, kLists * n * sizeof(Index));
        return layout;
    }

    bool hot_is_shared() const {
        return std::all_of(shared, shared + hot_arrays, [](bool here) { return here; });
    }
};

/// The objects worth most to a point when its profit was found. Prices only rise until the next phase, so the best that
/// it remembers is the best of all while it is within the bound.
template <class Index>
struct alignas(8) Memory {
    Index object[kCandidates];
    float bound;  // every object of which cost + price was not above this is remembered; -1: none
    float width;  // how far that may be above the best, by a guess, if all are to find room
    int near;     // at the end: those within the bound, which come first then
};

struct Task {
    const float *a, *b;               // [rows, 3] in the order of the curve
    const uint32_t *keys_a, *keys_b;  // [rows], where on the curve
    DeviceBatch batch;
    double relative, absolute;
    float *cost, *bound;
    int32_t* matching;
    int group;                     // blocks for a pair of clouds
    int team;                      // of these in a cluster: a power of two, 1 for large clouds
    char* state;                   // of every block, layout.global_bytes each
    unsigned long long* exchange;  // of every group, kBuffers of `rows`, 0 at first
    void* memories;                // of every group, two times `rows`
    unsigned* met;  // of every group: how many of its blocks have come to a meeting, of all meetings; 0 at first
    int64_t rows;   // of the largest cloud
    Layout layout;
};

/// For a point.
struct Best {
    float value, second;  // of the best object, and of the next
    int object;
};

struct Bid {
    int point, object, amount;  // the amount as bits: positive floats are in the order of integers
};

/// To exchange partners with another point.
struct Wish {
    float gain;
    int with;
};
constexpr int kNoWish = 0x7fffffff;
__device__ inline Wish best_of_two(const Wish& one, const Wish& other) {
    const bool first = one.gain > other.gain || (one.gain == other.gain && one.with < other.with);
    return first ? one : other;
}

/// Of a search's forest: the free objects in it, and the lowest level beyond it.
struct Rim {
    int free, lowest;
};

/// Of a search: paths are offered further up to one level and written down up to the other.
struct Reach {
    int top, horizon;
};

/// What the threads of a block tell each other.
template <class Index>
struct Board {
    Bid bids[kMostFew];                   // of a round of few
    int loser[kMostFew];                  // of each bid; -1: nobody
    Index chunks[kWarps][kChunksAtOnce];  // of every warp's scan, to look at
    int counts[kWarps];                   // of a compaction
    unsigned work;                        // in a search: see work_of
    Rim rim;
    long long sums[kWarps];
    float4 box[2][kWarps];
};

__device__ inline char* shared_memory() {
    extern __shared__ float4 emd_memory[];
    return reinterpret_cast<char*>(emd_memory);
}

/// A list of indices whose beginning is near at hand.
template <class Index>
struct List {
    Index *near, *far;
    __device__ int get(int k) const { return k < kNear ? near[k] : far[k]; }
    __device__ void set(int k, int value) const {
        if (k < kNear)
            near[k] = static_cast<Index>(value);
        else
            far[k] = static_cast<Index>(value);
    }
};

template <bool squared, class Cloud>
class Replica {
public:
    __device__ explicit Replica(const Task& task)
        : task_(task),
          global_(task.state + blockIdx.x * task.layout.global_bytes),
          lane_(static_cast<int>(threadIdx.x & 31)),
          warp_(static_cast<int>(threadIdx.x / 32)),
          rank_(static_cast<int>(blockIdx.x % task.group)),
          mate_(static_cast<int>(blockIdx.x % task.team)) {
        const auto cold = [&](int array) {
            return (task.layout.shared[array] ? shared_memory() : global_) + task.layout.offset[array];
        };
        parent_ = reinterpret_cast<Index*>(cold(Layout::parent));
        partner_ = reinterpret_cast<Index*>(cold(Layout::partner));
        home_ = reinterpret_cast<Index*>(cold(Layout::home));
        point_ = reinterpret_cast<float4*>(cold(Layout::point));
        offer_ = reinterpret_cast<unsigned long long*>(cold(Layout::offer));
        far_ = reinterpret_cast<Index*>(cold(Layout::far));
        memory_ = memories();
        object_at_ = static_cast<int>(task.layout.offset[Layout::object]);
        middle_at_ = static_cast<int>(task.layout.offset[Layout::middle]);
        half_at_ = static_cast<int>(task.layout.offset[Layout::half]);
        group_middle_at_ = static_cast<int>(task.layout.offset[Layout::group_middle]);
        group_half_at_ = static_cast<int>(task.layout.offset[Layout::group_half]);
        owner_at_ = static_cast<int>(task.layout.offset[Layout::owner]);
        key_at_ = static_cast<int>(task.layout.offset[Layout::key]);
        marks_at_ = static_cast<int>(task.layout.offset[Layout::marks]);
        near_at_ = static_cast<int>(task.layout.offset[Layout::near]);
    }

    __device__ void solve(int64_t cloud);

private:
    using Index = typename Cloud::Index;
    using Key = typename Cloud::Key;
    static constexpr Index kNobody = static_cast<Index>(-1);

    // A path to an object: its length, then the rank of the point that it comes through.
    static constexpr Key kNoPath = static_cast<Key>(-1) >> 1;
    static_assert(sizeof(Key) > 4 || (kTopLevel + 1) << Cloud::kRankBits <= 0x7fffffff, "a level fits into a key");
    __device__ static Key key_of(int level, int rank) {
        return static_cast<Key>(level) << Cloud::kRankBits | static_cast<Key>(rank);
    }
    __device__ static int level_in(Key key) { return static_cast<int>(key >> Cloud::kRankBits); }
    __device__ int parent_in(Key key, int j) const {
        return seen_from(j, static_cast<unsigned>(key & ((static_cast<Key>(1) << Cloud::kRankBits) - 1)));
    }
    // In the place of a path, after a search: the length of a way towards the root of the tree, and where it has come:
    // to an object, or to the root.
    static constexpr Key kAtRoot = static_cast<Key>(1) << (8 * sizeof(Key) - 1);
    __device__ static int length_in(Key way) { return level_in(way & ~kAtRoot); }
    __device__ static int goal_in(Key way) {
        return static_cast<int>(way & ((static_cast<Key>(1) << Cloud::kRankBits) - 1));
    }
    /// The index of a rank; the other way round than rank_of.
    __device__ int seen_from(int chooser, unsigned rank) const {
        const int index = chooser + static_cast<int>(rank);
        return index < n_ ? index : index - n_;
    }
    /// A block's work in a search: the objects that wait there and the points at work there; where blocks share it,
    /// above that, how often there has been more.
    static constexpr unsigned kWorkMask = Cloud::kShared ? 0xffff : 0xffffffff;
    static_assert(!Cloud::kShared || kMostInShared + kThreads <= kWorkMask);
    __device__ static unsigned work_of(int count) {
        return static_cast<unsigned>(count) * (Cloud::kShared ? 0x10001u : 1u);
    }

    // The blocks of a team, and the one of them in whose part of the objects j is.
    __device__ int team() const { return Cloud::kShared ? task_.team : 1; }
    __device__ bool is_team() const { return team() > 1 && team() == task_.group; }
    __device__ int mate_of(int j) const { return j / kRun & (team() - 1); }
    /// -1 for nobody.
    __device__ static int some(Index index) { return index == kNobody ? -1 : static_cast<int>(index); }

    // emd/auction.cu: the phases
    __device__ bool load(int64_t begin);
    __device__ int nearest_on_curve(int64_t begin, int i) const;
    __device__ void release();
    __device__ void lower_prices();
    __device__ double mean_cost();
    __device__ double proven_bound();
    __device__ double per_point(long long sum);
    template <class Item>
    __device__ int compact(int count, const List<Index>& to, const Item& item);

    // emd/candidate_scan.cuh: the objects near a point
    __device__ void build_boxes();
    __device__ void bound_prices();
    __device__ bool may_hold(const float4& middle, const float4& half, const float4& p, float limit) const;
    template <class Visit>
    __device__ void scan(const float4& p, float limit, int except, const Visit& visit) const;
    struct Remembered {     // by a lane
        int object[kEach];  // -1: none
        float bound;
    };
    __device__ Remembered remember(int i) const;
    __device__ void values_of(const Remembered& known, const float4& p, float (&value)[kEach]) const;
    __device__ float memorise(int i, float window, Memory<Index>& memory) const;
    __device__ Best best_of(int i) const;
    __device__ int2 bid_of(int i) const;
    __device__ bool remembers(int i, float reach, float& best) const;
    __device__ void update_profits(float window, float reach);
    __device__ void refresh_memories();

    // emd/auction_rounds.cuh: the auction
    __device__ void auction(int enough);
    __device__ void end_round_of_few();
    __device__ void end_round_of_many(const unsigned long long* told);
    __device__ void tell(unsigned long long* told, int2 bid) const;
    __device__ int2 hear(const unsigned long long* told) const;
    __device__ void renew_tags();
    __device__ int hand_over(int object_index, int point, int amount);

    // emd/augmenting_paths.cuh: augmenting paths
    __device__ void place(bool first);
    __device__ Rim rim_of(int top);
    template <class Is>
    __device__ int mark(const Is& is);
    __device__ void wait(int from, int to, int roots);
    __device__ void put_together();
    __device__ void offer_again(const Reach& reach);
    __device__ void serve(int roots, const Reach& reach);
    __device__ bool nothing_to_do() const;
    __device__ int take_waiting(int& base);
    __device__ int relax(int i, int level, const Reach& reach);
    __device__ void tell_mate(int j);
    __device__ void end_search(int top);
    __device__ void measure_paths(int top);

    // emd/refine.cuh: when everybody has a partner
    __device__ double finish(Schedule& schedule);
    template <class Visit>
    __device__ void for_my_points(const Visit& visit) const;
    __device__ void sort_memory(int i) const;
    struct Around;
    struct Neighbour;
    __device__ Around around(int i) const;
    __device__ Neighbour neighbour(const Around& around, int k) const;
    template <class Visit>
    __device__ void visit_near(const Around& around, const Visit& visit) const;
    __device__ void spread(float octave);
    __device__ float spread_far(int i, float window, float inverse_octave);
    __device__ void move_prices(float octave);
    __device__ bool exchange();
    __device__ Wish better(const Wish& wish, int i, int mine, int j, float cost_then) const;

    /// The buffer through which the blocks of the group tell each other the next results; everybody has read what was
    /// told two exchanges ago, and so what was told in this one.
    __device__ unsigned long long* next_exchange() {
        ++turn_;
        return task_.exchange + (blockIdx.x / task_.group * kBuffers + turn_ % kBuffers) * task_.rows;
    }
    /// Memories likewise: blocks that are behind still use the old ones.
    __device__ Memory<Index>* memories() const {
        return static_cast<Memory<Index>*>(task_.memories) + blockIdx.x / task_.group * 2 * task_.rows;
    }
    __device__ Memory<Index>* next_memory() const {
        return memory_ == memories() ? memories() + task_.rows : memories();
    }
    /// Everything that a thread of the group wrote before is seen by all of it afterwards.
    __device__ void group_sync() {
        if (is_team()) {
            meet_cluster();
            return;
        }
        __syncthreads();
        if (task_.group == 1) return;
        if (threadIdx.x == 0) {
            unsigned* met = task_.met + blockIdx.x / task_.group;
            meetings_ += task_.group;
            __threadfence();
            atomicAdd(met, 1);
            unsigned now = 0;
            do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(met) : "memory");
            while (static_cast<int>(now - meetings_) < 0);
        }
        __syncthreads();
    }

    __device__ static Board<Index>& board() {
        __shared__ Board<Index> shared;
        return shared;
    }

    // Hot arrays: not as pointers, so that the compiler knows the address space.
    template <class T>
    __device__ T* hot(int offset) const {
        return reinterpret_cast<T*>((Cloud::kShared ? shared_memory() : global_) + offset);
    }
    __device__ float4* object() const { return hot<float4>(object_at_); }  // x, y, z, price
    __device__ float4* middle() const { return hot<float4>(middle_at_); }  // of chunks; a price that none is below
    __device__ float4* half() const { return hot<float4>(half_at_); }
    __device__ float4* group_middle() const { return hot<float4>(group_middle_at_); }  // of groups, likewise
    __device__ float4* group_half() const { return hot<float4>(group_half_at_); }
    __device__ Index* owner() const { return hot<Index>(owner_at_); }  // of objects
    __device__ Key* key() const { return hot<Key>(key_at_); }          // of objects
    /// A bit for each: the points whose memory is of no more use to this auction; the objects that wait in a search.
    __device__ unsigned* marks() const { return hot<unsigned>(marks_at_); }
    __device__ bool is_marked(int j) const { return (marks()[j / 32] >> (j & 31) & 1) != 0; }

    /// Who is without a partner, and room for who is after the next round.
    __device__ List<Index> left() const { return list(which_); }
    __device__ List<Index> next_left() const { return list(which_ ^ 1); }
    __device__ List<Index> list(int which) const {
        return {hot<Index>(near_at_) + which * kNear, far_ + which * task_.rows};
    }

    __device__ float cost_of(const float4& p, const float4& q) const {
        return pair_cost<squared>(p.x - q.x, p.y - q.y, p.z - q.z);
    }

    const Task& task_;
    char* const global_;
    const int lane_, warp_, rank_, mate_;
    int n_ = 0, groups_ = 0, shift_ = 0;
    unsigned meetings_ = 0, turn_ = 0;
    int which_ = 0, left_count_ = 0;  // of the points without a partner: the list, and how many
    float eps_ = 0, unit_ = 0, inverse_unit_ = 0, factor_ = 0;
    Index *parent_, *partner_, *home_;  // of points: who is before it in its tree; the partner; whom it bid for last
    float4* point_;                     // x, y, z, profit
    unsigned long long* offer_;         // of objects: a round's best bid; of roots: the free object found
    Index* far_;
    Memory<Index>* memory_;  // of points; the group has it together
    float lowered_ = 0;      // prices have been since profits were found
    int object_at_, middle_at_, half_at_, group_middle_at_, group_half_at_, owner_at_, key_at_, marks_at_, near_at_;
};

}  // namespace stipple::ops::cuda::matching
