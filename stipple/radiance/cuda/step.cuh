#pragma once
// The arguments of the kernels of a training step, and their launchers. All counts that a step decides stay on the
// device.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <functional>

#include "stipple/radiance/train/adam.h"
#include "stipple/radiance/train/constants.h"

namespace stipple::radiance::cuda {

constexpr int kWarp = 32, kRayWarps = 4;  // a warp takes a ray
constexpr unsigned kAll = 0xffffffffu;

/// What later kernels need of a ray.
struct RayRecord {
    March march;
    Vec3f direction;  // as it was drawn
    float colour[3], background[3];
    float left;       // what is seen behind the last sample
    int32_t samples;  // opaque ones, up to the last that is seen
    int32_t in_box, in_mask;
};

/// A step's samples. Those of ray r begin at r * capacity in `index`, `opacity`, `weight`; the kept ones of all rays
/// follow each other in `features`, `ray`, `colour`.
struct Samples {
    RayRecord* rays = nullptr;
    int32_t* kept_of = nullptr;   // [rays] samples that get a colour
    int32_t* first_of = nullptr;  // [rays] of those, in the list of all rays; -1: there was no room
    float* error_of = nullptr;    // [rays] squared, summed over channels
    float* view = nullptr;        // [rays, kViewCode]
    uint16_t* index = nullptr;
    float *opacity = nullptr, *weight = nullptr;  // weight 0: not kept
    int32_t capacity = 0;
    float* features = nullptr;  // [kept, kFeatures], then their gradients
    int32_t* ray = nullptr;     // [kept]
    float4* colour = nullptr;   // [kept] and the weight; then the gradients before the sigmoid, times gradient_scale
    int32_t kept_capacity = 0;
    int32_t* kept = nullptr;  // one number
};

/// Gradients are floats, or in deterministic training integers (kGradientOne), whose sums do not depend on their order.
struct Grids {
    BrickGrid bricks;
    float *density = nullptr, *density_mean = nullptr, *density_square = nullptr;
    float *features = nullptr, *features_mean = nullptr, *features_square = nullptr;  // [nodes, kFeatures]
    void *density_gradient = nullptr, *features_gradient = nullptr;
    uint8_t* touched = nullptr;  // [bricks]
    int32_t stored = 0;          // bricks
};

struct NetworkMemory {
    float *value = nullptr, *mean = nullptr, *square = nullptr;  // [kNetworkNumbers]
    __half* half = nullptr;                                      // as the tensor cores want it (colour.cu)
    float* partial = nullptr;                                    // [blocks, kNetworkNumbers]
    int32_t blocks = 0;
};

/// Of a background that is learned.
struct EnvironmentMemory {
    float *value = nullptr, *mean = nullptr, *square = nullptr;  // [side, side, 3]
    void* gradient = nullptr;
    int32_t side = 0;  // 0: there is none
};

struct FineStep {
    StepConstants constants;
    Photos photos;
    PixelPool pool;
    StepState* state = nullptr;
    Samples samples;
    Grids grids;
    NetworkMemory network;
    EnvironmentMemory environment;
    float gradient_scale = 1;
    const int32_t* brick_place = nullptr;  // [stored bricks] in the table of all bricks; for total variation
};

/// Of the coarse stage: a node is (density, red, green, blue) before their sigmoids.
struct CoarseStep {
    StepConstants constants;
    Photos photos;
    PixelPool pool;
    StepState* state = nullptr;
    BrickGrid bricks;
    EnvironmentMemory environment;
    float4 *value = nullptr, *mean = nullptr, *square = nullptr;
    void* gradient = nullptr;
    const float* rate = nullptr;  // [nodes] of densities
    int64_t nodes = 0;
    float* error_of = nullptr;
    uint16_t* index = nullptr;
    float *opacity = nullptr, *weight = nullptr;
    int32_t capacity = 0;
};

template <bool kFixed>
__device__ inline void add_gradient(void* gradients, int64_t i, float value) {
    if constexpr (kFixed) {
        atomicAdd(static_cast<unsigned long long*>(gradients) + i,
                  static_cast<unsigned long long>(__float2ll_rn(value * kGradientOne)));
    } else {
        atomicAdd(static_cast<float*>(gradients) + i, value);
    }
}

/// Four neighbours at a time; `i` a multiple of 4.
template <bool kFixed>
__device__ inline void add_gradient4(void* gradients, int64_t i, float4 value) {
    if constexpr (!kFixed) {
#if __CUDA_ARCH__ >= 900
        atomicAdd(reinterpret_cast<float4*>(static_cast<float*>(gradients) + i), value);
        return;
#endif
    }
    add_gradient<kFixed>(gradients, i, value.x);
    add_gradient<kFixed>(gradients, i + 1, value.y);
    add_gradient<kFixed>(gradients, i + 2, value.z);
    add_gradient<kFixed>(gradients, i + 3, value.w);
}

/// The gradient, which is cleared.
template <bool kFixed>
__device__ inline float take_gradient(void* gradients, int64_t i) {
    if constexpr (kFixed) {
        long long& g = static_cast<long long*>(gradients)[i];
        const float value = static_cast<float>(g) / kGradientOne;
        if (g != 0) g = 0;
        return value;
    } else {
        float& g = static_cast<float*>(gradients)[i];
        const float value = g;
        if (value != 0) g = 0;
        return value;
    }
}

/// Product of the lanes before (exclusive) and up to each lane.
__device__ inline float inclusive_product(float value, int lane) {
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
        const float before = __shfl_up_sync(kAll, value, step);
        if (lane >= step) value *= before;
    }
    return value;
}
/// Sum of the lanes after and at each lane.
__device__ inline float suffix_sum(float value, int lane) {
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
        const float after = __shfl_down_sync(kAll, value, step);
        if (lane + step < kWarp) value += after;
    }
    return value;
}
__device__ inline float warp_sum(float value) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kAll, value, step);
    return value;
}

/// `mark`, where there is one, is called with the name of each part when it has been queued.
using Mark = std::function<void(const char* part)>;
void launch_fine_step(const FineStep& step, bool fixed, bool half_network, int multiprocessors, cudaStream_t stream,
                      const Mark& mark = {});
void launch_coarse_step(const CoarseStep& step, bool fixed, cudaStream_t stream);

/// seen: [stored nodes], cleared before.
void launch_seen(const CoarseStep& step, uint32_t pixels, uint32_t stride, float least, uint8_t* seen,
                 cudaStream_t stream);

// Parts of a fine step, in order.
void launch_march(const FineStep& step, cudaStream_t stream);
/// Where the kept samples of each ray go in the list of all.
void launch_place(const Samples& samples, int32_t rays, cudaStream_t stream);
void launch_gather(const FineStep& step, cudaStream_t stream);
void launch_colour_forward(const FineStep& step, int multiprocessors, cudaStream_t stream);
void launch_composite(const FineStep& step, bool fixed, cudaStream_t stream);
void launch_colour_backward(const FineStep& step, int multiprocessors, cudaStream_t stream);
void launch_colour_single(const FineStep& step, bool backward, int multiprocessors, cudaStream_t stream);
void launch_scatter(const FineStep& step, bool fixed, cudaStream_t stream);
void launch_optimise_grids(const FineStep& step, bool fixed, cudaStream_t stream);
void launch_optimise_network(const FineStep& step, cudaStream_t stream);
void launch_network_halves(const NetworkMemory& network, cudaStream_t stream);
void launch_advance(StepState* state, const float* error_of, int32_t count, double decay, cudaStream_t stream);
void prepare_colour_kernels();

}  // namespace stipple::radiance::cuda
