#include "stipple/geometry/smooth_mesh.h"

#include <algorithm>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh/mesh_vectors.h"
#include "stipple/geometry/mesh_edges.h"
#include "stipple/ops/common/require.h"

namespace stipple::geometry {
namespace {

/// The sum of the cotangents of the angles opposite an edge.
double cotangents_of(const MeshView& mesh, const MeshEdges& edges, int64_t edge) {
    double sum = 0;
    for (int64_t i = edges.offsets[edge]; i < edges.offsets[edge + 1]; ++i) {
        const int64_t face = edges.half_edges[i] / 3;
        const int c = static_cast<int>(edges.half_edges[i] % 3);
        const Vec3d at = corner_of(mesh, face, (c + 2) % 3);
        const Vec3d a = corner_of(mesh, face, c) - at, b = corner_of(mesh, face, (c + 1) % 3) - at;
        const double area = length(cross(a, b));
        if (area > 0) sum += dot(a, b) / area;
    }
    return std::max(sum, 0.0);
}

/// The neighbours of each vertex with their weights, in a fixed order.
struct Neighbours {
    struct Link {
        int32_t vertex;
        double weight;
    };
    std::vector<int64_t> offsets;
    std::vector<Link> links;

    Neighbours(const MeshView& mesh, const SmoothOptions& options) {
        const MeshEdges edges = mesh_edges(mesh);
        const int64_t n = mesh.vertices.size(0);
        std::vector<char> fixed(static_cast<size_t>(n), 0);
        for (int64_t e = 0; e < edges.size(); ++e)
            if (options.fix_boundary && edges.faces_on(e) == 1)
                for (const int32_t v : edges.vertices[e]) fixed[v] = 1;
        offsets.assign(static_cast<size_t>(n) + 2, 0);  // one to the right, so that filling leaves them in place
        for (const auto& ends : edges.vertices)
            for (const int32_t v : ends)
                if (!fixed[v]) ++offsets[v + 2];
        for (int64_t v = 0; v < n; ++v) offsets[v + 2] += offsets[v + 1];
        links.resize(static_cast<size_t>(offsets.back()));
        for (int64_t e = 0; e < edges.size(); ++e) {
            const double weight = options.cotangent ? cotangents_of(mesh, edges, e) : 1;
            const auto [a, b] = edges.vertices[e];
            if (!fixed[a]) links[offsets[a + 1]++] = {b, weight};
            if (!fixed[b]) links[offsets[b + 1]++] = {a, weight};
        }
    }

    void step(std::vector<Vec3d>& places, std::vector<Vec3d>& next, double size) const {
        parallel_for(static_cast<int64_t>(places.size()), 2048, [&](int64_t begin, int64_t end) {
            for (int64_t v = begin; v < end; ++v) {
                Vec3d sum;
                double weights = 0;
                for (int64_t i = offsets[v]; i < offsets[v + 1]; ++i) {
                    sum = sum + links[i].weight * (places[links[i].vertex] - places[v]);
                    weights += links[i].weight;
                }
                next[v] = weights > 0 ? places[v] + (size / weights) * sum : places[v];
            }
        });
        places.swap(next);
    }
};

}  // namespace

void smooth_mesh(const MeshView& mesh, View<float, 2> smoothed, const SmoothOptions& options) {
    require_cpu_mesh("smooth_mesh", mesh);
    const int64_t n = mesh.vertices.size(0);
    ops::require_output<float, 2>("smooth_mesh", "smoothed", smoothed, {n, 3}, {});
    STIPPLE_REQUIRE(options.iterations >= 0, "smooth_mesh: {} iterations", options.iterations);
    STIPPLE_REQUIRE(options.step >= 0 && options.step <= 1, "smooth_mesh: step {}, not 0 to 1", options.step);
    STIPPLE_REQUIRE(options.back_step <= 0 && options.back_step >= -1, "smooth_mesh: back step {}, not -1 to 0",
                    options.back_step);
    const Neighbours neighbours(mesh, options);
    std::vector<Vec3d> places(static_cast<size_t>(n)), next(places.size());
    for (int64_t v = 0; v < n; ++v) places[v] = to_vec3(mesh.vertices.data() + 3 * v);
    for (int i = 0; i < options.iterations; ++i) {
        neighbours.step(places, next, options.step);
        if (options.back_step < 0) neighbours.step(places, next, options.back_step);
    }
    for (int64_t v = 0; v < n; ++v) store(places[v], smoothed.data() + 3 * v);
}

}  // namespace stipple::geometry
