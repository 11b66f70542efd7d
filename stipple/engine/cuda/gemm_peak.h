#pragma once
// The most that this GPU's products do: large ones by cuBLASLt. CUDA builds only.

#include "stipple/core/device.h"
#include "stipple/engine/precision.h"

namespace stipple::engine::cuda {

/// Operations per second, two for each multiply-add, of a product of 8192 x 8192 x 8192 with random factors, the best
/// of several runs; 0 when cuBLASLt is not installed or has none in this precision on this GPU. Takes some tenths of a
/// second.
double gemm_peak(Device device, Precision precision);

}  // namespace stipple::engine::cuda
