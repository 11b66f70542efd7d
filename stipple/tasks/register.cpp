#include "stipple/tasks/register.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/number_text.h"
#include "stipple/tasks/small_files.h"

namespace stipple::tasks {
namespace {

using geometry::RigidTransform;

/// Both clouds as poses are judged by; nothing where they have no surface.
struct JudgedScans {
    double voxel = 0;  // of the search
    std::optional<geometry::JudgedPair> pair;
    const PreparedPair* prepared = nullptr;  // where there is one

    explicit JudgedScans(const PreparedPair& made)
        : voxel(made.source.matched.voxel),
          pair(geometry::judged_pair(made.source.judged, made.target.judged, made.source.own_normals)),
          prepared(&made) {}
    JudgedScans(const PointCloud& from, const PointCloud& to, const geometry::GlobalOptions& options)
        : voxel(options.voxel) {
        const double spacing = geometry::common_spacing(from, to);
        if (voxel == 0) voxel = geometry::common_voxel(from, to, options.most_points, spacing);
        if (voxel > 0) pair = geometry::judged_pair(from, to, geometry::judged_edge(voxel, spacing));
    }

    /// No poses where the clouds have no surface.
    geometry::GlobalResult search(const PointCloud& from, const PointCloud& to, geometry::GlobalOptions options) const {
        if (!pair) return {};
        options.voxel = voxel;
        return prepared ? geometry::register_globally(prepared->source, prepared->target, options)
                        : geometry::register_globally(from, to, options, *pair);
    }

