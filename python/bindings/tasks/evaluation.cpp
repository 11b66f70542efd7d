// stipple.tasks: how well networks do on data sets, and what is in a file.

#include "python/bindings/metrics/confusion.h"
#include "python/bindings/tasks/objects.h"
#include "stipple/data/class_names.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/tasks/evaluate.h"
#include "stipple/tasks/evaluate_parts.h"

namespace stipple::python {
namespace {

struct SpreadRecord {
    static constexpr auto name = py::detail::const_name("Spread");
    static constexpr const char* fields[] = {"mean", "deviation"};
};
struct ClassScoresRecord {
    static constexpr auto name = py::detail::const_name("ClassScores");
    static constexpr const char* fields[] = {"points",   "fewest",         "most",     "draws",
                                             "accuracy", "class_accuracy", "confusion"};
};
struct PartScoresRecord {
    static constexpr auto name = py::detail::const_name("PartScores");
    static constexpr const char* fields[] = {"points",    "fewest",   "most",       "draws",  "instance_iou",
                                             "class_iou", "accuracy", "categories", "shapes", "category_iou"};
};

py::object spread(const tasks::Spread& of) {
    return record<SpreadRecord>(py::float_(of.mean), py::float_(of.deviation));
}

py::object given(tasks::ClassScores&& scores) {
    return record<ClassScoresRecord>(
        py::int_(scores.points), py::int_(scores.fewest), py::int_(scores.most), py::int_(scores.draws),
        spread(scores.accuracy), spread(scores.class_accuracy),
        py::cast(ConfusionObject{std::make_shared<metrics::Confusion>(std::move(scores.confusion))}));
}

py::object given(tasks::PartScores&& scores) {
    std::vector<std::string> names;
    for (const metrics::PartCategory& category : scores.categories) names.push_back(category.name);
    return record<PartScoresRecord>(py::int_(scores.points), py::int_(scores.fewest), py::int_(scores.most),
                                    py::int_(scores.draws), spread(scores.instance_iou), spread(scores.class_iou),
                                    spread(scores.accuracy), tuple_of(names), tuple_of(scores.shapes),
                                    tuple_of(scores.category_iou));
}

py::list evaluate(const py::object& network, const py::object& data_, const py::object& points,
                  const std::string& split, const std::string& layout, const std::string& sample, int64_t of,
                  int64_t draws, bool normalise, uint64_t seed, const py::object& advance) {
    tasks::EvaluateOptions options;
    options.points = whole_numbers(points, "points");
    options.sample = sample, options.of = of, options.draws = draws;
    options.normalise = normalise, options.seed = seed;
    tasks::require_valid(options);
    const std::string folder = path_of(data_, "data");
    std::function<void(int64_t)> told;
    if (!advance.is_none())
        told = [&](int64_t clouds) {
            const py::gil_scoped_acquire held;
            advance(clouds);
        };
    io::Warnings warnings;
    data::DataSetOptions reading;
    reading.split = split;
    reading.layout = layout;
    reading.sampler = [](const Mesh& mesh, int64_t count, uint64_t with) {
        return geometry::cloud_of_samples(mesh, geometry::sample_surface(mesh, count, with));
    };
    const bool is_classifier = py::isinstance<ClassifierObject>(network);
    if (!is_classifier && !py::isinstance<SegmenterObject>(network))
        throw py::type_error(fmt::format("network: {}; wanted is a Classifier or a Segmenter", type_name(network)));
    const data::DataSet set = without_gil([&] { return data::load_data_set(folder, reading, warnings); });
    warn(warnings);
    py::list made;
    if (is_classifier) {
        const auto& object = network.cast<const ClassifierObject&>();
        for (tasks::ClassScores& scores : object.run([&](tasks::Classifier& asked) {
                 return tasks::evaluate(asked, set, data::class_names(asked.runner().source().metadata()), options,
                                        told);
             }))
            made.append(given(std::move(scores)));
        return made;
    }
    const auto& object = network.cast<const SegmenterObject&>();
    for (tasks::PartScores& scores :
         object.run([&](tasks::Segmenter& asked) { return tasks::evaluate(asked, set, options, told); }))
        made.append(given(std::move(scores)));
    return made;
}

}  // namespace

void bind_tasks_evaluation(py::module_& module) {
    add_record<SpreadRecord>(module);
    add_record<ClassScoresRecord>(module);
    add_record<PartScoresRecord>(module);
    const tasks::EvaluateOptions defaults;
    module.def("evaluate", &evaluate, py::arg("network"), py::arg("data"), py::arg("points") = py::make_tuple(1024),
               py::kw_only(), py::arg("split") = "test", py::arg("layout") = "auto",
               py::arg("sample") = defaults.sample, py::arg("of") = defaults.of, py::arg("draws") = defaults.draws,
               py::arg("normalise") = defaults.normalise, py::arg("seed") = defaults.seed,
               py::arg("advance") = py::none(), doc::tasks::evaluate);
    module.def(
        "spread_of", [](const py::object& values) { return spread(tasks::spread_of(numbers_of(values, "values"))); },
        py::arg("values"), "Mean of draws, and the standard deviation of a sample; 0 for one draw.");
}

}  // namespace stipple::python
