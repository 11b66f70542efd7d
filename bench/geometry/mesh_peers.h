#pragma once
// What the peers of mesh queries and surface sampling offer. Each library in a file of its own, so that its headers
// meet nobody else's. A run is prepared outside the clock (the mesh in the library's own type).

#include <cstdint>
#include <functional>
#include <vector>

namespace peer {

struct MeshJob {
    const float* vertices = nullptr;     // [n, 3]
    const int32_t* triangles = nullptr;  // [m, 3]
    int64_t n = 0, m = 0;
    const float* queries = nullptr;     // [count, 3], or origins of rays
    const float* directions = nullptr;  // [count, 3]
    int64_t count = 0;                  // of queries, rays or samples
};

/// `run` fills `values`: distances, t of hits (infinity for none), or points [count, 3].
struct MeshRun {
    std::function<void(int threads, std::vector<float>& values)> run;
};

MeshRun embree_closest(const MeshJob& job);  // build and query
MeshRun embree_rays_1(const MeshJob& job);   // query
MeshRun embree_rays_4(const MeshJob& job);
MeshRun open3d_closest(const MeshJob& job);
MeshRun open3d_poisson(const MeshJob& job);
MeshRun open3d_uniform(const MeshJob& job);
MeshRun cgal_closest(const MeshJob& job);

}  // namespace peer
