#include "stipple/core/cuda/check.h"
#include "stipple/radiance/cuda/setup.cuh"
#include "stipple/radiance/march/opacity.h"
#include "stipple/radiance/train/visibility.h"

namespace stipple::radiance::cuda {
namespace {

struct Node {
    int32_t x, y, z;
};

__device__ Node node_of(const BrickGrid& bricks, int32_t at, int place) {
    return {at / (bricks.bricks[1] * bricks.bricks[2]) * kBrick + place / (kBrick * kBrick),
            at / bricks.bricks[2] % bricks.bricks[1] * kBrick + place / kBrick % kBrick,
            at % bricks.bricks[2] * kBrick + place % kBrick};
}
__device__ bool is_within(const GridView& view, Node n) {
    return n.x >= 0 && n.y >= 0 && n.z >= 0 && n.x < view.size[0] && n.y < view.size[1] && n.z < view.size[2];
}
__device__ Vec3f position(const GridView& view, Node n) {
    return {view.low.x + static_cast<float>(n.x) / view.per_unit.x,
            view.low.y + static_cast<float>(n.y) / view.per_unit.y,
            view.low.z + static_cast<float>(n.z) / view.per_unit.z};
}
__device__ int64_t dense_index(const GridView& view, Node n) {
    return (int64_t{n.x} * view.size[1] + n.y) * view.size[2] + n.z;
}
__device__ Node dense_node(const GridView& view, int64_t i) {
    return {static_cast<int32_t>(i / view.size[2] / view.size[1]),
            static_cast<int32_t>(i / view.size[2] % view.size[1]), static_cast<int32_t>(i % view.size[2])};
}

/// Blocks of kBrickNodes threads, one for each brick: its bits from a bit of each thread.
__device__ void store_bits(uint64_t* occupied, int brick, bool bit) {
    const unsigned word = __ballot_sync(kAll, bit);
    if (threadIdx.x % kWarp == 0) reinterpret_cast<uint32_t*>(occupied + brick)[threadIdx.x / kWarp] = word;
}

__global__ void __launch_bounds__(kBrickNodes)
    coarse_nodes_kernel(BrickGrid bricks, const int32_t* places, const CameraView* cameras, int count, float near,
                        float* counts, float4* value, uint64_t* occupied) {
    const int brick = static_cast<int>(blockIdx.x), place = static_cast<int>(threadIdx.x);
    const Node node = node_of(bricks, places[brick], place);
    const bool within = is_within(bricks.view, node);
    int seen = 0;
    bool near_camera = false;
    if (within) {
        const Vec3f p = position(bricks.view, node);
        seen = views_of(p, cameras, count, near);
        near_camera = is_near_camera(p, cameras, count, near);
    }
    const int64_t i = int64_t{brick} * kBrickNodes + place;
    counts[i] = static_cast<float>(seen);
    value[i] = {near_camera ? kTransparent : 0, 0, 0, 0};
    store_bits(occupied, brick, seen > 2);
}

__global__ void scale_kernel(float* values, int64_t count, float factor) {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < count) values[i] *= factor;
}

__global__ void unpack_kernel(BrickGrid bricks, const float* density, int stride, float* dense) {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= int64_t{bricks.view.size[0]} * bricks.view.size[1] * bricks.view.size[2]) return;
    const Node n = dense_node(bricks.view, i);
    const int32_t brick = bricks.brick_of(n.x, n.y, n.z);
    dense[i] =
        brick < 0 ? kTransparent : density[(int64_t{brick} * kBrickNodes + BrickGrid::place(n.x, n.y, n.z)) * stride];
}

__global__ void resample_kernel(BrickGrid old, const float* density, GridView view, float* dense, uint8_t* candidate) {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= int64_t{view.size[0]} * view.size[1] * view.size[2]) return;
    const Vec3f node = to_nodes(old.view, position(view, dense_node(view, i)));
    dense[i] = interpolate(corners_of(old, node), density);
    candidate[i] = is_occupied(old, node);
}

__global__ void prune_kernel(GridView view, const float* dense, const uint8_t* candidate, float shift, float length,
                             float threshold, uint8_t* occupied) {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= int64_t{view.size[0]} * view.size[1] * view.size[2]) return;
    occupied[i] = 0;
    if (!candidate[i]) return;
    const Node n = dense_node(view, i);
    float most = dense[i];
    for (int k = 0; k < 27; ++k) {
        const Node other = {n.x + k / 9 - 1, n.y + k / 3 % 3 - 1, n.z + k % 3 - 1};
        if (is_within(view, other)) most = fmaxf(most, dense[dense_index(view, other)]);
    }
    occupied[i] = opacity(most + shift, length) > threshold;
}

