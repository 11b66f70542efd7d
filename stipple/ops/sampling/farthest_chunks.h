#pragma once
// The points of large clouds in chunks of 256 neighbours, for farthest_groups.cu. Included by .cu files only.

#include "stipple/ops/sampling/farthest_cuda.h"

namespace stipple::ops::cuda {

constexpr int kChunk = 32 * kSlots;  // points of a warp

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

/// Builds the chunks in stream order and owns their memory.
class ChunkMemory {
public:
    ChunkMemory(const FarthestTask& task, const Batch& points, cudaStream_t stream);
    const Chunks& view() const { return chunks_; }
    const Batch& batch() const { return batch_; }  // rows are chunks

private:
    Batch batch_;
    UploadedBatch uploaded_;
    Scratch<float> coordinates_;
    Scratch<int32_t> integers_, position_;
    Chunks chunks_ = {};
};

}  // namespace stipple::ops::cuda
