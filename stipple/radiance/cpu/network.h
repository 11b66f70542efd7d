#pragma once
// The colour network on the CPU, for batches of samples. A thread at a time works on a batch.

#include <vector>

#include "stipple/radiance/train/constants.h"

namespace stipple::radiance::cpu {

/// Of one batch; memory is kept from batch to batch.
struct NetworkBatch {
    std::vector<float> inputs;  // [samples, kNetworkInputs] the last is 1
    std::vector<float> hidden1, hidden2;
    std::vector<float> outputs;          // [samples, 3] before the sigmoid; for backward: their gradients
    std::vector<float> input_gradients;  // [samples, kNetworkInputs]
    std::vector<float> gradient1, gradient2;
};

/// numbers: [kNetworkNumbers]. Fills hidden layers and outputs of samples.
void forward(const float* numbers, int64_t samples, NetworkBatch& batch);
/// After forward, with gradients in `outputs`: adds to gradients [kNetworkNumbers], fills input_gradients.
void backward(const float* numbers, int64_t samples, NetworkBatch& batch, float* gradients);

}  // namespace stipple::radiance::cpu
