#pragma once

#include "peer.h"

namespace peer {

/// Farthest point sampling from point 0 by its definition; the lowest index of equals. Our indices must equal these.
std::vector<int32_t> naive_fps(const float* points, int64_t n, int64_t count, int threads);

/// Ours, for the same job.
std::vector<int32_t> stipple_fps(const Job& job);

}  // namespace peer
