#include <pcl/filters/farthest_point_sampling.h>
#include <pcl/filters/voxel_grid.h>
#include <pcl/kdtree/kdtree_flann.h>
#include <pcl/point_types.h>

#include "peer.h"

namespace peer {
namespace {

using Cloud = pcl::PointCloud<pcl::PointXYZ>;

Cloud::Ptr cloud_of(const float* points, int64_t n) {
    Cloud::Ptr cloud(new Cloud);
    cloud->reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) cloud->emplace_back(points[3 * i], points[3 * i + 1], points[3 * i + 2]);
    return cloud;
}

Run knn(const Job& job) {
    return [job, cloud = cloud_of(job.a, job.n)](int threads) {
        pcl::KdTreeFLANN<pcl::PointXYZ> tree;
        tree.setInputCloud(cloud);
        double sum = 0;
#pragma omp parallel num_threads(threads)
        {
            const auto k = static_cast<size_t>(job.count);
            pcl::Indices indices(k);
            std::vector<float> sq(k);
#pragma omp for schedule(dynamic, 256) reduction(+ : sum)
            for (int64_t i = 0; i < job.n; ++i) {
                tree.nearestKSearch((*cloud)[static_cast<size_t>(i)], static_cast<unsigned>(job.count), indices, sq);
                sum += sq[k - 1];
            }
        }
        return sum / static_cast<double>(job.n);
    };
}

Run fps(const Job& job) {
    return [job, cloud = cloud_of(job.a, job.n)](int) {
        pcl::FarthestPointSampling<pcl::PointXYZ> sampler;
        sampler.setInputCloud(cloud);
        sampler.setSample(static_cast<size_t>(job.count));
        pcl::Indices kept;
        sampler.filter(kept);
        return static_cast<double>(kept.size());
    };
}

Run voxel(const Job& job) {
    return [job, cloud = cloud_of(job.a, job.n)](int) {
        pcl::VoxelGrid<pcl::PointXYZ> grid;
        grid.setInputCloud(cloud);
        grid.setLeafSize(job.length, job.length, job.length);
        Cloud kept;
        grid.filter(kept);
        return static_cast<double>(kept.size());
    };
}

}  // namespace

std::vector<Peer> pcl_peers() {
    return {{"PCL KdTreeFLANN", "knn", true, knn},
            {"PCL FarthestPointSampling", "fps", false, fps},
            {"PCL VoxelGrid", "voxel", false, voxel}};
}

}  // namespace peer
