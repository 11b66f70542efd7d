#pragma once
// A training step on the CPU. Sums over rays are of integers or in the order of fixed chunks, so that results do not
// depend on the number of threads.

#include "stipple/radiance/train/adam.h"
#include "stipple/radiance/train/constants.h"

namespace stipple::radiance::cpu {

/// Values with their moments; gradients are integers (kGradientOne), whose sums do not depend on their order.
struct Values {
    std::vector<float> value, mean, square;
    std::vector<int64_t> gradient;

    void reset_moments() {
        mean.assign(value.size(), 0);
        square.assign(value.size(), 0);
        gradient.assign(value.size(), 0);
    }
};

/// Of some of a step's rays.
struct ChunkSums {
    std::vector<float> network_gradient;
    double squared_error = 0;
    SampleCounts counts;
};

struct StepMemory {
    StepConstants constants;
    Photos photos;
    PixelPool pool;
    StepState state;
    BrickGrid bricks;
    Values density, features;         // coarse: features [nodes, 3] are colours before their sigmoids
    int channels = kFeatures;         // 3 in the coarse stage, which has no network
    std::vector<float> density_rate;  // [nodes] of the coarse stage; empty: 1
    std::vector<uint8_t> touched;     // [bricks]
    Values network;
    Values environment;  // [constants.environment_side squared, 3]
    SampleCounts counts;
    std::vector<ChunkSums> sums;
    std::vector<float> network_gradient;  // [kNetworkNumbers]
};

/// Of the rays of the step that the state names, added to the grids' gradients.
void compute_gradients(StepMemory& memory);
/// compute_gradients, then Adam; gradients are 0 again.
void run_step(StepMemory& memory);

}  // namespace stipple::radiance::cpu
