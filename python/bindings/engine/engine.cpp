// stipple.engine: networks compiled for a device and a precision, runs, engine files, times.

#include "stipple/engine/engine.h"

#include "python/bindings/engine/objects.h"
#include "stipple/core/byte_sink.h"
#include "stipple/engine/time_engine.h"

namespace stipple::python {
namespace {

struct TimeStatisticsRecord {
    static constexpr auto name = py::detail::const_name("TimeStatistics");
    static constexpr const char* fields[] = {"min", "max", "mean", "median", "p99", "variation"};
};
struct EngineTimesRecord {
    static constexpr auto name = py::detail::const_name("EngineTimes");
    static constexpr const char* fields[] = {
        "runs",           "latency",      "compute",        "enqueue",           "host_to_device",
        "device_to_host", "wall_seconds", "device_seconds", "clouds_per_second", "device_bytes"};
};

std::vector<NamedType> types_of(const engine::Program& program, const std::vector<engine::Binding>& bindings) {
    std::vector<NamedType> made;
    for (const engine::Binding& each : bindings)
        made.push_back({each.name, program.values[static_cast<size_t>(each.value)].type});
    return made;
}

py::dict types_dict(const std::vector<NamedType>& types) {
    py::dict made;
    for (const NamedType& each : types) made[str_of(each.name)] = each.type;
    return made;
}

EngineObject compile(const py::object& source, const py::object& weights, const py::object& device,
                     std::string_view precision, int64_t max_batch, int64_t max_points, const py::object& calibration) {
    if (py::isinstance<EngineFileObject>(source)) {
        STIPPLE_REQUIRE(weights.is_none() && calibration.is_none(), "weights: an engine file has its own");
        const auto file = source.cast<EngineFileObject>().file;
        const int index = device.is_none() ? 0 : device_argument(device).index;
        return {without_gil(
            [&] { return std::make_shared<const engine::Engine>(engine::compile(engine::EngineFile(*file), index)); })};
    }
    if (!py::isinstance<NetworkObject>(source) || !py::isinstance<WeightsObject>(weights))
        throw py::type_error("network, weights: wanted are a Network and its Weights, or an EngineFile");
    const auto network = source.cast<NetworkObject>().network;
    const auto parameters = weights.cast<WeightsObject>().weights;
    engine::Options options;
    if (!device.is_none()) options.device = device_argument(device);
    options.precision = engine::parse_precision(precision);
    options.max_batch = max_batch;
    options.max_points = max_points;
    if (!calibration.is_none()) options.calibration = calibration.cast<const engine::Calibration&>();
    return {without_gil(
        [&] { return std::make_shared<const engine::Engine>(engine::compile(*network, *parameters, options)); })};
}

/// An output on its way to Python.
struct Result {
    std::string name;
    Buffer buffer;
    DType dtype;
    std::vector<int64_t> shape;
};

Result result_of(const NamedType& output, const RowsByName& rows, Call& call, engine::Output& bound) {
    const network::TensorType& type = output.type;
    int64_t count = rows.clouds;
    std::vector<int64_t> shape;
    if (type.level == network::Level::cloud || type.points > 0) {
        if (!rows.is_single) shape.push_back(rows.clouds);
        if (type.points > 0) shape.push_back(type.points), count *= type.points;
    } else {
        const BatchForm* form = rows.form_of(type.set);
        STIPPLE_REQUIRE(form, "{}: of points that no input has", output.name);
        shape = form->rows_shape();
        count = form->rows();
    }
    const int64_t columns = type.is_index ? type.width : type.channels;
    if (!type.is_index) count *= type.width;
    if (type.is_index || type.width > 1) shape.push_back(type.width);
    if (!type.is_index) shape.push_back(type.channels);
    const DType dtype = type.is_index ? DType::i32 : DType::f32;
    Result made{output.name, call.allocate(dtype, shape), dtype, std::move(shape)};
    const Device device = call.device();
    bound.name = output.name;
    if (type.is_index)
        bound.indices = {reinterpret_cast<int32_t*>(made.buffer.data()), {count, columns}, device};
    else
        bound.rows = {reinterpret_cast<float*>(made.buffer.data()), {count, columns}, device};
    return made;
}

py::dict run(const ContextObject& object, const py::object& inputs, const py::object& offsets,
             const py::object& outputs_) {
    const engine::Program& program = object.engine->program();
    Call call;
    const std::vector<NamedType> types = types_of(program, program.inputs);
    const RowsByName rows = rows_by_name(call, types, inputs, offsets);
    std::vector<NamedType> wanted = types_of(program, program.outputs);
    if (!outputs_.is_none()) {
        std::vector<NamedType> chosen;
        for (const std::string& name : texts_of(outputs_, "outputs")) {
            std::vector<std::string_view> known;
            for (const NamedType& each : wanted) {
                known.emplace_back(each.name);
                if (each.name == name) chosen.push_back(each);
            }
            if (chosen.empty() || chosen.back().name != name) refuse_word(name, "outputs", std::move(known));
        }
        wanted = std::move(chosen);
    }
    std::vector<engine::Output> outputs(wanted.size());
    std::vector<Result> results;
    for (size_t i = 0; i < wanted.size(); ++i) results.push_back(result_of(wanted[i], rows, call, outputs[i]));
    const std::vector<ops::Batch> batches = rows.batches();
    call.run([&](Stream stream) {
        const std::lock_guard lock(*object.mutex);
        if (batches.size() == 1)
            object.context->run(batches[0], rows.inputs, outputs, stream);
        else
            object.context->run(batches, rows.inputs, outputs, stream);
    });
    py::dict made;
    for (Result& each : results) made[str_of(each.name)] = call.give(std::move(each.buffer), each.dtype, each.shape);
    return made;
}

py::object statistics(const engine::TimeStatistics& times) {
    return record<TimeStatisticsRecord>(py::float_(times.min), py::float_(times.max), py::float_(times.mean),
                                        py::float_(times.median), py::float_(times.p99), py::float_(times.variation));
}

Record<EngineTimesRecord> time_engine(const EngineObject& object, const py::object& inputs_, const py::object& offsets,
                                      double warm_up_seconds, int64_t repeat, double seconds) {
    const engine::Program& program = object.engine->program();
    Call call;
    const std::vector<NamedType> types = types_of(program, program.inputs);
    const RowsByName rows = rows_by_name(call, types, inputs_, offsets);
    STIPPLE_REQUIRE(rows.sets.size() <= 1, "inputs: {} point sets; networks of one are timed", rows.sets.size());
    std::vector<engine::HostInput> inputs;
    for (const engine::Input& each : rows.inputs) inputs.push_back({std::string(each.name), each.rows});
    engine::EngineTimes times;
    call.run([&](Stream) {
        times = engine::time_engine(*object.engine, rows.batches()[0], inputs, {warm_up_seconds, repeat, seconds});
    });
    return record<EngineTimesRecord>(
        py::int_(times.runs), statistics(times.latency), statistics(times.compute), statistics(times.enqueue),
        statistics(times.host_to_device), statistics(times.device_to_host), py::float_(times.wall_seconds),
        py::float_(times.device_seconds), py::float_(times.clouds_per_second), py::int_(times.device_bytes));
}

void bind_classes(py::module_& module) {
    py::class_<EngineObject>(module, "Engine", doc::engine::Engine)
        .def_property_readonly("name", [](const EngineObject& o) { return o.engine->name(); })
        .def_property_readonly("device", [](const EngineObject& o) { return to_string(o.engine->options().device); })
        .def_property_readonly(
            "precision", [](const EngineObject& o) { return str_of(engine::name_of(o.engine->options().precision)); })
        .def_property_readonly("max_batch", [](const EngineObject& o) { return o.engine->options().max_batch; })
        .def_property_readonly("max_points", [](const EngineObject& o) { return o.engine->options().max_points; })
        .def_property_readonly("weight_bytes", [](const EngineObject& o) { return o.engine->weight_bytes(); })
        .def_property_readonly("context_bytes", [](const EngineObject& o) { return o.engine->context_bytes(); })
        .def_property_readonly(
            "inputs",
            [](const EngineObject& o) { return types_dict(types_of(o.engine->program(), o.engine->program().inputs)); })
        .def_property_readonly("outputs",
                               [](const EngineObject& o) {
                                   return types_dict(types_of(o.engine->program(), o.engine->program().outputs));
                               })
        .def(
            "describe", [](const EngineObject& o) { return tuple_of(o.engine->describe()); },
            "Which kernel runs each chain, and in which precision.")
        .def("__repr__", [](const EngineObject& o) {
            return fmt::format("stipple.engine.Engine({}, {} on {}, up to {} clouds of {} points)", o.engine->name(),
                               engine::name_of(o.engine->options().precision), o.engine->options().device,
                               o.engine->options().max_batch, o.engine->options().max_points);
        });
    py::class_<EngineFileObject>(module, "EngineFile", doc::engine::EngineFile)
        .def_property_readonly("name", [](const EngineFileObject& o) { return o.file->program.name; })
        .def_property_readonly("device", [](const EngineFileObject& o) { return to_string(o.file->options.device); })
        .def_property_readonly(
            "precision", [](const EngineFileObject& o) { return str_of(engine::name_of(o.file->options.precision)); })
        .def_property_readonly("source", [](const EngineFileObject& o) { return o.file->source; })
        .def_property_readonly("metadata", [](const EngineFileObject& o) { return dict_of(o.file->metadata); });
    py::class_<ContextObject>(module, "Context", doc::engine::Context)
        .def(py::init([](const EngineObject& o) {
                 return without_gil([&] {
                     return ContextObject{o.engine, std::make_shared<engine::Context>(*o.engine),
                                          std::make_shared<std::mutex>()};
                 });
             }),
             py::arg("engine"))
        .def("run", &run, py::arg("inputs"), py::kw_only(), py::arg("offsets") = py::none(),
             py::arg("outputs") = py::none(),
             "Outputs by name, of inputs by name (or one array, where the network has one input).\n\n"
             "Points are [n, c], [b, n, c], or [total, c] with offsets; rows of clouds [b, c]. `outputs`: names of "
             "those "
             "that are wanted, all unless given. Arrays are on the engine's device; on CUDA work is queued on their "
             "stream. Another thread that runs the same context waits.");
}

void bind_engine_files(py::module_& module) {
    const py::arg path("path");
    module.def(
        "write_engine",
        [](const EngineFileObject& o) {
            MemorySink sink;
            without_gil([&] { engine::write_engine(*o.file, sink); });
            return bytes_of(sink.bytes());
        },
        py::arg("file"), doc::engine::write_engine);
    module.def(
        "save_engine",
        [](const py::object& name, const EngineFileObject& o, bool overwrite) {
            const std::string to = path_of(name, "path");
            without_gil([&] { engine::save_engine(to, *o.file, overwrite_of(overwrite)); });
        },
        path, py::arg("file"), py::kw_only(), py::arg("overwrite") = false, doc::engine::save_engine);
    module.def(
        "parse_engine",
        [](const py::bytes& data) {
            const std::string_view text(data);
            return EngineFileObject{without_gil([&] {
                io::MemorySource source(std::as_bytes(std::span(text)));
                io::ByteReader reader(source);
                return std::make_shared<const engine::EngineFile>(engine::parse_engine(reader));
            })};
        },
        py::arg("data"), doc::engine::parse_engine);
    module.def(
        "load_engine",
        [](const py::object& name) {
            const std::string from = path_of(name, "path");
            return EngineFileObject{
                without_gil([&] { return std::make_shared<const engine::EngineFile>(engine::load_engine(from)); })};
        },
        path, doc::engine::load_engine);
    module.def(
        "is_engine_file", [](const py::object& name) { return engine::is_engine_file(path_of(name, "path")); }, path,
        doc::engine::is_engine_file);
    module.def(
        "engine_file_of",
        [](const EngineObject& o, const WeightsObject& w) {
            return EngineFileObject{without_gil([&] {
                return std::make_shared<const engine::EngineFile>(engine::engine_file_of(*o.engine, *w.weights));
            })};
        },
        py::arg("engine"), py::arg("weights"), "What `stipple engine build` writes: save_engine() takes it.");
}

}  // namespace

void bind_engine(py::module_& module) {
    add_record<TimeStatisticsRecord>(module);
    add_record<EngineTimesRecord>(module);
    bind_classes(module);
    bind_engine_files(module);
    const auto none = py::none();
    const engine::Options defaults;
    const engine::TimeBudget budget;
    module.def("compile", &compile, py::arg("network"), py::arg("weights") = none, py::kw_only(),
               py::arg("device") = none, py::arg("precision") = "fp32", py::arg("max_batch") = defaults.max_batch,
               py::arg("max_points") = defaults.max_points, py::arg("calibration") = none, doc::engine::compile);
    module.def("time_engine", &time_engine, py::arg("engine"), py::arg("inputs"), py::kw_only(),
               py::arg("offsets") = none, py::arg("warm_up_seconds") = budget.warm_up_seconds,
               py::arg("repeat") = budget.repeat, py::arg("seconds") = budget.seconds, doc::engine::time_engine);
    module.def(
        "statistics_of",
        [](const py::object& times) {
            std::vector<double> numbers = numbers_of(times, "times");
            STIPPLE_REQUIRE(!numbers.empty(), "times: there are none");
            return statistics(engine::statistics_of(std::move(numbers)));
        },
        py::arg("times"), doc::engine::statistics_of);
    module.def(
        "precisions_of",
        [](const py::object& device) {
            std::vector<std::string> names;
            for (engine::Precision each : engine::precisions_of(device_argument(device)))
                names.emplace_back(engine::name_of(each));
            return tuple_of(names);
        },
        py::arg("device") = "cpu", doc::engine::precisions_of);
    module.def(
        "bytes_of", [](std::string_view precision) { return engine::bytes_of(engine::parse_precision(precision)); },
        py::arg("precision"), "Bytes of one factor of this precision.");
    module.def(
        "gemm_peak",
        [](const py::object& device_, std::string_view precision_) {
            const Device device = device_argument(device_);
            const engine::Precision precision = engine::parse_precision(precision_);
            return without_gil([&] { return engine::gemm_peak(device, precision); });
        },
        py::arg("device"), py::arg("precision"), doc::engine::gemm_peak);
    module.def(
        "to_text", [](const EngineObject& o) { return engine::to_text(o.engine->program()); }, py::arg("engine"),
        doc::engine::to_text);
}

}  // namespace stipple::python
