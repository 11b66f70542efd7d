#include <small_gicp/registration/registration_helper.hpp>

#include "icp_lidar_peers.h"

namespace peer {

LidarRun small_gicp_run(const LidarClouds& clouds, bool plane) {
    const auto take = [](const float* points, int64_t n) {
        auto cloud = std::make_shared<small_gicp::PointCloud>();
        cloud->resize(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i)
            cloud->points[static_cast<size_t>(i)] = {points[3 * i], points[3 * i + 1], points[3 * i + 2], 1};
        return cloud;
    };
    return [source = take(clouds.source, clouds.n), target = take(clouds.target, clouds.m),
            plane](const Pose& start) -> Pose {
        // As its README and examples do on this pair: cells of 0.25, 10 neighbours, all else by default.
        small_gicp::RegistrationSetting setting;
        setting.num_threads = 1;
        setting.type = plane ? small_gicp::RegistrationSetting::PLANE_ICP : small_gicp::RegistrationSetting::GICP;
        const auto [to, tree] = small_gicp::preprocess_points(*target, setting.downsampling_resolution, 10, 1);
        const auto [from, unused] = small_gicp::preprocess_points(*source, setting.downsampling_resolution, 10, 1);
        Eigen::Isometry3d initial = Eigen::Isometry3d::Identity();
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 4; ++j) initial.matrix()(i, j) = start[static_cast<size_t>(4 * i + j)];
        const small_gicp::RegistrationResult found = small_gicp::align(*to, *from, *tree, initial, setting);
        Pose pose = {};
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) pose[static_cast<size_t>(4 * i + j)] = found.T_target_source.matrix()(i, j);
        return pose;
    };
}

}  // namespace peer
