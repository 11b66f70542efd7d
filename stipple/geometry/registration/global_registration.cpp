#include "stipple/geometry/global_registration.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/fpfh.h"
#include "stipple/geometry/icp.h"
#include "stipple/geometry/pose_evidence.h"
#include "stipple/geometry/registration/point_matches.h"
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

/// ICP on the thinned scans: no further thinning.
IcpTarget refining_target(const ThinScan& target, const std::vector<IcpLevel>& levels) {
    IcpOptions options;
    options.levels = levels;
    options.motion_tolerance = 1e-4;
    PointCloud cloud = cloud_of(target);
    Attribute normal("normal", DType::f32, target.size(), 3);
    std::copy_n(target.normals.data(), 3 * target.size(), normal.as<float>().data());
    cloud.attributes.push_back(std::move(normal));
    return IcpTarget(cloud, options);
}

/// Descriptors of both scans, those of the first radii made before.
struct PairDescriptors {
    std::span<const Array<float, 2>> source = {}, target = {};

    bool has(size_t i) const { return i < source.size() && i < target.size(); }
};

/// Poses that many matches agree on.
void propose(const JudgedPair& scans, const Array<float, 2>& from, const Array<float, 2>& to,
             const GlobalOptions& options, GlobalResult& result, std::vector<MatchedPair>& pairs) {
    pairs = match_points({scans.source.points.view(), scans.source.normals.view(), from.view()},
                         {scans.target.points.view(), scans.target.normals.view(), to.view()}, scans.is_sided,
                         options.most_matches);
    result.matches = std::max(result.matches, static_cast<int64_t>(pairs.size()));
    ConsensusOptions consensus;
    consensus.tolerance = 1.5 * scans.target.voxel;
    const std::vector<ConsensusPose> found = consensus_poses(pairs, consensus);
    std::vector<GlobalPose> proposed(found.size());
    parallel_for(static_cast<int64_t>(found.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            GlobalPose& pose = proposed[i];
            pose.transform = in_world(found[i].transform, scans.source.origin, scans.target.origin);
            pose.inliers = found[i].inliers;
            pose.support = judged_support(scans.source, scans.target, pose.transform, scans.is_sided);
        }
    });
    for (const GlobalPose& pose : proposed)
        if (pose.support.support > 0) result.poses.push_back(pose);
    check_interrupted();
}

/// Whether a pose is so good that no other proposals are needed.
bool is_plain(const std::vector<GlobalPose>& poses) {
    constexpr double kAgreement = 0.5, kOverlap = 0.25;
    return std::any_of(poses.begin(), poses.end(), [](const GlobalPose& pose) {
        return pose.support.agreement() >= kAgreement && pose.support.overlap() >= kOverlap;
    });
}

bool lies_within(const RigidTransform& pose, const PoseRegion& region, const Vector3& middle) {
    if (rotation_angle(inverse(region.pose) * pose) > region.degrees * M_PI / 180) return false;
    const Vector3 a = region.pose(middle), b = pose(middle);
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]) <= region.distance;
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
void propose_turns(const JudgedPair& scans, const Vector3& middle, std::vector<GlobalPose>& poses) {
    const ThinScan& source = scans.source;
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
            turned.support = judged_support(source, scans.target, turned.transform, scans.is_sided);
            poses.push_back(turned);
        }
    sort_poses(poses);
}

/// Each pose by ICP on these scans, and judged by them: the refined pose where it is no worse. is_judged: the poses
/// were judged by these scans before.
void refine(const JudgedPair& scans, const std::vector<IcpLevel>& levels, bool is_judged,
            std::vector<GlobalPose>& poses) {
    const IcpTarget refining = refining_target(scans.target, levels);
    const IcpSource moving(cloud_of(scans.source), refining);
    check_interrupted();
    parallel_for(static_cast<int64_t>(poses.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            GlobalPose& pose = poses[i];
            const IcpResult refined = icp(moving, refining, pose.transform);
            if (!is_judged) pose.support = judged_support(scans.source, scans.target, pose.transform, scans.is_sided);
            const PoseSupport after = judged_support(scans.source, scans.target, refined.transform, scans.is_sided);
            if (after.score() < pose.support.score()) continue;
            pose.transform = refined.transform;
            pose.support = after;
        }
    });
    sort_poses(poses);
}

