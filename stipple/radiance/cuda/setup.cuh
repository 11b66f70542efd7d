#pragma once
// Kernels between steps: which nodes are occupied, which pixels see them, grids on other nodes.

#include <cuda_fp16.h>

#include "stipple/radiance/cuda/step.cuh"

namespace stipple::radiance::cuda {

/// Coarse nodes by what cameras see: count [stored nodes], values, and the bits of nodes that more than two see.
void launch_coarse_nodes(const BrickGrid& bricks, const int32_t* place, int32_t stored, const CameraView* cameras,
                         int cameras_count, float near, float* count, float4* value, uint64_t* occupied,
                         cudaStream_t stream);
void launch_scale(float* values, int64_t count, float factor, cudaStream_t stream);

/// Densities of stored nodes (every `stride`-th number) on all nodes [nodes], z fastest.
void launch_unpack(const BrickGrid& bricks, const float* density, int stride, float* dense, cudaStream_t stream);

/// Trilinear densities of the old grid at the nodes of `view`, and whether the nearest old node is occupied.
void launch_resample(const BrickGrid& old, const float* density, const GridView& view, float* dense, uint8_t* candidate,
                     cudaStream_t stream);
/// Candidates about which one of the 27 nodes is opaque stay.
void launch_prune(const GridView& view, const float* dense, const uint8_t* candidate, float shift, float length,
                  float threshold, uint8_t* occupied, cudaStream_t stream);
/// Bricks of `view` within one node of an occupied one.
void launch_wanted(const GridView& view, const int32_t (&bricks)[3], const uint8_t* occupied, uint8_t* wanted,
                   cudaStream_t stream);
/// Values of the stored bricks. `old` without a table: zeros.
void launch_fill(const BrickGrid& bricks, const int32_t* place, int32_t stored, const uint8_t* occupied,
                 const float* dense, const BrickGrid& old, const float* old_features, float* density, float* features,
                 uint64_t* bits, cudaStream_t stream);

/// Of the candidates, which may be `occupied` itself, those about which one of the 27 nodes is opaque.
void launch_refresh(const BrickGrid& bricks, const int32_t* place, int32_t stored, const float* density, int stride,
                    float shift, float length, float threshold, const uint64_t* candidates, uint64_t* occupied,
                    cudaStream_t stream);

/// A bit for each pixel whose ray meets an occupied node, and the number of them for every kPixelBlock pixels.
constexpr int kPixelBlock = 256;
/// Without bricks every pixel does. Transparent pixels do not where `only_opaque`.
void launch_pixels(const Photos& photos, uint32_t pixels, const BrickGrid* bricks, bool only_opaque, float near,
                   float step, uint32_t* bits, uint32_t* counts, cudaStream_t stream);
void launch_list(const uint32_t* bits, const uint32_t* first, uint32_t pixels, uint32_t* list, cudaStream_t stream);

/// Bricks `chosen`, features in half precision.
void launch_pack(const int32_t* chosen, int32_t count, const float* density, const float* features, float* to_density,
                 __half* to_features, cudaStream_t stream);

}  // namespace stipple::radiance::cuda
