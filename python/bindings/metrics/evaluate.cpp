// stipple.metrics: the registry, and one prediction against one truth by a named protocol.

#include "stipple/metrics/evaluate.h"

#include "python/bindings/common/any_cloud.h"
#include "python/bindings/metrics/common.h"
#include "stipple/metrics/noise_floor.h"

namespace stipple::python {
namespace {

const char* word_of(metrics::Better better) {
    return better == metrics::Better::lower ? "lower" : better == metrics::Better::higher ? "higher" : "neither";
}

struct HalvesRecord {
    static constexpr auto name = py::detail::const_name("Halves");
    static constexpr const char* fields[] = {"a", "b"};
};

struct EvaluationObject {
    std::shared_ptr<metrics::Evaluation> evaluation;
};

py::dict info_dict(const metrics::MetricInfo& info) {
    py::dict made;
    made["name"] = info.name;
    made["group"] = info.group;
    made["formula"] = info.formula;
    made["unit"] = info.unit;
    made["better"] = word_of(info.better);
    made["across"] = info.across == metrics::Across::mean ? "mean" : "pooled";
    made["used_by"] = info.used_by;
    made["header"] = info.header;
    made["extra"] = info.extra ? py::object(str_of(metrics::name_of(*info.extra))) : py::none();
    return made;
}

py::list registry() {
    py::list made;
    for (const metrics::MetricInfo& info : metrics::registry()) made.append(info_dict(info));
    return made;
}

py::list list_of(const std::vector<metrics::Score>& scores) {
    py::list made;
    for (const metrics::Score& score : scores) made.append(score);
    return made;
}

EvaluationObject evaluate(const py::object& prediction_, const py::object& truth_, const py::object& mesh_,
                          const std::string& protocol_, const py::object& extras, bool only_extras, bool raw_too,
                          double f_score_radius, int64_t surface_samples, bool floor, const std::string& floor_sampling,
                          bool errors, bool equal_counts, std::string_view nonfinite, uint64_t seed,
                          const py::object& device) {
    using metrics::NonFinite;
    constexpr Word<NonFinite> kNonFinite[] = {{"refuse", NonFinite::refuse}, {"leave_out", NonFinite::leave_out}};
    const metrics::Protocol protocol = metrics::protocol_by_name(protocol_);
    metrics::EvaluateOptions options;
    for (const std::string& extra : texts_of(extras, "extras")) options.extras.push_back(metrics::extra_by_name(extra));
    options.only_extras = only_extras;
    options.raw_too = raw_too;
    options.f_score_radius = f_score_radius;
    options.surface_samples = surface_samples;
    options.floor = floor;
    options.floor_sampling = metrics::floor_sampling_by_name(floor_sampling);
    options.errors = errors;
    options.equal_counts = equal_counts;
    options.nonfinite = choice(nonfinite, "nonfinite", kNonFinite);
    options.seed = seed;
    if (!device.is_none()) options.device = device_argument(device);
    Call call;
    const AnyCloud prediction(call, prediction_, "prediction");
    const AnyCloud truth(call, truth_, "truth");
    std::optional<AnyMesh> mesh;
    if (!mesh_.is_none()) mesh.emplace(mesh_, "mesh");
    return {without_gil([&] {
        return std::make_shared<metrics::Evaluation>(
            metrics::evaluate(*prediction, *truth, mesh ? &**mesh : nullptr, protocol, options));
    })};
}

/// What over_shapes looks at: all but the errors of points.
std::vector<metrics::Evaluation> evaluations_of(const py::object& shapes) {
    std::vector<metrics::Evaluation> made;
    for (py::handle each : shapes) {
        if (!py::isinstance<EvaluationObject>(each))
            throw py::type_error(fmt::format("shapes: {}; wanted are results of evaluate()", type_name(each)));
        const metrics::Evaluation& from = *each.cast<const EvaluationObject&>().evaluation;
        metrics::Evaluation& to = made.emplace_back();
        to.scores = from.scores, to.floor = from.floor;
        to.to_mesh = from.to_mesh, to.from_mesh = from.from_mesh;
    }
    return made;
}

metrics::Score make_score(const std::string& metric, double value, const std::string& normalisation,
                          const std::string& name, const std::string& parameters) {
    return metrics::make_score(metric, value, normalisation, name, parameters);
}

py::object find(const py::object& scores, std::string_view name) {
    for (py::handle each : scores)
        if (each.cast<const metrics::Score&>().name == name) return py::reinterpret_borrow<py::object>(each);
    return py::none();
}

void bind_classes(py::module_& module) {
    using metrics::Score;
    py::class_<Score>(module, "Score", doc::metrics::Score)
        .def_readonly("name", &Score::name)
        .def_readonly("metric", &Score::metric)
        .def_readonly("value", &Score::value)
        .def_readonly("unit", &Score::unit)
        .def_readonly("convention", &Score::convention)
        .def_readonly("normalisation", &Score::normalisation)
        .def_property_readonly("better", [](const Score& score) { return word_of(score.better); })
        .def_readonly("shapes", &Score::shapes)
        .def("__float__", [](const Score& score) { return score.value; })
        .def("__repr__", [](const Score& score) {
            return fmt::format("Score({} = {:.6g} {}: {})", score.name, score.value, score.unit, score.convention);
        });
    py::class_<EvaluationObject>(module, "Evaluation", doc::metrics::Evaluation)
        .def_property_readonly("scores", [](const EvaluationObject& o) { return list_of(o.evaluation->scores); })
        .def_property_readonly("floor", [](const EvaluationObject& o) { return list_of(o.evaluation->floor); })
        .def_property_readonly("floor_text", [](const EvaluationObject& o) { return o.evaluation->floor_text; })
        .def_property_readonly("notes", [](const EvaluationObject& o) { return tuple_of(o.evaluation->notes); })
        .def_property_readonly("prediction_points",
                               [](const EvaluationObject& o) { return o.evaluation->prediction_points; })
        .def_property_readonly("truth_points", [](const EvaluationObject& o) { return o.evaluation->truth_points; })
        .def_property_readonly("prediction_left_out",
                               [](const EvaluationObject& o) { return o.evaluation->prediction_left_out; })
        .def_property_readonly("truth_left_out", [](const EvaluationObject& o) { return o.evaluation->truth_left_out; })
        .def_property_readonly("to_mesh", [](const EvaluationObject& o) { return o.evaluation->to_mesh; })
        .def_property_readonly("from_mesh", [](const EvaluationObject& o) { return o.evaluation->from_mesh; })
        .def_property_readonly(
            "error_to_truth",
            [](const EvaluationObject& o) {
                return view_numpy(std::as_const(o.evaluation->error_to_truth).view(), o.evaluation);
            },
            "[n] of every point of the prediction; empty unless asked for")
        .def_property_readonly(
            "error_to_mesh",
            [](const EvaluationObject& o) {
                return view_numpy(std::as_const(o.evaluation->error_to_mesh).view(), o.evaluation);
            },
            "[n] of every point of the prediction; empty unless asked for")
        .def(
            "__getitem__",
            [](const EvaluationObject& o, std::string_view name) {
                const Score* found = metrics::find(o.evaluation->scores, name);
                if (!found) throw py::key_error(std::string(name));
                return found->value;
            },
            py::arg("name"), "The value of a score by its name.")
        .def("__repr__", [](const EvaluationObject& o) {
            std::string text;
            for (const Score& score : o.evaluation->scores)
                text += fmt::format("{}{} = {:.6g}", text.empty() ? "" : ", ", score.name, score.value);
            return "Evaluation(" + text + ")";
        });
}

}  // namespace

void bind_metrics_evaluate(py::module_& module) {
    bind_classes(module);
    add_record<HalvesRecord>(module);
    const metrics::EvaluateOptions defaults;
    module.def("registry", &registry, "All metrics as dicts: name, group, formula, unit, better and who reports it.");
    module.def(
        "info_of", [](std::string_view metric) { return info_dict(metrics::info_of(metric)); }, py::arg("metric"),
        doc::metrics::info_of);
    module.def(
        "all_extras",
        [] {
            std::vector<std::string> names;
            for (metrics::Extra extra : metrics::all_extras()) names.emplace_back(metrics::name_of(extra));
            return tuple_of(names);
        },
        "What evaluate() can be asked for beyond cd, hd and p2f.");
    module.def("make_score", &make_score, py::arg("metric"), py::arg("value"), py::arg("normalisation"),
               py::arg("name") = "", py::arg("parameters") = "", doc::metrics::make_score);
    module.def("find", &find, py::arg("scores"), py::arg("name"), "The score of this name; None when absent.");
    module.def("evaluate", &evaluate, py::arg("prediction"), py::arg("truth"), py::arg("mesh") = py::none(),
               py::arg("protocol") = "pu-gan", py::kw_only(), py::arg("extras") = py::tuple(),
               py::arg("only_extras") = defaults.only_extras, py::arg("raw_too") = defaults.raw_too,
               py::arg("f_score_radius") = defaults.f_score_radius,
               py::arg("surface_samples") = defaults.surface_samples, py::arg("floor") = defaults.floor,
               py::arg("floor_sampling") = "farthest", py::arg("errors") = defaults.errors,
               py::arg("equal_counts") = defaults.equal_counts, py::arg("nonfinite") = "refuse",
               py::arg("seed") = defaults.seed, py::arg("device") = py::none(), doc::metrics::evaluate);
    module.def(
        "over_shapes", [](const py::object& shapes) { return list_of(metrics::over_shapes(evaluations_of(shapes))); },
        py::arg("shapes"), doc::metrics::over_shapes);
    module.def(
        "floor_over_shapes",
        [](const py::object& shapes) { return list_of(metrics::floor_over_shapes(evaluations_of(shapes))); },
        py::arg("shapes"), doc::metrics::floor_over_shapes);
    module.def(
        "resampled",
        [](const py::object& mesh_, int64_t n, const std::string& sampling_, uint64_t seed) {
            const metrics::FloorSampling sampling = metrics::floor_sampling_by_name(sampling_);
            const AnyMesh mesh(mesh_, "mesh");
            return give(without_gil([&] { return metrics::resampled(*mesh, n, sampling, seed); }));
        },
        py::arg("mesh"), py::arg("n"), py::arg("sampling") = "farthest", py::arg("seed") = 1, doc::metrics::resampled);
    module.def(
        "halves_of",
        [](const py::object& cloud_, uint64_t seed) {
            Call call;
            const AnyCloud cloud(call, cloud_, "cloud");
            metrics::Halves made = without_gil([&] { return metrics::halves_of(*cloud, seed); });
            return record<HalvesRecord>(py::cast(give(std::move(made.a))), py::cast(give(std::move(made.b))));
        },
        py::arg("cloud"), py::arg("seed") = 1, doc::metrics::halves_of);
}

}  // namespace stipple::python
