// stipple.geometry: MeshIndex and WindingIndex; closest points, rays, winding numbers, signed distances, samples.

#include <limits>

#include "python/bindings/geometry/common.h"
#include "stipple/core/synchronize.h"
#include "stipple/geometry/cast_rays.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/mesh_distance.h"
#include "stipple/geometry/mesh_index.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/geometry/signed_distance.h"
#include "stipple/geometry/winding_number.h"

namespace stipple::python {
namespace {

struct ClosestResult {
    static constexpr auto name = py::detail::const_name("ClosestPoints");
    static constexpr const char* fields[] = {"distances", "faces", "barycentrics", "points"};
};
struct FirstHits {
    static constexpr auto name = py::detail::const_name("RayHits");
    static constexpr const char* fields[] = {"t", "faces", "barycentrics"};
};
struct AllHitsResult {
    static constexpr auto name = py::detail::const_name("AllHits");
    static constexpr const char* fields[] = {"offsets", "t", "faces", "barycentrics"};
};
struct DistanceResult {
    static constexpr auto name = py::detail::const_name("MeshDistance");
    static constexpr const char* fields[] = {"mean", "rms", "largest"};
};
struct SamplesResult {
    static constexpr auto name = py::detail::const_name("SurfaceSamples");
    static constexpr const char* fields[] = {"points", "faces", "barycentrics"};
};

/// An index is built with a wait, so that queries may come on any stream.
struct MeshIndexObject {
    geometry::MeshIndex index;
};
struct WindingIndexObject {
    geometry::WindingIndex index;
};

/// An index, or what one is built of for this call alone.
template <class Object>
class IndexArgument {
public:
    IndexArgument(Call& call, const py::object& object, const char* name) : call_(call) {
        if (py::isinstance<Object>(object)) {
            given_ = &object.cast<const Object&>();
            call.set_device(given_->index.device(), name);
        } else {
            surface_.emplace(call, object, name);
        }
    }
    /// Without the GIL.
    const auto& built(Stream stream) {
        if (!given_) {
            own_.emplace(Object{decltype(Object::index)(surface_->view(), stream)});
            given_ = &*own_;
        }
        return given_->index;
    }
    /// An index of this call alone goes with it: what a GPU still does with it has to end first.
    void end(Stream stream) const {
        if (own_) synchronize(call_.device(), stream);
    }

private:
    Call& call_;
    const Object* given_ = nullptr;
    std::optional<SurfaceArgument> surface_;
    std::optional<Object> own_;
};
using MeshIndexArgument = IndexArgument<MeshIndexObject>;
using WindingIndexArgument = IndexArgument<WindingIndexObject>;

/// Room for all of what closest_point finds.
struct ClosestRoom {
    Array<float, 1> distances;
    Array<int32_t, 1> faces;
    Array<float, 2> barycentrics, points;

