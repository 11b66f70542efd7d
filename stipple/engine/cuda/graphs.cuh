#pragma once
// A small cache of CUDA graphs: what a context has run before with the same batch and the same pointers is replayed as
// one launch. Included by .cu files only.

#include <cuda_runtime.h>

#include <functional>
#include <list>

#include "stipple/ops/clouds.h"

namespace stipple::engine::cuda {

/// What a recorded run depends on.
struct GraphKey {
    struct Points {
        bool is_dense = true;
        int64_t clouds = 0, rows = 0;
        std::vector<int64_t> offsets;  // ragged
        bool operator==(const Points&) const = default;
    };
    std::vector<Points> sets;
    std::vector<std::pair<const void*, int64_t>> pointers;  // and strides, of inputs and outputs

    bool operator==(const GraphKey&) const = default;
};

class GraphCache {
public:
    GraphCache();
    ~GraphCache();
    GraphCache(const GraphCache&) = delete;
    GraphCache& operator=(const GraphCache&) = delete;

    /// The first time a key is seen, `queue` runs on the stream itself; the second time it is recorded; from then on
    /// the recording is launched. The least recently used of kMost keys makes room.
    void run(const GraphKey& key, const std::function<void(cudaStream_t)>& queue, cudaStream_t stream);

    static constexpr size_t kMost = 8;

private:
    struct Entry {
        GraphKey key;
        cudaGraphExec_t graph = nullptr;
    };
    std::list<Entry> entries_;        // most recent first
    cudaStream_t capture_ = nullptr;  // the default stream cannot be captured
};

}  // namespace stipple::engine::cuda
