// Farthest point sampling of large clouds: a group of blocks for each cloud, resident through all of its samples.
//
// The points of a cloud lie along a space-filling curve in chunks of 256, each with its box, and within a chunk by
// index. A warp owns a chunk and keeps it in registers (or several, in memory, when the cloud is larger than the
// registers of the device); it looks at its points only when the new sample is nearer to the box than the chunk's
// largest distance, which is exact (farthest_tree.h). Then each block publishes its farthest point and reads those of
// the others: that exchange is the only meeting of the blocks, once a sample.

#include <cub/device/device_radix_sort.cuh>

#include "stipple/ops/farthest_cuda.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kChunk = 32 * kSlots;  // points of a warp
constexpr int kWarps = 32, kGroupThreads = 32 * kWarps;
constexpr int kAxisBits = 16;  // of the curve, fewer in batches of more than 2^16 clouds

/// The clouds in chunks. Point arrays [chunks * kChunk], chunk arrays [chunks], boxes [6, chunks].
struct Chunks {
    DeviceBatch batch;  // rows are chunks
    float *x, *y, *z;
    int32_t *key, *index;                        // of a point; kChosen and kNoIndex where there is none
    int32_t* position;                           // [rows of the points], the place of a point in its cloud's chunks
    float* box;                                  // lows of x, y, z, then highs
    int32_t *best_key, *best_index, *best_slot;  // the farthest point of a chunk
    int64_t count;
};

__device__ bool is_finite(float x, float y, float z) {
    return isfinite(x) && isfinite(y) && isfinite(z);
}

/// Floats as unsigned integers of the same order; 0 is below all of them.
__device__ uint32_t ordered(float value) {
    const uint32_t bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ float from_ordered(uint32_t value) {
    return __uint_as_float(value & 0x80000000u ? value & 0x7FFFFFFFu : ~value);
}

/// bounds[cloud]: ordered -low and high of each axis, maxima (0 at first), so atomics give the same in any order.
/// `slices` blocks for each cloud.
__global__ void find_bounds(FarthestTask task, int slices, uint32_t* bounds) {
    __shared__ uint32_t block_bounds[6];
    const int64_t cloud = blockIdx.x / slices, begin = task.points.begin(cloud), end = task.points.end(cloud);
    if (threadIdx.x < 6) block_bounds[threadIdx.x] = 0;
    __syncthreads();
    uint32_t own[6] = {};
    for (int64_t row = begin + int64_t{blockIdx.x % slices} * blockDim.x + threadIdx.x; row < end;
         row += int64_t{slices} * blockDim.x) {
        const float* p = task.rows + row * task.row_stride;
        if (!is_finite(p[0], p[1], p[2])) continue;
        for (int axis = 0; axis < 3; ++axis) {
            own[axis] = max(own[axis], ordered(-p[axis]));
            own[3 + axis] = max(own[3 + axis], ordered(p[axis]));
        }
    }
    for (int i = 0; i < 6; ++i) atomicMax(block_bounds + i, own[i]);
    __syncthreads();
    if (threadIdx.x < 6) atomicMax(bounds + 6 * cloud + threadIdx.x, block_bounds[threadIdx.x]);
}

__device__ uint64_t spread(uint64_t v) {  // 16 bits (up to 21), two zeros between
    v = (v | v << 32) & 0x001F00000000FFFFull;
    v = (v | v << 16) & 0x001F0000FF0000FFull;
    v = (v | v << 8) & 0x100F00F00F00F00Full;
    v = (v | v << 4) & 0x10C30C30C30C30C3ull;
    return (v | v << 2) & 0x1249249249249249ull;
}

/// The cloud, then the place on the curve. A coarse place costs time, never a wrong sample.
__global__ void find_keys(FarthestTask task, const uint32_t* bounds, int axis_bits, uint64_t* keys, int32_t* indices) {
    const int64_t step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < task.points.rows; row += step) {
        const int64_t cloud = task.points.cloud_of(row);
        const float* p = task.rows + row * task.row_stride;
        const uint64_t last = (uint64_t{1} << axis_bits) - 1;
        uint64_t place = (uint64_t{1} << 3 * axis_bits) - 1;  // non-finite points come last
        if (is_finite(p[0], p[1], p[2])) {
            double low[3], extent = 0;
            for (int axis = 0; axis < 3; ++axis) {
                low[axis] = -static_cast<double>(from_ordered(bounds[6 * cloud + axis]));
                extent = fmax(extent, from_ordered(bounds[6 * cloud + 3 + axis]) - low[axis]);
            }
            place = 0;
            for (int axis = 0; axis < 3 && extent > 0; ++axis) {
                const auto cell = static_cast<uint64_t>((p[axis] - low[axis]) / extent * static_cast<double>(last + 1));
                place |= spread(min(cell, last)) << axis;
            }
        }
        keys[row] = static_cast<uint64_t>(cloud) << 3 * axis_bits | place;
        indices[row] = static_cast<int32_t>(row - task.points.begin(cloud));
    }
}