/// The poses whose score is at least `share` of the best one's, `most` at most.
void keep_contenders(std::vector<GlobalPose>& poses, double share, size_t most) {
    if (poses.empty()) return;
    const double least = share * poses.front().support.score();
    std::erase_if(poses, [&](const GlobalPose& pose) { return pose.support.score() < least; });
    if (poses.size() > most) poses.resize(most);
}

/// How many of the matches each pose explains, and the most that a distinct proposal did.
void count_matches(const std::vector<MatchedPair>& matches, const std::vector<GlobalPose>& proposed,
                   const JudgedPair& scans, const Vector3& middle, double radius, std::vector<GlobalPose>& poses) {
    for (GlobalPose& pose : poses) {
        const RigidTransform local = between_origins(pose.transform, scans.source.origin, scans.target.origin);
        pose.evidence.inliers = static_cast<double>(explained_matches(matches, local, 1.5 * scans.target.voxel));
        pose.evidence.matches = static_cast<double>(matches.size());
        for (const GlobalPose& rival : proposed)
            if (are_distinct(pose.transform, rival.transform, middle, radius))
                pose.evidence.rival = std::max(pose.evidence.rival, static_cast<double>(rival.inliers));
    }
}

/// Refined and judged by finer cells, which tell surfaces that coincide from surfaces that nearly do: what is likeliest
/// right comes first.
void judge_contenders(const JudgedPair& fine, double reach, std::vector<GlobalPose>& poses) {
    refine(fine, {{0, reach, 8}, {0, reach / 2, 8}}, false, poses);
    parallel_for(static_cast<int64_t>(poses.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            GlobalPose& pose = poses[i];
            const PoseEvidence counted = pose.evidence;
            pose.evidence = evidence_of(fine, pose.transform);
            pose.evidence.inliers = counted.inliers;
            pose.evidence.rival = counted.rival;
            pose.evidence.matches = counted.matches;
            pose.chance = pose_confidence(pose.evidence);
        }
    });
    std::stable_sort(poses.begin(), poses.end(),
                     [](const GlobalPose& a, const GlobalPose& b) { return a.chance > b.chance; });
}

}  // namespace

double GlobalResult::confidence() const {
    if (poses.empty()) return 0;
    PoseEvidence evidence = poses[0].evidence;
    evidence.other = other();
    return pose_confidence(evidence);
}

double GlobalResult::likelihood(size_t i) const {
    if (poses[0].chance == 0) return 0;
    const auto odds = [](double chance) {
        constexpr double kSure = 1 - 1e-9;
        return std::min(chance, kSure) / (1 - std::min(chance, kSure));
    };
    return std::min(1.0, odds(poses[i].chance) / odds(poses[0].chance));
}

bool are_distinct(const RigidTransform& a, const RigidTransform& b, const Vector3& middle, double radius) {
    constexpr double kAngle = 15 * M_PI / 180;
    if (rotation_angle(inverse(a) * b) > kAngle) return true;
    const Vector3 p = a(middle), q = b(middle);
    return std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]) > radius / 5;
}

GlobalResult register_globally(const PointCloud& source, const PointCloud& target, const GlobalOptions& options) {
    require_global_options(options);
    GlobalOptions sized = options;
    const double spacing = common_spacing(source, target);
    if (sized.voxel == 0) sized.voxel = common_voxel(source, target, options.most_points, spacing);
    if (sized.voxel == 0) return {};
    return register_globally(source, target, sized, judged_pair(source, target, judged_edge(sized.voxel, spacing)));
}

