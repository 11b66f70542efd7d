// Farthest point sampling of large clouds: a group of blocks for each cloud, resident through all of its samples.
//
// The points of a cloud lie along a space-filling curve in chunks of 256, each with its box, and within a chunk by
// index. A warp owns a chunk and keeps it in registers (or several, in memory, when the cloud is larger than the
// registers of the device); it looks at its points only when the new sample is nearer to the box than the chunk's
// largest distance, which is exact (farthest_tree.h). Then each block publishes its farthest point and reads those of
// the others: that exchange is the only meeting of the blocks, once a sample.

#include "stipple/ops/sampling/farthest_chunks.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kFarthestGroupsWarps = 32, kGroupThreads = 32 * kFarthestGroupsWarps;

struct Candidate {
    int32_t key, index;
    float x, y, z;
};

/// How the blocks of a group exchange their farthest points: [groups, 2, members] of 32 bytes, zero at first.
///
/// Every 8-byte word carries the number of its exchange besides its data (one bit of it in the first word, where there
/// is room for no more), so a reader that finds the number in all four words has them all: no fence, no counter, and
/// 8-byte accesses are never torn. Two buffers by turns: a block writes exchange e+2 only after it has read the words
/// of e+1 of all others, which they write only after they have read exchange e. The bit of the first word is that of
/// e / 2, which differs between consecutive uses of a buffer. Needs blocks that are resident together, as a cooperative
/// launch guarantees.
struct alignas(32) Message {
    uint64_t word[4];
};

__device__ void send(Message* to, const Candidate& c, uint32_t exchange) {
    // The sign bit of the key is free for the number: no point left is index kNoIndex at distance 0.
    const uint32_t key = c.key < 0 ? 0u : static_cast<uint32_t>(c.key);
    const uint32_t index = static_cast<uint32_t>(c.key < 0 ? kNoIndex : c.index);
    const uint64_t words[4] = {
        uint64_t{key | (exchange >> 1 & 1u) << 31} << 32 | index, uint64_t{__float_as_uint(c.x)} << 32 | exchange,
        uint64_t{__float_as_uint(c.y)} << 32 | exchange, uint64_t{__float_as_uint(c.z)} << 32 | exchange};
    asm volatile("st.relaxed.gpu.v2.u64 [%0], {%1, %2};" ::"l"(to->word), "l"(words[0]), "l"(words[1]) : "memory");
    asm volatile("st.relaxed.gpu.v2.u64 [%0], {%1, %2};" ::"l"(to->word + 2), "l"(words[2]), "l"(words[3]) : "memory");
}

__device__ Candidate receive(const Message* from, uint32_t exchange) {
    uint64_t word[4];
    do {
        asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];"
                     : "=l"(word[0]), "=l"(word[1])
                     : "l"(from->word)
                     : "memory");
        asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];"
                     : "=l"(word[2]), "=l"(word[3])
                     : "l"(from->word + 2)
                     : "memory");
    } while ((word[0] >> 63) != (exchange >> 1 & 1u) || static_cast<uint32_t>(word[1]) != exchange ||
             static_cast<uint32_t>(word[2]) != exchange || static_cast<uint32_t>(word[3]) != exchange);
    Candidate c;
    c.index = static_cast<int32_t>(static_cast<uint32_t>(word[0]));
    c.key = c.index == kNoIndex ? kChosen : static_cast<int32_t>(word[0] >> 32 & 0x7FFFFFFFu);
    c.x = __uint_as_float(static_cast<uint32_t>(word[1] >> 32));
    c.y = __uint_as_float(static_cast<uint32_t>(word[2] >> 32));
    c.z = __uint_as_float(static_cast<uint32_t>(word[3] >> 32));
    return c;
}

/// A sample that is being taken into account.
struct Sample {
    float x, y, z;
    int32_t index;
    int32_t position;    // of a given sample in its cloud's chunks; -1 for one that was found
    float* distance_sq;  // where a given sample's distance goes, or null
};

__device__ int32_t box_key(const float* box, const Sample& sample) {
    const float p[3] = {sample.x, sample.y, sample.z};
    float away[3];
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) away[axis] = fmaxf(fmaxf(box[axis] - p[axis], p[axis] - box[3 + axis]), 0.0f);
    return __float_as_int(distance_sq(away[0], away[1], away[2]));
}

/// What a warp knows of its chunk: all lanes alike.
struct FarthestGroupsBest {
    int32_t key, index;
    int slot;
};

