#pragma once
// Where torch's work on a tensor is queued: ops that are given this stream run between what torch queued before and
// after, and nobody waits.

#include <torch/types.h>

#include "stipple/core/device.h"

namespace stipple::learn {

/// As the views of ops name it. Throws Error{bad_argument} for what is neither on the CPU nor on CUDA.
Device ops_device(const torch::Tensor& tensor);

/// torch's current stream of the calling thread on the tensor's device; the default one for the CPU. In a backward
/// pass it is the stream of the forward pass, for torch's engine sets it. Throws Error{no_device} for a CUDA tensor in
/// a build without CUDA.
Stream current_stream(const torch::Tensor& tensor);

namespace cuda {
Stream current_stream(int device);
}

}  // namespace stipple::learn
