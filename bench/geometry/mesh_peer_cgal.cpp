#include <omp.h>

#include <CGAL/AABB_traits.h>
#include <CGAL/AABB_tree.h>
#include <CGAL/AABB_triangle_primitive.h>
#include <CGAL/Simple_cartesian.h>
#include <cmath>

#include "mesh_peers.h"

namespace peer {

using Kernel = CGAL::Simple_cartesian<double>;
using Triangles = std::vector<Kernel::Triangle_3>;
using Tree = CGAL::AABB_tree<CGAL::AABB_traits<Kernel, CGAL::AABB_triangle_primitive<Kernel, Triangles::iterator>>>;

MeshRun cgal_closest(const MeshJob& job) {
    const auto triangles = std::make_shared<Triangles>();
    const auto at = [&](int64_t face, int corner) {
        const float* v = job.vertices + 3 * job.triangles[3 * face + corner];
        return Kernel::Point_3(v[0], v[1], v[2]);
    };
    for (int64_t face = 0; face < job.m; ++face) triangles->emplace_back(at(face, 0), at(face, 1), at(face, 2));
    return {[=](int threads, std::vector<float>& values) {
        Tree tree(triangles->begin(), triangles->end());
        tree.accelerate_distance_queries();
        values.resize(static_cast<size_t>(job.count));
#pragma omp parallel for schedule(dynamic, 1024) num_threads(threads)
        for (int64_t i = 0; i < job.count; ++i) {
            const float* p = job.queries + 3 * i;
            const double sq = tree.squared_distance(Kernel::Point_3(p[0], p[1], p[2]));
            values[static_cast<size_t>(i)] = static_cast<float>(std::sqrt(sq));
        }
    }};
}

}  // namespace peer
