// stipple.engine: what int8 and fp8 need to know of real data.

#include "stipple/engine/calibration.h"

#include "python/bindings/engine/objects.h"

namespace stipple::python {
namespace {

using engine::Calibration;

struct LayerRangeRecord {
    static constexpr auto name = py::detail::const_name("LayerRange");
    static constexpr const char* fields[] = {"range", "largest", "error", "keep_higher"};
};

Calibration calibrate(const NetworkObject& network, const WeightsObject& weights, const py::object& inputs,
                      const py::object& offsets, std::string_view precision, std::string_view method, double percentile,
                      double max_logit_error) {
    const engine::CalibrationOptions options{engine::parse_precision(precision), engine::parse_range_method(method),
                                             percentile, max_logit_error};
    std::vector<NamedType> types;
    for (const network::Layer& layer : network.network->layers)
        if (layer.kind == network::Kind::input) types.push_back({layer.name, layer.type});
    Call call;
    const RowsByName rows = rows_by_name(call, types, inputs, offsets);
    STIPPLE_REQUIRE(rows.sets.size() <= 1, "inputs: {} point sets; networks of one are calibrated", rows.sets.size());
    Calibration made;
    call.run([&](Stream) {
        made = engine::calibrate(*network.network, *weights.weights, rows.batches()[0], rows.inputs, options);
    });
    return made;
}

py::dict layers_of(const Calibration& calibration) {
    py::dict made;
    for (const auto& [name, layer] : calibration.layers)
        made[str_of(name)] = record<LayerRangeRecord>(py::float_(layer.range), py::float_(layer.largest),
                                                      py::float_(layer.error), py::bool_(layer.keep_higher));
    return made;
}

}  // namespace

void bind_calibration(py::module_& module) {
    add_record<LayerRangeRecord>(module);
    py::class_<Calibration>(module, "Calibration", doc::engine::Calibration)
        .def_property_readonly("precision", [](const Calibration& c) { return str_of(engine::name_of(c.precision)); })
        .def_property_readonly("method", [](const Calibration& c) { return str_of(engine::name_of(c.method)); })
        .def_readonly("clouds", &Calibration::clouds)
        .def_property_readonly("layers", &layers_of);
    const engine::CalibrationOptions defaults;
    const py::arg weights("weights");
    module.def("calibrate", &calibrate, py::arg("network"), weights, py::arg("inputs"), py::kw_only(),
               py::arg("offsets") = py::none(), py::arg("precision") = "int8", py::arg("method") = "entropy",
               py::arg("percentile") = defaults.percentile, py::arg("max_logit_error") = defaults.max_logit_error,
               doc::engine::calibrate);
    module.def("calibration_json", &engine::calibration_json, py::arg("calibration"), doc::engine::calibration_json);
    module.def("parse_calibration", &engine::parse_calibration, py::arg("json"), doc::engine::parse_calibration);
    module.def(
        "set_calibration", [](const WeightsObject& w, const Calibration& c) { engine::set_calibration(*w.weights, c); },
        weights, py::arg("calibration"), doc::engine::set_calibration);
    module.def(
        "has_calibration", [](const WeightsObject& w) { return engine::has_calibration(*w.weights); }, weights,
        doc::engine::has_calibration);
    module.def(
        "calibration_of", [](const WeightsObject& w) { return engine::calibration_of(*w.weights); }, weights,
        doc::engine::calibration_of);
}

}  // namespace stipple::python
