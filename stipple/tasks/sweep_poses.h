#pragma once
// Poses of a sequence of sweeps in the files of KITTI [Geiger et al. 2012], and how far they drift from known ones.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/geometry/rigid_transform.h"

namespace stipple::tasks {

/// A line of twelve numbers for each pose, the rows of [R t] one after the other; each number the shortest text that
/// reads back as the same.
std::string to_kitti_poses(std::span<const geometry::RigidTransform> poses);
/// That text; empty lines are passed over. Throws Error{bad_file} with the line for another count of numbers, for those
/// that are not finite and for matrices that are not rigid.
std::vector<geometry::RigidTransform> parse_kitti_poses(std::string_view text);
/// Throws Error{bad_file}, also for a file without poses.
std::vector<geometry::RigidTransform> load_kitti_poses(const std::string& path);

/// Scanner to camera: the line "Tr: " (or "Tr_velo_to_cam: ") with twelve numbers of a calib.txt of KITTI, whose poses
/// are those of the camera. Throws Error{bad_file}.
geometry::RigidTransform load_kitti_calibration(const std::string& path);

/// Errors over all segments of a length.
struct DriftRow {
    double length = 0;  // along the true path
    int64_t segments = 0;
    double translation = 0;  // mean, a share of the length
    double degrees = 0;      // mean, for a hundred units of length
};

struct Drift {
    double path = 0;        // its true length
    bool is_kitti = false;  // segments of 100, 200 ... 800: those that fit
    std::vector<DriftRow> rows;
    DriftRow all;                                 // mean over all segments; its length is 0
    double end_translation = 0, end_degrees = 0;  // of the last pose, seen from the first
};

/// The protocol of KITTI: segments of some lengths from every tenth pose (from every one of fewer than 200), each
/// judged by (P_a^-1 P_b)^-1 (T_a^-1 T_b), its translation over the length and its angle over the length. Paths up to
/// 100 get segments of an eighth, a quarter and a half of their length, over the true length of each, and none where
/// that is less than four steps: then only the end tells. Throws Error{bad_argument} for another number of true poses.
/// O(lengths * poses).
Drift pose_drift(std::span<const geometry::RigidTransform> poses, std::span<const geometry::RigidTransform> truth);

}  // namespace stipple::tasks