    ClosestRoom(Call& call, int64_t m)
        : distances({m}, call.device()),
          faces({m}, call.device()),
          barycentrics({m, 3}, call.device()),
          points({m, 3}, call.device()) {}
    geometry::ClosestPoints view() { return {distances.view(), faces.view(), barycentrics.view(), points.view()}; }
    Record<ClosestResult> give(const Call& call) {
        return record<ClosestResult>(call.give(std::move(distances)), call.give(std::move(faces)),
                                     call.give(std::move(barycentrics)), call.give(std::move(points)));
    }
};

Record<ClosestResult> closest_point(const py::object& index_, const ArrayLike& queries_) {
    Call call;
    MeshIndexArgument index(call, index_, "index");
    const PointsArgument queries(call, queries_, "queries");
    ClosestRoom room(call, queries.size());
    call.run([&](Stream stream) {
        geometry::closest_point(index.built(stream), queries.view(), room.view(), stream);
        index.end(stream);
    });
    return room.give(call);
}

Record<ClosestResult> signed_distance(const py::object& index_, const py::object& winding_, const ArrayLike& queries_) {
    Call call;
    MeshIndexArgument index(call, index_, "index");
    WindingIndexArgument winding(call, winding_.is_none() ? index_ : winding_, "winding");
    const PointsArgument queries(call, queries_, "queries");
    ClosestRoom room(call, queries.size());
    call.run([&](Stream stream) {
        geometry::signed_distance(index.built(stream), winding.built(stream), queries.view(), room.view(), stream);
        index.end(stream);
        winding.end(stream);
    });
    return room.give(call);
}

ArrayResult is_inside(const py::object& winding_, const ArrayLike& queries_) {
    Call call;
    WindingIndexArgument winding(call, winding_, "winding");
    const PointsArgument queries(call, queries_, "queries");
    Mask inside(call, queries.size());
    call.run([&](Stream stream) {
        geometry::is_inside(winding.built(stream), queries.view(), inside.view(), stream);
        winding.end(stream);
    });
    return inside.give(call);
}

ArrayResult winding_number(const py::object& index_, const ArrayLike& queries_, float accuracy) {
    Call call;
    WindingIndexArgument index(call, index_, "index");
    const PointsArgument queries(call, queries_, "queries");
    auto winding = call.make<float, 1>({queries.size()});
    call.run([&](Stream stream) {
        geometry::winding_number(index.built(stream), queries.view(), winding.view(), accuracy, stream);
        index.end(stream);
    });
    return call.give(std::move(winding));
}

ArrayResult point_areas(const ArrayLike& points_, const ArrayLike& normals_, int k) {
    Call call;
    const PointsArgument points(call, points_, "points");
    const auto normals = call.array_or_none<float, 2>(normals_, "normals");
    const bool has_normals = !normals_.is_none();
    auto areas = call.make<float, 1>({points.size()});
    call.run([&](Stream stream) {
        if (has_normals)
            geometry::point_areas(points.view(), normals, areas.view(), k, stream);
        else
            geometry::point_areas(points.view(), areas.view(), k, stream);
    });
    return call.give(std::move(areas));
}

geometry::Rays rays_of(Call& call, const ArrayLike& origins, const ArrayLike& directions, float t_near, float t_far) {
    geometry::Rays rays;
    rays.origins = call.array<float, 2>(origins, "origins");
    rays.directions = call.array<float, 2>(directions, "directions");
    rays.t_near = t_near;
    rays.t_far = t_far;
    return rays;
}

Record<FirstHits> first_hit(const py::object& index_, const ArrayLike& origins, const ArrayLike& directions,
                            float t_near, float t_far) {
    Call call;
    MeshIndexArgument index(call, index_, "index");
    const geometry::Rays rays = rays_of(call, origins, directions, t_near, t_far);
    const int64_t m = rays.origins.size(0);
    auto t = call.make<float, 1>({m});
    auto faces = call.make<int32_t, 1>({m});
    auto barycentrics = call.make<float, 2>({m, 3});
    call.run([&](Stream stream) {
        geometry::first_hit(index.built(stream), rays, {t.view(), faces.view(), barycentrics.view()}, stream);
        index.end(stream);
    });
    return record<FirstHits>(call.give(std::move(t)), call.give(std::move(faces)), call.give(std::move(barycentrics)));
}

ArrayResult any_hit(const py::object& index_, const ArrayLike& origins, const ArrayLike& directions, float t_near,
                    float t_far) {
    Call call;
    MeshIndexArgument index(call, index_, "index");
    const geometry::Rays rays = rays_of(call, origins, directions, t_near, t_far);
    Mask hit(call, rays.origins.size(0));
    call.run([&](Stream stream) {
        geometry::any_hit(index.built(stream), rays, hit.view(), stream);
        index.end(stream);
    });
    return hit.give(call);
}

Record<AllHitsResult> all_hits(const py::object& index_, const ArrayLike& origins, const ArrayLike& directions,
                               float t_near, float t_far) {
    Call call;
    MeshIndexArgument index(call, index_, "index");
    const geometry::Rays rays = rays_of(call, origins, directions, t_near, t_far);
    geometry::AllHits found;
    call.run([&](Stream stream) {
        found = geometry::all_hits(index.built(stream), rays, stream);
        index.end(stream);
    });
    return record<AllHitsResult>(numpy_of(std::move(found.offsets)), numpy_of(std::move(found.t)),
                                 numpy_of(std::move(found.faces)), numpy_of(std::move(found.barycentrics)));
}

Record<DistanceResult> mesh_distance(const SurfaceLike& from_, const SurfaceLike& to_, int64_t samples) {
    Call call;
    const SurfaceArgument from(call, from_, "from_mesh"), to(call, to_, "to_mesh");
    const auto found = without_gil([&] { return geometry::mesh_distance(from.view(), to.view(), samples); });
    return record<DistanceResult>(number(found.mean), number(found.rms), number(found.largest));
}

Record<SamplesResult> given_samples(Call& call, geometry::SurfaceSamples&& found) {
    return record<SamplesResult>(call.give(std::move(found.points)), call.give(std::move(found.faces)),
                                 call.give(std::move(found.barycentrics)));
}

Record<SamplesResult> sample_surface(const SurfaceLike& mesh_, int64_t n, uint64_t seed) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    geometry::SurfaceSamples found;
    call.run([&](Stream) { found = geometry::sample_surface(mesh.view(), n, seed); });
    return given_samples(call, std::move(found));
}

Record<SamplesResult> sample_surface_poisson(const SurfaceLike& mesh_, int64_t n, uint64_t seed, double oversampling) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    geometry::SurfaceSamples found;
    call.run([&](Stream) { found = geometry::sample_surface_poisson(mesh.view(), n, seed, oversampling); });
    return given_samples(call, std::move(found));
}

