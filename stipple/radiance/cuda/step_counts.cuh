#pragma once
// Included by .cu files only.

#include "stipple/radiance/cuda/step.cuh"
#include "stipple/radiance/cuda/step_bytes.h"

namespace stipple::radiance::cuda {

/// Runs one step and counts what it has to do. Waits for it.
StepCounts count_step(const FineStep& step, bool fixed, bool half_network, int multiprocessors, int device,
                      cudaStream_t stream);

}  // namespace stipple::radiance::cuda
