#include <pcl/features/normal_3d_omp.h>
#include <pcl/filters/statistical_outlier_removal.h>
#include <pcl/point_cloud.h>
#include <pcl/point_types.h>
#include <pcl/search/kdtree.h>

#include "normals_peers.h"

namespace peer {
namespace {

pcl::PointCloud<pcl::PointXYZ>::Ptr cloud_of(const NormalsJob& job) {
    auto cloud = std::make_shared<pcl::PointCloud<pcl::PointXYZ>>();
    for (int64_t i = 0; i < 3 * job.n; i += 3)
        cloud->push_back(pcl::PointXYZ(job.points[i], job.points[i + 1], job.points[i + 2]));
    return cloud;
}

}  // namespace

NormalsRun pcl_normals(const NormalsJob& job) {
    const auto cloud = cloud_of(job);
    const auto found = std::make_shared<pcl::PointCloud<pcl::Normal>>();
    return {[](int) {},
            [=](int threads) {
                pcl::NormalEstimationOMP<pcl::PointXYZ, pcl::Normal> estimation(static_cast<unsigned>(threads));
                estimation.setInputCloud(cloud);
                estimation.setSearchMethod(std::make_shared<pcl::search::KdTree<pcl::PointXYZ>>());
                estimation.setKSearch(job.k);
                estimation.compute(*found);
            },
            [=] {
                std::vector<float> normals;
                for (const pcl::Normal& normal : *found)
                    for (int axis = 0; axis < 3; ++axis) normals.push_back(normal.normal[axis]);
                return normals;
            }};
}

NormalsRun pcl_outliers(const NormalsJob& job, double ratio) {
    const auto cloud = cloud_of(job);
    const auto kept = std::make_shared<std::vector<int>>();
    return {[](int) {},
            [=](int) {  // it has no threads
                pcl::StatisticalOutlierRemoval<pcl::PointXYZ> removal;
                removal.setInputCloud(cloud);
                removal.setMeanK(job.k - 1);  // it leaves the point itself out
                removal.setStddevMulThresh(ratio);
                kept->clear();
                removal.filter(*kept);
            },
            {},
            [=] { return *kept; }};
}

}  // namespace peer
