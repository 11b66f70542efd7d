#include "stipple/geometry/mesh_distance.h"

#include <algorithm>
#include <cmath>

#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/sample_surface.h"

namespace stipple::geometry {
namespace {

std::vector<float> distances_to(const MeshIndex& index, View<const float, 2> points) {
    std::vector<float> distances(static_cast<size_t>(points.size(0)));
    ClosestPoints found;
    found.distances = View<float, 1>(distances.data(), {points.size(0)});
    closest_point(index, points, found);
    return distances;
}

}  // namespace

const Fields& mesh_distance_fields() {
    static const Fields fields = {
        field<&MeshDistance::mean>("mean", "Mean distance, over the area").unit("unit of the mesh"),
        field<&MeshDistance::rms>("rms", "Root of the mean squared distance, over the area").unit("unit of the mesh"),
        field<&MeshDistance::largest>("largest", "Largest distance").unit("unit of the mesh")};
    return fields;
}

MeshDistance mesh_distance(const MeshView& from, const MeshView& to, int64_t samples) {
    STIPPLE_REQUIRE(to.faces() > 0, "mesh_distance: the mesh to measure to has no faces");
    const MeshIndex index(to);
    MeshDistance result;
    const SurfaceSamples chosen = sample_surface(from, samples, 1);
    for (const float d : distances_to(index, chosen.points.view())) {
        result.mean += d;
        result.rms += double{d} * d;
        result.largest = std::max(result.largest, double{d});
    }
    result.mean /= static_cast<double>(std::max<int64_t>(samples, 1));
    result.rms = std::sqrt(result.rms / static_cast<double>(std::max<int64_t>(samples, 1)));
    const std::vector<float> of_vertices = distances_to(index, from.vertices);
    for (int64_t i = 0; i < 3 * from.faces(); ++i)  // loose vertices are no part of the surface
        result.largest = std::max(result.largest, double{of_vertices[from.triangles.data()[i]]});
    return result;
}

}  // namespace stipple::geometry
