// stipple.geometry: meshes made, cut, joined, checked and changed.

#include <limits>

#include "python/bindings/geometry/common.h"
#include "stipple/geometry/components.h"
#include "stipple/geometry/decimate.h"
#include "stipple/geometry/dedupe.h"
#include "stipple/geometry/glyphs.h"
#include "stipple/geometry/mesh_check.h"
#include "stipple/geometry/mesh_edges.h"
#include "stipple/geometry/mesh_parts.h"
#include "stipple/geometry/orient_faces.h"
#include "stipple/geometry/primitives.h"
#include "stipple/geometry/smooth_mesh.h"

namespace stipple::python {
namespace {

struct PartResult {
    static constexpr auto name = py::detail::const_name("MeshPart");
    static constexpr const char* fields[] = {"mesh", "vertices", "faces", "new_vertices"};
};
struct ComponentsResult {
    static constexpr auto name = py::detail::const_name("Components");
    static constexpr const char* fields[] = {"of_face", "of_vertex", "faces", "areas"};
};
struct EdgesResult {
    static constexpr auto name = py::detail::const_name("MeshEdges");
    static constexpr const char* fields[] = {"vertices", "offsets", "half_edges"};
};
struct AdjacencyResult {
    static constexpr auto name = py::detail::const_name("VertexAdjacency");
    static constexpr const char* fields[] = {"offsets", "neighbours"};
};
struct OrientationResult {
    static constexpr auto name = py::detail::const_name("Orientation");
    static constexpr const char* fields[] = {"turned", "patch_of_face", "closed", "orientable", "turned_faces"};
};
struct CheckResult {
    static constexpr auto name = py::detail::const_name("MeshCheck");
    static constexpr const char* fields[] = {"boundary_edges",
                                             "nonmanifold_edges",
                                             "misoriented_edges",
                                             "nonmanifold_vertices",
                                             "degenerate_faces",
                                             "duplicate_faces",
                                             "unreferenced_vertices",
                                             "components",
                                             "euler",
                                             "area",
                                             "volume",
                                             "is_closed",
                                             "is_manifold",
                                             "is_oriented",
                                             "is_watertight"};
};

constexpr Word<geometry::Connection> kConnections[] = {{"edges", geometry::Connection::edges},
                                                       {"vertices", geometry::Connection::vertices}};

Record<PartResult> given(geometry::MeshPart&& part) {
    return record<PartResult>(py::cast(give(std::move(part.mesh))), numpy_of(std::move(part.vertices)),
                              numpy_of(std::move(part.faces)), numpy_of(std::move(part.new_vertices)));
}

template <class Work>
Record<PartResult> part_of_mesh(const MeshLike& mesh_, Work&& work) {
    const MeshArgument mesh(mesh_, "mesh");
    return given(without_gil([&] { return work(mesh.mesh()); }));
}

Record<PartResult> select_faces(const MeshLike& mesh_, const ArrayLike& faces_) {
    Call call;
    const auto faces = call.array<int32_t, 1>(faces_, "faces");
    return part_of_mesh(mesh_, [&](const Mesh& mesh) { return geometry::select_faces(mesh, faces); });
}

Record<PartResult> select_vertices(const MeshLike& mesh_, const ArrayLike& keep_) {
    Call call;
    const auto keep = mask_argument(call, keep_, "keep");
    return part_of_mesh(mesh_, [&](const Mesh& mesh) { return geometry::select_vertices(mesh, keep); });
}

Record<PartResult> remove_small_components(const MeshLike& mesh_, int64_t min_faces, double min_area, int64_t largest,
                                           std::string_view connection) {
    const geometry::ComponentLimits limits{min_faces, min_area, largest,
                                           choice(connection, "connection", kConnections)};
    return part_of_mesh(mesh_, [&](const Mesh& mesh) { return geometry::remove_small_components(mesh, limits); });
}

MeshObject merge_meshes(const py::list& meshes_) {
    std::vector<MeshArgument> meshes;
    std::vector<const Mesh*> pointers;
    meshes.reserve(meshes_.size());
    for (py::handle item : meshes_) meshes.emplace_back(py::reinterpret_borrow<py::object>(item), "meshes");
    for (const MeshArgument& mesh : meshes) pointers.push_back(&mesh.mesh());
    return give(without_gil([&] { return geometry::merge_meshes(pointers); }));
}

Record<ComponentsResult> connected_components(const SurfaceLike& mesh_, std::string_view connection_) {
    const auto connection = choice(connection_, "connection", kConnections);
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    geometry::Components found;
    call.run([&](Stream) { found = geometry::connected_components(mesh.view(), connection); });
    return record<ComponentsResult>(call.give(std::move(found.of_face)), call.give(std::move(found.of_vertex)),
                                    numpy_of(std::move(found.faces)), numpy_of(std::move(found.areas)));
}

Record<CheckResult> check_mesh(const SurfaceLike& mesh_) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    const geometry::MeshCheck found = without_gil([&] { return geometry::check_mesh(mesh.view()); });
    return record<CheckResult>(
        number(found.boundary_edges), number(found.nonmanifold_edges), number(found.misoriented_edges),
        number(found.nonmanifold_vertices), number(found.degenerate_faces), number(found.duplicate_faces),
        number(found.unreferenced_vertices), number(found.components), number(found.euler), number(found.area),
        number(found.volume), truth(found.is_closed()), truth(found.is_manifold()), truth(found.is_oriented()),
        truth(found.is_watertight(mesh.view())));
}

Record<EdgesResult> mesh_edges(const SurfaceLike& mesh_) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    geometry::MeshEdges found = without_gil([&] { return geometry::mesh_edges(mesh.view()); });
    return record<EdgesResult>(numpy_of(std::move(found.vertices)), numpy_of(std::move(found.offsets)),
                               numpy_of(std::move(found.half_edges)));
}

