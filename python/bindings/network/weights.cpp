// stipple.network: weights and their files, cards, ONNX; stipple.models.

#include "python/bindings/network/objects.h"
#include "stipple/core/byte_sink.h"
#include "stipple/models/registry.h"
#include "stipple/network/card.h"
#include "stipple/network/onnx.h"

namespace stipple::python {
namespace {

using network::Card, network::Weights, network::WeightTensor;

ArrayResult tensor_view(const WeightsObject& object, const std::string& name) {
    const auto found = object.weights->tensors.find(name);
    if (found == object.weights->tensors.end()) throw py::key_error(name);
    WeightTensor& tensor = found->second;
    ArrayObject array;
    STIPPLE_REQUIRE(tensor.shape.size() <= kMostDimensions, "{}: {} dimensions", name, tensor.shape.size());
    array.info.set_shape(tensor.shape);
    array.info.data = tensor.values.data();
    array.owner = object.weights;
    return py::reinterpret_steal<ArrayResult>(numpy_view(array).release());
}

/// Copies the numbers: a tensor that is there keeps its memory, which views may show.
void set_tensor(const WeightsObject& object, const std::string& name, const py::object& values) {
    Call call;
    const ArrayInfo info = call.any(values, name.c_str());
    if (info.dtype != DType::f32)
        throw py::type_error(fmt::format("{}: an array of {}; wanted is float32", name, name_of(info.dtype)));
    const std::vector<int64_t> shape(info.shape, info.shape + info.rank);
    auto [found, is_new] = object.weights->tensors.try_emplace(name);
    WeightTensor& tensor = found->second;
    if (is_new) {
        tensor.shape = shape;
        tensor.values.resize(static_cast<size_t>(info.elements()));
    }
    STIPPLE_REQUIRE(tensor.shape == shape, "{}: shape {}, but the tensor's is {}", name, shape_of(info),
                    shape_text(tensor.shape.data(), static_cast<int>(tensor.shape.size())));
    copy_bytes(tensor.values.data(), Device{}, info.data, info.device,
               info.elements() * static_cast<int64_t>(sizeof(float)));
}

py::list names_of(const WeightsObject& object) {
    py::list made;
    for (const auto& [name, tensor] : object.weights->tensors) made.append(str_of(name));
    return made;
}

WeightsObject parse_weights(const py::bytes& data) {
    const std::string_view text(data);
    return without_gil([&] {
        io::MemorySource source(std::as_bytes(std::span(text)));
        io::ByteReader reader(source);
        return give(network::parse_weights(reader));
    });
}

py::bytes write_weights(const WeightsObject& object, std::string_view storage_) {
    const network::WeightStorage storage = network::parse_weight_storage(storage_);
    MemorySink sink;
    without_gil([&] { network::write_weights(*object.weights, storage, sink); });
    return bytes_of(sink.bytes());
}

void save_weights(const py::object& path_, const WeightsObject& object, std::string_view storage_, bool overwrite) {
    const network::WeightStorage storage = network::parse_weight_storage(storage_);
    const std::string path = path_of(path_, "path");
    without_gil([&] { network::save_weights(path, *object.weights, storage, overwrite_of(overwrite)); });
}

py::dict card_dict(const Card& card) {
    py::dict made;
    const auto put = [&](const char* key, const std::string& text) {
        if (!text.empty()) made[key] = str_of(text);
    };
    put("recipe", card.recipe);
    put("data", card.data);
    put("commit", card.commit);
    put("command", card.command);
    if (card.seed) made["seed"] = *card.seed;
    if (!card.metrics.empty()) {
        py::dict metrics;
        for (const auto& [name, value] : card.metrics) metrics[str_of(name)] = value;
        made["metrics"] = metrics;
    }
    put("date", card.date);
    put("licence", card.licence);
    return made;
}

Card card_from(const py::dict& fields) {
    Card card;
    for (const auto& [key_, value] : fields) {
        const std::string key = text_of(key_, "card");
        if (key == "recipe")
            card.recipe = text_of(value, "card.recipe");
        else if (key == "data")
            card.data = text_of(value, "card.data");
        else if (key == "commit")
            card.commit = text_of(value, "card.commit");
        else if (key == "command")
            card.command = text_of(value, "card.command");
        else if (key == "seed")
            card.seed = value.cast<int64_t>();
        else if (key == "date")
            card.date = text_of(value, "card.date");
        else if (key == "licence")
            card.licence = text_of(value, "card.licence");
        else if (key == "metrics")
            for (const auto& [name, number] : value.cast<py::dict>())
                card.metrics[text_of(name, "card.metrics")] = number.cast<double>();
        else
            refuse_word(key, "card", {"recipe", "data", "commit", "command", "seed", "metrics", "date", "licence"});
    }
    return card;
}

std::map<std::string, float> ranges_of(const py::object& ranges) {
    std::map<std::string, float> made;
    if (ranges.is_none()) return made;
    for (const auto& [name, range] : ranges.cast<py::dict>()) made[text_of(name, "ranges")] = range.cast<float>();
    return made;
}

py::dict ranges_for_onnx(const NetworkObject& object, const py::object& ranges) {
    py::dict made;
    for (const auto& [name, range] : network::ranges_for_onnx(*object.network, ranges_of(ranges)))
        made[str_of(name)] = range;
    return made;
}

py::bytes to_onnx(const NetworkObject& object, const WeightsObject& weights, bool fold_norm, bool convolutions,
                  const py::object& ranges) {
    const network::OnnxOptions options{fold_norm, convolutions, ranges_of(ranges)};
    return bytes_of(without_gil([&] { return network::to_onnx(*object.network, *weights.weights, options); }));
}

void save_onnx(const py::object& path_, const NetworkObject& object, const WeightsObject& weights, bool fold_norm,
               bool convolutions, const py::object& ranges, bool overwrite) {
    const network::OnnxOptions options{fold_norm, convolutions, ranges_of(ranges)};
    const std::string path = path_of(path_, "path");
    without_gil([&] { network::save_onnx(path, *object.network, *weights.weights, options, overwrite_of(overwrite)); });
}

void bind_class(py::module_& module) {
    py::class_<WeightsObject>(module, "Weights",
                              "Parameters by name, as float32: a mapping whose arrays are views of them, and metadata. "
                              "A name keeps its shape.")
        .def(py::init([] { return give(Weights{}); }))
        .def("__getitem__", &tensor_view, py::arg("name"))
        .def("__setitem__", &set_tensor, py::arg("name"), py::arg("values"))
        .def("__contains__",
             [](const WeightsObject& o, const std::string& name) { return o.weights->tensors.contains(name); })
        .def("__len__", [](const WeightsObject& o) { return o.weights->tensors.size(); })
        .def("__iter__", [](const WeightsObject& o) { return py::iter(names_of(o)); })
        .def("keys", &names_of, "Names of the tensors, sorted.")
        .def_property(
            "metadata", [](const WeightsObject& o) { return dict_of(o.weights->metadata); },
            [](const WeightsObject& o, const py::dict& metadata) {
                o.weights->metadata = text_map_of(metadata, "metadata");
            },
            "A copy; set it as a whole.")
        .def("__repr__", [](const WeightsObject& o) {
            int64_t numbers = 0;
            for (const auto& [name, tensor] : o.weights->tensors) numbers += static_cast<int64_t>(tensor.values.size());
            return fmt::format("stipple.network.Weights({} tensors, {} numbers)", o.weights->tensors.size(), numbers);
        });
}

void bind_weight_files(py::module_& module) {
    const py::arg path("path"), weights("weights");
    module.def("parse_weights", &parse_weights, py::arg("data"), doc::network::parse_weights);
    module.def(
        "load_weights",
        [](const py::object& file) {
            const std::string name = path_of(file, "path");
            return without_gil([&] { return give(network::load_weights(name)); });
        },
        path, doc::network::load_weights);
    module.def("write_weights", &write_weights, weights, py::arg("storage") = "f32", doc::network::write_weights);
    module.def("save_weights", &save_weights, path, weights, py::arg("storage") = "f32", py::kw_only(),
               py::arg("overwrite") = false, doc::network::save_weights);
    module.def(
        "card_of",
        [](const WeightsObject& o) {
            const auto card = network::card_of(*o.weights);
            return card ? py::object(card_dict(*card)) : py::none();
        },
        weights, doc::network::card_of);
    module.def(
        "set_card",
        [](const WeightsObject& o, const py::dict& card) { network::set_card(*o.weights, card_from(card)); }, weights,
        py::arg("card"), doc::network::set_card);
    module.def(
        "to_json", [](const py::dict& card) { return network::to_json(card_from(card)); }, py::arg("card"),
        doc::network::to_json);
    module.def(
        "parse_card", [](std::string_view json) { return card_dict(network::parse_card(json)); }, py::arg("json"),
        doc::network::parse_card);
    const network::OnnxOptions onnx;
    const py::arg_v fold = py::arg("fold_norm") = onnx.fold_norm,
                    convolutions = py::arg("convolutions") = onnx.convolutions, ranges = py::arg("ranges") = py::none();
    module.def("ranges_for_onnx", &ranges_for_onnx, py::arg("network"), py::arg("ranges"),
               doc::network::ranges_for_onnx);
    module.def("to_onnx", &to_onnx, py::arg("network"), weights, py::kw_only(), fold, convolutions, ranges,
               doc::network::to_onnx);
    module.def("save_onnx", &save_onnx, path, py::arg("network"), weights, py::kw_only(), fold, convolutions, ranges,
               py::arg("overwrite") = false, doc::network::save_onnx);
}

}  // namespace

void bind_network_weights(py::module_& module) {
    bind_class(module);
    bind_weight_files(module);
    const py::arg network("network"), weights("weights");
    module.def(
        "initial_weights",
        [](const NetworkObject& o, uint64_t seed) {
            return without_gil([&] { return give(network::initial_weights(*o.network, seed)); });
        },
        network, py::arg("seed") = 0, doc::network::initial_weights);
    module.def(
        "check_weights",
        [](const NetworkObject& o, const WeightsObject& w) { network::check_weights(*o.network, *w.weights); }, network,
        weights, doc::network::check_weights);
    module.def(
        "checksum", [](const WeightsObject& o) { return network::checksum(*o.weights); }, weights,
        doc::network::checksum);
    module.def(
        "config_of", [](const WeightsObject& o) { return dict_of(network::config_of(*o.weights)); }, weights,
        doc::network::config_of);
    module.def(
        "set_config",
        [](const WeightsObject& w, const NetworkObject& o) { network::set_config(*w.weights, *o.network); }, weights,
        network, "Puts the network's name and configuration into the metadata of its weights.");
}

void bind_models(py::module_& module) {
    add_record<ModelRecord>(module);
    module.def(
        "model_table",
        [] {
            py::dict made;
            for (const models::ModelEntry& entry : models::model_table())
                made[str_of(entry.name)] = str_of(entry.summary);
            return made;
        },
        "All models by name, each with a line about it.");
    module.def(
        "build_model",
        [](std::string_view name, const py::object& config) {
            return give(models::build_model(name, text_map_of(config, "config")));
        },
        py::arg("name"), py::arg("config") = py::none(), doc::models::build_model);
    module.def(
        "load_model",
        [](const py::object& path_, const py::object& overrides_) {
            const std::string path = path_of(path_, "path");
            const auto overrides = text_map_of(overrides_, "overrides");
            models::Model model = without_gil([&] { return models::load_model(path, overrides); });
            return record<ModelRecord>(py::cast(give(std::move(model.network))),
                                       py::cast(give(std::move(model.weights))));
        },
        py::arg("path"), py::arg("overrides") = py::none(), doc::models::load_model);
}

}  // namespace stipple::python
