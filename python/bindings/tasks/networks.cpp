// stipple.tasks: shipped weights; networks that classify clouds and label points.

#include <dlfcn.h>

#include "python/bindings/network/objects.h"
#include "python/bindings/tasks/objects.h"
#include "stipple/core/program_files.h"
#include "stipple/data/class_names.h"
#include "stipple/tasks/convert_weights.h"
#include "stipple/tasks/weights.h"

namespace stipple::python {

tasks::RunnerOptions runner_options(const std::string& device, const py::object& precision, int64_t batch,
                                    int64_t points) {
    tasks::RunnerOptions options;
    options.device = device;
    if (!precision.is_none()) options.precision = engine::parse_precision(text_of(precision, "precision"));
    options.batch = batch;
    options.points = points;
    return options;
}

tasks::ModelOrEngine load_network(const py::object& model, const py::object& options_) {
    const std::string path = path_of(model, "model");
    const auto options = text_map_of(options_, "options");
    return without_gil([&] { return tasks::load_model_or_engine(path, options); });
}

std::vector<tasks::Pose> poses_of(const py::object& poses, const tasks::Axis& up) {
    if (poses.is_none()) return {tasks::Pose{}};
    const std::string word = text_of(poses, "poses");
    if (word == "all") return tasks::all_poses(up);
    return tasks::poses_about(tasks::parse_axis(word), up);
}

namespace {

using tasks::CloudOptions;

struct GuessRecord {
    static constexpr auto name = py::detail::const_name("Guess");
    static constexpr const char* fields[] = {"name", "index", "probability"};
};
struct ClassifiedRecord {
    static constexpr auto name = py::detail::const_name("Classified");
    static constexpr const char* fields[] = {"points",    "nonfinite", "guesses", "distance",
                                             "is_unlike", "pose",      "error"};
};
struct SegmentsRecord {
    static constexpr auto name = py::detail::const_name("Segments");
    static constexpr const char* fields[] = {"labels", "probabilities"};
};
struct PartsViewRecord {
    static constexpr auto name = py::detail::const_name("PartsView");
    static constexpr const char* fields[] = {"category", "pose", "confidence"};
};
struct TensorChangeRecord {
    static constexpr auto name = py::detail::const_name("TensorChange");
    static constexpr const char* fields[] = {"name", "dtype", "bytes", "largest_value", "largest_error"};
};
struct ConvertedWeightsRecord {
    static constexpr auto name = py::detail::const_name("ConvertedWeights");
    static constexpr const char* fields[] = {"file", "tensors"};
};

std::vector<std::string> names_of(const tasks::Classifier& classifier) {
    return data::class_names(classifier.runner().source().metadata(), "", classifier.classes());
}

CloudOptions cloud_options(int64_t points, const std::string& sample, bool normalise, uint64_t seed) {
    CloudOptions options{points, sample, normalise, true, seed};
    tasks::require_valid(options);
    return options;
}

py::object classified(const tasks::Classified& answer, const std::vector<std::string>& names) {
    py::list guesses;
    for (const tasks::Guess& guess : answer.guesses)
        guesses.append(record<GuessRecord>(str_of(names[static_cast<size_t>(guess.index)]), py::int_(guess.index),
                                           py::float_(guess.probability)));
    return record<ClassifiedRecord>(py::int_(answer.points), py::int_(answer.nonfinite), guesses,
                                    or_none(answer.distance), py::bool_(answer.is_unlike()), py::int_(answer.pose),
                                    answer.error ? py::object(py::str(answer.error->what())) : py::none());
}

py::list classify(const ClassifierObject& classifier, const py::object& clouds_, int64_t points,
                  const std::string& sample, bool normalise, uint64_t seed, const py::object& poses_) {
    const CloudOptions options = cloud_options(points, sample, normalise, seed);
    const std::vector<tasks::Pose> poses = poses_of(poses_, classifier.network->up());
    if (!PyList_Check(clouds_.ptr()) && !PyTuple_Check(clouds_.ptr()))
        throw py::type_error(fmt::format("clouds: {}; wanted is a list of clouds", type_name(clouds_)));
    Call call;
    std::vector<std::unique_ptr<AnyCloud>> kept;
    std::vector<const PointCloud*> clouds;
    for (py::handle each : clouds_) {
        kept.push_back(std::make_unique<AnyCloud>(call, py::reinterpret_borrow<py::object>(each), "clouds"));
        clouds.push_back(&**kept.back());
    }
    const std::vector<tasks::Classified> answers =
        classifier.run([&](tasks::Classifier& network) { return tasks::classify(network, clouds, options, poses); });
    const std::vector<std::string> names = names_of(*classifier.network);
    py::list made;
    for (size_t i = 0; i < answers.size(); ++i) {
        warn_of_nonfinite(fmt::format("clouds[{}]", i), answers[i].nonfinite, clouds[i]->size());
        made.append(classified(answers[i], names));
    }
    return made;
}

/// An index, or a name in any case.
size_t category_of(const tasks::Segmenter& segmenter, const py::object& category) {
    if (!PyUnicode_Check(category.ptr())) {
        const auto index = category.cast<int64_t>();
        STIPPLE_REQUIRE(index >= 0 && index < std::max<int64_t>(1, static_cast<int64_t>(segmenter.categories().size())),
                        "category: {} of {}", index, segmenter.categories().size());
        return static_cast<size_t>(index);
    }
    const auto wanted = category.cast<std::string>();
    std::vector<std::string_view> known;
    for (size_t i = 0; i < segmenter.categories().size(); ++i) {
        const std::string& name = segmenter.categories()[i].name;
        known.emplace_back(name);
        if (name.size() == wanted.size() && ::strcasecmp(name.c_str(), wanted.c_str()) == 0) return i;
    }
    refuse_word(wanted, "category", std::move(known));
}

Record<SegmentsRecord> segment(const SegmenterObject& segmenter, const py::object& cloud_, const py::object& category_,
                               int64_t points, const std::string& sample, bool normalise, uint64_t seed,
                               const py::object& pose_) {
    const CloudOptions options = cloud_options(points, sample, normalise, seed);
    const size_t category = category_of(*segmenter.network, category_);
    const tasks::Pose pose = poses_of(pose_, segmenter.network->up())[0];
    Call call;
    const AnyCloud cloud(call, cloud_, "cloud");
    tasks::Segments made = segmenter.run(
        [&](tasks::Segmenter& network) { return tasks::segment(network, *cloud, options, category, pose); });
    return record<SegmentsRecord>(numpy_of(std::move(made.labels)), numpy_of(std::move(made.probabilities)));
}

Record<PartsViewRecord> choose_view(const SegmenterObject& segmenter, const py::object& cloud_,
                                    const py::object& categories_, const py::object& poses_, const std::string& sample,
                                    bool normalise, uint64_t seed) {
    const CloudOptions options = cloud_options(0, sample, normalise, seed);
    std::vector<size_t> categories;
    if (categories_.is_none())
        for (size_t i = 0; i < std::max<size_t>(1, segmenter.network->categories().size()); ++i)
            categories.push_back(i);
    else
        for (py::handle each : categories_)
            categories.push_back(category_of(*segmenter.network, py::reinterpret_borrow<py::object>(each)));
    const std::vector<tasks::Pose> poses = poses_of(poses_, segmenter.network->up());
    Call call;
    const AnyCloud cloud(call, cloud_, "cloud");
    const tasks::PartsView view = segmenter.run(
        [&](tasks::Segmenter& network) { return tasks::choose_view(network, *cloud, options, categories, poses); });
    return record<PartsViewRecord>(py::int_(view.category), py::int_(view.pose), py::float_(view.confidence));
}

Record<ConvertedWeightsRecord> convert_weights(const WeightsObject& weights, std::string_view storage_) {
    const network::WeightStorage storage = network::parse_weight_storage(storage_);
    const tasks::ConvertedWeights made = without_gil([&] { return tasks::convert_weights(*weights.weights, storage); });
    py::list tensors;
    for (const tasks::TensorChange& each : made.tensors)
        tensors.append(record<TensorChangeRecord>(str_of(each.name), str_of(name_of(each.dtype)), py::int_(each.bytes),
                                                  py::float_(each.largest_value), py::float_(each.largest_error)));
    return record<ConvertedWeightsRecord>(bytes_of(made.file), tensors);
}

/// The folder of this module, beside which a wheel installs weights.
void find_own_files() {
    Dl_info info;
    if (::dladdr(reinterpret_cast<const void*>(&find_own_files), &info) == 0 || !info.dli_fname) return;
    const std::string path = info.dli_fname;
    const size_t slash = path.rfind('/');
    if (slash != std::string::npos) add_shared_root(path.substr(0, slash));
}

void bind_weights_by_name(py::module_& module) {
    find_own_files();
    module.def(
        "weights_folders", [] { return tuple_of(tasks::weights_folders()); }, doc::tasks::weights_folders);
    module.def(
        "find_weights", [](const py::object& name) { return tasks::find_weights(path_of(name, "path_or_name")); },
        py::arg("path_or_name"), doc::tasks::find_weights);
    module.def("shipped_weights", &tasks::shipped_weights, py::arg("name"), doc::tasks::shipped_weights);
    module.def(
        "list_weights", [] { return tuple_of(tasks::list_weights()); }, doc::tasks::list_weights);
    module.def("convert_weights", &convert_weights, py::arg("weights"), py::arg("storage"),
               doc::tasks::convert_weights);
}

void bind_networks(py::module_& module) {
    const auto none = py::none();
    const tasks::RunnerOptions defaults;
    const py::arg_v device = py::arg("device") = defaults.device, precision = py::arg("precision") = none,
                    batch = py::arg("batch") = defaults.batch, points = py::arg("points") = defaults.points,
                    options = py::arg("options") = none;
    py::class_<ClassifierObject>(module, "Classifier", doc::tasks::Classifier)
        .def(py::init([](const py::object& model, const std::string& where, const py::object& how, int64_t clouds,
                         int64_t most, const py::object& replaced) {
                 tasks::ModelOrEngine source = load_network(model, replaced);
                 const tasks::RunnerOptions runner = runner_options(where, how, clouds, most);
                 return ClassifierObject{
                     without_gil([&] { return std::make_shared<tasks::Classifier>(std::move(source), runner); })};
             }),
             py::arg("model") = tasks::kClassifierWeights, py::kw_only(), device, precision, batch, points, options)
        .def_property_readonly("classes", [](const ClassifierObject& o) { return tuple_of(names_of(*o.network)); })
        .def_property_readonly("up", [](const ClassifierObject& o) { return tasks::name_of(o.network->up()); })
        .def_property_readonly("device",
                               [](const ClassifierObject& o) { return to_string(o.network->runner().device()); });
    py::class_<SegmenterObject>(module, "Segmenter", doc::tasks::Segmenter)
        .def(py::init([](const py::object& model, const std::string& where, const py::object& how, int64_t most,
                         const py::object& replaced) {
                 tasks::ModelOrEngine source = load_network(model, replaced);
                 const tasks::RunnerOptions runner = runner_options(where, how, 1, most);
                 return SegmenterObject{
                     without_gil([&] { return std::make_shared<tasks::Segmenter>(std::move(source), runner); })};
             }),
             py::arg("model") = tasks::kPartsWeights, py::kw_only(), device, precision, points, options)
        .def_property_readonly("parts", [](const SegmenterObject& o) { return o.network->parts(); })
        .def_property_readonly("categories",
                               [](const SegmenterObject& o) {
                                   std::vector<std::string> names;
                                   for (const auto& category : o.network->categories()) names.push_back(category.name);
                                   return tuple_of(names);
                               })
        .def(
            "parts_of",
            [](const SegmenterObject& o, const py::object& category) {
                const auto parts = o.network->parts_of(category_of(*o.network, category));
                return py::make_tuple(parts.begin, parts.end);
            },
            py::arg("category"), "The first part of a category, and the one after its last.")
        .def_property_readonly("up", [](const SegmenterObject& o) { return tasks::name_of(o.network->up()); });
}

}  // namespace

void bind_tasks_networks(py::module_& module) {
    add_record<GuessRecord>(module);
    add_record<ClassifiedRecord>(module);
    add_record<SegmentsRecord>(module);
    add_record<PartsViewRecord>(module);
    add_record<TensorChangeRecord>(module);
    add_record<ConvertedWeightsRecord>(module);
    bind_weights_by_name(module);
    bind_networks(module);
    const auto none = py::none();
    const CloudOptions defaults;
    const py::arg_v sample = py::arg("sample") = defaults.sample, normalise = py::arg("normalise") = defaults.normalise,
                    seed = py::arg("seed") = defaults.seed;
    module.def("classify", &classify, py::arg("classifier"), py::arg("clouds"), py::kw_only(),
               py::arg("points") = defaults.points, sample, normalise, seed, py::arg("poses") = none,
               doc::tasks::classify);
    module.def("segment", &segment, py::arg("segmenter"), py::arg("cloud"), py::arg("category") = 0, py::kw_only(),
               py::arg("points") = 0, sample, normalise, seed, py::arg("pose") = none, doc::tasks::segment);
    module.def("choose_view", &choose_view, py::arg("segmenter"), py::arg("cloud"), py::arg("categories") = none,
               py::arg("poses") = "all", py::kw_only(), sample, normalise, seed, doc::tasks::choose_view);
}

}  // namespace stipple::python
