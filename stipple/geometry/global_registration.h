#pragma once
// Registration of scans in any pose: no start is needed.
//
//   GlobalResult found = register_globally(source, target);
//   if (!found.poses.empty()) icp(source, target, {}, found.poses[0].transform);
//
// Both scans are thinned to cells of one edge and get normals; points are described by fast point feature histograms
// [Rusu et al. 2009] and matched with those that look most alike; poses that many matches agree on are grown by
// second-order compatibility [Chen et al. 2022]; each is refined by ICP on the thinned scans and judged by the points
// and normals that it brings together (pose_evidence.h), so that matches propose and surfaces decide.

#include <optional>
#include <vector>

#include "stipple/geometry/pose_evidence.h"

namespace stipple::geometry {

/// Poses not far from one.
struct PoseRegion {
    RigidTransform pose;
    double degrees = 0;   // of the rotation between them, at most
    double distance = 0;  // that the middle of the source moves, at most
};

struct GlobalOptions {
    double voxel = 0;                         // edge of the cells; 0: common_voxel(source, target, most_points)
    int64_t most_points = 3000;               // of a thinned scan, where voxel is 0
    std::vector<RigidTransform> starts = {};  // poses from elsewhere, judged with those that are found
    std::optional<PoseRegion> within = {};    // nothing: poses are searched everywhere
    int64_t most_matches = 4000;
    std::vector<double> feature_radii = {5, 8};  // of descriptors' neighbourhoods, in cells; the next where one is not
                                                 // enough
    int most_poses = 24;                         // that are refined and judged
};

struct GlobalPose {
    RigidTransform transform;  // source to target, world coordinates
    PoseSupport support;
    int64_t inliers = 0;  // matches that agree with it, 0 where it was not made of matches
    PoseEvidence evidence;
    double chance = 0;  // pose_confidence(evidence), as if there were no other pose
};

struct GlobalResult {
    std::vector<GlobalPose> poses;  // distinct contenders, the likeliest first; empty where nothing is found
    double voxel = 0;
    int64_t source_points = 0, target_points = 0, matches = 0;

    /// 0 to 1: how sure the first pose is, by its evidence and other(); 0 without one.
    double confidence() const;
    /// 0 to 1: how likely pose i is beside the first one, by their evidence.
    double likelihood(size_t i) const;
    /// PoseEvidence::other of the first pose: the likelihood of the second; 0 without one.
    double other() const { return poses.size() < 2 ? 0 : likelihood(1); }
};

/// Whether two poses are different answers: they turn by more than 15 degrees from one to the other, or move the middle
/// of the source by more than a fifth of its RMS radius.
bool are_distinct(const RigidTransform& a, const RigidTransform& b, const Vector3& middle, double radius);

/// Clouds of fewer than three places, or of one line, give no poses. Points that are not finite do not count. The same
/// bits for any number of threads. Throws Error{bad_argument} for options out of range and clouds that are not on the
/// CPU. A second or so on two cores for scans of any size, beyond the thinning, which is O(n).
GlobalResult register_globally(const PointCloud& source, const PointCloud& target, const GlobalOptions& options = {});
/// The same where the scans by which poses are judged have been made: judged_pair() with the judged_edge() of
/// options.voxel, which is above 0.
GlobalResult register_globally(const PointCloud& source, const PointCloud& target, const GlobalOptions& options,
                               const JudgedPair& judged);

/// A scan as a search sees it, made once for all its pairs.
struct SearchScan {
    ThinScan matched;  // of cells of GlobalOptions::voxel
    ThinScan judged;   // of the cells by which poses are judged
    bool own_normals = false;
    std::vector<Array<float, 2>> descriptors;  // fpfh() of `matched`, for each of the radii
};
/// `edge`: of the cells by which poses are judged. `radii`: of descriptors, in cells of edge `voxel`. Throws as
/// thin_scan().
SearchScan search_scan(const PointCloud& cloud, double voxel, double edge, bool own_normals,
                       const std::vector<double>& radii = GlobalOptions{}.feature_radii);
/// register_globally() of scans made alike: with the voxel and the radii of the options, and all or none with their own
/// normals.
GlobalResult register_globally(const SearchScan& source, const SearchScan& target, const GlobalOptions& options);

}  // namespace stipple::geometry
