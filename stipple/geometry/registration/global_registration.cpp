#include "stipple/geometry/global_registration.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/geometry/fpfh.h"
#include "stipple/geometry/icp.h"
#include "stipple/geometry/registration/consensus.h"
#include "stipple/geometry/registration/small_linear.h"

namespace stipple::geometry {
namespace {

void require_global_options(const GlobalOptions& options) {
    STIPPLE_REQUIRE(options.voxel >= 0 && std::isfinite(options.voxel),
                    "register_globally: cells must be from 0, got {}", options.voxel);
    STIPPLE_REQUIRE(options.most_points >= 3 && options.most_matches >= 3 && options.most_matches <= 20000,
                    "register_globally: {} points and {} matches (3 to 20000) at most", options.most_points,
                    options.most_matches);
    for (const double radius : options.feature_radii)
        STIPPLE_REQUIRE(radius > 0 && std::isfinite(radius),
                        "register_globally: the radius of descriptors must be above 0, got {}", radius);
    STIPPLE_REQUIRE(options.most_poses >= 1, "register_globally: {} poses", options.most_poses);
}

Vector3 row3(const Array<float, 2>& rows, int64_t i) {
    const float* r = rows.data() + 3 * i;
    return {r[0], r[1], r[2]};
}

Vector3 middle_of(const ThinScan& scan) {
    Vector3 middle = {};
    for (int64_t i = 0; i < scan.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            middle[axis] += scan.points.data()[3 * i + axis] / static_cast<double>(scan.size());
    for (int axis = 0; axis < 3; ++axis) middle[axis] += scan.origin[axis];
    return middle;
}

PointCloud cloud_of(const ThinScan& scan) {
    PointCloud cloud;
    cloud.positions = scan.points.clone();
    cloud.origin = scan.origin;
    return cloud;
}

/// ICP on the thinned scans: two levels of pairs, no further thinning.
IcpTarget refining_target(const ThinScan& target, double reach) {
    IcpOptions options;
    options.levels = {{0, reach, 12}, {0, reach / 2, 12}};
    options.motion_tolerance = 1e-4;
    PointCloud cloud = cloud_of(target);
    Attribute normal("normal", DType::f32, target.size(), 3);
    std::copy_n(target.normals.data(), 3 * target.size(), normal.as<float>().data());
    cloud.attributes.push_back(std::move(normal));
    return IcpTarget(cloud, options);
}

/// Poses that matches of the two scans' descriptors propose, the source's normals turned round for a sign of -1.
void propose(const ThinScan& source, const ThinScan& target, double radius, int sign, const GlobalOptions& options,
             GlobalResult& result) {
    Array<float, 2> from = fpfh(source.points.view(), source.normals.view(), radius);
    const Array<float, 2> to = fpfh(target.points.view(), target.normals.view(), radius);
    if (sign < 0) from = fpfh_reversed(from.view());
    const std::vector<Match> matches = match_descriptors(from.view(), to.view(), options.most_matches);
    result.matches = std::max(result.matches, static_cast<int64_t>(matches.size()));
    std::vector<MatchedPair> pairs;
    pairs.reserve(matches.size());
    for (const Match& match : matches) {
        MatchedPair pair{row3(source.points, match.source), row3(target.points, match.target),
                         row3(source.normals, match.source), row3(target.normals, match.target)};
        for (double& number : pair.np) number *= sign;
        pairs.push_back(pair);
    }
    ConsensusOptions consensus;
    consensus.tolerance = 1.5 * target.voxel;
    for (const ConsensusPose& pose : consensus_poses(pairs, consensus)) {
        GlobalPose proposed{in_world(pose.transform, source.origin, target.origin), {}, pose.inliers, sign};
        proposed.support = support_of(source, target, proposed.transform, sign);
        if (proposed.support.support > 0) result.poses.push_back(proposed);
    }
    check_interrupted();
}

/// Whether a pose is so good that no other proposals are needed.
bool is_plain(const std::vector<GlobalPose>& poses) {
    constexpr double kAgreement = 0.5, kOverlap = 0.25;
    return std::any_of(poses.begin(), poses.end(), [](const GlobalPose& pose) {
        return pose.support.agreement() >= kAgreement && pose.support.overlap() >= kOverlap;
    });
}

/// Best score first.
void sort_poses(std::vector<GlobalPose>& poses) {
    std::stable_sort(poses.begin(), poses.end(),
                     [](const GlobalPose& a, const GlobalPose& b) { return a.support.score() > b.support.score(); });
}

/// Leaves the best of those that are one answer.
void keep_distinct(std::vector<GlobalPose>& poses, const Vector3& middle, double radius, int most) {
    std::vector<GlobalPose> kept;
    for (const GlobalPose& pose : poses) {
        if (pose.support.support == 0 || static_cast<int>(kept.size()) == most) continue;
        const bool is_new = std::all_of(kept.begin(), kept.end(), [&](const GlobalPose& better) {
            return are_distinct(better.transform, pose.transform, middle, radius);
        });
        if (is_new) kept.push_back(pose);
    }
    poses = std::move(kept);
}

/// Adds the best pose after turns of the source about its principal axes: what a symmetric body looks the same after.
/// Matches alone do not tell, where the very same points are matched.
void propose_turns(const ThinScan& source, const ThinScan& target, const Vector3& middle,
                   std::vector<GlobalPose>& poses) {
    if (poses.empty()) return;
    Matrix3 spread = {};
    for (int64_t i = 0; i < source.size(); ++i) {
        Vector3 v = row3(source.points, i);
        for (int axis = 0; axis < 3; ++axis) v[axis] += source.origin[axis] - middle[axis];
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 3; ++k) spread[j][k] += v[j] * v[k];
    }
    const GlobalPose best = poses.front();
    for (const Vector3& axis : principal_axes(spread))
        for (const double degrees : {60.0, 90.0, 120.0, 180.0, 240.0, 270.0, 300.0}) {
            GlobalPose turned = best;
            turned.inliers = 0;
            turned.transform = best.transform * rotation_about(axis, degrees * M_PI / 180, middle);
            turned.support = support_of(source, target, turned.transform, turned.sign);
            poses.push_back(turned);
        }
    sort_poses(poses);
}

/// Each pose by ICP on these scans, and judged by them: the refined pose where it is no worse.
void refine(const ThinScan& source, const ThinScan& target, double reach, std::vector<GlobalPose>& poses) {
    const IcpTarget refining = refining_target(target, reach);
    const PointCloud moving = cloud_of(source);
    for (GlobalPose& pose : poses) {
        check_interrupted();
        const IcpResult refined = icp(moving, refining, pose.transform);
        const PoseSupport before = support_of(source, target, pose.transform, pose.sign);
        const PoseSupport after = support_of(source, target, refined.transform, pose.sign);
        pose.support = before;
        if (after.score() < before.score()) continue;
        pose.transform = refined.transform;
        pose.support = after;
    }
    sort_poses(poses);
}

}  // namespace

double pose_confidence(const PoseSupport& pose, double other_score) {
    if (pose.support == 0) return 0;
    const double agreement = std::clamp((pose.agreement() - 0.2) / 0.5, 0.0, 1.0);
    const double ahead = std::clamp(2 * (1 - other_score / pose.score()), 0.0, 1.0);
    constexpr double kLittle = 0.15;
    return agreement * ahead * std::min(1.0, pose.overlap() / kLittle);
}

double GlobalResult::confidence() const {
    if (poses.empty()) return 0;
    return pose_confidence(poses[0].support, poses.size() > 1 ? poses[1].support.score() : 0);
}

bool are_distinct(const RigidTransform& a, const RigidTransform& b, const Vector3& middle, double radius) {
    constexpr double kAngle = 15 * M_PI / 180;
    if (rotation_angle(inverse(a) * b) > kAngle) return true;
    const Vector3 p = a(middle), q = b(middle);
    return std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]) > radius / 5;
}