    /// searched  what a search found; nothing where there was none
    PoseTrust trust(const RigidTransform& pose, const geometry::GlobalResult* searched) const {
        PoseTrust trust;
        if (!pair) return trust;
        trust.voxel = pair->source.voxel;
        trust.evidence = geometry::evidence_of(*pair, pose);
        if (searched) {
            const geometry::PoseEvidence& found = searched->poses[0].evidence;
            trust.evidence.other = searched->other();
            trust.evidence.inliers = found.inliers;
            trust.evidence.rival = found.rival;
            trust.evidence.matches = found.matches;
        }
        trust.confidence = geometry::pose_confidence(trust.evidence);
        return trust;
    }
};

void judge(const RegisterOptions& options, Registration& registration) {
    geometry::RegistrationLimits limits;
    limits.min_fitness = options.min_fitness;
    geometry::RegistrationVerdict& verdict = registration.verdict;
    verdict = geometry::judge(registration.found, limits);
    if (options.require_convergence && !registration.found.converged())
        verdict.state = geometry::RegistrationState::failed;
}

/// The evidence alone decides between good, doubtful and failed where there are pairs: how ICP's pairs lie is part of
/// it.
void judge_evidence(Registration& registration) {
    geometry::RegistrationVerdict& verdict = registration.verdict;
    const PoseTrust& trust = registration.trust;
    if (verdict.state == geometry::RegistrationState::failed) return;
    verdict = {};
    const auto add = [&](geometry::RegistrationState state, std::string reason) {
        verdict.state = std::max(verdict.state, state);
        verdict.reasons.push_back(std::move(reason));
    };
    if (registration.method != RegisterMethod::global && !registration.found.converged())
        add(geometry::RegistrationState::doubtful, geometry::unconverged_text(registration.found));
    if (registration.found.undetermined > 0)
        add(geometry::RegistrationState::doubtful, geometry::undetermined_text(registration.found));
    if (trust.is_believed()) return;
    const bool is_failed = trust.confidence < geometry::kWritten;
    const double other = 100 * trust.evidence.other, through = 100 * trust.evidence.through;
    std::string reason =
        fmt::format("confidence {:.2f} is below {:.2f}: surfaces overlap by {:.0f} %, {:.0f} % of what is near agrees",
                    trust.confidence, is_failed ? geometry::kWritten : geometry::kGood, 100 * trust.evidence.overlap(),
                    100 * trust.evidence.agreement());
    constexpr double kTold = 1;  // percent
    if (through >= kTold) reason += fmt::format(", {:.0f} % lies where the other's sensor saw nothing", through);
    if (other >= kTold) reason += fmt::format(", another pose is {:.0f} % as likely", other);
    if (registration.others.size() > 1)
        reason +=
            fmt::format(", and {} in all are at least half as likely: is it symmetric?", registration.others.size());
    add(is_failed ? geometry::RegistrationState::failed : geometry::RegistrationState::doubtful, std::move(reason));
}

geometry::IcpOptions icp_options(const PointCloud& target, const RegisterOptions& options) {
    geometry::IcpOptions icp = options.icp;
    if (icp.levels.empty() && options.scale > 0) icp.levels = geometry::automatic_levels(options.scale);
    if (icp.levels.empty() && geometry::rms_radius(target) > 0)
        icp.levels = geometry::automatic_levels(geometry::rms_radius(target));
    for (geometry::IcpLevel& level : icp.levels)
        if (options.iterations > 0) level.iterations = options.iterations;
    return icp;
}

/// method  icp, or learned where the start is a network's
Registration by_icp(const PointCloud& source, const PointCloud& target, const JudgedScans& scans,
                    const RegisterOptions& options, RegisterMethod method = RegisterMethod::icp) {
    const geometry::IcpTarget prepared(target, icp_options(target, options));
    Registration registration;
    registration.method = method;
    registration.levels = prepared.options().levels;
    registration.found = geometry::icp(source, prepared, options.initial.value_or(RigidTransform{}));
    registration.trust = scans.trust(registration.found.transform, nullptr);
    registration.poses = 1;
    judge(options, registration);
    if (scans.pair) judge_evidence(registration);
    return registration;
}

Registration by_network(const PointCloud& source, const PointCloud& target, const JudgedScans& scans,
                        const RegisterOptions& options) {
    const LearnedStart start = options.learned(source, target);
    RegisterOptions from_there = options;
    from_there.initial = start.pose;
    Registration registration = by_icp(source, target, scans, from_there, RegisterMethod::learned);
    registration.story = start.story;
    return registration;
}

/// Whether two clouds may be looks at one whole shape, as far as sizes tell.
bool may_be_one_shape(const PointCloud& source, const PointCloud& target) {
    constexpr int64_t kMost = 8192;
    constexpr double kAlike = 0.9;
    constexpr int64_t kFew = 8;  // less is no shape
    const int64_t most = std::max(source.size(), target.size()),
                  least = std::min(bounds_of(source).finite, bounds_of(target).finite);
    if (most > kMost || least < kFew) return false;
    const double a = geometry::rms_radius(source), b = geometry::rms_radius(target);
    return std::min(a, b) > 0 && std::min(a, b) >= kAlike * std::max(a, b);
}

Registration by_search(const PointCloud& source, const PointCloud& target, const JudgedScans& scans,
                       const RegisterOptions& options) {
    const geometry::GlobalResult searched = scans.search(source, target, options.global);
    Registration registration;
    registration.method = RegisterMethod::global;
    registration.poses = static_cast<int64_t>(searched.poses.size());
    if (searched.poses.empty()) {
        registration.verdict.state = geometry::RegistrationState::failed;
        registration.verdict.reasons = {fmt::format("no pose found: nothing of {} and {} thinned points is alike",
                                                    searched.source_points, searched.target_points)};
        return registration;
    }
    geometry::IcpOptions icp = icp_options(target, options);
    // The pose is right to a cell or so: the level that catches wide starts would only lead away from it.
    if (options.icp.levels.empty() && icp.levels.size() > 1) icp.levels.erase(icp.levels.begin());
    // Little overlap converges slowly, and pairs at its border come and go.
    constexpr int kLast = 100;
    constexpr double kSmall = 1e-5;
    if (options.icp.levels.empty() && options.iterations == 0 && !icp.levels.empty())
        icp.levels.back().iterations = kLast;
    icp.motion_tolerance = std::max(icp.motion_tolerance, kSmall);
    const geometry::IcpTarget prepared(target, icp);
    registration.levels = prepared.options().levels;
    registration.found = geometry::icp(source, prepared, searched.poses[0].transform);
    registration.trust = scans.trust(registration.found.transform, &searched);
    // Pairs that reach far, at borders of what is shared, drag a scan along its smooth parts: where half of the reach
    // ends in another place, the evidence decides, and the pose is no surer than the less sure of both.
    if (options.icp.levels.empty() && !prepared.options().levels.empty()) {
        geometry::IcpOptions nearer = prepared.options();
        nearer.levels.back().max_distance /= 2;
        const geometry::IcpResult again = geometry::icp(source, target, nearer, searched.poses[0].transform);
        const PoseTrust trust = scans.trust(again.transform, &searched);
        const double apart = pose_error(again.transform, registration.found.transform, source).rms;
        if (trust.confidence > registration.trust.confidence && apart > searched.voxel / 2) {
            const double less_sure = registration.trust.confidence;
            registration.found = again;
            registration.trust = trust;
            registration.trust.confidence = less_sure;
            registration.levels = nearer.levels;
        }
    }
    constexpr double kAlike = 0.5;
    for (size_t i = 1; i < searched.poses.size(); ++i)
        if (const double likelihood = searched.likelihood(i); likelihood >= kAlike)
            registration.others.push_back({searched.poses[i].transform, likelihood});
    judge(options, registration);
    judge_evidence(registration);
    return registration;
}

/// The best pose near the start that was given: from there ICP, and matches where it ends in doubt.
Registration by_start(const PointCloud& source, const PointCloud& target, const JudgedScans& scans,
                      const RegisterOptions& options) {
    constexpr double kDegrees = 20, kExtent = 0.2;  // what a start may be off by: the turn, and the share of the extent
    Registration near = by_icp(source, target, scans, options);
    near.story = "from the start that was given";
    if (near.verdict.state == geometry::RegistrationState::good || !scans.pair) return near;
    const Bounds bounds = bounds_of(source);
    const double extent =
        std::hypot(bounds.max[0] - bounds.min[0], bounds.max[1] - bounds.min[1], bounds.max[2] - bounds.min[2]);
    RegisterOptions around = options;
    around.global.within = geometry::PoseRegion{*options.initial, kDegrees, kExtent * extent};
    around.global.starts.push_back(*options.initial);
    if (near.found.fitness > 0) around.global.starts.push_back(near.found.transform);
    Registration searched = by_search(source, target, scans, around);
    searched.story = "ICP from the start that was given ended in doubt; poses near it were searched";
    if (searched.poses == 0) return near;
    return searched;
}

Registration by_either(const PointCloud& source, const PointCloud& target, const JudgedScans& scans,
                       const RegisterOptions& options) {
    Registration near = by_icp(source, target, scans, options);
    if (near.verdict.state == geometry::RegistrationState::good) {
        near.story = "ICP from where the clouds lie ended well";
        return near;
    }
    const char* ended = near.verdict.state == geometry::RegistrationState::failed ? "failed" : "ended in doubt";
    RegisterOptions wide = options;
    std::string tried;
    if (options.learned && may_be_one_shape(source, target)) {
        constexpr double kWhole = 0.6;  // of the source lies on the target: less is left to the search
        Registration learned = by_network(source, target, scans, options);
        if (learned.verdict.state == geometry::RegistrationState::good && learned.trust.evidence.overlap() >= kWhole) {
            learned.story = fmt::format("ICP from where the clouds lie {}; {}", ended, learned.story);
            return learned;
        }
        if (learned.found.fitness > 0) wide.global.starts.push_back(learned.found.transform);
        tried = ", and from that of a network";
    }
    // ICP's pose is judged among the others.
    if (near.verdict.state != geometry::RegistrationState::failed) wide.global.starts.push_back(near.found.transform);
    Registration searched = by_search(source, target, scans, wide);
    searched.story = fmt::format("ICP from where the clouds lie{} {}; all poses were searched", tried, ended);
    return searched;
}

/// What the sizes of two scans tell of their units; empty where they are alike.
std::string unit_text(const PointCloud& source, const PointCloud& target) {
    constexpr double kUnlike = 15;  // times: parts of one place differ by less
    constexpr double kNearly = 1.25;
    struct Units {
        double factor;
        const char* large;
        const char* small;
    };
    constexpr Units kUnits[] = {{1000, "millimetres", "metres"},
                                {304.8, "millimetres", "feet"},
                                {100, "centimetres", "metres"},
                                {39.37, "inches", "metres"},
                                {25.4, "millimetres", "inches"}};
    const double a = geometry::rms_radius(source), b = geometry::rms_radius(target), least = std::min(a, b);
    if (!(least > 0) || std::max(a, b) < kUnlike * least) return {};
    const double times = std::max(a, b) / least;
    const char *large = a > b ? "source" : "target", *small = a > b ? "target" : "source";
    std::string text = fmt::format("the {} is {} times as large as the {}", large, grouped(std::llround(times)), small);
    const Units* nearest = nullptr;
    double off = kNearly;
    for (const Units& units : kUnits)
        if (const double ratio = std::max(times / units.factor, units.factor / times); ratio < off)
            off = ratio, nearest = &units;
    text += nearest ? fmt::format(": is it in {} and the other in {}?", nearest->large, nearest->small)
                    : std::string(": are both in the same unit?");
    return text;
}

Registration register_judged(const PointCloud& source, const PointCloud& target, const JudgedScans& scans,
                             const RegisterOptions& options) {
    Registration registration;
    switch (options.method) {
        case RegisterMethod::automatic:
            registration =
                options.initial ? by_start(source, target, scans, options) : by_either(source, target, scans, options);
            break;
        case RegisterMethod::icp: registration = by_icp(source, target, scans, options); break;
        case RegisterMethod::global: registration = by_search(source, target, scans, options); break;
        case RegisterMethod::learned: registration = by_network(source, target, scans, options); break;
    }
    const std::string units = unit_text(source, target);
    if (registration.verdict.state != geometry::RegistrationState::good && !units.empty())
        registration.verdict.reasons.push_back(units);
    if (registration.verdict.state == geometry::RegistrationState::failed)
        registration.failure = Error(
            ErrorCode::check_failed, registration.verdict.text(),
            !units.empty()    ? "both scans must be in the same unit"
            : options.initial ? "the data contradict the start: without --init all poses are searched"
            : options.method == RegisterMethod::icp
                ? "start nearer to the true pose, widen the greatest distance of pairs, or search: --method global"
            : options.method == RegisterMethod::learned
                ? "the network knows whole shapes, turned by up to 45 degrees; others: --method global"
                : "the scans may share too little; a start near the true pose helps: --init");
    return registration;
}

void require_register_options(const RegisterOptions& options) {
    check_fields(register_fields(), &options);
    STIPPLE_REQUIRE(options.method != RegisterMethod::learned || options.learned, "learned registration: no network");
}

Registration with_question(Registration registration, const RegisterOptions& options) {
    registration.asked = options.method;
    registration.metric = options.icp.metric;
    registration.kernel = options.icp.kernel;
    return registration;
}

}  // namespace

RegisterMethod method_by_name(std::string_view name) {
    for (size_t i = 0; i < std::size(kRegisterMethodWords); ++i)
        if (name == kRegisterMethodWords[i]) return static_cast<RegisterMethod>(i);
    throw Error(ErrorCode::bad_argument,
                fmt::format("unknown method {}: there are {}", name, fmt::join(kRegisterMethodWords, ", ")));
}

const char* to_string(RegisterMethod method) {
    return kRegisterMethodWords[static_cast<size_t>(method)];
}

Registration register_clouds(const PointCloud& source, const PointCloud& target, const RegisterOptions& options) {
    require_register_options(options);
    return with_question(register_judged(source, target, JudgedScans(source, target, options.global), options),
                         options);
}

Registration register_clouds(const PointCloud& source, const PointCloud& target, const RegisterOptions& options,
                             const PreparedPair& prepared) {
    require_register_options(options);
    return with_question(register_judged(source, target, JudgedScans(prepared), options), options);
}

std::vector<geometry::IcpLevel> levels_of(const std::vector<double>& max_distances, const std::vector<double>& voxels) {
    constexpr int kIterations = 50;
    STIPPLE_REQUIRE(voxels.empty() || voxels.size() == max_distances.size(), "{} voxels for {} greatest distances",
                    voxels.size(), max_distances.size());
    std::vector<geometry::IcpLevel> levels;
    for (size_t i = 0; i < max_distances.size(); ++i) {
        const double voxel = voxels.empty() ? 0 : voxels[i], distance = max_distances[i];
        STIPPLE_REQUIRE(voxel >= 0 && std::isfinite(voxel), "a voxel's edge must be from 0, got {}", voxel);
        STIPPLE_REQUIRE(distance > 0 && std::isfinite(distance), "a greatest distance must be above 0, got {}",
                        distance);
        levels.push_back({voxel, distance, kIterations});
    }
    return levels;
}

geometry::RobustKernel kernel_by_name(std::string_view name) {
    for (size_t i = 0; i < std::size(geometry::kRobustKernelWords); ++i)
        if (name == geometry::kRobustKernelWords[i]) return static_cast<geometry::RobustKernel>(i);
    throw Error(ErrorCode::bad_argument, fmt::format("unknown kernel {}", name),
                fmt::format("kernels: {}", fmt::join(geometry::kRobustKernelWords, ", ")));
}

PoseError pose_error(const RigidTransform& found, const RigidTransform& truth, const PointCloud& cloud) {
    PoseError error;
    error.degrees = geometry::rotation_angle(geometry::inverse(truth) * found) * (180 / M_PI);
    error.doubled = 2 * error.degrees;
    const geometry::Vector3 &a = found.translation, &b = truth.translation;
    error.translation = std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
    double sum = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const geometry::Vector3 place = {cloud.world(i, 0), cloud.world(i, 1), cloud.world(i, 2)}, p = found(place),
                                q = truth(place);
        const double sq = (p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]) + (p[2] - q[2]) * (p[2] - q[2]);
        if (!std::isfinite(sq)) continue;
        sum += sq;
        ++finite;
    }
    error.rms = finite == 0 ? 0 : std::sqrt(sum / static_cast<double>(finite));
    return error;
}

RigidTransform load_transform(const std::string& path) {
    const std::string text = load_text(path, 65536, "a transform of 4 x 4 numbers");
    try {
        return geometry::parse_transform(text);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

}  // namespace stipple::tasks
