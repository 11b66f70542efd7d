#pragma once
// Normals, their orientation and outliers in other libraries, each in a file of its own so that its headers meet nobody
// else's.

#include <cstdint>
#include <functional>
#include <vector>

namespace peer {

/// Points [n, 3] and, for orientation, normals [n, 3].
struct NormalsJob {
    const float* points = nullptr;
    const float* normals = nullptr;
    int64_t n = 0;
    int k = 16;
};

/// Prepared outside the clock: the cloud in the library's own type. What comes back is outside of it too: normals
/// [n, 3], or the indices of the points that are kept.
struct NormalsRun {
    std::function<void(int threads)> prepare = [](int) {};  // outside the clock
    std::function<void(int threads)> run;
    std::function<std::vector<float>()> normals = {};
    std::function<std::vector<int>()> kept = {};
};

NormalsRun open3d_normals(const NormalsJob& job);
NormalsRun open3d_orientation(const NormalsJob& job);
NormalsRun open3d_outliers(const NormalsJob& job, double ratio);
NormalsRun pcl_normals(const NormalsJob& job);
NormalsRun pcl_outliers(const NormalsJob& job, double ratio);

}  // namespace peer