ArrayResult interpolate(const SurfaceLike& mesh_, const ArrayLike& faces_, const ArrayLike& barycentrics_,
                        const ArrayLike& vertex_values_) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    const auto faces = call.array<int32_t, 1>(faces_, "faces");
    const auto barycentrics = call.array<float, 2>(barycentrics_, "barycentrics");
    const auto values = call.array<float, 2>(vertex_values_, "vertex_values");
    Array<float, 2> found;
    call.run([&](Stream) { found = geometry::interpolate(mesh.view(), faces, barycentrics, values); });
    return call.give(std::move(found));
}

template <class T, int Rank>
Array<T, Rank> copied(View<const T, Rank> view) {
    std::array<int64_t, Rank> shape;
    for (int i = 0; i < Rank; ++i) shape[i] = view.size(i);
    Array<T, Rank> made(shape);
    std::copy_n(view.data(), view.elements(), made.data());
    return made;
}

CloudObject cloud_of_samples(const MeshLike& mesh_, const ArrayLike& points, const ArrayLike& faces,
                             const ArrayLike& barycentrics) {
    const MeshArgument mesh(mesh_, "mesh");
    Call call;
    call.set_device({}, "mesh");
    geometry::SurfaceSamples samples{copied(call.array<float, 2>(points, "points")),
                                     copied(call.array<int32_t, 1>(faces, "faces")),
                                     copied(call.array<float, 2>(barycentrics, "barycentrics"))};
    return give(without_gil([&] { return geometry::cloud_of_samples(mesh.mesh(), std::move(samples)); }));
}

MeshIndexObject make_index(const SurfaceLike& mesh_) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    std::optional<MeshIndexObject> made;
    call.run([&](Stream stream) {
        made.emplace(MeshIndexObject{geometry::MeshIndex(mesh.view(), stream)});
        synchronize(call.device(), stream);
    });
    return std::move(*made);
}

WindingIndexObject make_winding(const SurfaceLike& mesh_) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    std::optional<WindingIndexObject> made;
    call.run([&](Stream stream) {
        made.emplace(WindingIndexObject{geometry::WindingIndex(mesh.view(), stream)});
        synchronize(call.device(), stream);
    });
    return std::move(*made);
}

WindingIndexObject winding_of_points(const ArrayLike& points_, const ArrayLike& normals_, const ArrayLike& areas_,
                                     float softening) {
    Call call;
    const PointsArgument points(call, points_, "points");
    const auto normals = call.array<float, 2>(normals_, "normals");
    const auto areas = call.array<float, 1>(areas_, "areas");
    std::optional<WindingIndexObject> made;
    call.run([&](Stream stream) {
        made.emplace(WindingIndexObject{geometry::WindingIndex(points.view(), normals, areas, softening, stream)});
        synchronize(call.device(), stream);
    });
    return std::move(*made);
}

}  // namespace

