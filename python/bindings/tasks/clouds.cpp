// stipple.tasks: clouds from clouds: sample, upsample, reconstruct.

#include "python/bindings/common/options.h"
#include "python/bindings/tasks/objects.h"
#include "stipple/tasks/network_sample.h"
#include "stipple/tasks/reconstruct.h"
#include "stipple/tasks/sample.h"
#include "stipple/tasks/upsample.h"
#include "stipple/tasks/weights.h"

namespace stipple::python {
namespace {

using SamplerObject = Exclusive<tasks::NetworkSampler>;
using UpsamplerObject = Exclusive<tasks::Upsampler>;
using ReconstructorObject = Exclusive<tasks::Reconstructor>;

struct NetworkSampleRecord {
    static constexpr auto name = py::detail::const_name("NetworkSample");
    static constexpr const char* fields[] = {"cloud", "indices", "proposed"};
};
struct UpsampledRecord {
    static constexpr auto name = py::detail::const_name("Upsampled");
    static constexpr const char* fields[] = {"cloud",     "measured", "dropped", "duplicates",
                                             "nonfinite", "rings",    "between"};
};
struct ReconstructedRecord {
    static constexpr auto name = py::detail::const_name("Reconstructed");
    static constexpr const char* fields[] = {"cloud", "points", "to_made",    "from_made", "radius",
                                             "pose",  "turned", "unlikeness", "is_unlike"};
};

CloudObject sample_cloud(const py::object& cloud_, const py::kwargs& named) {
    tasks::SampleSettings settings;
    Keywords keywords(named, "sample_cloud");
    settings.seed = keywords.take("seed", settings.seed);
    const py::object device_ = keywords.take("device");
    keywords.set(tasks::sample_fields(), &settings);
    Call call;
    const AnyCloud cloud(call, cloud_, "cloud");
    const Device device = device_.is_none() ? call.device() : device_argument(device_);
    if (settings.ratio != 0) settings.count = tasks::wanted_count(settings, (*cloud).size()), settings.ratio = 0;
    return give(without_gil([&] { return tasks::sample_cloud(*cloud, settings, device); }));
}

SamplerObject load_sampler(const std::string& method_, const py::object& model, int64_t m, const std::string& device,
                           const py::object& precision, int64_t batch, int64_t points) {
    const tasks::SampleMethod method = tasks::sample_method_by_name(method_);
    const std::string path = path_of(model, "model");
    const tasks::RunnerOptions options = runner_options(device, precision, batch, points);
    return {without_gil(
        [&] { return std::make_shared<tasks::NetworkSampler>(tasks::load_sampler(method, path, m, options)); })};
}

Record<NetworkSampleRecord> sample_by_network(const SamplerObject& sampler, const py::object& cloud_, int64_t m,
                                              uint64_t seed) {
    Call call;
    const AnyCloud cloud(call, cloud_, "cloud");
    tasks::NetworkSample made =
        sampler.run([&](tasks::NetworkSampler& network) { return tasks::sample_by_network(network, *cloud, m, seed); });
    return record<NetworkSampleRecord>(py::cast(give(std::move(made.cloud))), numpy_of(std::move(made.indices)),
                                       py::int_(made.proposed));
}

Record<UpsampledRecord> upsample(const UpsamplerObject& upsampler, const py::object& cloud_, const py::kwargs& named) {
    tasks::UpsampleOptions options;
    Keywords keywords(named, "upsample");
    options.seed = keywords.take("seed", options.seed);
    const py::object advance = keywords.take("advance");
    keywords.set(tasks::upsample_fields(), &options);
    if (!advance.is_none())
        options.advance = [&](int64_t points) {
            const py::gil_scoped_acquire held;
            advance(points);
        };
    Call call;
    const AnyCloud cloud(call, cloud_, "cloud");
    tasks::Upsampled made =
        upsampler.run([&](tasks::Upsampler& network) { return tasks::upsample(network, *cloud, options); });
    warn_of_nonfinite("cloud", made.nonfinite, (*cloud).size());
    return record<UpsampledRecord>(py::cast(give(std::move(made.cloud))), py::int_(made.measured),
                                   py::int_(made.dropped), py::int_(made.duplicates), py::int_(made.nonfinite),
                                   py::int_(made.rings), py::int_(made.between));
}

int64_t upsampled_count(const py::object& cloud_, double ratio, int64_t count, double spacing) {
    Call call;
    const AnyCloud cloud(call, cloud_, "cloud");
    tasks::UpsampleOptions options;
    options.ratio = ratio, options.count = count, options.spacing = spacing;
    return without_gil([&] { return tasks::upsampled_count(*cloud, options); });
}

int64_t upsampling_work(const UpsamplerObject& upsampler, const py::object& cloud_, int64_t count) {
    Call call;
    const AnyCloud cloud(call, cloud_, "cloud");
    return tasks::upsampling_work(*upsampler.network, *cloud, count);
}

Record<ReconstructedRecord> reconstruct(const ReconstructorObject& reconstructor, const py::object& cloud_,
                                        int64_t count, const py::object& poses, int64_t turns, bool force) {
    tasks::ReconstructOptions options;
    options.count = count;
    options.poses = poses_of(poses, reconstructor.network->up());
    options.turns = turns;
    options.force = force;
    Call call;
    const AnyCloud cloud(call, cloud_, "cloud");
    tasks::Reconstructed made =
        reconstructor.run([&](tasks::Reconstructor& network) { return tasks::reconstruct(network, *cloud, options); });
    const bool is_unlike = made.is_unlike();
    return record<ReconstructedRecord>(py::cast(give(std::move(made.cloud))), py::int_(made.points),
                                       py::float_(made.gaps.to_made), py::float_(made.gaps.from_made),
                                       py::float_(made.radius), py::int_(made.pose), py::float_(made.turned),
                                       or_none(made.unlikeness), py::bool_(is_unlike));
}

void bind_classes(py::module_& module) {
    const auto none = py::none();
    const tasks::RunnerOptions defaults;
    const py::arg_v device = py::arg("device") = defaults.device, precision = py::arg("precision") = none,
                    options = py::arg("options") = none;
    py::class_<SamplerObject>(module, "NetworkSampler", doc::tasks::NetworkSampler)
        .def_property_readonly("count", [](const SamplerObject& o) { return o.network->count(); })
        .def_property_readonly("points", [](const SamplerObject& o) { return o.network->points(); })
        .def_property_readonly("is_progressive", [](const SamplerObject& o) { return o.network->is_progressive(); });
    py::class_<UpsamplerObject>(module, "Upsampler", doc::tasks::Upsampler)
        .def(py::init([](const py::object& model, const std::string& where, const py::object& how,
                         const py::object& replaced) {
                 if (PyUnicode_Check(model.ptr()) && model.cast<std::string>() == tasks::kMidpoints)
                     return UpsamplerObject{std::make_shared<tasks::Upsampler>()};
                 tasks::ModelOrEngine source = load_network(model, replaced);
                 const tasks::RunnerOptions runner = runner_options(where, how, 1, 1024);
                 return UpsamplerObject{
                     without_gil([&] { return std::make_shared<tasks::Upsampler>(std::move(source), runner); })};
             }),
             py::arg("model") = tasks::kUpsamplerWeights, py::kw_only(), device, precision, options,
             "`model`: a file, a name, or \"midpoints\" for none.")
        .def_property_readonly("has_network", [](const UpsamplerObject& o) { return o.network->has_network(); })
        .def_property_readonly("noise_channels", [](const UpsamplerObject& o) { return o.network->noise_channels(); })
        .def_property_readonly("largest_ratio", [](const UpsamplerObject& o) { return o.network->largest_ratio(); });
    py::class_<ReconstructorObject>(module, "Reconstructor", doc::tasks::Reconstructor)
        .def(py::init([](const py::object& model, const std::string& where, const py::object& how,
                         const py::object& replaced) {
                 tasks::ModelOrEngine source = load_network(model, replaced);
                 const tasks::RunnerOptions runner = runner_options(where, how, 32, 2048);
                 return ReconstructorObject{
                     without_gil([&] { return std::make_shared<tasks::Reconstructor>(std::move(source), runner); })};
             }),
             py::arg("model") = tasks::kAutoencoderWeights, py::kw_only(), device, precision, options)
        .def_property_readonly("count", [](const ReconstructorObject& o) { return o.network->count(); })
        .def_property_readonly("classes", [](const ReconstructorObject& o) { return tuple_of(o.network->classes()); })
        .def_property_readonly("up", [](const ReconstructorObject& o) { return tasks::name_of(o.network->up()); });
}

}  // namespace

void bind_tasks_clouds(py::module_& module) {
    add_record<NetworkSampleRecord>(module);
    add_record<UpsampledRecord>(module);
    add_record<ReconstructedRecord>(module);
    bind_classes(module);
    const auto none = py::none();
    const tasks::RunnerOptions runner;
    const tasks::UpsampleOptions up;
    const py::arg cloud("cloud");
    def_with_options(module,
                     {.name = "sample_cloud",
                      .arguments = "cloud: object",
                      .more = "seed: int = 0, device: object = None",
                      .result = "stipple.io.PointCloud"},
                     tasks::sample_fields(), &sample_cloud, doc::tasks::sample_cloud, cloud);
    module.def(
        "has_network",
        [](const std::string& method) { return tasks::has_network(tasks::sample_method_by_name(method)); },
        py::arg("method"), "Whether a method of sampling asks a network: load_sampler() makes it.");
    module.def("load_sampler", &load_sampler, py::arg("method"), py::arg("model") = "", py::kw_only(), py::arg("m") = 0,
               py::arg("device") = runner.device, py::arg("precision") = none, py::arg("batch") = runner.batch,
               py::arg("points") = runner.points, doc::tasks::load_sampler);
    module.def("sample_by_network", &sample_by_network, py::arg("sampler"), cloud, py::arg("m"), py::arg("seed") = 0,
               doc::tasks::sample_by_network);
    const py::arg_v ratio = py::arg("ratio") = up.ratio, count = py::arg("count") = up.count,
                    spacing = py::arg("spacing") = up.spacing;
    module.def("upsampled_count", &upsampled_count, cloud, py::kw_only(), ratio, count, spacing,
               doc::tasks::upsampled_count);
    module.def("upsampling_work", &upsampling_work, py::arg("upsampler"), cloud, py::arg("count"),
               doc::tasks::upsampling_work);
    module.def(
        "holes_names", [] { return words_of(tasks::kHolesWords); }, "The words of upsample(holes=...).");
    def_with_options(module,
                     {.name = "upsample",
                      .arguments = "upsampler: stipple.tasks.Upsampler, cloud: object",
                      .more = "seed: int = 0, advance: object = None",
                      .result = "Upsampled"},
                     tasks::upsample_fields(), &upsample, doc::tasks::upsample, py::arg("upsampler"), cloud);
    const tasks::ReconstructOptions rebuilt;
    module.def("reconstruct", &reconstruct, py::arg("reconstructor"), cloud, py::kw_only(),
               py::arg("count") = rebuilt.count, py::arg("poses") = none, py::arg("turns") = rebuilt.turns,
               py::arg("force") = rebuilt.force, doc::tasks::reconstruct);
}

}  // namespace stipple::python
