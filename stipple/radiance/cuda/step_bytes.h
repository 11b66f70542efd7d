#pragma once
// What the kernels of a fine step (step.cuh) ask of memory, counted from their arguments. Bytes are those that threads
// read and write, an atomic sum being both: what caches answer is counted too, so that a kernel whose nodes are cached
// may come out above the bandwidth of memory itself. Host code.

#include <string>
#include <vector>

#include "stipple/radiance/train.h"
#include "stipple/radiance/train/constants.h"

namespace stipple::radiance::cuda {

/// Of one step.
struct StepCounts {
    int64_t rays = 0, in_box = 0, in_mask = 0, opaque = 0, kept = 0;  // samples as in SampleCounts
    int64_t stored_bricks = 0, touched_bricks = 0;
    int64_t updated_densities = 0;                             // those that have a gradient
    int64_t updated_feature_rows = 0;                          // rows of four features of which one has a gradient
    int64_t forward_blocks = 0, back_blocks = 0;               // of the colour network, each of which reads the weights
    int64_t gradient_bytes = 4;                                // of an element: 8 in deterministic training
    int64_t ray_bytes = 0, camera_bytes = 0, state_bytes = 0;  // sizes of RayRecord, CameraView, StepState
};

/// Operations of the colour network for one sample, multiplications and additions: there, and back without computing
/// the hidden layers again.
inline constexpr int64_t kForwardOperations =
    2 * (int64_t{kNetworkInputs} * kHidden + int64_t{kHidden} * kHidden + 3 * kHidden);
inline constexpr int64_t kBackOperations =
    2 * (int64_t{kNetworkInputs} * kHidden + int64_t{kHidden} * kHidden + 3 * kHidden)  // weights
    + 2 * (int64_t{3} * kHidden + int64_t{kHidden} * kHidden + int64_t{kFeatures} * kHidden);

/// Sets `bytes` and `operations` of the parts that launch_fine_step names; others stay as they are.
void count_traffic(const StepCounts& counts, std::vector<StepPart>& parts);

}  // namespace stipple::radiance::cuda
