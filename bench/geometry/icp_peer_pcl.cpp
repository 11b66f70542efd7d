#include <pcl/console/print.h>
#include <pcl/point_cloud.h>
#include <pcl/point_types.h>
#include <pcl/registration/icp.h>
#include <pcl/registration/transformation_estimation_point_to_plane_lls.h>

#include "icp_peers.h"

namespace peer {
namespace {

template <class Point>
typename pcl::PointCloud<Point>::Ptr cloud_of(const float* points, int64_t n) {
    auto cloud = std::make_shared<pcl::PointCloud<Point>>();
    for (int64_t i = 0; i < n; ++i) {
        Point point;
        point.x = points[3 * i];
        point.y = points[3 * i + 1];
        point.z = points[3 * i + 2];
        cloud->push_back(point);
    }
    return cloud;
}

template <class Point>
IcpOutcome run(pcl::IterativeClosestPoint<Point, Point>& icp, const IcpJob& job,
               typename pcl::PointCloud<Point>::ConstPtr source, typename pcl::PointCloud<Point>::ConstPtr target) {
    icp.setInputSource(source);
    icp.setInputTarget(target);
    icp.setMaxCorrespondenceDistance(job.max_distance);
    icp.setMaximumIterations(job.iterations);
    icp.setTransformationEpsilon(0);
    icp.setEuclideanFitnessEpsilon(-1);
    // Steps of no motion count as converged after this many: never.
    icp.getConvergeCriteria()->setMaximumIterationsSimilarTransforms(job.iterations + 1);
    pcl::PointCloud<Point> aligned;
    icp.align(aligned);
    IcpOutcome outcome;
    for (int i = 0; i < 16; ++i) outcome.transform[i] = icp.getFinalTransformation()(i / 4, i % 4);
    return outcome;
}

}  // namespace

IcpRun pcl_icp(const IcpJob& job) {
    pcl::console::setVerbosityLevel(pcl::console::L_ERROR);
    if (!job.normals) {
        const auto source = cloud_of<pcl::PointXYZ>(job.source, job.n),
                   target = cloud_of<pcl::PointXYZ>(job.target, job.m);
        return [=](int) {
            pcl::IterativeClosestPoint<pcl::PointXYZ, pcl::PointXYZ> icp;
            return run<pcl::PointXYZ>(icp, job, source, target);
        };
    }
    const auto source = cloud_of<pcl::PointNormal>(job.source, job.n),
               target = cloud_of<pcl::PointNormal>(job.target, job.m);
    for (int64_t i = 0; i < job.m; ++i)
        for (int axis = 0; axis < 3; ++axis) (*target)[i].normal[axis] = job.normals[3 * i + axis];
    return [=](int) {
        pcl::IterativeClosestPointWithNormals<pcl::PointNormal, pcl::PointNormal> icp;
        return run<pcl::PointNormal>(icp, job, source, target);
    };
}

}  // namespace peer
