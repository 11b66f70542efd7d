#pragma once
// Rows in kernels: which row of an input belongs to a row of the output.

#include "stipple/engine/cuda/steps.h"

namespace stipple::engine::cuda {

constexpr int kThreads = 256;

/// Rows of the step: rows of clouds, or `width` rows of each point.
struct RowSpace {
    BatchView batch;
    int32_t width = 1;
    bool is_cloud = false;
};

__device__ inline const float* source_row(const RowSource& source, const RowSpace& space, int64_t row) {
    if (source.access != Access::row && !space.is_cloud) {
        const auto point = static_cast<int32_t>(row / space.width);
        if (source.access == Access::cloud) {
            row = space.batch.cloud_of(point);
        } else if (source.access == Access::point) {
            row = point;
        } else {
            row = space.batch.begin(space.batch.cloud_of(point)) + source.indices[row];
        }
    }
    return source.data + row * source.stride;
}

/// Blocks for a loop over `count` items with a stride of the whole grid.
inline unsigned grid_for(int64_t count) {
    constexpr int64_t kMost = 132 * 16;
    const int64_t blocks = (count + kThreads - 1) / kThreads;
    return static_cast<unsigned>(blocks < 1 ? 1 : blocks < kMost ? blocks : kMost);
}

inline RowSpace space_of(const StepCall& call, const ValueView& rows) {
    return {call.batch, rows.width, rows.is_cloud};
}

}  // namespace stipple::engine::cuda

/// for every index of a grid-stride loop.
#define STIPPLE_GRID_LOOP(index, count)                                                                \
    for (int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; index < (count); \
         index += static_cast<int64_t>(gridDim.x) * blockDim.x)
