// stipple.network: types, activations, networks as data, and what is told of them.

#include "stipple/network/network.h"

#include "python/bindings/network/objects.h"
#include "stipple/network/describe.h"
#include "stipple/network/diagram.h"
#include "stipple/network/subgraph.h"

namespace stipple::python {
namespace {

using network::Activation, network::Layer, network::Network, network::TensorType;

struct ParameterRecord {
    static constexpr auto name = py::detail::const_name("Parameter");
    static constexpr const char* fields[] = {"name", "shape", "initialiser", "is_trained", "layer"};
};
struct LayerRecord {
    static constexpr auto name = py::detail::const_name("Layer");
    static constexpr const char* fields[] = {"name", "kind", "inputs", "options", "parameters", "type"};
};
struct TotalsRecord {
    static constexpr auto name = py::detail::const_name("Totals");
    static constexpr const char* fields[] = {"trained", "statistics"};
};

py::object layer_record(const Layer& layer) {
    py::tuple inputs(layer.inputs.size());
    for (size_t i = 0; i < layer.inputs.size(); ++i) inputs[i] = layer.inputs[i];
    return record<LayerRecord>(str_of(layer.name), str_of(network::name_of(layer.kind)), inputs,
                               str_of(network::options_text(layer)), str_of(layer.parameters), py::cast(layer.type));
}

py::list layers_of(const NetworkObject& object) {
    py::list made;
    for (const Layer& layer : object.network->layers) made.append(layer_record(layer));
    return made;
}

py::dict inputs_of(const NetworkObject& object) {
    py::dict made;
    for (const Layer& layer : object.network->layers)
        if (layer.kind == network::Kind::input) made[str_of(layer.name)] = layer.type;
    return made;
}

py::dict outputs_of(const NetworkObject& object) {
    py::dict made;
    for (const network::Output& output : object.network->outputs)
        made[str_of(output.name)] = (*object.network)[output.tensor].type;
    return made;
}

py::list parameters_of(const NetworkObject& object) {
    py::list made;
    for (const network::Parameter& each : network::parameters_of(*object.network))
        made.append(record<ParameterRecord>(str_of(each.name), tuple_of(each.shape),
                                            str_of(network::name_of(each.initialiser)), py::bool_(each.is_trained),
                                            str_of(each.layer)));
    return made;
}

Record<TotalsRecord> count(const NetworkObject& object) {
    const network::Totals totals = network::count(network::parameters_of(*object.network));
    return record<TotalsRecord>(py::int_(totals.trained), py::int_(totals.statistics));
}

NetworkObject subgraph(const NetworkObject& object, const std::string& name, const py::function& is_part) {
    return give(network::subgraph(*object.network, name, [&](const Layer& layer) {
        return py::bool_(is_part(layer_record(layer))).cast<bool>();
    }));
}

template <Activation (*Make)()>
Activation made_activation() {
    return Make();
}

void bind_activations(py::module_& module) {
    py::class_<Activation>(module, "Activation", "What follows a product: made by relu() and its like.")
        .def_property_readonly("kind", [](const Activation& a) { return str_of(network::name_of(a.kind)); })
        .def_readonly("slope", &Activation::slope)
        .def("__repr__", [](const Activation& a) {
            return a.slope == 0 ? fmt::format("{}()", network::name_of(a.kind))
                                : fmt::format("{}({})", network::name_of(a.kind), a.slope);
        });
    module.def("relu", &network::relu, "The rectifier, max(x, 0).");
    module.def("leaky_relu", &network::leaky_relu, py::arg("slope"), "x, or slope * x below zero");
    module.def("tanh", &network::tanh, "The hyperbolic tangent.");
    module.def("sigmoid", &network::sigmoid, "The logistic function, 1 / (1 + exp(-x)).");
    module.def("elu", &network::elu, py::arg("alpha") = 1.0f, "x, or alpha * (exp(x) - 1) below zero");
    module.def("gelu", &network::gelu, "x * Phi(x), Phi the normal distribution function.");
    module.def("swish", &network::swish, "x * sigmoid(x), also called SiLU");
    module.def("softplus", &network::softplus, "A smooth rectifier, ln(1 + exp(x)).");
    module.def("log", &network::log, py::arg("least"), "ln(max(x, 0) + least)");
}

void bind_types(py::module_& module) {
    py::class_<TensorType>(module, "TensorType", "Rows of channels, of clouds or of points: \"[B, N, 64]\".")
        .def_property_readonly("level",
                               [](const TensorType& t) { return t.level == network::Level::cloud ? "cloud" : "point"; })
        .def_readonly("width", &TensorType::width)
        .def_readonly("channels", &TensorType::channels)
        .def_readonly("is_index", &TensorType::is_index)
        .def_readonly("set", &TensorType::set)
        .def_readonly("points", &TensorType::points)
        .def("__str__", [](const TensorType& t) { return network::to_string(t); })
        .def("__repr__", [](const TensorType& t) { return network::to_string(t); })
        .def("__eq__", [](const TensorType& a, const TensorType& b) { return a == b; });
    module.def("clouds_of", &network::clouds_of, py::arg("channels"), "A row for each cloud: [B, channels].");
    module.def("points_of", &network::points_of, py::arg("channels"), py::arg("set") = 0,
               "A row for each point: [B, N, channels].");
    module.def("rows_of", py::overload_cast<int64_t, int64_t, int32_t>(&network::rows_of), py::arg("width"),
               py::arg("channels"), py::arg("set") = 0, "Several rows for each point: [B, N, width, channels].");
}

}  // namespace

void bind_network(py::module_& module) {
    add_record<ParameterRecord>(module);
    add_record<LayerRecord>(module);
    add_record<TotalsRecord>(module);
    bind_types(module);
    bind_activations(module);
    py::class_<NetworkObject>(module, "Network", doc::network::Network)
        .def_property_readonly("name", [](const NetworkObject& o) { return o.network->name; })
        .def_property_readonly("config", [](const NetworkObject& o) { return dict_of(o.network->config); })
        .def_property_readonly("layers", &layers_of)
        .def_property_readonly("inputs", &inputs_of)
        .def_property_readonly("outputs", &outputs_of)
        .def("__len__", [](const NetworkObject& o) { return o.network->layers.size(); })
        .def("__str__", [](const NetworkObject& o) { return network::to_text(*o.network); })
        .def("__repr__",
             [](const NetworkObject& o) {
                 return fmt::format("stipple.network.Network({}: {})", o.network->name,
                                    network::totals_text(*o.network));
             })
        .def("_repr_svg_", [](const NetworkObject& o) { return network::to_svg(*o.network); });
    const py::arg network("network");
    module.def("parameters_of", &parameters_of, network, doc::network::parameters_of);
    module.def("count", &count, network, "Numbers in trained parameters, and in running statistics.");
    module.def(
        "validate", [](const NetworkObject& o) { network::validate(*o.network); }, network, doc::network::validate);
    module.def(
        "to_text", [](const NetworkObject& o) { return network::to_text(*o.network); }, network, doc::network::to_text);
    module.def(
        "totals_text", [](const NetworkObject& o) { return network::totals_text(*o.network); }, network,
        doc::network::totals_text);
    module.def(
        "to_svg", [](const NetworkObject& o) { return network::to_svg(*o.network); }, network, doc::network::to_svg);
    module.def(
        "multiply_adds", [](const NetworkObject& o, int64_t n) { return network::multiply_adds(*o.network, n); },
        network, py::arg("n"), doc::network::multiply_adds);
    module.def("subgraph", &subgraph, network, py::arg("name"), py::arg("is_part"), doc::network::subgraph);
    module.def("flow_condition_channels", &network::flow_condition_channels, py::arg("channels"), py::arg("hidden"),
               doc::network::flow_condition_channels);
}

}  // namespace stipple::python
