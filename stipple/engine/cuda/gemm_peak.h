#pragma once
// The most that this GPU's products do: large ones by cuBLASLt. CUDA builds only.

#include "stipple/core/device.h"
#include "stipple/engine/precision.h"

namespace stipple::engine::cuda {

/// As engine::gemm_peak.
double gemm_peak(Device device, Precision precision);

}  // namespace stipple::engine::cuda