/// One block for each chunk: its points by index (the rank is counted, 256 comparisons a point), its box.
__global__ void __launch_bounds__(kChunk) fill_chunks(FarthestTask task, const int32_t* sorted_indices, Chunks chunks) {
    __shared__ int32_t all[kChunk];
    __shared__ uint32_t box[6];
    __shared__ int32_t best_slot, best_index;
    const int thread = static_cast<int>(threadIdx.x);
    for (int64_t chunk = blockIdx.x; chunk < chunks.count; chunk += gridDim.x) {
        const int64_t cloud = chunks.batch.cloud_of(chunk), begin = task.points.begin(cloud);
        const int64_t first = (chunk - chunks.batch.begin(cloud)) * kChunk;  // position in the cloud
        const int count = static_cast<int>(min(int64_t{kChunk}, task.points.end(cloud) - begin - first));
        const int32_t index = thread < count ? sorted_indices[begin + first + thread] : kNoIndex;
        all[thread] = index;
        if (thread < 6) box[thread] = 0;
        if (thread == 0) best_slot = kChunk, best_index = kNoIndex;
        __syncthreads();
        int rank = thread;  // places beyond the points stay where they are
        if (thread < count) {
            rank = 0;
            for (int i = 0; i < count; ++i) rank += all[i] < index;
        }
        float p[3] = {};
        bool there = thread < count;
        if (there) {
            for (int axis = 0; axis < 3; ++axis) p[axis] = task.rows[(begin + index) * task.row_stride + axis];
            there = is_finite(p[0], p[1], p[2]);
            chunks.position[begin + index] = static_cast<int32_t>(first) + rank;
        }
        if (there) {
            for (int axis = 0; axis < 3; ++axis) {
                atomicMax(box + axis, ordered(-p[axis]));
                atomicMax(box + 3 + axis, ordered(p[axis]));
            }
            atomicMin(&best_slot, rank);
            atomicMin(&best_index, index);
        }
        const int64_t at = chunk * kChunk + rank;
        chunks.x[at] = there ? p[0] : 0.0f;
        chunks.y[at] = there ? p[1] : 0.0f;
        chunks.z[at] = there ? p[2] : 0.0f;
        chunks.key[at] = there ? __float_as_int(INFINITY) : kChosen;
        chunks.index[at] = index;
        __syncthreads();
        const bool any = best_slot < kChunk;
        if (thread < 6) {
            const float side = any ? from_ordered(box[thread]) : 0.0f;
            chunks.box[thread * chunks.count + chunk] = thread < 3 ? -side : side;
        }
        if (thread == 0) {
            chunks.best_key[chunk] = any ? __float_as_int(INFINITY) : kChosen;
            chunks.best_index[chunk] = best_index;
            chunks.best_slot[chunk] = any ? best_slot : 0;
        }
        __syncthreads();
    }
}

struct Candidate {
    int32_t key, index;
    float x, y, z;
};

/// How the blocks of a group tell each other their farthest points: [groups, 2, members] of 32 bytes, zero at first.
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
struct Best {
    int32_t key, index;
    int slot;
};

/// Is the sample a point of this chunk, and which? -1 when not.
__device__ int own_slot(const Sample& sample, int32_t chunk, const Best& best) {
    if (sample.position >= 0) return sample.position / kChunk == chunk ? sample.position % kChunk : -1;
    return best.key >= 0 && best.index == sample.index ? best.slot : -1;
}

/// Updates the warp's points; the key and the slot of the farthest (lowest lane and slot: lowest index).
__device__ Best update_chunk(Points& points, const Sample& sample, int own) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (own >= 0 && own / kSlots == lane) {
        const int32_t before = points.choose(own % kSlots);
        if (sample.distance_sq) *sample.distance_sq = __int_as_float(before);
    }
    const int32_t largest = points.update(sample.x, sample.y, sample.z);
    const int slot = points.slot_of(largest);
    Best best;
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
    static constexpr size_t kSharedBytes = kWarps * kChunk * sizeof(int32_t);  // of a block

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
    Best best_;
    int32_t mine_;
    int32_t* indices_;
    WarpScratch* scratch_;
};