/// Is the sample a point of this chunk, and which? -1 when not.
__device__ int own_slot(const Sample& sample, int32_t chunk, const FarthestGroupsBest& best) {
    if (sample.position >= 0) return sample.position / kChunk == chunk ? sample.position % kChunk : -1;
    return best.key >= 0 && best.index == sample.index ? best.slot : -1;
}

/// Updates the warp's points; the key and the slot of the farthest (lowest lane and slot: lowest index).
__device__ FarthestGroupsBest update_chunk(Points& points, const Sample& sample, int own) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (own >= 0 && own / kSlots == lane) {
        const int32_t before = points.choose(own % kSlots);
        if (sample.distance_sq) *sample.distance_sq = __int_as_float(before);
    }
    const int32_t largest = points.update(sample.x, sample.y, sample.z);
    const int slot = points.slot_of(largest);
    FarthestGroupsBest best;
    best.key = warp_max(largest);
    const int leader = lowest_lane(largest == best.key);
    best.slot = leader * kSlots + __shfl_sync(~0u, slot, leader);
    return best;
}

__device__ void load_points(Points& points, const Chunks& chunks, int64_t chunk) {
    const int64_t at = chunk * kChunk + threadIdx.x % 32 * kSlots;
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
        points.x[i] = chunks.x[at + i], points.y[i] = chunks.y[at + i], points.z[i] = chunks.z[at + i];
        points.key[i] = chunks.key[at + i];
    }
}

/// What the warps of a block keep in shared memory.
struct WarpScratch {
    Candidate farthest;
    float box[6];
};

/// A warp with its one chunk in registers, the indices in shared memory.
class ResidentWarp {
public:
    static constexpr size_t kSharedBytes = kFarthestGroupsWarps * kChunk * sizeof(int32_t);  // of a block

    __device__ ResidentWarp(const Chunks& chunks, int64_t first_chunk, int32_t n_chunks, int32_t mine, int32_t /*step*/,
                            int32_t* shared_indices, WarpScratch* scratch)
        : mine_(mine), indices_(shared_indices), scratch_(scratch) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        best_ = {kChosen, kNoIndex, 0};
        load_points(points_, chunks, first_chunk + min(mine, n_chunks - 1));
        if (mine < n_chunks) {
            const int64_t chunk = first_chunk + mine;
            for (int i = lane; i < kChunk; i += 32) indices_[i] = chunks.index[chunk * kChunk + i];
            if (lane < 6) scratch_->box[lane] = chunks.box[lane * chunks.count + chunk];
            best_ = {chunks.best_key[chunk], chunks.best_index[chunk], chunks.best_slot[chunk]};
        }
        __syncwarp();
        offer();
    }

    __device__ void take(const Chunks&, const Sample& sample) {
        const int own = own_slot(sample, mine_, best_);
        if (own < 0 && box_key(scratch_->box, sample) >= best_.key) return;
        best_ = update_chunk(points_, sample, own);
        best_.index = indices_[best_.slot];
        offer();
    }

private:
    /// The lane that has the farthest point puts it where the block looks. Its slot is the first with that key; going
    /// by the number of the slot instead would make the compiler index the arrays, and move them out of the registers.
    __device__ void offer() {
        if (best_.slot / kSlots != static_cast<int>(threadIdx.x) % 32) return;
        Candidate c = {best_.key, best_.index, 0, 0, 0};
#pragma unroll
        for (int i = kSlots - 1; i >= 0; --i) {
            const bool here = points_.key[i] == best_.key;
            c.x = here ? points_.x[i] : c.x, c.y = here ? points_.y[i] : c.y, c.z = here ? points_.z[i] : c.z;
        }
        scratch_->farthest = c;
    }

    Points points_;
    FarthestGroupsBest best_;
    int32_t mine_;
    int32_t* indices_;
    WarpScratch* scratch_;
};

/// A warp with any number of chunks in global memory: `mine`, `mine + step`, ... Lane l looks after every 32nd of them;
/// no other thread reads or writes them, so plain accesses suffice.
class StreamingWarp {
public:
    static constexpr size_t kSharedBytes = 0;

