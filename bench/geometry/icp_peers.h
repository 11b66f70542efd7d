#pragma once
// ICP in other libraries, each in a file of its own so that its headers meet nobody else's.

#include <cstdint>
#include <functional>
#include <memory>

namespace peer {

/// 30 steps without early stop, pairs up to `max_distance`. Points [n, 3]; normals of the target [m, 3] for
/// point-to-plane, null for point-to-point.
struct IcpJob {
    const float* source = nullptr;
    int64_t n = 0;
    const float* target = nullptr;
    int64_t m = 0;
    const float* normals = nullptr;
    double max_distance = 0.1;
    int iterations = 30;
};

struct IcpOutcome {
    double transform[16] = {};  // row by row
};

/// Prepared outside the clock: the clouds in the library's own type.
using IcpRun = std::function<IcpOutcome(int threads)>;
IcpRun open3d_icp(const IcpJob& job);
IcpRun pcl_icp(const IcpJob& job);

}  // namespace peer