/// A warp with any number of chunks in global memory: `mine`, `mine + step`, ... Lane l looks after every 32nd of them;
/// nobody else reads or writes them, so plain accesses do.
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
        Best lane_best = {kChosen, kNoIndex, 0};
        int64_t lane_chunk = 0;
        for (int32_t base = mine_; base < n_chunks_; base += 32 * step_) {
            const int32_t local = base + lane * step_;
            const int64_t chunk = first_chunk_ + local;
            Best best = {kChosen, kNoIndex, 0};
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
                Best updated = update_chunk(points, *sample, __shfl_sync(~0u, own, source));
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
    extern __shared__ int32_t shared_indices[];  // [kWarps * kChunk] of resident warps
    __shared__ WarpScratch of_warps[kWarps];
    __shared__ Candidate of_members[kWarps];
    const auto of_warp = [&](int i) -> const Candidate& { return of_warps[i].farthest; };
    const auto of_member = [&](int i) -> const Candidate& { return of_members[i]; };
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int groups = static_cast<int>(gridDim.x) / members, group = static_cast<int>(blockIdx.x) / members;
    const int member = static_cast<int>(blockIdx.x) % members;
    const int reading_warps = min(kWarps, (members + 31) / 32);
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
        Warp own(chunks, first_chunk, n_chunks, mine, members * kWarps, shared_indices + warp * kChunk,
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
                    farthest = farthest_of(kWarps, of_warp);
                    __syncthreads();
                } else {
                    Message* const buffer = messages + (exchange & 1u) * members;
                    if (warp == 0) {
                        const Candidate block_farthest = farthest_of(kWarps, of_warp);
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

Batch chunks_of(const Batch& points) {
    if (points.is_dense()) return Batch::dense(points.clouds(), (points.largest() + kChunk - 1) / kChunk);
    std::vector<int64_t> offsets = {0};
    offsets.reserve(points.offsets().size());
    for (int64_t cloud = 0; cloud < points.clouds(); ++cloud)
        offsets.push_back(offsets.back() + (points.size(cloud) + kChunk - 1) / kChunk);
    return Batch::ragged(std::move(offsets));
}

}  // namespace

void sample_by_groups(const FarthestTask& task, const Batch& points, cudaStream_t stream) {
    const int64_t rows = points.rows();
    const Batch chunk_batch = chunks_of(points);
    const int64_t n_chunks = chunk_batch.rows();
    const UploadedBatch uploaded(chunk_batch, stream);
    const Scratch<float> coordinates(checked_mul(n_chunks, 3 * kChunk + 6), stream);
    const Scratch<int32_t> integers(checked_mul(n_chunks, 2 * kChunk + 3), stream), position(rows, stream);
    Chunks chunks;
    chunks.batch = uploaded.view();
    chunks.count = n_chunks;
    chunks.x = coordinates.get();
    chunks.y = chunks.x + n_chunks * kChunk;
    chunks.z = chunks.y + n_chunks * kChunk;
    chunks.box = chunks.z + n_chunks * kChunk;
    chunks.key = integers.get();
    chunks.index = chunks.key + n_chunks * kChunk;
    chunks.best_key = chunks.index + n_chunks * kChunk;
    chunks.best_index = chunks.best_key + n_chunks;
    chunks.best_slot = chunks.best_index + n_chunks;
    chunks.position = position.get();
    {
        constexpr int kThreads = 256;
        const Scratch<uint32_t> bounds(6 * points.clouds(), stream);
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(bounds.get(), 0, bounds.count() * sizeof(uint32_t), stream));
        const int slices = static_cast<int>(std::clamp<int64_t>(512 / points.clouds(), 1, 256));
        find_bounds<<<static_cast<unsigned>(points.clouds() * slices), kThreads, 0, stream>>>(task, slices,
                                                                                              bounds.get());
        STIPPLE_CHECK_LAUNCH(find_bounds);

        int cloud_bits = 0;
        while ((points.clouds() - 1) >> cloud_bits != 0) ++cloud_bits;
        const int axis_bits = std::min(kAxisBits, (64 - cloud_bits) / 3);
        const Scratch<uint64_t> keys(rows, stream), sorted_keys(rows, stream);
        const Scratch<int32_t> indices(rows, stream), sorted_indices(rows, stream);
        find_keys<<<blocks_for(std::min<int64_t>(rows, 1 << 22), kThreads), kThreads, 0, stream>>>(
            task, bounds.get(), axis_bits, keys.get(), indices.get());
        STIPPLE_CHECK_LAUNCH(find_keys);
        size_t bytes = 0;
        const auto sort = [&](void* scratch) {
            STIPPLE_CHECK_CUDA(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.get(), sorted_keys.get(),
                                                               indices.get(), sorted_indices.get(), rows, 0,
                                                               cloud_bits + 3 * axis_bits, stream));
        };
        sort(nullptr);
        const Scratch<char> scratch(static_cast<int64_t>(bytes), stream);
        sort(scratch.get());
        fill_chunks<<<static_cast<unsigned>(std::min<int64_t>(n_chunks, 1 << 20)), kChunk, 0, stream>>>(
            task, sorted_indices.get(), chunks);
        STIPPLE_CHECK_LAUNCH(fill_chunks);
    }
    // As few blocks for a cloud as hold it in registers; all there are, going through memory, when they do not.
    const int64_t wanted = (chunk_batch.largest() + kWarps - 1) / kWarps;
    const int resident_blocks = count_resident_blocks<ResidentWarp>();
    if (wanted <= resident_blocks) {
        launch_groups<ResidentWarp>(task, chunks, static_cast<int>(wanted), resident_blocks, stream);
    } else {
        const int blocks = count_resident_blocks<StreamingWarp>();
        launch_groups<StreamingWarp>(task, chunks, blocks, blocks, stream);
    }
}

}  // namespace stipple::ops::cuda
