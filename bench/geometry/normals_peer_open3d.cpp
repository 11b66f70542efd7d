#include <omp.h>

#include <open3d/geometry/KDTreeSearchParam.h>
#include <open3d/geometry/PointCloud.h>
#include <open3d/utility/Logging.h>

#include "normals_peers.h"

namespace peer {
namespace {

std::shared_ptr<open3d::geometry::PointCloud> cloud_of(const NormalsJob& job) {
    open3d::utility::SetVerbosityLevel(open3d::utility::VerbosityLevel::Error);
    auto cloud = std::make_shared<open3d::geometry::PointCloud>();
    for (int64_t i = 0; i < 3 * job.n; i += 3) {
        cloud->points_.emplace_back(job.points[i], job.points[i + 1], job.points[i + 2]);
        if (job.normals) cloud->normals_.emplace_back(job.normals[i], job.normals[i + 1], job.normals[i + 2]);
    }
    return cloud;
}

std::vector<float> normals_of(const open3d::geometry::PointCloud& cloud) {
    std::vector<float> normals;
    for (const Eigen::Vector3d& normal : cloud.normals_)
        for (int axis = 0; axis < 3; ++axis) normals.push_back(static_cast<float>(normal[axis]));
    return normals;
}

}  // namespace

NormalsRun open3d_normals(const NormalsJob& job) {
    const auto cloud = cloud_of(job);
    return {[=](int) { cloud->normals_.clear(); },
            [=](int threads) {
                omp_set_num_threads(threads);
                cloud->EstimateNormals(open3d::geometry::KDTreeSearchParamKNN(job.k));
            },
            [=] { return normals_of(*cloud); }};
}

NormalsRun open3d_orientation(const NormalsJob& job) {
    const auto cloud = cloud_of(job);
    const auto given = cloud->normals_;
    return {[=](int) { cloud->normals_ = given; },
            [=](int threads) {
                omp_set_num_threads(threads);
                cloud->OrientNormalsConsistentTangentPlane(static_cast<size_t>(job.k));
            },
            [=] { return normals_of(*cloud); }};
}

NormalsRun open3d_outliers(const NormalsJob& job, double ratio) {
    const auto cloud = cloud_of(job);
    const auto kept = std::make_shared<std::vector<int>>();
    return {[](int) {},
            [=](int threads) {
                omp_set_num_threads(threads);
                const auto found = cloud->RemoveStatisticalOutliers(static_cast<size_t>(job.k), ratio);
                kept->assign(std::get<1>(found).begin(), std::get<1>(found).end());
            },
            {},
            [=] { return *kept; }};
}

}  // namespace peer