__global__ void wanted_kernel(GridView view, int bricks_x, int bricks_y, int bricks_z, const uint8_t* occupied,
                              uint8_t* wanted) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= bricks_x * bricks_y * bricks_z) return;
    const int first[3] = {i / (bricks_y * bricks_z) * kBrick, i / bricks_z % bricks_y * kBrick, i % bricks_z * kBrick};
    bool any = false;
    for (int x = -1; x <= kBrick && !any; ++x) {
        for (int y = -1; y <= kBrick && !any; ++y) {
            for (int z = -1; z <= kBrick && !any; ++z) {
                const Node n = {first[0] + x, first[1] + y, first[2] + z};
                any = is_within(view, n) && occupied[dense_index(view, n)];
            }
        }
    }
    wanted[i] = any;
}

__global__ void __launch_bounds__(kBrickNodes)
    fill_kernel(BrickGrid bricks, const int32_t* places, const uint8_t* occupied, const float* dense, BrickGrid old,
                const float* old_features, float* density, float* features, uint64_t* bits) {
    const int brick = static_cast<int>(blockIdx.x), place = static_cast<int>(threadIdx.x);
    const Node node = node_of(bricks, places[brick], place);
    const bool within = is_within(bricks.view, node);
    const int64_t i = int64_t{brick} * kBrickNodes + place;
    density[i] = within && dense ? dense[dense_index(bricks.view, node)] : 0;
    float4* to = reinterpret_cast<float4*>(features + i * kFeatures);
    for (int group = 0; group < kFeatures / 4; ++group) to[group] = {0, 0, 0, 0};
    if (within && old.table) {
        const Corners corners = corners_of(old, to_nodes(old.view, position(bricks.view, node)));
        for (int group = 0; group < kFeatures / 4; ++group) {
            float4 sum = {0, 0, 0, 0};
            for (int k = 0; k < 8; ++k) {
                if (corners.node[k] < 0) continue;
                const float4 f =
                    reinterpret_cast<const float4*>(old_features + int64_t{corners.node[k]} * kFeatures)[group];
                const float w = corners.weight[k];
                sum.x += w * f.x, sum.y += w * f.y, sum.z += w * f.z, sum.w += w * f.w;
            }
            to[group] = sum;
        }
    }
    store_bits(bits, brick, within && occupied[dense_index(bricks.view, node)]);
}

__global__ void __launch_bounds__(kBrickNodes)
    refresh_kernel(BrickGrid bricks, const int32_t* places, const float* density, int stride, float shift, float length,
                   float threshold, const uint64_t* candidates, uint64_t* occupied) {
    const int brick = static_cast<int>(blockIdx.x), place = static_cast<int>(threadIdx.x);
    bool bit = candidates[brick] >> place & 1;
    if (bit) {
        const Node n = node_of(bricks, places[brick], place);
        bit = opacity(densest_about(bricks, n.x, n.y, n.z, density, stride) + shift, length) > threshold;
    }
    __syncthreads();
    store_bits(occupied, brick, bit);
}

__global__ void __launch_bounds__(kPixelBlock)
    pixels_kernel(Photos photos, uint32_t pixels, BrickGrid bricks, bool all, bool only_opaque, float near, float step,
                  uint32_t* bits, uint32_t* counts) {
    __shared__ uint32_t total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const uint32_t pixel = blockIdx.x * kPixelBlock + threadIdx.x;
    bool hit = false;
    if (pixel < pixels) {
        const int32_t photo = photo_of(photos, pixel);
        const CameraView& camera = photos.cameras[photo];
        const int place = static_cast<int>(pixel - photos.first[photo]);
        const bool known = !only_opaque || photos.pixels[int64_t{pixel} * 4 + 3] > 0;
        hit = known && (all || meets_occupied(bricks, camera, place % camera.width, place / camera.width, near, step));
    }
    const unsigned word = __ballot_sync(kAll, hit);
    if (threadIdx.x % kWarp == 0) {
        bits[pixel / kWarp] = word;
        atomicAdd(&total, static_cast<uint32_t>(__popc(word)));
    }
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kPixelBlock)
    list_kernel(const uint32_t* bits, const uint32_t* first, uint32_t pixels, uint32_t* list) {
    const uint32_t pixel = blockIdx.x * kPixelBlock + threadIdx.x;
    const uint32_t word = pixel / kWarp, begin = blockIdx.x * (kPixelBlock / kWarp);
    if (pixel >= pixels || !(bits[word] >> (pixel % kWarp) & 1)) return;
    uint32_t place = first[blockIdx.x] + static_cast<uint32_t>(__popc(bits[word] & ((1u << (pixel % kWarp)) - 1)));
    for (uint32_t w = begin; w < word; ++w) place += static_cast<uint32_t>(__popc(bits[w]));
    list[place] = pixel;
}