Record<AdjacencyResult> vertex_adjacency(const SurfaceLike& mesh_) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    geometry::VertexAdjacency found = without_gil([&] { return geometry::vertex_adjacency(mesh.view()); });
    return record<AdjacencyResult>(numpy_of(std::move(found.offsets)), numpy_of(std::move(found.neighbours)));
}

Record<OrientationResult> given(geometry::Orientation&& found) {
    return record<OrientationResult>(numpy_of(std::move(found.turned), DType::boolean),
                                     numpy_of(std::move(found.patch_of_face)), numpy_mask(std::move(found.closed)),
                                     numpy_mask(std::move(found.orientable)), number(found.turned_faces));
}

Record<OrientationResult> find_orientation(const SurfaceLike& mesh_) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    return given(without_gil([&] { return geometry::find_orientation(mesh.view()); }));
}

Record<OrientationResult> orient_faces(MeshObject& mesh) {
    const Reading reading(mesh.held);
    return given(without_gil([&] { return geometry::orient_faces(mesh.mesh()); }));
}

ArrayResult smooth_mesh(const SurfaceLike& mesh_, int iterations, double step, double back_step, bool cotangent,
                        bool fix_boundary) {
    const geometry::SmoothOptions options{iterations, step, back_step, cotangent, fix_boundary};
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    auto smoothed = call.make<float, 2>({mesh.view().vertices.size(0), 3});
    call.run([&](Stream) { geometry::smooth_mesh(mesh.view(), smoothed.view(), options); });
    return call.give(std::move(smoothed));
}

CloudObject dedupe_points(const CloudLike& cloud_, float distance) {
    const CloudArgument cloud(cloud_, "cloud");
    return give(without_gil([&] { return geometry::dedupe_points(cloud.cloud(), distance); }));
}

MeshObject sphere_glyphs(const ArrayLike& points_, const ArrayLike& radii_, int subdivisions) {
    Call call;
    const PointsArgument points(call, points_, "points");
    const auto radii = call.array<float, 1>(radii_, "radii");
    return give(without_gil([&] { return geometry::sphere_glyphs(points.view(), radii, subdivisions); }));
}

MeshObject surfel_glyphs(const ArrayLike& points_, const ArrayLike& normals_, const ArrayLike& radii_,
                         int64_t segments) {
    Call call;
    const PointsArgument points(call, points_, "points");
    const auto normals = call.array<float, 2>(normals_, "normals");
    const auto radii = call.array<float, 1>(radii_, "radii");
    return give(without_gil([&] { return geometry::surfel_glyphs(points.view(), normals, radii, segments); }));
}

void bind_primitives(py::module_& g) {
    g.def("sphere_glyphs", &sphere_glyphs, py::arg("points"), py::arg("radii"), py::arg("subdivisions") = 1,
          doc::geometry::sphere_glyphs);
    g.def("surfel_glyphs", &surfel_glyphs, py::arg("points"), py::arg("normals"), py::arg("radii"),
          py::arg("segments") = 12, doc::geometry::surfel_glyphs);
    g.def(
        "sphere_mesh",
        [](double radius, int n) { return give(without_gil([&] { return geometry::sphere_mesh(radius, n); })); },
        py::arg("radius") = 1.0, py::arg("subdivisions") = 3, doc::geometry::sphere_mesh);
    g.def(
        "cube_mesh",
        [](double x, double y, double z) { return give(without_gil([&] { return geometry::cube_mesh(x, y, z); })); },
        py::arg("x") = 1.0, py::arg("y") = 1.0, py::arg("z") = 1.0, doc::geometry::cube_mesh);
    g.def(
        "cylinder_mesh",
        [](double radius, double height, int64_t n) {
            return give(without_gil([&] { return geometry::cylinder_mesh(radius, height, n); }));
        },
        py::arg("radius") = 0.5, py::arg("height") = 1.0, py::arg("segments") = 64, doc::geometry::cylinder_mesh);
    g.def(
        "cone_mesh",
        [](double radius, double height, int64_t n) {
            return give(without_gil([&] { return geometry::cone_mesh(radius, height, n); }));
        },
        py::arg("radius") = 0.5, py::arg("height") = 1.0, py::arg("segments") = 64, doc::geometry::cone_mesh);
    g.def(
        "torus_mesh",
        [](double major, double minor, int64_t around, int64_t across) {
            return give(without_gil([&] { return geometry::torus_mesh(major, minor, around, across); }));
        },
        py::arg("major") = 1.0, py::arg("minor") = 0.25, py::arg("around") = 64, py::arg("across") = 32,
        doc::geometry::torus_mesh);
}

}  // namespace

