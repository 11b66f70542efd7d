#include <omp.h>

#include <open3d/geometry/PointCloud.h>
#include <open3d/pipelines/registration/Registration.h>
#include <open3d/utility/Logging.h>

#include "icp_peers.h"

namespace peer {
namespace {

std::vector<Eigen::Vector3d> rows(const float* points, int64_t n) {
    std::vector<Eigen::Vector3d> all;
    for (int64_t i = 0; i < n; ++i) all.emplace_back(points[3 * i], points[3 * i + 1], points[3 * i + 2]);
    return all;
}

}  // namespace

IcpRun open3d_icp(const IcpJob& job) {
    open3d::utility::SetVerbosityLevel(open3d::utility::VerbosityLevel::Error);
    auto source = std::make_shared<open3d::geometry::PointCloud>(rows(job.source, job.n));
    auto target = std::make_shared<open3d::geometry::PointCloud>(rows(job.target, job.m));
    if (job.normals) target->normals_ = rows(job.normals, job.m);
    return [=](int threads) {
        namespace registration = open3d::pipelines::registration;
        omp_set_num_threads(threads);
        const registration::ICPConvergenceCriteria no_early_stop(-1, -1, job.iterations);
        const registration::TransformationEstimationPointToPoint point;
        const registration::TransformationEstimationPointToPlane plane;
        const auto found = job.normals
                               ? registration::RegistrationICP(*source, *target, job.max_distance,
                                                               Eigen::Matrix4d::Identity(), plane, no_early_stop)
                               : registration::RegistrationICP(*source, *target, job.max_distance,
                                                               Eigen::Matrix4d::Identity(), point, no_early_stop);
        IcpOutcome outcome;
        for (int i = 0; i < 16; ++i) outcome.transform[i] = found.transformation_(i / 4, i % 4);
        return outcome;
    };
}

}  // namespace peer