    __device__ StreamingWarp(const Chunks& chunks, int64_t first_chunk, int32_t n_chunks, int32_t mine, int32_t step,
                             int32_t* /*shared_indices*/, WarpScratch* scratch)
        : first_chunk_(first_chunk), n_chunks_(n_chunks), mine_(mine), step_(step), scratch_(scratch) {
        visit(chunks, nullptr);
    }
    __device__ void take(const Chunks& chunks, const Sample& sample) { visit(chunks, &sample); }

private:
    __device__ void visit(const Chunks& chunks, const Sample* sample) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        FarthestGroupsBest lane_best = {kChosen, kNoIndex, 0};
        int64_t lane_chunk = 0;
        for (int32_t base = mine_; base < n_chunks_; base += 32 * step_) {
            const int32_t local = base + lane * step_;
            const int64_t chunk = first_chunk_ + local;
            FarthestGroupsBest best = {kChosen, kNoIndex, 0};
            int own = -1;
            bool touched = false;
            if (local < n_chunks_) {
                best = {chunks.best_key[chunk], chunks.best_index[chunk], chunks.best_slot[chunk]};
                if (sample) {
                    float box[6];
                    for (int i = 0; i < 6; ++i) box[i] = chunks.box[i * chunks.count + chunk];
                    own = own_slot(*sample, local, best);
                    touched = own >= 0 || box_key(box, *sample) < best.key;
                }
            }
            for (uint32_t rest = __ballot_sync(~0u, touched); rest != 0; rest &= rest - 1) {
                const int source = __ffs(static_cast<int>(rest)) - 1;
                const int64_t at = __shfl_sync(~0u, chunk, source);
                Points points;
                load_points(points, chunks, at);
                FarthestGroupsBest updated = update_chunk(points, *sample, __shfl_sync(~0u, own, source));
                updated.index = chunks.index[at * kChunk + updated.slot];
#pragma unroll
                for (int i = 0; i < kSlots; ++i) chunks.key[at * kChunk + lane * kSlots + i] = points.key[i];
                if (lane == source) {
                    best = updated;
                    chunks.best_key[chunk] = best.key;
                    chunks.best_index[chunk] = best.index;
                    chunks.best_slot[chunk] = best.slot;
                }
            }
            if (best.key > lane_best.key || (best.key == lane_best.key && best.index < lane_best.index)) {
                lane_best = best;
                lane_chunk = chunk;
            }
        }
        if (lane == farthest_lane(lane_best.key, lane_best.index)) {
            Candidate c = {lane_best.key, lane_best.index, 0, 0, 0};
            if (c.key >= 0) {
                const int64_t at = lane_chunk * kChunk + lane_best.slot;
                c.x = chunks.x[at], c.y = chunks.y[at], c.z = chunks.z[at];
            }
            scratch_->farthest = c;
        }
    }

    int64_t first_chunk_;
    int32_t n_chunks_, mine_, step_;
    WarpScratch* scratch_;
};

/// The farthest of `count` candidates in shared memory, for all lanes of a warp.
template <class Get>
__device__ Candidate farthest_of(int count, Get candidate) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    int32_t key = kChosen, index = kNoIndex;
    if (lane < count) key = candidate(lane).key, index = candidate(lane).index;
    return candidate(farthest_lane(key, index));
}

