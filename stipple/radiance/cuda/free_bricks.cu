#include "stipple/radiance/cuda/structure.cuh"

namespace stipple::radiance::cuda {
namespace {

__global__ void __launch_bounds__(256) occupied_bricks_kernel(BrickGrid bricks, int32_t count, uint8_t* to) {
    const auto i = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= count) return;
    const int32_t number = bricks.table[i];
    to[i] = number >= 0 && bricks.occupied[number] != 0 ? 0 : kMostFree;
}

/// The distance is the largest of three, so that each axis has a pass of its own: the least of what bricks along the
/// axis have, or their own distance where that is more.
__global__ void __launch_bounds__(256)
    spread_kernel(int32_t count, int32_t size, int32_t stride, const uint8_t* from, uint8_t* to) {
    const auto i = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= count) return;
    const int32_t at = i / stride % size;
    int best = from[i];
    for (int d = 1; d < best; ++d) {
        if (at >= d) best = min(best, max(d, static_cast<int>(from[i - d * stride])));
        if (at + d < size) best = min(best, max(d, static_cast<int>(from[i + d * stride])));
    }
    to[i] = static_cast<uint8_t>(best);
}

}  // namespace

void launch_free_bricks(const BrickGrid& bricks, uint8_t* free, uint8_t* scratch, cudaStream_t stream) {
    const int32_t count = bricks.bricks[0] * bricks.bricks[1] * bricks.bricks[2];
    const int blocks = (count + 255) / 256;
    occupied_bricks_kernel<<<blocks, 256, 0, stream>>>(bricks, count, scratch);
    spread_kernel<<<blocks, 256, 0, stream>>>(count, bricks.bricks[0], bricks.bricks[1] * bricks.bricks[2], scratch,
                                              free);
    spread_kernel<<<blocks, 256, 0, stream>>>(count, bricks.bricks[1], bricks.bricks[2], free, scratch);
    spread_kernel<<<blocks, 256, 0, stream>>>(count, bricks.bricks[2], 1, scratch, free);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace stipple::radiance::cuda
