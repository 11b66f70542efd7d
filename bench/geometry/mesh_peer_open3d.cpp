#include <open3d/geometry/PointCloud.h>
#include <open3d/geometry/TriangleMesh.h>
#include <open3d/t/geometry/RaycastingScene.h>
#include <open3d/utility/Logging.h>
#include <tbb/global_control.h>

#include "mesh_peers.h"

namespace peer {
namespace {

std::shared_ptr<open3d::geometry::TriangleMesh> mesh_of(const MeshJob& job) {
    open3d::utility::SetVerbosityLevel(open3d::utility::VerbosityLevel::Error);
    auto mesh = std::make_shared<open3d::geometry::TriangleMesh>();
    for (int64_t i = 0; i < 3 * job.n; i += 3)
        mesh->vertices_.emplace_back(job.vertices[i], job.vertices[i + 1], job.vertices[i + 2]);
    for (int64_t i = 0; i < 3 * job.m; i += 3)
        mesh->triangles_.emplace_back(job.triangles[i], job.triangles[i + 1], job.triangles[i + 2]);
    return mesh;
}

void copy(const open3d::geometry::PointCloud& cloud, std::vector<float>& values) {
    values.clear();
    for (const Eigen::Vector3d& point : cloud.points_)
        for (int axis = 0; axis < 3; ++axis) values.push_back(static_cast<float>(point[axis]));
}

}  // namespace

MeshRun open3d_closest(const MeshJob& job) {
    using open3d::core::Tensor;
    const Tensor vertices(std::vector<float>(job.vertices, job.vertices + 3 * job.n), {job.n, 3},
                          open3d::core::Float32);
    const Tensor triangles(std::vector<uint32_t>(job.triangles, job.triangles + 3 * job.m), {job.m, 3},
                           open3d::core::UInt32);
    const Tensor queries(std::vector<float>(job.queries, job.queries + 3 * job.count), {job.count, 3},
                         open3d::core::Float32);
    return {[=](int threads, std::vector<float>& values) {
        const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads));
        open3d::t::geometry::RaycastingScene scene;
        scene.AddTriangles(vertices, triangles);
        values = scene.ComputeDistance(queries).ToFlatVector<float>();
    }};
}

MeshRun open3d_poisson(const MeshJob& job) {
    const auto mesh = mesh_of(job);
    return {[=](int, std::vector<float>& values) {
        copy(*mesh->SamplePointsPoissonDisk(static_cast<size_t>(job.count)), values);
    }};
}

MeshRun open3d_uniform(const MeshJob& job) {
    const auto mesh = mesh_of(job);
    return {[=](int, std::vector<float>& values) {
        copy(*mesh->SamplePointsUniformly(static_cast<size_t>(job.count)), values);
    }};
}

}  // namespace peer