namespace {

/// scans: the matched ones; judged: those by which poses are judged
GlobalResult search(const JudgedPair& scans, const PairDescriptors& known, const GlobalOptions& options,
                    const JudgedPair& judged) {
    GlobalResult result;
    result.voxel = options.voxel;
    const ThinScan &from = scans.source, &to = scans.target;
    result.source_points = from.size();
    result.target_points = to.size();
    if (from.size() < 3 || to.size() < 3) return result;
    // Descriptors of small balls tell more places apart, those of large ones are less troubled by borders and noise.
    std::vector<MatchedPair> matches;
    for (size_t r = 0; r < options.feature_radii.size() && !is_plain(result.poses); ++r) {
        const double radius = options.feature_radii[r] * result.voxel;
        if (known.has(r)) {
            propose(scans, known.source[r], known.target[r], options, result, matches);
            continue;
        }
        Array<float, 2> described[2];
        parallel_for(2, 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const ThinScan& scan = i == 0 ? from : to;
                described[i] = fpfh(scan.points.view(), scan.normals.view(), radius);
            }
        });
        propose(scans, described[0], described[1], options, result, matches);
    }
    const std::vector<GlobalPose> proposed = result.poses;
    for (const RigidTransform& start : options.starts) {
        GlobalPose given;
        given.transform = start;
        given.support = judged_support(from, to, start, scans.is_sided);
        result.poses.push_back(given);
    }
    const Vector3 middle = middle_of(from);
    const double radius = rms_radius(cloud_of(from)), reach = 4 * result.voxel;
    const auto keep_within = [&] {
        if (options.within)
            std::erase_if(result.poses, [&](const GlobalPose& pose) {
                return !lies_within(pose.transform, *options.within, middle);
            });
    };
    keep_within();
    sort_poses(result.poses);
    if (result.poses.size() > static_cast<size_t>(options.most_poses))
        result.poses.resize(static_cast<size_t>(options.most_poses));
    // A few steps of some points tell which ones are worth more: what is far behind then will not lead in the end.
    constexpr int kMiddle = 12;
    constexpr double kSome = 1.0 / 3, kFarBehind = 0.15, kBehind = 0.3;
    refine(scans, {{0, reach, 6, kSome}}, true, result.poses);
    keep_contenders(result.poses, kFarBehind, result.poses.size());
    keep_distinct(result.poses, middle, radius, kMiddle);
    if (!options.within) propose_turns(scans, middle, result.poses);
    keep_distinct(result.poses, middle, radius, kMiddle);
    keep_contenders(result.poses, kBehind, result.poses.size());
    refine(scans, {{0, reach, 4, kSome}, {0, reach / 2, 10}}, true, result.poses);
    keep_within();
    keep_distinct(result.poses, middle, radius, kMiddle);
    constexpr double kContender = 0.4;
    keep_contenders(result.poses, kContender, 5);
    count_matches(matches, proposed, scans, middle, radius, result.poses);
    judge_contenders(judged, 2 * result.voxel, result.poses);
    keep_distinct(result.poses, middle, radius, kMiddle);
    return result;
}

}  // namespace

GlobalResult register_globally(const PointCloud& source, const PointCloud& target, const GlobalOptions& options,
                               const JudgedPair& judged) {
    require_global_options(options);
    STIPPLE_REQUIRE(options.voxel > 0, "register_globally: scans that are judged by have a voxel");
    return search(judged_pair(source, target, options.voxel), {}, options, judged);
}

SearchScan search_scan(const PointCloud& cloud, double voxel, double edge, bool own_normals,
                       const std::vector<double>& radii) {
    SearchScan scan{judged_scan(cloud, voxel, own_normals), judged_scan(cloud, edge, own_normals), own_normals, {}};
    for (const double cells : radii)
        scan.descriptors.push_back(fpfh(scan.matched.points.view(), scan.matched.normals.view(), cells * voxel));
    return scan;
}

GlobalResult register_globally(const SearchScan& source, const SearchScan& target, const GlobalOptions& options) {
    require_global_options(options);
    STIPPLE_REQUIRE(options.voxel > 0 && source.own_normals == target.own_normals,
                    "register_globally: scans made alike are searched with their voxel");
    return search(judged_pair(source.matched, target.matched, source.own_normals),
                  {source.descriptors, target.descriptors}, options,
                  judged_pair(source.judged, target.judged, source.own_normals));
}

}  // namespace stipple::geometry
