// stipple.network.Builder: a network layer by layer.

#include "stipple/network/builder.h"

#include "python/bindings/network/objects.h"

namespace stipple::python {
namespace {

using network::Activation, network::Builder, network::Initialiser, network::Normalise, network::Tensor;
using Text = const std::string&;

constexpr Word<Initialiser> kInitialisers[] = {{"zeros", Initialiser::zeros},
                                               {"ones", Initialiser::ones},
                                               {"fan_in_uniform", Initialiser::fan_in_uniform},
                                               {"xavier_normal", Initialiser::xavier_normal},
                                               {"random_orthogonal", Initialiser::random_orthogonal}};
constexpr Word<Normalise> kNormalise[] = {
    {"row", Normalise::row}, {"joint", Normalise::joint}, {"none", Normalise::none}};

/// None, "relu", or what relu() and its like made.
Activation activation_of(const py::object& object) {
    if (object.is_none()) return {};
    if (py::isinstance<Activation>(object)) return object.cast<Activation>();
    const std::string name = text_of(object, "activation");
    const auto kind = network::activation_named(name);
    STIPPLE_REQUIRE(kind, "activation: \"{}\" is none: network.relu() and its like make one", name);
    return {*kind, *kind == network::ActivationKind::elu ? 1.0f : 0.0f};
}

std::vector<Tensor> tensors_of(const py::object& parts) {
    std::vector<Tensor> made;
    for (int64_t part : whole_numbers(parts, "parts")) made.push_back(static_cast<Tensor>(part));
    return made;
}

network::LinearOptions linear_options(bool bias, bool norm, float norm_eps, const py::object& activation,
                                      std::string_view weights) {
    return {bias, norm, norm_eps, activation_of(activation), choice(weights, "weights", kInitialisers)};
}

Tensor linear(Builder& build, Text name, Tensor x, int64_t channels, bool bias, bool norm, float norm_eps,
              const py::object& activation, std::string_view weights, Text parameters) {
    const network::LinearOptions options = linear_options(bias, norm, norm_eps, activation, weights);
    if (parameters.empty()) return build.linear(name, x, channels, options);
    return build.linear_sharing(name, x, channels, options, parameters);
}

Tensor attend(Builder& build, Text name, Tensor queries, Tensor keys, Tensor values, std::string_view normalise,
              float factor, bool unit, bool skips_self) {
    return build.attend(name, queries, keys, values,
                        {choice(normalise, "normalise", kNormalise), factor, unit, skips_self});
}

Tensor flow_step(Builder& build, Text name, Tensor x, Tensor condition, int64_t hidden, int64_t steps,
                 const py::object& activation, bool log_det, bool inverse, Text parameters) {
    return build.flow_step(name, x, condition, {hidden, steps, activation_of(activation), log_det, inverse},
                           parameters);
}

Tensor constant(Builder& build, Text name, const py::object& values) {
    const std::vector<double> numbers = numbers_of(values, "values");
    return build.constant(name, std::vector<float>(numbers.begin(), numbers.end()));
}

Tensor knn(Builder& build, Text name, Tensor queries, int64_t k, const py::object& points) {
    if (points.is_none()) return build.knn(name, queries, k);
    return build.knn(name, queries, points.cast<Tensor>(), k);
}

NetworkObject finish(Builder& build, const py::object& config) {
    return give(build.finish(text_map_of(config, "config")));
}

template <Tensor (Builder::*Layer)(std::string, Tensor)>
Tensor of_one(Builder& build, Text name, Tensor x) {
    return (build.*Layer)(name, x);
}

template <Tensor (Builder::*Layer)(std::string, Tensor, Tensor)>
Tensor of_two(Builder& build, Text name, Tensor x, Tensor y) {
    return (build.*Layer)(name, x, y);
}

using Class = py::class_<Builder>;
using Extra = py::arg;

template <Tensor (Builder::*Layer)(std::string, Tensor)>
void one(Class& builder, const char* name) {
    builder.def(name, &of_one<Layer>, py::arg("name"), py::arg("x"));
}

template <Tensor (Builder::*Layer)(std::string, Tensor, Tensor)>
void two(Class& builder, const char* name, const char* x, const char* y) {
    builder.def(name, &of_two<Layer>, py::arg("name"), py::arg(x), py::arg(y));
}

void bind_plain(Class& builder) {
    one<&Builder::add_identity>(builder, "add_identity");
    one<&Builder::max_points>(builder, "max_points");
    one<&Builder::sum_points>(builder, "sum_points");
    one<&Builder::max_rows>(builder, "max_rows");
    one<&Builder::sum_channels>(builder, "sum_channels");
    one<&Builder::reverse>(builder, "reverse");
    one<&Builder::softmax_rows>(builder, "softmax_rows");
    one<&Builder::log_softmax>(builder, "log_softmax");
    one<&Builder::gaussian_log_density>(builder, "gaussian_log_density");
    two<&Builder::transform>(builder, "transform", "x", "matrix");
    two<&Builder::gather>(builder, "gather", "x", "indices");
    two<&Builder::edge>(builder, "edge", "x", "indices");
    two<&Builder::edge_distance>(builder, "edge_distance", "x", "indices");
    two<&Builder::interpolate>(builder, "interpolate", "weights", "values");
    two<&Builder::add>(builder, "add", "x", "y");
    two<&Builder::subtract>(builder, "subtract", "x", "y");
    two<&Builder::multiply>(builder, "multiply", "x", "y");
}

void bind_with_options(Class& builder) {
    const network::LinearOptions linear_defaults;
    const network::FlowStepOptions flow;
    const py::arg name("name"), x("x");
    builder
        .def("linear", &linear, name, x, py::arg("channels"), py::kw_only(), py::arg("bias") = linear_defaults.bias,
             py::arg("norm") = linear_defaults.norm, py::arg("norm_eps") = linear_defaults.norm_eps,
             py::arg("activation") = py::none(), py::arg("weights") = "fan_in_uniform", py::arg("parameters") = "",
             "x W^T + b, then batch norm, then the activation. `parameters`: a layer whose parameters are used again.")
        .def(
            "activation",
            [](Builder& build, Text layer, Tensor input, const py::object& activation) {
                return build.activation(layer, input, activation_of(activation));
            },
            name, x, py::arg("activation"))
        .def("attend", &attend, name, py::arg("queries"), py::arg("keys"), py::arg("values"), py::kw_only(),
             py::arg("normalise") = "row", py::arg("factor") = 1.0f, py::arg("unit") = false,
             py::arg("skips_self") = false)
        .def("flow_step", &flow_step, name, x, py::arg("condition"), py::kw_only(), py::arg("hidden") = flow.hidden,
             py::arg("steps") = flow.steps, py::arg("activation") = "swish", py::arg("log_det") = flow.log_det,
             py::arg("inverse") = flow.inverse, py::arg("parameters") = "")
        .def("constant", &constant, name, py::arg("values"))
        .def("knn", &knn, name, py::arg("queries"), py::arg("k"), py::arg("points") = py::none(),
             "Of each query the k nearest points of its cloud; without points, of the queries themselves.")
        .def(
            "learned",
            [](Builder& build, Text layer, int64_t channels, std::string_view start) {
                return build.learned(layer, channels, choice(start, "start", kInitialisers));
            },
            name, py::arg("channels") = 1, py::arg("start") = "ones")
        .def(
            "concat",
            [](Builder& build, Text layer, const py::object& parts) { return build.concat(layer, tensors_of(parts)); },
            name, py::arg("parts"))
        .def("finish", &finish, py::arg("config") = py::none(), "Validates and hands over.")
        .def("type", &Builder::type, py::arg("tensor"))
        .def("next_set", &Builder::next_set, "The lowest point set after those that are there.")
        .def("output", &Builder::output, name, py::arg("tensor"));
}

void bind_with_numbers(Class& builder) {
    const py::arg name("name"), x("x");
    const py::arg_v inverse = py::arg("inverse") = false, parameters = py::arg("parameters") = "";
    builder.def("input", &Builder::input, name, py::arg("type"))
        .def("dropout", &Builder::dropout, name, x, py::arg("rate"))
        .def("rotation", &Builder::rotation, name, py::arg("quaternion"), inverse)
        .def("slice", &Builder::slice, name, x, py::arg("begin"), py::arg("end"))
        .def("repeat", &Builder::repeat, name, x, py::arg("width") = 1)
        .def("repeat_for_set", &Builder::repeat_for_set, name, x, py::arg("set"))
        .def("unflatten", &Builder::unflatten, name, x, py::arg("channels"), py::arg("set") = -1)
        .def("regroup", &Builder::regroup, name, x, py::arg("channels"))
        .def("layer_norm", &Builder::layer_norm, name, x, py::arg("eps") = 1e-5f)
        .def("scale", &Builder::scale, name, x, py::arg("factor"))
        .def("actnorm", &Builder::actnorm, name, x, inverse, parameters)
        .def("mix", &Builder::mix, name, x, inverse, parameters)
        .def("couple", &Builder::couple, name, x, py::arg("t"), py::arg("begin"), inverse)
        .def("inject", &Builder::inject, name, x, py::arg("s"), py::arg("b"), inverse)
        .def("flow_log_det", &Builder::flow_log_det, name, x, py::arg("parameters"));
}

}  // namespace

void bind_builder(py::module_& module) {
    Class builder(module, "Builder", doc::network::Builder);
    builder.def(py::init<std::string>(), py::arg("network_name"));
    bind_plain(builder);
    bind_with_options(builder);
    bind_with_numbers(builder);
}

}  // namespace stipple::python