void bind_queries(py::module_& g) {
    add_record<ClosestResult>(g);
    add_record<FirstHits>(g);
    add_record<AllHitsResult>(g);
    add_record<DistanceResult>(g);
    add_record<SamplesResult>(g);
    constexpr float kFar = std::numeric_limits<float>::infinity();
    py::class_<MeshIndexObject>(g, "MeshIndex", doc::geometry::MeshIndex)
        .def(py::init(&make_index), py::arg("mesh"), "Of an io.Mesh or (vertices, triangles). Copies what it needs.")
        .def_property_readonly(
            "faces", [](const MeshIndexObject& o) { return o.index.faces(); }, "Of the mesh.")
        .def_property_readonly(
            "device", [](const MeshIndexObject& o) { return to_string(o.index.device()); }, "Where it is.");
    py::class_<WindingIndexObject>(g, "WindingIndex", doc::geometry::WindingIndex)
        .def(py::init(&make_winding), py::arg("mesh"), "Of an io.Mesh or (vertices, triangles). Copies what it needs.")
        .def_static("of_points", &winding_of_points, py::arg("points"), py::arg("normals"), py::arg("areas"),
                    py::arg("softening") = 1.0f, "Of oriented points, each of an area (point_areas).")
        .def_property_readonly(
            "device", [](const WindingIndexObject& o) { return to_string(o.index.device()); }, "Where it is.");
    g.def("mesh_query_engine", &geometry::mesh_query_engine, doc::geometry::mesh_query_engine);
    g.def("closest_point", &closest_point, py::arg("index"), py::arg("queries"),
          noted("index is a MeshIndex, or the mesh itself for one call.", doc::geometry::closest_point).c_str());
    g.def("signed_distance", &signed_distance, py::arg("index"), py::arg("winding"), py::arg("queries"),
          noted("index and winding are indices, or the mesh itself; a winding of None is of the same mesh.",
                doc::geometry::signed_distance)
              .c_str());
    g.def("is_inside", &is_inside, py::arg("winding"), py::arg("queries"), doc::geometry::is_inside);
    g.def("winding_number", &winding_number, py::arg("index"), py::arg("queries"), py::arg("accuracy") = 2.0f,
          doc::geometry::winding_number);
    g.def("point_areas", &point_areas, py::arg("points"), py::arg("normals") = py::none(), py::arg("k") = 16,
          doc::geometry::point_areas);
    g.def("first_hit", &first_hit, py::arg("index"), py::arg("origins"), py::arg("directions"), py::kw_only(),
          py::arg("t_near") = 0.f, py::arg("t_far") = kFar,
          noted("index is a MeshIndex, or the mesh itself for one call.", doc::geometry::first_hit).c_str());
    g.def("any_hit", &any_hit, py::arg("index"), py::arg("origins"), py::arg("directions"), py::kw_only(),
          py::arg("t_near") = 0.f, py::arg("t_far") = kFar, doc::geometry::any_hit);
    g.def("all_hits", &all_hits, py::arg("index"), py::arg("origins"), py::arg("directions"), py::kw_only(),
          py::arg("t_near") = 0.f, py::arg("t_far") = kFar, doc::geometry::all_hits);
    g.def("mesh_distance", &mesh_distance, py::arg("from_mesh"), py::arg("to_mesh"), py::arg("samples") = 100'000,
          doc::geometry::mesh_distance);
    g.def("sample_surface", &sample_surface, py::arg("mesh"), py::arg("n"), py::arg("seed"),
          doc::geometry::sample_surface);
    g.def("sample_surface_poisson", &sample_surface_poisson, py::arg("mesh"), py::arg("n"), py::arg("seed"),
          py::arg("oversampling") = 5.0, doc::geometry::sample_surface_poisson);
    g.def("interpolate", &interpolate, py::arg("mesh"), py::arg("faces"), py::arg("barycentrics"),
          py::arg("vertex_values"), doc::geometry::interpolate);
    g.def("cloud_of_samples", &cloud_of_samples, py::arg("mesh"), py::arg("points"), py::arg("faces"),
          py::arg("barycentrics"), doc::geometry::cloud_of_samples);
}

}  // namespace stipple::python
