#pragma once
// ops::dropout as a function of tensors.

#include <cstdint>
#include <torch/types.h>

namespace stipple::learn {

/// x [rows, c] of float32, float64, float16 or bfloat16; step: int64 [1] on the device of x, which holds it until the
/// backward pass: the gradient draws the same numbers again instead of keeping a mask. first: number of x's first
/// element in the whole batch. The draws are those of ops/dropout.h, whatever the type and the device.
torch::Tensor dropout(const torch::Tensor& x, double rate, uint64_t key, const torch::Tensor& step, int64_t first = 0);

}  // namespace stipple::learn
