#pragma once
// What the kernels of grouping and interpolation share. Included by .cu files only.

#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/neighbours.h"

namespace stipple::ops::cuda {

/// Blocks of 256 threads, threadIdx.x over the columns of a row and threadIdx.y over rows: neighbouring threads touch
/// neighbouring numbers, narrow rows share a warp, and no thread divides to find its place.
struct RowBlocks {
    dim3 block;
    unsigned grid = 0;

    RowBlocks(int64_t rows, int64_t columns) {
        unsigned lanes = 1;
        while (lanes < 32 && lanes < columns) lanes *= 2;
        block = dim3(lanes, 256 / lanes);
        grid = blocks_for(rows, static_cast<int>(block.y));
    }
};

__device__ inline int64_t row_of_thread() {
    return int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
}

/// Whether rows of `columns` floats, `stride` apart, can be read 16 bytes at a time.
inline bool is_aligned(const void* data, int64_t columns, int64_t stride) {
    return reinterpret_cast<uintptr_t>(data) % 16 == 0 && columns % 4 == 0 && stride % 4 == 0;
}

__device__ inline float sub(float a, float b) {
    return __fsub_rn(a, b);
}
__device__ inline float4 sub(float4 a, float4 b) {
    return make_float4(sub(a.x, b.x), sub(a.y, b.y), sub(a.z, b.z), sub(a.w, b.w));
}

/// a + w b with both results rounded, as on the CPU.
__device__ inline float add_scaled(float a, float w, float b) {
    return __fadd_rn(a, __fmul_rn(w, b));
}
__device__ inline float4 add_scaled(float4 a, float w, float4 b) {
    return make_float4(add_scaled(a.x, w, b.x), add_scaled(a.y, w, b.y), add_scaled(a.z, w, b.z),
                       add_scaled(a.w, w, b.w));
}

/// Neighbours as kernels see them: the indices, the clouds that hold them and those they point into.
struct DeviceNeighbours {
    const int32_t* indices;
    int64_t k;
    DeviceBatch batch, rows;

    /// The row of the batch that neighbour j of row i names, or -1.
    __device__ int64_t named(int64_t i, int64_t j) const { return named_in(batch.cloud_of(i), indices[i * k + j]); }
    __device__ int64_t named_in(int64_t cloud, int32_t index) const {
        const int64_t first = rows.begin(cloud);
        return names_row(index, rows.end(cloud) - first) ? first + index : -1;
    }
};

/// Holds the offsets of both batches for a launch.
class UploadedNeighbours {
public:
    UploadedNeighbours(const Neighbours& neighbours, const Batch& rows, cudaStream_t stream)
        : batch_(neighbours.batch, stream), rows_(rows, stream) {
        view_ = {neighbours.indices.data(), neighbours.k(), batch_.view(), rows_.view()};
    }
    const DeviceNeighbours& view() const { return view_; }

private:
    UploadedBatch batch_, rows_;
    DeviceNeighbours view_{};
};

/// Sum over the `lanes` neighbouring threads (a power of two, at most 32); every thread of the warp must come here.
__device__ inline double sum_over_lanes(double value, int lanes) {
    for (int step = lanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

}  // namespace stipple::ops::cuda
