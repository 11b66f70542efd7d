#include <omp.h>

#include <open3d/core/Tensor.h>
#include <open3d/core/nns/NearestNeighborSearch.h>
#include <open3d/geometry/PointCloud.h>
#include <open3d/utility/Logging.h>
#include <tbb/global_control.h>

#include "peer.h"

namespace peer {
namespace {

/// Open3D's own threads: OpenMP in the older half, TBB in the newer.
class Threads {
public:
    explicit Threads(int count)
        : before_(omp_get_max_threads()),
          control_(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(count)) {
        omp_set_num_threads(count);
    }
    ~Threads() { omp_set_num_threads(before_); }

private:
    int before_;
    tbb::global_control control_;
};

open3d::geometry::PointCloud cloud_of(const float* points, int64_t n) {
    open3d::geometry::PointCloud cloud;
    cloud.points_.reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) cloud.points_.emplace_back(points[3 * i], points[3 * i + 1], points[3 * i + 2]);
    return cloud;
}

double mean_sq(const std::vector<double>& distances) {
    double sum = 0;
    for (double distance : distances) sum += distance * distance;
    return sum / static_cast<double>(distances.size());
}

Run knn(const Job& job) {
    const open3d::core::Tensor points(std::vector<float>(job.a, job.a + 3 * job.n), {job.n, 3}, open3d::core::Float32);
    return [job, points](int threads) {
        const Threads limit(threads);
        open3d::core::nns::NearestNeighborSearch search(points, open3d::core::Int32);
        search.KnnIndex();
        const auto [indices, sq] = search.KnnSearch(points, static_cast<int>(job.count));
        const float* values = sq.GetDataPtr<float>();
        double sum = 0;
        for (int64_t i = 0; i < job.n; ++i) sum += values[i * job.count + job.count - 1];
        return sum / static_cast<double>(job.n);
    };
}

Run fps(const Job& job) {
    return [job, cloud = cloud_of(job.a, job.n)](int threads) {
        const Threads limit(threads);
        return static_cast<double>(cloud.FarthestPointDownSample(static_cast<size_t>(job.count))->points_.size());
    };
}

Run voxel(const Job& job) {
    return [job, cloud = cloud_of(job.a, job.n)](int threads) {
        const Threads limit(threads);
        return static_cast<double>(cloud.VoxelDownSample(job.length)->points_.size());
    };
}

Run chamfer(const Job& job) {
    return [a = cloud_of(job.a, job.n), b = cloud_of(job.b, job.m)](int threads) mutable {
        const Threads limit(threads);
        return mean_sq(a.ComputePointCloudDistance(b)) + mean_sq(b.ComputePointCloudDistance(a));
    };
}

}  // namespace

std::vector<Peer> open3d_peers() {
    open3d::utility::SetVerbosityLevel(open3d::utility::VerbosityLevel::Error);
    return {{"Open3D core.nns", "knn", true, knn},
            {"Open3D", "fps", false, fps},
            {"Open3D", "voxel", false, voxel},
            {"Open3D", "chamfer", true, chamfer}};
}

}  // namespace peer
