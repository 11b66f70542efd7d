#include "stipple/tasks/simplify_mesh.h"

#include <algorithm>
#include <cmath>

#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/decimate.h"

namespace stipple::tasks {
namespace {

const Fields& deviation_fields() {
    static const Fields fields = {
        field<&MeshDeviation::max>("max", "Largest distance of an old vertex").unit("unit of the mesh"),
        field<&MeshDeviation::rms>("rms", "Root of the mean squared distance").unit("unit of the mesh")};
    return fields;
}

MeshDeviation deviation_of(const Mesh& from, const Mesh& to) {
    if (to.faces() == 0) return {};
    Array<float, 1> distances({from.vertices.size()});
    geometry::ClosestPoints found;
    found.distances = distances.view();
    geometry::closest_point(geometry::MeshIndex(geometry::MeshView(to.vertices.positions.view(), to.triangles.view())),
                            from.vertices.positions.view(), found);
    MeshDeviation deviation;
    double squares = 0;
    int64_t count = 0;
    for (const float d : distances.span()) {
        if (!std::isfinite(d)) continue;
        deviation.max = std::max(deviation.max, double{d});
        squares += double{d} * d;
        ++count;
    }
    if (count > 0) deviation.rms = std::sqrt(squares / static_cast<double>(count));
    return deviation;
}

}  // namespace

const Fields& simplify_mesh_fields() {
    using Options = SimplifyMeshOptions;
    static const Fields fields = {
        field<&Options::faces>("faces", "Faces wanted").from(0).shown("N").no_default(),
        field<&Options::ratio>("ratio", "Faces wanted, of those there are: 0.1").between(0, 1).shown("R").no_default()};
    return fields;
}

void require_valid(const SimplifyMeshOptions& options) {
    check_fields(simplify_mesh_fields(), &options);
    STIPPLE_REQUIRE((options.faces == 0) != (options.ratio == 0), "how many faces? Give --faces N or --ratio R");
}

const Fields& simplified_mesh_fields() {
    using Simplified = SimplifiedMesh;
    static const Fields fields = {field<&Simplified::faces_before>("faces_before", "Faces of the input"),
                                  field<&Simplified::faces>("faces", "Faces that are left"),
                                  field<&Simplified::vertices>("vertices", "Vertices that are left"),
                                  object_field<&Simplified::deviation>("deviation", deviation_fields,
                                                                       "How far old vertices are from the surface")};
    return fields;
}

SimplifiedMesh simplify_mesh(const Mesh& mesh, const SimplifyMeshOptions& options) {
    require_valid(options);
    const auto faces = static_cast<double>(mesh.faces());
    SimplifiedMesh made{
        .wanted = options.faces > 0 ? options.faces : std::max<int64_t>(1, std::llround(options.ratio * faces)),
        .faces_before = mesh.faces()};
    made.mesh = std::move(geometry::decimate(mesh, made.wanted).mesh);
    made.mesh.vertices.facts = mesh.vertices.facts;
    made.faces = made.mesh.faces();
    made.vertices = made.mesh.vertices.size();
    made.deviation = deviation_of(mesh, made.mesh);
    return made;
}

}  // namespace stipple::tasks