__global__ void __launch_bounds__(256) pack_kernel(const int32_t* chosen, const float* density, const float* features,
                                                   float* to_density, __half* to_features) {
    const int64_t from = int64_t{chosen[blockIdx.x]} * kBrickNodes, to = int64_t{blockIdx.x} * kBrickNodes;
    for (int i = static_cast<int>(threadIdx.x); i < kBrickNodes; i += 256) to_density[to + i] = density[from + i];
    for (int i = static_cast<int>(threadIdx.x); i < kBrickNodes * kFeatures; i += 256) {
        to_features[to * kFeatures + i] =
            __float2half(fminf(fmaxf(features[from * kFeatures + i], -65504.0f), 65504.0f));
    }
}

int blocks_of(int64_t count) {
    return static_cast<int>((count + 255) / 256);
}

}  // namespace

void launch_coarse_nodes(const BrickGrid& bricks, const int32_t* place, int32_t stored, const CameraView* cameras,
                         int cameras_count, float near, float* count, float4* value, uint64_t* occupied,
                         cudaStream_t stream) {
    coarse_nodes_kernel<<<stored, kBrickNodes, 0, stream>>>(bricks, place, cameras, cameras_count, near, count, value,
                                                            occupied);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_scale(float* values, int64_t count, float factor, cudaStream_t stream) {
    scale_kernel<<<blocks_of(count), 256, 0, stream>>>(values, count, factor);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_unpack(const BrickGrid& bricks, const float* density, int stride, float* dense, cudaStream_t stream) {
    unpack_kernel<<<blocks_of(bricks.view.nodes()), 256, 0, stream>>>(bricks, density, stride, dense);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_resample(const BrickGrid& old, const float* density, const GridView& view, float* dense, uint8_t* candidate,
                     cudaStream_t stream) {
    resample_kernel<<<blocks_of(view.nodes()), 256, 0, stream>>>(old, density, view, dense, candidate);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_prune(const GridView& view, const float* dense, const uint8_t* candidate, float shift, float length,
                  float threshold, uint8_t* occupied, cudaStream_t stream) {
    prune_kernel<<<blocks_of(view.nodes()), 256, 0, stream>>>(view, dense, candidate, shift, length, threshold,
                                                              occupied);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_wanted(const GridView& view, const int32_t (&bricks)[3], const uint8_t* occupied, uint8_t* wanted,
                   cudaStream_t stream) {
    const int64_t count = int64_t{bricks[0]} * bricks[1] * bricks[2];
    wanted_kernel<<<blocks_of(count), 256, 0, stream>>>(view, bricks[0], bricks[1], bricks[2], occupied, wanted);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_fill(const BrickGrid& bricks, const int32_t* place, int32_t stored, const uint8_t* occupied,
                 const float* dense, const BrickGrid& old, const float* old_features, float* density, float* features,
                 uint64_t* bits, cudaStream_t stream) {
    fill_kernel<<<stored, kBrickNodes, 0, stream>>>(bricks, place, occupied, dense, old, old_features, density,
                                                    features, bits);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_refresh(const BrickGrid& bricks, const int32_t* place, int32_t stored, const float* density, int stride,
                    float shift, float length, float threshold, const uint64_t* candidates, uint64_t* occupied,
                    cudaStream_t stream) {
    refresh_kernel<<<stored, kBrickNodes, 0, stream>>>(bricks, place, density, stride, shift, length, threshold,
                                                       candidates, occupied);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_pixels(const Photos& photos, uint32_t pixels, const BrickGrid* bricks, bool only_opaque, float near,
                   float step, uint32_t* bits, uint32_t* counts, cudaStream_t stream) {
    const unsigned blocks = static_cast<unsigned>((uint64_t{pixels} + kPixelBlock - 1) / kPixelBlock);
    pixels_kernel<<<blocks, kPixelBlock, 0, stream>>>(photos, pixels, bricks ? *bricks : BrickGrid{}, !bricks,
                                                      only_opaque, near, step, bits, counts);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_list(const uint32_t* bits, const uint32_t* first, uint32_t pixels, uint32_t* list, cudaStream_t stream) {
    const unsigned blocks = static_cast<unsigned>((uint64_t{pixels} + kPixelBlock - 1) / kPixelBlock);
    list_kernel<<<blocks, kPixelBlock, 0, stream>>>(bits, first, pixels, list);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_pack(const int32_t* chosen, int32_t count, const float* density, const float* features, float* to_density,
                 __half* to_features, cudaStream_t stream) {
    pack_kernel<<<count, 256, 0, stream>>>(chosen, density, features, to_density, to_features);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace stipple::radiance::cuda
