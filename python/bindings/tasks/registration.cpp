// stipple.tasks: the motion that lays one cloud on another, and several scans in one frame.

#include "python/bindings/geometry/common.h"
#include "python/bindings/tasks/objects.h"
#include "stipple/tasks/learned_pose.h"
#include "stipple/tasks/register.h"
#include "stipple/tasks/register_scans.h"

namespace stipple::python {

namespace {

using PoseNetworkObject = Exclusive<tasks::PoseNetwork>;

struct RegistrationRecord {
    static constexpr auto name = py::detail::const_name("Registration");
    static constexpr const char* fields[] = {"transform",  "state",       "reasons",   "method",       "story",
                                             "confidence", "is_believed", "poses",     "fitness",      "rmse",
                                             "pairs",      "iterations",  "converged", "undetermined", "failure"};
};
struct ScanPairRecord {
    static constexpr auto name = py::detail::const_name("ScanPair");
    static constexpr const char* fields[] = {"source",  "target",     "registration", "is_predicted",
                                             "is_edge", "is_dropped", "residual"};
};
struct RegisteredScansRecord {
    static constexpr auto name = py::detail::const_name("RegisteredScans");
    static constexpr const char* fields[] = {"poses",     "is_placed", "pairs", "all_pairs",
                                             "tolerance", "rms",       "state", "reasons"};
};
struct PoseErrorRecord {
    static constexpr auto name = py::detail::const_name("PoseError");
    static constexpr const char* fields[] = {"degrees", "doubled", "translation", "rms"};
};

py::object given(const tasks::Registration& r) {
    return record<RegistrationRecord>(
        matrix_of(r.found.transform), str_of(geometry::to_string(r.verdict.state)), tuple_of(r.verdict.reasons),
        str_of(tasks::to_string(r.method)), str_of(r.story), py::float_(r.trust.confidence),
        py::bool_(r.trust.is_believed()), py::int_(r.poses), py::float_(r.found.fitness), py::float_(r.found.rmse),
        py::int_(r.found.pairs), py::int_(r.found.iterations), py::bool_(r.found.converged()),
        py::int_(r.found.undetermined), r.failure ? py::object(py::str(r.failure->what())) : py::none());
}

tasks::RegisterOptions options_of(const std::string& method, const std::string& metric, const std::string& kernel,
                                  double kernel_scale, double trim, const py::object& max_distances,
                                  const py::object& voxels, double scale, int iterations, bool require_convergence,
                                  double min_fitness, const py::object& learned) {
    using geometry::IcpMetric;
    constexpr Word<IcpMetric> kMetrics[] = {
        {"point", IcpMetric::point}, {"plane", IcpMetric::plane}, {"generalised", IcpMetric::generalised}};
    tasks::RegisterOptions options;
    options.method = tasks::method_by_name(method);
    options.icp.metric = choice(metric, "metric", kMetrics);
    options.icp.kernel = tasks::kernel_by_name(kernel);
    options.icp.kernel_scale = kernel_scale;
    options.icp.trim = trim;
    if (!max_distances.is_none())
        options.icp.levels = tasks::levels_of(numbers_of(max_distances, "max_distances"),
                                              voxels.is_none() ? std::vector<double>() : numbers_of(voxels, "voxels"));
    options.scale = scale;
    options.iterations = iterations;
    options.require_convergence = require_convergence;
    options.min_fitness = min_fitness;
    if (!learned.is_none()) {
        if (!py::isinstance<PoseNetworkObject>(learned))
            throw py::type_error(
                fmt::format("learned: {}; wanted is a PoseNetwork: load_pose_network()", type_name(learned)));
        options.learned = [network = learned.cast<PoseNetworkObject>()](const PointCloud& source,
                                                                        const PointCloud& target) {
            const std::lock_guard lock(*network.mutex);
            const tasks::PoseNetwork::Found found = network.network->find(source, target);
            return tasks::LearnedStart{
                found.transform, fmt::format("PCRNet, {} iterations on {} and {} points", network.network->iterations(),
                                             found.source_points, found.target_points)};
        };
    }
    return options;
}

py::object register_clouds(const py::object& source_, const py::object& target_, const std::string& method,
                           const py::object& initial, const std::string& metric, const std::string& kernel,
                           double kernel_scale, double trim, const py::object& max_distances, const py::object& voxels,
                           double scale, int iterations, bool require_convergence, double min_fitness,
                           const py::object& learned) {
    tasks::RegisterOptions options = options_of(method, metric, kernel, kernel_scale, trim, max_distances, voxels,
                                                scale, iterations, require_convergence, min_fitness, learned);
    if (!initial.is_none()) options.initial = rigid_of(initial, "initial");
    Call call;
    const AnyCloud source(call, source_, "source"), target(call, target_, "target");
    return given(without_gil([&] { return tasks::register_clouds(*source, *target, options); }));
}

Record<RegisteredScansRecord> register_scans(const py::object& scans_, const std::string& method, double min_confidence,
                                             double tolerance, const std::string& metric, const std::string& kernel,
                                             double kernel_scale, double trim, const py::object& max_distances,
                                             const py::object& voxels, double scale, int iterations,
                                             bool require_convergence, double min_fitness, const py::object& learned,
                                             const py::object& done) {
    const tasks::ScansOptions options{options_of(method, metric, kernel, kernel_scale, trim, max_distances, voxels,
                                                 scale, iterations, require_convergence, min_fitness, learned),
                                      min_confidence, tolerance};
    Call call;
    std::vector<std::unique_ptr<AnyCloud>> kept;
    std::vector<const PointCloud*> scans;
    for (py::handle each : scans_) {
        kept.push_back(std::make_unique<AnyCloud>(call, py::reinterpret_borrow<py::object>(each), "scans"));
        scans.push_back(&**kept.back());
    }
    std::function<void()> told;
    if (!done.is_none())
        told = [&] {
            const py::gil_scoped_acquire held;
            done();
        };
    const tasks::RegisteredScans found = without_gil([&] { return tasks::register_scans(scans, options, told); });
    py::list poses, placed, pairs;
    for (const geometry::RigidTransform& pose : found.poses) poses.append(matrix_of(pose));
    for (const uint8_t is_placed : found.is_placed) placed.append(py::bool_(is_placed != 0));
    for (const tasks::ScanPair& pair : found.pairs)
        pairs.append(record<ScanPairRecord>(py::int_(pair.source), py::int_(pair.target), given(pair.registration),
                                            py::bool_(pair.is_predicted), py::bool_(pair.is_edge),
                                            py::bool_(pair.is_dropped), py::float_(pair.residual)));
    return record<RegisteredScansRecord>(poses, placed, pairs, py::int_(found.all_pairs), py::float_(found.tolerance),
                                         py::float_(found.rms), str_of(geometry::to_string(found.verdict.state)),
                                         tuple_of(found.verdict.reasons));
}

Record<PoseErrorRecord> pose_error(const py::object& found, const py::object& truth, const py::object& cloud_) {
    const geometry::RigidTransform a = rigid_of(found, "found"), b = rigid_of(truth, "truth");
    Call call;
    const AnyCloud cloud(call, cloud_, "cloud");
    const tasks::PoseError error = without_gil([&] { return tasks::pose_error(a, b, *cloud); });
    return record<PoseErrorRecord>(py::float_(error.degrees), py::float_(error.doubled), py::float_(error.translation),
                                   py::float_(error.rms));
}

py::tuple find_pose(const PoseNetworkObject& network, const py::object& source_, const py::object& target_) {
    Call call;
    const AnyCloud source(call, source_, "source"), target(call, target_, "target");
    const tasks::PoseNetwork::Found found =
        network.run([&](tasks::PoseNetwork& asked) { return asked.find(*source, *target); });
    return py::make_tuple(matrix_of(found.transform), found.source_points, found.target_points);
}

}  // namespace

void bind_tasks_registration(py::module_& module) {
    add_record<RegistrationRecord>(module);
    add_record<ScanPairRecord>(module);
    add_record<RegisteredScansRecord>(module);
    add_record<PoseErrorRecord>(module);
    const auto none = py::none();
    const tasks::RunnerOptions runner;
    py::class_<PoseNetworkObject>(module, "PoseNetwork", doc::tasks::PoseNetwork)
        .def_property_readonly("iterations", [](const PoseNetworkObject& o) { return o.network->iterations(); })
        .def("find", &find_pose, py::arg("source"), py::arg("target"),
             "The motion [4, 4] from source to target, and the points that the network saw of both.");
    module.def(
        "load_pose_network",
        [](const py::object& model, int64_t sampled, const std::string& device, const py::object& precision) {
            const std::string path = path_of(model, "model");
            const tasks::RunnerOptions options = runner_options(device, precision, 1, tasks::kPosePoints);
            return PoseNetworkObject{without_gil([&] {
                return std::make_shared<tasks::PoseNetwork>(tasks::load_pose_network(path, sampled, options));
            })};
        },
        py::arg("model") = "", py::arg("sampled") = 0, py::kw_only(), py::arg("device") = runner.device,
        py::arg("precision") = none, doc::tasks::load_pose_network);
    const tasks::RegisterOptions defaults;
    const tasks::ScansOptions scans;
    const py::arg_v method = py::arg("method") = "icp", metric = py::arg("metric") = "generalised",
                    kernel = py::arg("kernel") = "cauchy",
                    kernel_scale = py::arg("kernel_scale") = defaults.icp.kernel_scale,
                    trim = py::arg("trim") = defaults.icp.trim, distances = py::arg("max_distances") = none,
                    voxels = py::arg("voxels") = none, scale = py::arg("scale") = defaults.scale,
                    iterations = py::arg("iterations") = defaults.iterations,
                    convergence = py::arg("require_convergence") = defaults.require_convergence,
                    fitness = py::arg("min_fitness") = defaults.min_fitness, learned = py::arg("learned") = none;
    module.def("register_clouds", &register_clouds, py::arg("source"), py::arg("target"), method, py::kw_only(),
               py::arg("initial") = none, metric, kernel, kernel_scale, trim, distances, voxels, scale, iterations,
               convergence, fitness, learned, doc::tasks::register_clouds);
    module.def("register_scans", &register_scans, py::arg("scans"), py::arg("method") = "auto", py::kw_only(),
               py::arg("min_confidence") = scans.min_confidence, py::arg("tolerance") = scans.tolerance, metric, kernel,
               kernel_scale, trim, distances, voxels, scale, iterations, convergence, fitness, learned,
               py::arg("done") = none, doc::tasks::register_scans);
    module.def("pose_error", &pose_error, py::arg("found"), py::arg("truth"), py::arg("cloud"),
               "How far a pose is from the true one: degrees, doubled, translation, and RMS over the cloud's points.");
    module.def(
        "method_names", [] { return words_of(tasks::kRegisterMethodWords); },
        "\"auto\", \"icp\", \"global\", \"learned\".");
    module.def(
        "kernel_names", [] { return words_of(geometry::kRobustKernelWords); },
        "The words of register_clouds(kernel=...).");
    module.def(
        "load_transform",
        [](const py::object& path_) {
            const std::string path = path_of(path_, "path");
            return matrix_of(without_gil([&] { return tasks::load_transform(path); }));
        },
        py::arg("path"), "A motion [4, 4] from a file of text. Throws Error{bad_file}.");
}

}  // namespace stipple::python
