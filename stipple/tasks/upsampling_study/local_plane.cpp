#include "stipple/tasks/upsampling_study/local_plane.h"

#include <Eigen/Eigenvalues>
#include <cmath>
#include <numbers>

#include "stipple/ops/knn.h"

namespace stipple::tasks::study {
namespace {

constexpr int64_t kDensityNeighbours = 16;

}  // namespace

Nearest nearest(const PointCloud& of, const PointCloud& among, int64_t k) {
    Nearest found{Array<int32_t, 2>({of.size(), k}), Array<float, 2>({of.size(), k})};
    ops::knn(ops::PointIndex(among.positions.view()), of.positions.view(), found.indices.view(), found.squares.view());
    return found;
}

std::vector<double> scan_spacings(const PointCloud& scan) {
    const Nearest own = nearest(scan, scan, kDensityNeighbours + 1);
    std::vector<double> spacings;
    for (int64_t i = 0; i < scan.size(); ++i)
        spacings.push_back(
            std::sqrt(std::numbers::pi * own.squares.view()(i, kDensityNeighbours) / kDensityNeighbours));
    return spacings;
}

LocalPlane fit_plane(std::span<const Vec3d> points) {
    const double share = 1.0 / static_cast<double>(points.size());
    LocalPlane plane;
    for (const Vec3d at : points) plane.centre = plane.centre + share * at;
    Eigen::Matrix3d covariance = Eigen::Matrix3d::Zero();
    for (const Vec3d at : points) {
        const Vec3d offset = at - plane.centre;
        const Eigen::Vector3d o(offset.x, offset.y, offset.z);
        covariance += share * o * o.transpose();
    }
    const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> solver(covariance);
    const Eigen::Vector3d normal = solver.eigenvectors().col(0);
    plane.normal = {normal[0], normal[1], normal[2]};
    plane.rms = std::sqrt(std::max(0.0, solver.eigenvalues()[0]));
    return plane;
}

}  // namespace stipple::tasks::study
