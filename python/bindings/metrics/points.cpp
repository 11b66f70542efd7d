// stipple.metrics: clouds in frames, nearest points, and what is made of their distances.

#include "python/bindings/metrics/common.h"
#include "stipple/metrics/cloud_distance.h"
#include "stipple/metrics/density.h"
#include "stipple/metrics/jsd.h"
#include "stipple/metrics/transport.h"

namespace stipple::python {

std::shared_ptr<const metrics::Points> points_argument(Call& call, const py::object& object, const char* name,
                                                       const metrics::Frame& frame) {
    if (py::isinstance<PointsObject>(object)) return object.cast<const PointsObject&>().points;
    const AnyCloud cloud(call, object, name);
    return without_gil([&] { return std::make_shared<const metrics::Points>(metrics::in_frame(*cloud, frame)); });
}

PointsPair points_pair(Call& call, const py::object& a, const char* a_name, const py::object& b, const char* b_name) {
    if (py::isinstance<PointsObject>(a) || py::isinstance<PointsObject>(b)) {
        STIPPLE_REQUIRE(py::isinstance<PointsObject>(a) && py::isinstance<PointsObject>(b),
                        "{} and {}: both are Points, or none is: nothing tells the frame of the other", a_name, b_name);
        return {points_argument(call, a, a_name, {}), points_argument(call, b, b_name, {})};
    }
    const AnyCloud first(call, a, a_name), second(call, b, b_name);
    return without_gil([&] {
        const metrics::Frame frame{first->origin, 1};
        return PointsPair{std::make_shared<const metrics::Points>(metrics::in_frame(*first, frame)),
                          std::make_shared<const metrics::Points>(metrics::in_frame(*second, frame))};
    });
}

namespace {

using metrics::ChamferKind, metrics::HausdorffKind, metrics::EmdMethod;

constexpr Word<ChamferKind> kChamferKinds[] = {{"squared_sum", ChamferKind::squared_sum},
                                               {"squared_half", ChamferKind::squared_half},
                                               {"l1_sum", ChamferKind::l1_sum},
                                               {"l1_half", ChamferKind::l1_half},
                                               {"l1_max", ChamferKind::l1_max}};
constexpr Word<HausdorffKind> kHausdorffKinds[] = {{"symmetric", HausdorffKind::symmetric},
                                                   {"to_truth", HausdorffKind::to_truth},
                                                   {"from_truth", HausdorffKind::from_truth},
                                                   {"squared_sum", HausdorffKind::squared_sum},
                                                   {"squared_half", HausdorffKind::squared_half}};

struct FScoreRecord {
    static constexpr auto name = py::detail::const_name("FScore");
    static constexpr const char* fields[] = {"precision", "recall", "f"};
};
struct NormalConsistencyRecord {
    static constexpr auto name = py::detail::const_name("NormalConsistency");
    static constexpr const char* fields[] = {"to_truth", "from_truth", "mean", "used"};
};
struct EmdRecord {
    static constexpr auto name = py::detail::const_name("Emd");
    static constexpr const char* fields[] = {"value", "lower_bound"};
};
struct JsdRecord {
    static constexpr auto name = py::detail::const_name("Jsd");
    static constexpr const char* fields[] = {"value", "outside"};
};
struct DensityRecord {
    static constexpr auto name = py::detail::const_name("Density");
    static constexpr const char* fields[] = {"points",       "spacing_mean",      "spacing_deviation",
                                             "spacing_min",  "spacing_max",       "spacing_variation",
                                             "density_mean", "density_variation", "per_point"};
};

/// One direction of a search, and who keeps it.
struct NearestObject {
    std::shared_ptr<const void> owner;
    const metrics::Nearest* nearest;
};
struct NearestBothObject {
    std::shared_ptr<const metrics::NearestBoth> both;
};

NearestBothObject nearest_between(const py::object& a, const py::object& b, const py::object& device) {
    Call call;
    const PointsPair points = points_pair(call, a, "a", b, "b");
    const Device on = device_or(device, call);
    return {without_gil([&] {
        return std::make_shared<const metrics::NearestBoth>(metrics::nearest_between(*points.a, *points.b, on));
    })};
}

NearestObject nearest_of(const py::object& a, const py::object& b, const py::object& device) {
    Call call;
    const PointsPair points = points_pair(call, a, "a", b, "b");
    const Device on = device_or(device, call);
    auto made = without_gil(
        [&] { return std::make_shared<const metrics::Nearest>(metrics::nearest_of(*points.a, *points.b, on)); });
    return {made, made.get()};
}

/// What was searched before, or both clouds, which are searched now.
NearestBothObject searched(const py::object& prediction, const py::object& truth, const py::object& device) {
    if (truth.is_none() && py::isinstance<NearestBothObject>(prediction)) return prediction.cast<NearestBothObject>();
    if (truth.is_none()) throw py::type_error("truth: wanted are two clouds, or what nearest_between() found of them");
    Call call;
    const PointsPair points = points_pair(call, prediction, "prediction", truth, "truth");
    const Device on = device_or(device, call);
    return {without_gil([&] {
        return std::make_shared<const metrics::NearestBoth>(metrics::nearest_between(*points.a, *points.b, on));
    })};
}

metrics::CloudDistances distances(const py::object& prediction, const py::object& truth, const py::object& device) {
    if (truth.is_none() && py::isinstance<metrics::CloudDistances>(prediction))
        return prediction.cast<metrics::CloudDistances>();
    const NearestBothObject found = searched(prediction, truth, device);
    return without_gil([&] { return metrics::cloud_distances(*found.both); });
}

double chamfer(const py::object& prediction, const py::object& truth, std::string_view kind_,
               const py::object& device) {
    const ChamferKind kind = choice(kind_, "kind", kChamferKinds);
    return metrics::chamfer(distances(prediction, truth, device), kind);
}

double hausdorff(const py::object& prediction, const py::object& truth, std::string_view kind_,
                 const py::object& device) {
    const HausdorffKind kind = choice(kind_, "kind", kHausdorffKinds);
    return metrics::hausdorff(distances(prediction, truth, device), kind);
}

py::str metric_of(std::string_view distance, std::string_view kind) {
    if (distance == "hausdorff") return str_of(metrics::metric_of(choice(kind, "kind", kHausdorffKinds)));
    if (distance != "chamfer") refuse_word(distance, "distance", {"chamfer", "hausdorff"});
    return str_of(metrics::metric_of(choice(kind, "kind", kChamferKinds)));
}

Record<FScoreRecord> f_score(const py::object& prediction, const py::object& truth, double radius,
                             const py::object& device) {
    const NearestBothObject found = searched(prediction, truth, device);
    const metrics::FScore score = without_gil([&] { return metrics::f_score(*found.both, radius); });
    return record<FScoreRecord>(py::float_(score.precision), py::float_(score.recall), py::float_(score.f));
}

Record<NormalConsistencyRecord> normal_consistency(const NearestBothObject& nearest, const ArrayLike& normals_,
                                                   const ArrayLike& truth_normals_, bool oriented) {
    Call call;
    const auto normals = call.array<float, 2>(normals_, "normals");
    const auto truth_normals = call.array<float, 2>(truth_normals_, "truth_normals");
    metrics::NormalConsistency found;
    call.run([&](Stream) { found = metrics::normal_consistency(*nearest.both, normals, truth_normals, oriented); });
    return record<NormalConsistencyRecord>(py::float_(found.to_truth), py::float_(found.from_truth),
                                           py::float_(found.mean), py::int_(found.used));
}

Record<EmdRecord> earth_mover(const py::object& prediction, const py::object& truth, std::string_view method_,
                              const py::object& device) {
    constexpr Word<EmdMethod> kMethods[] = {{"exact", EmdMethod::exact}, {"auction", EmdMethod::auction}};
    const EmdMethod method = choice(method_, "method", kMethods);
    Call call;
    const PointsPair points = points_pair(call, prediction, "prediction", truth, "truth");
    const Device on = device_or(device, call);
    const metrics::Emd found = without_gil([&] { return metrics::earth_mover(*points.a, *points.b, method, on); });
    return record<EmdRecord>(py::float_(found.value), py::float_(found.lower_bound));
}

Record<JsdRecord> jensen_shannon(const py::object& prediction, const py::object& truth, int resolution,
                                 double half_extent, bool within_sphere) {
    Call call;
    const PointsPair points = points_pair(call, prediction, "prediction", truth, "truth");
    const metrics::JsdOptions options{resolution, half_extent, within_sphere};
    const metrics::Jsd found = without_gil([&] { return metrics::jensen_shannon(*points.a, *points.b, options); });
    return record<JsdRecord>(py::float_(found.value), py::int_(found.outside));
}

Record<DensityRecord> density_of(const py::object& points_, int k, const py::object& device) {
    Call call;
    const auto points = points_argument(call, points_, "points", {});
    const Device on = device_or(device, call);
    metrics::Density found = without_gil([&] { return metrics::density_of(*points, k, on); });
    return record<DensityRecord>(
        py::int_(found.points), py::float_(found.spacing_mean), py::float_(found.spacing_deviation),
        py::float_(found.spacing_min), py::float_(found.spacing_max), py::float_(found.spacing_variation),
        py::float_(found.density_mean), py::float_(found.density_variation), numpy_of(std::move(found.per_point)));
}

metrics::Frame unit_sphere(const py::object& cloud_) {
    Call call;
    const AnyCloud cloud(call, cloud_, "cloud");
    return without_gil([&] { return metrics::unit_sphere(*cloud); });
}

PointsObject in_frame(const py::object& cloud_, const metrics::Frame& frame) {
    Call call;
    const AnyCloud cloud(call, cloud_, "cloud");
    return {without_gil([&] { return std::make_shared<const metrics::Points>(metrics::in_frame(*cloud, frame)); })};
}

/// The owner of what a view shows, as views take it.
template <class T>
std::shared_ptr<void> owner_of(const std::shared_ptr<const T>& object) {
    return std::const_pointer_cast<T>(object);
}
std::shared_ptr<void> owner_of(const NearestObject& object) {
    return std::const_pointer_cast<void>(object.owner);
}

void bind_point_classes(py::module_& module) {
    py::class_<metrics::Frame>(module, "Frame", doc::metrics::Frame)
        .def(py::init([](const py::object& origin, double scale) {
                 return metrics::Frame{numbers_of<3>(origin, "origin"), scale};
             }),
             py::arg("origin") = py::make_tuple(0.0, 0.0, 0.0), py::arg("scale") = 1.0)
        .def_property_readonly("origin", [](const metrics::Frame& frame) { return tuple_of(frame.origin); })
        .def_readonly("scale", &metrics::Frame::scale);
    py::class_<PointsObject>(module, "Points", doc::metrics::Points)
        .def_property_readonly(
            "exact", [](const PointsObject& o) { return view_numpy(o.points->exact.view(), owner_of(o.points)); },
            "[n, 3] float64")
        .def_property_readonly(
            "rounded", [](const PointsObject& o) { return view_numpy(o.points->rounded.view(), owner_of(o.points)); },
            "[n, 3] float32")
        .def_property_readonly(
            "finite", [](const PointsObject& o) { return o.points->finite; }, "Points whose coordinates are finite.")
        .def("__len__", [](const PointsObject& o) { return o.points->size(); });
    py::class_<NearestObject>(module, "Nearest", doc::metrics::Nearest)
        .def_property_readonly(
            "index", [](const NearestObject& o) { return view_numpy(o.nearest->index.view(), owner_of(o)); },
            "[n] -1 for none")
        .def_property_readonly(
            "squared", [](const NearestObject& o) { return view_numpy(o.nearest->squared.view(), owner_of(o)); },
            "[n] squared distance, +infinity for none");
    py::class_<NearestBothObject>(module, "NearestBoth", doc::metrics::nearest_between)
        .def_property_readonly("of_a",
                               [](const NearestBothObject& o) {
                                   return NearestObject{o.both, &o.both->of_a};
                               })
        .def_property_readonly("of_b", [](const NearestBothObject& o) {
            return NearestObject{o.both, &o.both->of_b};
        });
    py::class_<metrics::Distances>(module, "Distances", doc::metrics::Distances)
        .def_readonly("count", &metrics::Distances::count)
        .def_readonly("mean", &metrics::Distances::mean)
        .def_readonly("mean_squared", &metrics::Distances::mean_squared)
        .def_readonly("max", &metrics::Distances::max)
        .def("deviation", &metrics::Distances::deviation, "Of the population: sqrt(mean_squared - mean^2).")
        .def("__repr__", [](const metrics::Distances& d) {
            return fmt::format("Distances(count={}, mean={}, mean_squared={}, max={})", d.count, d.mean, d.mean_squared,
                               d.max);
        });
    py::class_<metrics::CloudDistances>(module, "CloudDistances", doc::metrics::CloudDistances)
        .def_readonly("to_truth", &metrics::CloudDistances::to_truth)
        .def_readonly("from_truth", &metrics::CloudDistances::from_truth);
}

}  // namespace

void bind_metrics_points(py::module_& module) {
    bind_point_classes(module);
    add_record<FScoreRecord>(module);
    add_record<NormalConsistencyRecord>(module);
    add_record<EmdRecord>(module);
    add_record<JsdRecord>(module);
    add_record<DensityRecord>(module);
    const auto none = py::none();
    const py::arg_v device = py::arg("device") = none, truth = py::arg("truth") = none;
    const metrics::JsdOptions jsd;
    module.def("unit_sphere", &unit_sphere, py::arg("cloud"), doc::metrics::unit_sphere);
    module.def("in_frame", &in_frame, py::arg("cloud"), py::arg("frame") = metrics::Frame{}, doc::metrics::in_frame);
    module.def("nearest_between", &nearest_between, py::arg("a"), py::arg("b"), py::kw_only(), device,
               doc::metrics::nearest_between);
    module.def("nearest_of", &nearest_of, py::arg("a"), py::arg("b"), py::kw_only(), device, doc::metrics::nearest_of);
    module.def(
        "distances_of_squared",
        [](const py::object& squared) {
            const std::vector<double> values = numbers_of(squared, "squared");
            return metrics::distances_of_squared(values);
        },
        py::arg("squared"), doc::metrics::distances_of_squared);
    module.def(
        "distances_of",
        [](const py::object& distances_) {
            const std::vector<double> values = numbers_of(distances_, "distances");
            return metrics::distances_of(values);
        },
        py::arg("distances"), doc::metrics::distances_of);
    module.def("pooled", &metrics::pooled, py::arg("a"), py::arg("b"), doc::metrics::pooled);
    module.def("cloud_distances", &distances, py::arg("prediction"), truth, py::kw_only(), device,
               "Of two clouds, or of what nearest_between() found of them: a is the prediction, b the truth.");
    module.def("chamfer", &chamfer, py::arg("prediction"), truth, py::kw_only(), py::arg("kind") = "squared_sum",
               device, doc::metrics::chamfer);
    module.def("hausdorff", &hausdorff, py::arg("prediction"), truth, py::kw_only(), py::arg("kind") = "symmetric",
               device, doc::metrics::hausdorff);
    module.def("metric_of", &metric_of, py::arg("distance"), py::arg("kind"),
               "The registry's row of a kind of \"chamfer\" or \"hausdorff\".");
    module.def("f_score", &f_score, py::arg("prediction"), truth, py::kw_only(), py::arg("radius"), device,
               doc::metrics::f_score);
    module.def("normal_consistency", &normal_consistency, py::arg("nearest"), py::arg("normals"),
               py::arg("truth_normals"), py::arg("oriented") = false, doc::metrics::normal_consistency);
    module.def("earth_mover", &earth_mover, py::arg("prediction"), py::arg("truth"), py::arg("method") = "auction",
               py::kw_only(), device, doc::metrics::earth_mover);
    module.def("jensen_shannon", &jensen_shannon, py::arg("prediction"), py::arg("truth"), py::kw_only(),
               py::arg("resolution") = jsd.resolution, py::arg("half_extent") = jsd.half_extent,
               py::arg("within_sphere") = jsd.within_sphere, doc::metrics::jensen_shannon);
    module.def("density_of", &density_of, py::arg("points"), py::arg("k") = 8, py::kw_only(), device,
               doc::metrics::density_of);
}

}  // namespace stipple::python
