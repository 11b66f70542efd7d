// Registration as commands and requests ask for it: options from their fields, and results as JSON.

#include <cmath>
#include <memory>

#include "stipple/core/number_text.h"
#include "stipple/core/program_files.h"
#include "stipple/tasks/learned_pose.h"
#include "stipple/tasks/register.h"
#include "stipple/tasks/weights.h"

namespace stipple::tasks {
namespace {

constexpr double kDegrees = 180 / M_PI;

using geometry::IcpOptions;

const Fields& level_fields() {
    using Level = geometry::IcpLevel;
    static const Fields fields = {
        field<&Level::voxel>("voxel", "Edge of the cells that thin both clouds; 0: all points"),
        field<&Level::max_distance>("max_distance", "Farthest pairs"),
        field<&Level::iterations>("iterations", "Most steps")};
    return fields;
}

const Fields& step_fields() {
    using Step = geometry::IcpIteration;
    static const Fields fields = {field<&Step::level>("level", "Of the schedule, from 0"),
                                  field<&Step::pairs>("pairs", "Points that have a partner"),
                                  field<&Step::fitness>("fitness", "Their share"),
                                  field<&Step::rmse>("rmse", "RMS distance of the pairs"),
                                  field<&Step::motion>("motion", "How far the step moved the points")};
    return fields;
}

const Fields& other_fields() {
    static const Fields fields = {
        computed_field<OtherPose>("transform", "Source to target",
                                  [](const OtherPose& other) { return to_json(other.transform); }),
        field<&OtherPose::likelihood>("likelihood", "Beside the pose that was chosen, up to 1")};
    return fields;
}

LearnedStart find_start(PoseNetwork& network, const PointCloud& source, const PointCloud& target) {
    const PoseNetwork::Found found = network.find(source, target);
    return {found.transform,
            fmt::format("PCRNet, {} iterations on {} and {} points, turned by {:.1f} degrees; then ICP",
                        network.iterations(), grouped(found.source_points), grouped(found.target_points),
                        geometry::rotation_angle(found.transform) * kDegrees)};
}

/// Sets `learned` for the methods that may ask a network.
void add_network(RegisterOptions& options, const std::string& device) {
    const bool is_learned = options.method == RegisterMethod::learned;
    STIPPLE_REQUIRE(!is_learned || !options.initial, "--init is a start, and --method learned finds one: give one");
    const bool may_ask = is_learned || options.method == RegisterMethod::automatic;
    const bool is_there = !options.model.empty() || is_file(find_weights(kPoseWeights));
    if (!may_ask || (!is_learned && !is_there)) return;
    const auto load = [model = options.model, sampled = options.sampled, device] {
        return std::make_shared<PoseNetwork>(
            load_pose_network(model, sampled, {.device = device, .batch = 1, .points = kPosePoints}));
    };
    const bool is_wanted_now = is_learned || !options.model.empty();
    options.learned = [network = is_wanted_now ? load() : nullptr, load](const PointCloud& source,
                                                                         const PointCloud& target) mutable {
        if (!network) network = load();
        return find_start(*network, source, target);
    };
}

}  // namespace

const Fields& register_fields() {
    using Options = RegisterOptions;
    static const std::string model_help =
        fmt::format("learned: weights by path or name, or an engine; else {}", kPoseWeights);
    static const Fields fields = {
        field<&Options::method>("method",
                                "icp: from a start that is roughly right; global: from any; learned: single shapes, by "
                                "a network; auto: icp, then what is needed")
            .words(kRegisterMethodWords),
        field<&Options::model>("model", model_help.c_str()).only_with("method", "learned|auto"),
        field<&Options::sampled>("sampled", "learned: points that samplenet-reg chooses for the network; 0: up to 1024")
            .from(0)
            .only_with("method", "learned|auto"),
        field<&Options::icp, &IcpOptions::metric>(
            "metric", "Distances to points, to the target's planes, or between planes of both")
            .words(geometry::kIcpMetricWords),
        field<&Options::icp, &IcpOptions::kernel>("kernel",
                                                  "Doubt of far pairs: none, huber, tukey, cauchy, geman-mcclure")
            .words(geometry::kRobustKernelWords)
            .shown("NAME"),
        field<&Options::icp, &IcpOptions::kernel_scale>("kernel_scale",
                                                        "Residual at which doubt begins; auto: by the median")
            .unit("unit of the cloud")
            .above(0)
            .zero_word("auto")
            .shown("auto|LENGTH"),
        field<&Options::scale>("scale", "Radius that cells and distances fit; auto: the target's")
            .unit("unit of the cloud")
            .above(0)
            .zero_word("auto")
            .shown("auto|LENGTH"),
        field<&Options::max_distances>("max_distance", "Farthest pairs; several: one for each level, coarse to fine")
            .unit("unit of the cloud")
            .above(0),
        field<&Options::voxels>("voxel", "Edge of the cells that thin both clouds, one for each --max-distance")
            .unit("unit of the cloud")
            .from(0),
        field<&Options::iterations>("iterations", "Most steps of a level; 0: 30, at the last 50").from(0),
        field<&Options::icp, &IcpOptions::trim>("trim", "Share of the pairs that counts, nearest first").above(0).to(1),
        field<&Options::require_convergence>("require_convergence", "Fail, and write nothing, without convergence"),
        field<&Options::min_fitness>("min_fitness", "Fail, and write nothing, when fewer points have a pair")
            .between(0, 1)};
    return fields;
}

RegisterOptions register_options(RegisterOptions options, const std::string& device) {
    check_fields(register_fields(), &options, as_option);
    if (!options.max_distances.empty()) {
        STIPPLE_REQUIRE(options.scale == 0, "--scale and --max-distance both choose the distances: give one");
        STIPPLE_REQUIRE(options.voxels.empty() || options.voxels.size() == options.max_distances.size(),
                        "{} x --voxel for {} x --max-distance", options.voxels.size(), options.max_distances.size());
        options.icp.levels = levels_of(options.max_distances, options.voxels);
    } else {
        STIPPLE_REQUIRE(options.voxels.empty(), "--voxel needs --max-distance, one for each");
    }
    add_network(options, device);
    return options;
}

Json to_json(const geometry::RigidTransform& transform) {
    Json rows = Json::array();
    for (int i = 0; i < 3; ++i) {
        Json row = transform.rotation[i];
        row.push_back(transform.translation[i]);
        rows.push_back(row);
    }
    rows.push_back({0.0, 0.0, 0.0, 1.0});
    return rows;
}

const Fields& registration_fields() {
    using R = Registration;
    using Trust = PoseTrust;
    using Evidence = geometry::PoseEvidence;
    using Icp = geometry::IcpResult;
    static const Fields fields = {
        field<&R::method>("method", "That the pose comes from").words(kRegisterMethodWords),
        field<&R::asked>("method_asked", "That was asked for").words(kRegisterMethodWords),
        field<&R::story>("story", "Why this method, and by which network"),
        field<&R::metric>("metric", "Distances of ICP").words(geometry::kIcpMetricWords),
        field<&R::kernel>("kernel", "Doubt of far pairs").words(geometry::kRobustKernelWords),
        objects_field<&R::levels>("levels", level_fields, "Levels of ICP that were run"),
        computed_field<R>("transform", "Source to target, world coordinates",
                          [](const R& r) { return to_json(r.found.transform); }),
        computed_field<R>("rotation_degrees", "Angle of the rotation",
                          [](const R& r) { return Json(geometry::rotation_angle(r.found.transform) * kDegrees); }),
        computed_field<R>("quaternion_wxyz", "The rotation",
                          [](const R& r) { return Json(geometry::to_quaternion(r.found.transform)); }),
        computed_field<R>("translation", "The translation",
                          [](const R& r) { return Json(r.found.transform.translation); }),
        field<&R::found, &Icp::fitness>("fitness", "Share of the source's points that have a pair"),
        computed_field<R>("rmse", "RMS distance of the pairs; null without any",
                          [](const R& r) { return r.found.pairs > 0 ? Json(r.found.rmse) : Json(nullptr); }),
        field<&R::found, &Icp::pairs>("pairs", "Points that have a partner"),
        field<&R::found, &Icp::iterations>("iterations", "Steps of ICP"),
        computed_field<R>("converged", "Whether ICP came to rest",
                          [](const R& r) { return Json(r.found.converged()); }),
        field<&R::found, &Icp::undetermined>("undetermined", "Directions that the pairs leave open"),
        computed_field<R>("overlap", "Share of the scan that shares more",
                          [](const R& r) { return Json(r.trust.evidence.overlap()); }),
        computed_field<R>("agreement", "Share of what is near the other scan that agrees with it",
                          [](const R& r) { return Json(r.trust.evidence.agreement()); }),
        field<&R::trust, &Trust::evidence, &Evidence::stiffness>("stiffness", "How firmly the overlap holds the pose"),
        field<&R::trust, &Trust::evidence, &Evidence::residual>("residual", "Distance of the surfaces, over the noise"),
        field<&R::trust, &Trust::evidence, &Evidence::through>("through", "Share that a sensor saw through"),
        field<&R::trust, &Trust::evidence, &Evidence::inliers>("matches", "Matches of a search that the pose explains"),
        field<&R::trust, &Trust::evidence, &Evidence::rival>("rival_matches", "The most that another pose explains"),
        field<&R::trust, &Trust::evidence, &Evidence::other>("other", "Odds of the next pose over this one's"),
        field<&R::trust, &Trust::confidence>("confidence", "Chance that the pose is right"),
        computed_field<R>("good_from", "Confidence from which the verdict is good",
                          [](const R&) { return Json(geometry::kGood); }),
        computed_field<R>("failed_below", "Confidence below which it is failed",
                          [](const R&) { return Json(geometry::kWritten); }),
        field<&R::poses>("poses", "Distinct poses that were judged"),
        objects_field<&R::others>("others", other_fields, "Poses that are at least half as likely"),
        computed_field<R>(
            "thinned", "Points of the last steps",
            [](const R& r) {
                return Json({{"source", r.found.evidence.source_points}, {"target", r.found.evidence.target_points}});
            }),
        computed_field<R>("verdict", "good, doubtful or failed",
                          [](const R& r) { return Json(geometry::to_string(r.verdict.state)); }),
        computed_field<R>("reasons", "What speaks against it", [](const R& r) { return Json(r.verdict.reasons); }),
        computed_field<R>("history", "Steps of ICP", [](const R& r) {
            Json steps = Json::array();
            for (const geometry::IcpIteration& step : r.found.history)
                steps.push_back(stipple::to_json(step_fields(), &step));
            return steps;
        })};
    return fields;
}

const Fields& pose_error_fields() {
    static const Fields fields = {
        field<&PoseError::degrees>("rotation_error_degrees", "Angle between the rotations").unit("degrees"),
        field<&PoseError::doubled>("rotation_error_doubled_degrees", "Twice that, as SampleNet reports")
            .unit("degrees"),
        field<&PoseError::translation>("translation_error", "Difference of the translations").unit("unit of the cloud"),
        field<&PoseError::rms>("rms_displacement", "RMS distance of the points between both poses")
            .unit("unit of the cloud")};
    return fields;
}

}  // namespace stipple::tasks
