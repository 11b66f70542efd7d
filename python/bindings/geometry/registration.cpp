// stipple.geometry: ICP, global registration, verdicts.

#include "python/bindings/geometry/common.h"
#include "stipple/geometry/global_registration.h"
#include "stipple/geometry/icp.h"
#include "stipple/geometry/registration_verdict.h"
#include "stipple/geometry/thin_scan.h"

namespace stipple::python {
namespace {

using geometry::IcpOptions;

struct VerdictResult {
    static constexpr auto name = py::detail::const_name("RegistrationVerdict");
    static constexpr const char* fields[] = {"state", "reasons"};
};
struct GlobalPoseResult {
    static constexpr auto name = py::detail::const_name("GlobalPose");
    static constexpr const char* fields[] = {"transform", "inliers", "chance", "overlap", "agreement"};
};
struct GlobalResultRecord {
    static constexpr auto name = py::detail::const_name("GlobalResult");
    static constexpr const char* fields[] = {"poses",   "voxel",      "source_points", "target_points",
                                             "matches", "confidence", "other"};
};
struct LevelResult {
    static constexpr auto name = py::detail::const_name("IcpLevel");
    static constexpr const char* fields[] = {"voxel", "max_distance", "iterations", "share"};
};
struct IterationResult {
    static constexpr auto name = py::detail::const_name("IcpIteration");
    static constexpr const char* fields[] = {"level", "pairs", "fitness", "rmse", "motion", "searched"};
};

constexpr Word<geometry::IcpMetric> kMetrics[] = {{"point", geometry::IcpMetric::point},
                                                  {"plane", geometry::IcpMetric::plane},
                                                  {"generalised", geometry::IcpMetric::generalised}};
constexpr Word<geometry::RobustKernel> kKernels[] = {{"none", geometry::RobustKernel::none},
                                                     {"huber", geometry::RobustKernel::huber},
                                                     {"tukey", geometry::RobustKernel::tukey},
                                                     {"cauchy", geometry::RobustKernel::cauchy},
                                                     {"geman_mcclure", geometry::RobustKernel::geman_mcclure}};

/// (voxel, max_distance[, iterations[, share]]) each; None: chosen by the target.
std::vector<geometry::IcpLevel> levels_of(const py::object& levels) {
    std::vector<geometry::IcpLevel> made;
    if (levels.is_none()) return made;
    for (py::handle item : levels) {
        const std::vector<double> numbers = numbers_of(item, "levels");
        STIPPLE_REQUIRE(numbers.size() >= 2 && numbers.size() <= 4,
                        "levels: {} numbers; wanted are (voxel, max_distance, iterations, share), the last two if they "
                        "are not 30 and 1",
                        numbers.size());
        geometry::IcpLevel level{numbers[0], numbers[1]};
        if (numbers.size() > 2) {
            STIPPLE_REQUIRE(numbers[2] >= 0 && numbers[2] <= 1e9, "levels: {} iterations", numbers[2]);
            level.iterations = static_cast<int>(numbers[2]);
        }
        if (numbers.size() > 3) level.share = numbers[3];
        made.push_back(level);
    }
    return made;
}

IcpOptions options_of(std::string_view metric, std::string_view kernel, double kernel_scale, double trim,
                      const py::object& levels, int normal_neighbours, double motion_tolerance,
                      double change_tolerance) {
    return {choice(metric, "metric", kMetrics),
            choice(kernel, "kernel", kKernels),
            kernel_scale,
            trim,
            levels_of(levels),
            normal_neighbours,
            motion_tolerance,
            change_tolerance};
}

py::object history_of(const geometry::IcpResult& o) {
    py::list made;
    for (const geometry::IcpIteration& step : o.history)
        made.append(record<IterationResult>(number(step.level), number(step.pairs), number(step.fitness),
                                            number(step.rmse), number(step.motion), number(step.searched)));
    return made;
}

py::dict evidence_of(const geometry::IcpResult& o) {
    py::dict made;
    made["near"] = o.evidence.near;
    made["reach"] = o.evidence.reach;
    made["close"] = o.evidence.close;
    made["around"] = o.evidence.around;
    made["across"] = o.evidence.across;
    made["source_points"] = o.evidence.source_points;
    made["target_points"] = o.evidence.target_points;
    return made;
}

const char* stop_of(const geometry::IcpResult& o) {
    static const char* const kStops[] = {"converged", "iterations", "too_few"};
    return kStops[static_cast<int>(o.stop)];
}

geometry::IcpResult icp(const CloudLike& source_, const py::object& target_, const py::object& initial_,
                        std::string_view metric, std::string_view kernel, double kernel_scale, double trim,
                        const py::object& levels, int normal_neighbours, double motion_tolerance,
                        double change_tolerance) {
    const IcpOptions options =
        options_of(metric, kernel, kernel_scale, trim, levels, normal_neighbours, motion_tolerance, change_tolerance);
    const CloudArgument source(source_, "source");
    const geometry::RigidTransform initial = rigid_of(initial_, "initial");
    if (py::isinstance<geometry::IcpTarget>(target_)) {
        const auto& target = target_.cast<const geometry::IcpTarget&>();
        return without_gil([&] { return geometry::icp(source.cloud(), target, initial); });
    }
    const CloudArgument target(target_, "target");
    return without_gil([&] { return geometry::icp(source.cloud(), target.cloud(), options, initial); });
}

geometry::IcpTarget make_target(const CloudLike& cloud_, std::string_view metric, std::string_view kernel,
                                double kernel_scale, double trim, const py::object& levels, int normal_neighbours,
                                double motion_tolerance, double change_tolerance) {
    const IcpOptions options =
        options_of(metric, kernel, kernel_scale, trim, levels, normal_neighbours, motion_tolerance, change_tolerance);
    const CloudArgument cloud(cloud_, "cloud");
    return without_gil([&] { return geometry::IcpTarget(cloud.cloud(), options); });
}

Record<VerdictResult> judge(const geometry::IcpResult& result, double min_fitness, double little_fitness,
                            double min_closeness, double max_across) {
    const auto verdict = geometry::judge(result, {min_fitness, little_fitness, min_closeness, max_across});
    py::list reasons;
    for (const std::string& reason : verdict.reasons) reasons.append(reason);
    return record<VerdictResult>(py::str(geometry::to_string(verdict.state)), reasons);
}

Record<GlobalResultRecord> register_globally(const CloudLike& source_, const CloudLike& target_, double voxel,
                                             int64_t most_points, const py::object& starts, int64_t most_matches,
                                             const NumbersLike& feature_radii, int most_poses) {
    geometry::GlobalOptions options;
    options.voxel = voxel;
    options.most_points = most_points;
    if (!starts.is_none())
        for (py::handle start : starts)
            options.starts.push_back(rigid_of(py::reinterpret_borrow<py::object>(start), "starts"));
    options.most_matches = most_matches;
    options.feature_radii = numbers_of(feature_radii, "feature_radii");
    options.most_poses = most_poses;
    const CloudArgument source(source_, "source"), target(target_, "target");
    const auto found =
        without_gil([&] { return geometry::register_globally(source.cloud(), target.cloud(), options); });
    py::list poses;
    for (const geometry::GlobalPose& pose : found.poses)
        poses.append(record<GlobalPoseResult>(matrix_of(pose.transform), number(pose.inliers), number(pose.chance),
                                              number(pose.evidence.overlap()), number(pose.evidence.agreement())));
    return record<GlobalResultRecord>(poses, number(found.voxel), number(found.source_points),
                                      number(found.target_points), number(found.matches), number(found.confidence()),
                                      number(found.other()));
}

template <class Function>
auto of_cloud(const CloudLike& cloud_, Function&& function) {
    const CloudArgument cloud(cloud_, "cloud");
    return without_gil([&] { return function(cloud.cloud()); });
}

py::list automatic_levels(double radius) {
    py::list made;
    for (const geometry::IcpLevel& level : geometry::automatic_levels(radius))
        made.append(record<LevelResult>(number(level.voxel), number(level.max_distance), number(level.iterations),
                                        number(level.share)));
    return made;
}

void bind_results(py::module_& g) {
    using Result = geometry::IcpResult;
    py::class_<Result>(g, "IcpResult", "What icp() found; judge() says whether to believe it.")
        .def_property_readonly(
            "transform", [](const Result& o) { return matrix_of(o.transform); },
            "[4, 4] float64, source to target, world coordinates.")
        .def_readonly("fitness", &Result::fitness,
                      "Share of the source's finite points (of the last level) with a pair.")
        .def_readonly("rmse", &Result::rmse, "Of the distances of these pairs; 0 without pairs.")
        .def_readonly("pairs", &Result::pairs)
        .def_readonly("iterations", &Result::iterations, "Of all levels.")
        .def_property_readonly("stop", &stop_of, "\"converged\", \"iterations\" or \"too_few\".")
        .def_property_readonly("converged", &Result::converged, "Whether stop is \"converged\".")
        .def_property_readonly("history", &history_of, "A named tuple for each step.")
        .def_property_readonly("evidence", &evidence_of, "How closely the pairs lie, as a dict.")
        .def_readonly("undetermined", &Result::undetermined, "Directions of the last step that the pairs leave open.")
        .def_property_readonly(
            "information", [](const Result& o) { return matrix_of(o.information); },
            "[6, 6] float64, J^T W J of the last step in (turn about the axes through center, shift).")
        .def_property_readonly(
            "center", [](const Result& o) { return tuple_of(o.center); }, "The mean of the source in the target.")
        .def("__repr__", [](const Result& o) {
            return fmt::format("stipple.geometry.IcpResult({} after {} steps, fitness {:.4f}, rmse {:.6g})", stop_of(o),
                               o.iterations, o.fitness, o.rmse);
        });
}

}  // namespace

void bind_registration(py::module_& g) {
    add_record<VerdictResult>(g);
    add_record<GlobalPoseResult>(g);
    add_record<GlobalResultRecord>(g);
    add_record<LevelResult>(g);
    add_record<IterationResult>(g);
    bind_results(g);
    const py::none none;
    const geometry::RegistrationLimits limits;
    py::class_<geometry::IcpTarget>(g, "IcpTarget", doc::geometry::IcpTarget)
        .def(py::init(&make_target), py::arg("cloud"), py::kw_only(), py::arg("metric") = "plane",
             py::arg("kernel") = "tukey", py::arg("kernel_scale") = 0.0, py::arg("trim") = 1.0,
             py::arg("levels") = none, py::arg("normal_neighbours") = 12, py::arg("motion_tolerance") = 1e-5,
             py::arg("change_tolerance") = 1e-6,
             "An io.PointCloud, indexed once for many sources, with icp's options.");
    g.def("icp", &icp, py::arg("source"), py::arg("target"), py::arg("initial") = none, py::kw_only(),
          py::arg("metric") = "plane", py::arg("kernel") = "tukey", py::arg("kernel_scale") = 0.0,
          py::arg("trim") = 1.0, py::arg("levels") = none, py::arg("normal_neighbours") = 12,
          py::arg("motion_tolerance") = 1e-5, py::arg("change_tolerance") = 1e-6, doc::geometry::icp);
    g.def(
        "kernel_weight",
        [](std::string_view kernel, double residual, double scale) {
            return geometry::kernel_weight(choice(kernel, "kernel", kKernels), residual, scale);
        },
        py::arg("kernel"), py::arg("residual"), py::arg("scale"),
        "The weight of a residual by a robust kernel: \"none\", \"huber\", \"tukey\", \"cauchy\" or "
        "\"geman_mcclure\".");
    g.def("automatic_levels", &automatic_levels, py::arg("radius"), doc::geometry::automatic_levels);
    g.def(
        "rms_radius", [](const CloudLike& c) { return of_cloud(c, geometry::rms_radius); }, py::arg("cloud"),
        doc::geometry::rms_radius);
    g.def(
        "median_spacing", [](const CloudLike& c) { return of_cloud(c, geometry::median_spacing); }, py::arg("cloud"),
        doc::geometry::median_spacing);
    g.def(
        "common_voxel",
        [](const CloudLike& a_, const CloudLike& b_, int64_t most) {
            const CloudArgument a(a_, "a"), b(b_, "b");
            return without_gil([&] { return geometry::common_voxel(a.cloud(), b.cloud(), most); });
        },
        py::arg("a"), py::arg("b"), py::arg("most"), doc::geometry::common_voxel);
    g.def(
        "has_normals", [](const CloudLike& c) { return of_cloud(c, geometry::has_normals); }, py::arg("cloud"),
        doc::geometry::has_normals);
    g.def("judge", &judge, py::arg("result"), py::kw_only(), py::arg("min_fitness") = limits.min_fitness,
          py::arg("little_fitness") = limits.little_fitness, py::arg("min_closeness") = limits.min_closeness,
          py::arg("max_across") = limits.max_across,
          "Whether a registration is to be believed: state \"good\", \"doubtful\" or \"failed\", and the reasons.");
    g.def("register_globally", &register_globally, py::arg("source"), py::arg("target"), py::kw_only(),
          py::arg("voxel") = 0.0, py::arg("most_points") = 3000, py::arg("starts") = none,
          py::arg("most_matches") = 4000, py::arg("feature_radii") = py::make_tuple(5.0, 8.0),
          py::arg("most_poses") = 24, doc::geometry::register_globally);
    g.def(
        "are_distinct",
        [](const py::object& a, const py::object& b, const NumbersLike& middle, double radius) {
            return geometry::are_distinct(rigid_of(a, "a"), rigid_of(b, "b"), numbers_of<3>(middle, "middle"), radius);
        },
        py::arg("a"), py::arg("b"), py::arg("middle"), py::arg("radius"), doc::geometry::are_distinct);
}

}  // namespace stipple::python
