#pragma once
// Tensors of float16 or bfloat16.

#include <torch/types.h>

namespace stipple::learn {

inline bool is_short(const torch::Tensor& x) {
    return x.scalar_type() == torch::kHalf || x.scalar_type() == torch::kBFloat16;
}

/// Short numbers become float32; all else stays.
inline torch::Tensor at_least_float(const torch::Tensor& x) {
    return is_short(x) ? x.to(torch::kFloat32) : x;
}

}  // namespace stipple::learn
