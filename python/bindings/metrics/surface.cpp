// stipple.metrics: clouds and meshes, and how evenly a cloud covers one.

#include "python/bindings/metrics/surface.h"

#include "python/bindings/metrics/common.h"
#include "stipple/metrics/uniformity.h"

namespace stipple::python {
namespace {

struct FaceDistancesRecord {
    static constexpr auto name = py::detail::const_name("FaceDistances");
    static constexpr const char* fields[] = {"distance", "face", "nearest"};
};
struct DiskUniformityRecord {
    static constexpr auto name = py::detail::const_name("DiskUniformity");
    static constexpr const char* fields[] = {"share", "radius", "value", "skipped"};
};
struct NucRecord {
    static constexpr auto name = py::detail::const_name("Nuc");
    static constexpr const char* fields[] = {"share", "mean", "value"};
};

Record<FaceDistancesRecord> point_to_face(const IndexedMeshObject& mesh, const py::object& points_) {
    Call call;
    const auto points = points_argument(call, points_, "points", mesh.index->frame());
    metrics::FaceDistances found = without_gil([&] { return metrics::point_to_face(*mesh.index, *points); });
    return record<FaceDistancesRecord>(numpy_of(std::move(found.distance)), numpy_of(std::move(found.face)),
                                       numpy_of(std::move(found.nearest)));
}

metrics::Distances face_to_point(const IndexedMeshObject& mesh, const py::object& points_, int64_t samples,
                                 uint64_t seed, const py::object& device) {
    Call call;
    const auto points = points_argument(call, points_, "points", mesh.index->frame());
    const Device on = device_or(device, call);
    return without_gil([&] { return metrics::face_to_point(*mesh.index, *points, samples, seed, on); });
}

metrics::DiskOptions disk_options(int64_t disks, const py::object& shares, uint64_t seed) {
    return {disks, numbers_of(shares, "shares"), seed};
}

py::list disk_uniformity(const IndexedMeshObject& mesh, const py::object& points_, int64_t disks,
                         const py::object& shares, uint64_t seed) {
    const metrics::DiskOptions options = disk_options(disks, shares, seed);
    Call call;
    const auto points = points_argument(call, points_, "points", mesh.index->frame());
    py::list made;
    for (const auto& each : without_gil([&] { return metrics::disk_uniformity(*mesh.index, *points, options); }))
        made.append(record<DiskUniformityRecord>(py::float_(each.share), py::float_(each.radius),
                                                 py::float_(each.value), py::int_(each.skipped)));
    return made;
}

py::list normalised_uniformity(const IndexedMeshObject& mesh, const py::object& points_, int64_t disks,
                               const py::object& shares, uint64_t seed) {
    const metrics::DiskOptions options = disk_options(disks, shares, seed);
    Call call;
    const auto points = points_argument(call, points_, "points", mesh.index->frame());
    py::list made;
    for (const auto& each : without_gil([&] { return metrics::normalised_uniformity(*mesh.index, *points, options); }))
        made.append(record<NucRecord>(py::float_(each.share), py::float_(each.mean), py::float_(each.value)));
    return made;
}

}  // namespace

void bind_metrics_surface(py::module_& module) {
    py::class_<IndexedMeshObject>(module, "IndexedMesh", doc::metrics::IndexedMesh)
        .def(py::init([](const py::object& mesh, const py::object& device) {
                 IndexedMeshObject made{std::make_shared<const AnyMesh>(mesh, "mesh"), nullptr};
                 const Device on = device.is_none() ? Device{} : device_argument(device);
                 without_gil([&] { made.index = std::make_shared<metrics::IndexedMesh>(**made.mesh, on); });
                 return made;
             }),
             py::arg("mesh"), py::kw_only(), py::arg("device") = py::none())
        .def_property_readonly("area", [](const IndexedMeshObject& o) { return o.index->area(); })
        .def_property_readonly("frame", [](const IndexedMeshObject& o) { return o.index->frame(); });
    add_record<FaceDistancesRecord>(module);
    add_record<DiskUniformityRecord>(module);
    add_record<NucRecord>(module);
    const metrics::DiskOptions disks, nuc = metrics::nuc_defaults();
    module.def("point_to_face", &point_to_face, py::arg("mesh"), py::arg("points"), doc::metrics::point_to_face);
    module.def("face_to_point", &face_to_point, py::arg("mesh"), py::arg("points"), py::arg("samples"),
               py::arg("seed") = 1, py::kw_only(), py::arg("device") = py::none(), doc::metrics::face_to_point);
    module.def("disk_uniformity", &disk_uniformity, py::arg("mesh"), py::arg("points"), py::kw_only(),
               py::arg("disks") = disks.disks, py::arg("shares") = tuple_of(disks.shares), py::arg("seed") = disks.seed,
               doc::metrics::disk_uniformity);
    module.def("normalised_uniformity", &normalised_uniformity, py::arg("mesh"), py::arg("points"), py::kw_only(),
               py::arg("disks") = nuc.disks, py::arg("shares") = tuple_of(nuc.shares), py::arg("seed") = nuc.seed,
               doc::metrics::normalised_uniformity);
}

}  // namespace stipple::python