template <class Warp>
__global__ void __launch_bounds__(kGroupThreads, 1)
    sample_by_group(FarthestTask task, Chunks chunks, Message* messages, int members) {
    extern __shared__ int32_t shared_indices[];  // [kFarthestGroupsWarps * kChunk] of resident warps
    __shared__ WarpScratch of_warps[kFarthestGroupsWarps];
    __shared__ Candidate of_members[kFarthestGroupsWarps];
    const auto of_warp = [&](int i) -> const Candidate& { return of_warps[i].farthest; };
    const auto of_member = [&](int i) -> const Candidate& { return of_members[i]; };
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int groups = static_cast<int>(gridDim.x) / members, group = static_cast<int>(blockIdx.x) / members;
    const int member = static_cast<int>(blockIdx.x) % members;
    const int reading_warps = min(kFarthestGroupsWarps, (members + 31) / 32);
    messages += int64_t{2} * members * group;
    uint32_t exchange = 2;  // so that the first numbers differ from the zeros in memory, their bit too

    for (int64_t cloud = group; cloud < task.points.clouds; cloud += groups) {
        const int64_t sample_begin = task.samples.begin(cloud);
        const auto m = static_cast<int32_t>(task.samples.end(cloud) - sample_begin);
        if (m == 0 || task.points.end(cloud) - task.points.begin(cloud) <= kBlockPoints) continue;
        const int64_t first_chunk = chunks.batch.begin(cloud);
        const auto n_chunks = static_cast<int32_t>(chunks.batch.end(cloud) - first_chunk);
        const int32_t given = task.given_counts[cloud];
        // Neighbouring chunks go to different blocks: what one sample touches is spread over them.
        const int32_t mine = member + members * warp;
        __syncthreads();  // of_warps may still be read for the cloud before
        Warp own(chunks, first_chunk, n_chunks, mine, members * kFarthestGroupsWarps, shared_indices + warp * kChunk,
                 of_warps + warp);
        for (int32_t sample = 0; sample < m; ++sample) {
            Sample taken;
            if (sample < given) {
                taken.index = task.indices[sample_begin + sample];
                taken.position = chunks.position[task.points.begin(cloud) + taken.index];
                const int64_t at = first_chunk * kChunk + taken.position;
                taken.x = chunks.x[at], taken.y = chunks.y[at], taken.z = chunks.z[at];
                taken.distance_sq = task.distances_sq ? task.distances_sq + sample_begin + sample : nullptr;
            } else {
                __syncthreads();
                Candidate farthest;
                if (members == 1) {
                    farthest = farthest_of(kFarthestGroupsWarps, of_warp);
                    __syncthreads();
                } else {
                    Message* const buffer = messages + (exchange & 1u) * members;
                    if (warp == 0) {
                        const Candidate block_farthest = farthest_of(kFarthestGroupsWarps, of_warp);
                        if (lane == 0) send(buffer + member, block_farthest, exchange);
                    }
                    if (warp < reading_warps) {
                        Candidate best = {kChosen, kNoIndex, 0, 0, 0};
                        for (int i = static_cast<int>(threadIdx.x); i < members; i += 32 * reading_warps) {
                            const Candidate other = receive(buffer + i, exchange);
                            if (other.key > best.key || (other.key == best.key && other.index < best.index))
                                best = other;
                        }
                        if (lane == farthest_lane(best.key, best.index)) of_members[warp] = best;
                    }
                    __syncthreads();
                    farthest = farthest_of(reading_warps, of_member);
                    ++exchange;
                }
                if (farthest.key < 0) {  // nothing is left
                    if (member == 0) {
                        for (int64_t i = sample + threadIdx.x; i < m; i += kGroupThreads) {
                            task.indices[sample_begin + i] = -1;
                            if (task.distances_sq) task.distances_sq[sample_begin + i] = 0.0f;
                        }
                    }
                    break;
                }
                if (member == 0 && threadIdx.x == 0) {
                    task.indices[sample_begin + sample] = farthest.index;
                    if (task.distances_sq) task.distances_sq[sample_begin + sample] = __int_as_float(farthest.key);
                }
                taken = {farthest.x, farthest.y, farthest.z, farthest.index, -1, nullptr};
            }
            own.take(chunks, taken);
        }
    }
}

/// Calls of a cooperative kernel with as many groups as are resident at once.
template <class Warp>
void launch_groups(const FarthestTask& task, const Chunks& chunks, int members, int resident_blocks,
                   cudaStream_t stream) {
    const auto groups = static_cast<int>(std::min<int64_t>(task.points.clouds, resident_blocks / members));
    const Scratch<Message> messages(int64_t{2} * groups * members, stream);
    STIPPLE_CHECK_CUDA(cudaMemsetAsync(messages.get(), 0, messages.count() * sizeof(Message), stream));
    Message* to = messages.get();
    const void* arguments[] = {&task, &chunks, &to, &members};
    STIPPLE_CHECK_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(sample_by_group<Warp>),
                                                   dim3(static_cast<unsigned>(groups * members)), dim3(kGroupThreads),
                                                   const_cast<void**>(arguments), Warp::kSharedBytes, stream));
    STIPPLE_CHECK_LAUNCH(sample_by_group);
}

template <class Warp>
int count_resident_blocks() {
    int device = 0, units = 0, blocks = 0;
    STIPPLE_CHECK_CUDA(cudaGetDevice(&device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device));
    STIPPLE_CHECK_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sample_by_group<Warp>, kGroupThreads,
                                                                     Warp::kSharedBytes));
    return units * blocks;
}

}  // namespace

void sample_by_groups(const FarthestTask& task, const Batch& points, cudaStream_t stream) {
    const ChunkMemory memory(task, points, stream);
    // As few blocks for a cloud as hold it in registers; all there are, going through memory, when they do not.
    const int64_t wanted = (memory.batch().largest() + kFarthestGroupsWarps - 1) / kFarthestGroupsWarps;
    const int resident_blocks = count_resident_blocks<ResidentWarp>();
    if (wanted <= resident_blocks) {
        launch_groups<ResidentWarp>(task, memory.view(), static_cast<int>(wanted), resident_blocks, stream);
    } else {
        const int blocks = count_resident_blocks<StreamingWarp>();
        launch_groups<StreamingWarp>(task, memory.view(), blocks, blocks, stream);
    }
}

}  // namespace stipple::ops::cuda