void bind_meshes(py::module_& g) {
    add_record<PartResult>(g);
    add_record<ComponentsResult>(g);
    add_record<EdgesResult>(g);
    add_record<AdjacencyResult>(g);
    add_record<OrientationResult>(g);
    add_record<CheckResult>(g);
    bind_primitives(g);
    g.def("select_faces", &select_faces, py::arg("mesh"), py::arg("faces"), doc::geometry::select_faces);
    g.def("select_vertices", &select_vertices, py::arg("mesh"), py::arg("keep"), doc::geometry::select_vertices);
    g.def(
        "drop_unreferenced_vertices",
        [](const MeshLike& mesh) { return part_of_mesh(mesh, geometry::drop_unreferenced_vertices); }, py::arg("mesh"),
        doc::geometry::drop_unreferenced_vertices);
    g.def(
        "drop_degenerate_faces",
        [](const MeshLike& mesh) { return part_of_mesh(mesh, geometry::drop_degenerate_faces); }, py::arg("mesh"),
        doc::geometry::drop_degenerate_faces);
    g.def(
        "drop_duplicate_faces",
        [](const MeshLike& mesh, bool either_direction) {
            return part_of_mesh(mesh,
                                [&](const Mesh& m) { return geometry::drop_duplicate_faces(m, either_direction); });
        },
        py::arg("mesh"), py::arg("either_direction") = true, doc::geometry::drop_duplicate_faces);
    g.def("remove_small_components", &remove_small_components, py::arg("mesh"), py::kw_only(), py::arg("min_faces") = 0,
          py::arg("min_area") = 0.0, py::arg("largest") = INT64_MAX, py::arg("connection") = "edges",
          doc::geometry::remove_small_components);
    g.def(
        "decimate",
        [](const MeshLike& mesh, int64_t faces, double max_error) {
            return part_of_mesh(mesh, [&](const Mesh& m) { return geometry::decimate(m, faces, max_error); });
        },
        py::arg("mesh"), py::arg("faces"), py::arg("max_error") = std::numeric_limits<double>::infinity(),
        doc::geometry::decimate);
    g.def(
        "dedupe_vertices",
        [](const MeshLike& mesh, float distance) {
            return part_of_mesh(mesh, [&](const Mesh& m) { return geometry::dedupe_vertices(m, distance); });
        },
        py::arg("mesh"), py::arg("distance") = 0.f, doc::geometry::dedupe_vertices);
    g.def("dedupe_points", &dedupe_points, py::arg("cloud"), py::arg("distance") = 0.f, doc::geometry::dedupe_points);
    g.def("merge_meshes", &merge_meshes, py::arg("meshes"), doc::geometry::merge_meshes);
    g.def("connected_components", &connected_components, py::arg("mesh"), py::arg("connection") = "edges",
          doc::geometry::connected_components);
    g.def("check_mesh", &check_mesh, py::arg("mesh"), doc::geometry::check_mesh);
    g.def("mesh_edges", &mesh_edges, py::arg("mesh"), doc::geometry::mesh_edges);
    g.def("vertex_adjacency", &vertex_adjacency, py::arg("mesh"), doc::geometry::vertex_adjacency);
    g.def("find_orientation", &find_orientation, py::arg("mesh"), doc::geometry::find_orientation);
    g.def("orient_faces", &orient_faces, py::arg("mesh"), doc::geometry::orient_faces);
    g.def("smooth_mesh", &smooth_mesh, py::arg("mesh"), py::kw_only(), py::arg("iterations") = 10,
          py::arg("step") = 0.5, py::arg("back_step") = 0.0, py::arg("cotangent") = false,
          py::arg("fix_boundary") = true, doc::geometry::smooth_mesh);
}

}  // namespace stipple::python
