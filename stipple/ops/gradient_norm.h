#pragma once
// The Euclidean norm of the gradients of all parameters together: what clipping and loss scales look at.

#include <span>

#include "stipple/core/dtype.h"
#include "stipple/core/view.h"

namespace stipple::ops {

/// Adjacent numbers of f32, f16 or bf16.
struct GradientTensor {
    const void* data = nullptr;
    DType dtype = DType::f32;
    int64_t count = 0;
};

/// norm = sqrt(sum of the squares of all numbers of all tensors), rounded to float32.
///
/// gradients  on norm's device; the list itself is host memory and may go once the call returns. Of none the norm is 0
/// norm       [1]
///
/// Squares and sums are float64: no finite gradient overflows there, and the norm is infinite only where float32 cannot
/// hold it. It is not finite where a number is infinite or NaN. Sums are in a fixed order, the same bits from run to
/// run and on the CPU for any number of threads; CPU and CUDA differ in the order, which float32 hardly ever shows.
/// Reads every number once; 8 bytes of memory for each 4096 numbers.
///
/// Throws Error{bad_argument} for other types, counts below 0 or above 2^40, tensors without memory, another shape of
/// norm.
void gradient_norm(std::span<const GradientTensor> gradients, View<float, 1> norm, Stream stream = {});

namespace cuda {
void gradient_norm(std::span<const GradientTensor> gradients, View<float, 1> norm, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
