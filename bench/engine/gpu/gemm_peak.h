#pragma once
// What the GPU's products reach at most: one large product by cuBLASLt, which is the limit an engine is measured by.

#include <cstdint>

#include "stipple/core/device.h"
#include "stipple/engine/precision.h"

namespace stipple::bench {

/// Operations per second (a multiply-add is two) of an 8192^3 product of random numbers, the best of several runs and
/// of the library's first algorithms. 0 where the library has none for this precision.
double gemm_peak(engine::Precision precision, Device device);

/// Device memory that is in use, by anybody.
int64_t used_bytes(Device device);

}  // namespace stipple::bench
