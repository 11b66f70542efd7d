// stipple.radiance: scenes of photographs, and training.

#include "python/bindings/radiance/objects.h"
#include "stipple/radiance/train.h"
#include "stipple/radiance/train_keys.h"

namespace stipple::python {
namespace {

using radiance::TrainOptions;

struct TrainStepRecord {
    static constexpr auto name = py::detail::const_name("TrainStep");
    static constexpr const char* fields[] = {
        "stage", "step", "steps", "psnr", "test_psnr", "seconds", "steps_per_second", "seconds_left"};
};
struct TrainResultRecord {
    static constexpr auto name = py::detail::const_name("TrainResult");
    static constexpr const char* fields[] = {"field", "seconds", "peak_bytes", "warnings"};
};

SceneObject load_scene(const py::object& folder_, int reduce, int test_every, bool train_only, bool find_cameras,
                       const py::object& report) {
    const std::string folder = path_of(folder_, "folder");
    radiance::SceneOptions options{reduce, test_every, train_only, find_cameras, {}};
    if (!report.is_none())
        options.report = [&](const std::string& line) {
            const py::gil_scoped_acquire held;
            report(str_of(line));
        };
    return {
        without_gil([&] { return std::make_shared<const radiance::Scene>(radiance::load_scene(folder, options)); })};
}

Record<TrainResultRecord> train(const SceneObject& scene, const TrainOptions& options, const py::object& device_,
                                const py::object& report) {
    const Device device = device_or_cpu(device_);
    std::function<void(const radiance::TrainStep&)> told;
    if (!report.is_none())
        told = [&](const radiance::TrainStep& step) {
            const py::gil_scoped_acquire held;
            report(record<TrainStepRecord>(str_of(step.stage), py::int_(step.step), py::int_(step.steps),
                                           py::float_(step.psnr), or_none(step.test_psnr), py::float_(step.seconds),
                                           py::float_(step.steps_per_second), py::float_(step.seconds_left)));
        };
    radiance::TrainResult made = without_gil([&] { return radiance::train(*scene.scene, options, device, told); });
    const radiance::TrainTimes& times = made.times;
    const double seconds = times.box + times.coarse_setup + times.coarse + times.fine_setup + times.fine + times.pack;
    return record<TrainResultRecord>(py::cast(give(std::move(made.field))), py::float_(seconds),
                                     py::int_(times.peak_bytes), tuple_of(made.warnings));
}

}  // namespace

void bind_radiance_training(py::module_& module) {
    add_record<TrainStepRecord>(module);
    add_record<TrainResultRecord>(module);
    py::class_<TrainOptions>(module, "TrainOptions",
                             "Made by parity_options() and its like, changed by set_train_option().")
        .def_property(
            "background", [](const TrainOptions& o) { return word_of(o.background); },
            [](TrainOptions& o, std::string_view word) { o.background = choice(word, "background", kBackgrounds); })
        .def("__str__", [](const TrainOptions& o) { return radiance::to_toml(o); });
    const radiance::SceneOptions scene;
    const auto none = py::none();
    const py::arg options("options");
    module.def("load_scene", &load_scene, py::arg("folder"), py::kw_only(), py::arg("reduce") = scene.reduce,
               py::arg("test_every") = scene.test_every, py::arg("train_only") = scene.train_only,
               py::arg("find_cameras") = scene.find_cameras, py::arg("report") = none, doc::radiance::load_scene);
    module.def("parity_options", &radiance::parity_options, py::arg("side"),
               "As published, 160 or 256: side^3 voxels.");
    module.def("fast_options", &radiance::fast_options, doc::radiance::fast_options);
    module.def("quality_options", &radiance::quality_options, doc::radiance::quality_options);
    module.def("small_options", &radiance::small_options, doc::radiance::small_options);
    module.def(
        "set_train_option",
        [](TrainOptions& changed, const std::string& key, const py::object& value) {
            const std::string text =
                PyBool_Check(value.ptr()) ? (value.cast<bool>() ? "true" : "false") : std::string(py::str(value));
            radiance::set_train_option(changed, key, text);
        },
        options, py::arg("key"), py::arg("value"), doc::radiance::set_train_option);
    module.def("train_keys_text", &radiance::train_keys_text, doc::radiance::train_keys_text);
    module.def("to_toml", &radiance::to_toml, options, doc::radiance::to_toml);
    module.def("train_options_from_toml", &radiance::train_options_from_toml, py::arg("text"),
               doc::radiance::train_options_from_toml);
    module.def(
        "usual_background", [](const SceneObject& o) { return word_of(radiance::usual_background(*o.scene)); },
        py::arg("scene"), doc::radiance::usual_background);
    module.def(
        "estimate_bytes",
        [](const SceneObject& o, const TrainOptions& given) { return radiance::estimate_bytes(*o.scene, given); },
        py::arg("scene"), options, doc::radiance::estimate_bytes);
    module.def("train", &train, py::arg("scene"), options, py::kw_only(), py::arg("device") = none,
               py::arg("report") = none, doc::radiance::train);
}

}  // namespace stipple::python
