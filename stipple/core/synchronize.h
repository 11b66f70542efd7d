#pragma once
// Waiting for a GPU.

#include "stipple/core/device.h"

namespace stipple {

/// Returns when all that was given to the stream before is done. On the CPU, where work is done when its call returns,
/// at once. Throws Error{cuda} for what failed there, Error{no_device} in a build without CUDA.
void synchronize(Device device, Stream stream);

}  // namespace stipple