GlobalResult register_globally(const PointCloud& source, const PointCloud& target, const GlobalOptions& options) {
    require_global_options(options);
    GlobalResult result;
    result.voxel = options.voxel > 0 ? options.voxel : common_voxel(source, target, options.most_points);
    if (result.voxel == 0) return result;
    const bool own_normals = has_normals(source) && has_normals(target);
    const ThinScan from = thin_scan(source, result.voxel, own_normals),
                   to = thin_scan(target, result.voxel, own_normals);
    result.source_points = from.size();
    result.target_points = to.size();
    if (from.size() < 3 || to.size() < 3) return result;
    // Descriptors of small balls tell more places apart, those of large ones are less troubled by borders and noise.
    for (const int sign : {1, -1})
        for (const double cells : options.feature_radii)
            if (!is_plain(result.poses)) propose(from, to, cells * result.voxel, sign, options, result);
    for (const RigidTransform& start : options.starts)
        for (const int sign : {1, -1}) result.poses.push_back({start, support_of(from, to, start, sign), 0, sign});
    const Vector3 middle = middle_of(from);
    const double radius = rms_radius(cloud_of(from));
    sort_poses(result.poses);
    if (result.poses.size() > static_cast<size_t>(options.most_poses))
        result.poses.resize(static_cast<size_t>(options.most_poses));
    refine(from, to, 4 * result.voxel, result.poses);
    keep_distinct(result.poses, middle, radius, options.most_poses);
    propose_turns(from, to, middle, result.poses);
    keep_distinct(result.poses, middle, radius, options.most_poses);
    // Cells of half the edge tell surfaces that coincide from surfaces that nearly do.
    constexpr int kFinal = 6;
    keep_distinct(result.poses, middle, radius, kFinal);
    const double spacing = std::max(median_spacing(source), median_spacing(target));
    const double fine = std::max(result.voxel / 2, std::min(result.voxel, 1.5 * spacing));
    refine(thin_scan(source, fine, own_normals), thin_scan(target, fine, own_normals), 2 * result.voxel, result.poses);
    keep_distinct(result.poses, middle, radius, kFinal);
    return result;
}

}  // namespace stipple::geometry
