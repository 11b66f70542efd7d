#pragma once
// What the kernels of the fused chain are given. Plain pointers into device memory.
//
// All products are computed transposed: channels are the rows of the result, points its columns. So a bias belongs to a
// row, the weights stay in registers while points stream by, and the maximum over points is a maximum over registers.

#include <cstdint>

#include "stipple/core/device.h"
#include "stipple/engine/precision.h"

namespace stipple::engine::cuda {

constexpr int kChainFirst = 64;     // channels after the first layer, and between the middle ones
constexpr int kChainLast = 128;     // inputs of the last layer
constexpr int kChainMiddle = 3;     // most layers between the first and the last
constexpr int kChainOutStep = 256;  // the last layer's outputs are a multiple of this

/// A layer between the first and the last: 64 -> 64, or 64 -> 128 for the last of them.
struct ChainMiddle {
    const uint4* weight = nullptr;  // packed by pack_factor
    const float* matrix = nullptr;  // [clouds, out * 64]: the cloud's own weights instead
    const float* bias = nullptr;    // [out]
    float slope = 0;                // of the activation below zero: 1 none, 0 ReLU
};

struct ChainArguments {
    const float* x = nullptr;  // [rows, 3]
    int64_t x_stride = 3;
    const int32_t* offsets = nullptr;     // clouds + 1; null: `points` each
    int32_t clouds = 0, points = 0;       // points of the largest cloud
    const float* first_weight = nullptr;  // [64, 3], or [clouds, 64 * 3]
    bool first_of_cloud = false;
    const float* first_bias = nullptr;
    float first_slope = 0;
    ChainMiddle middle[kChainMiddle];
    int32_t n_middle = 0;
    const uint4* last_weight = nullptr;  // packed by pack_factor
    float last_input_scale = 1;          // int8, fp8: what the last layer's input is multiplied with
    int32_t out = 0;
    float* partial = nullptr;  // [clouds * tiles, out]: the largest raw product of a tile of points
};

constexpr int kChainMmaPoints = 128;  // of a block of launch_chain_mma
int chain_mma_shared_bytes(Precision precision);
void launch_chain_mma(Precision precision, int multiprocessors, const ChainArguments& arguments, Stream stream);

/// Points of a block of launch_chain_wgmma. A cloud of n points has ceil(n / this) tiles.
int chain_wgmma_points(Precision precision, int64_t clouds, int64_t points, int multiprocessors);
void launch_chain_wgmma(Precision precision, int tile_points, int multiprocessors, const ChainArguments& arguments,
                        Stream stream);

/// out [clouds, c] = activation(scale * (maximum of the cloud's tiles) + bias)
struct ChainFinish {
    const float* partial = nullptr;
    const int32_t* offsets = nullptr;
    int32_t clouds = 0, points = 0, tile_points = 0, out = 0;
    const float* scale = nullptr;  // [c]
    const float* bias = nullptr;   // [c]
    float slope = 0;
    float* result = nullptr;
};
void launch_chain_finish(const ChainFinish& arguments, Stream stream);

}  // namespace stipple::engine::cuda
