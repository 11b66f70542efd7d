#pragma once
// Poses of several scans in one file of text.

#include <string>
#include <string_view>
#include <vector>

#include "stipple/geometry/rigid_transform.h"

namespace stipple::tasks {

struct ScanPose {
    std::string name;               // of the scan's file, without folders
    geometry::RigidTransform pose;  // scan to the common coordinates
};

/// For each scan a line "scan NAME" and the four lines of its matrix.
std::string to_text(const std::vector<ScanPose>& poses);

/// That text, or lines "bmesh NAME tx ty tz qx qy qz qw" of the Stanford 3D Scanning Repository (.conf), whose rotation
/// is that of the conjugate quaternion: p' = R(q)^T p + t. '#' begins a comment; other lines of a .conf are passed
/// over. Throws Error{bad_file} with the line for numbers that are none, matrices that are not rigid and names that
/// come twice.
std::vector<ScanPose> parse_scan_poses(std::string_view text);

/// Whether a text is one of these and no single matrix.
bool has_scan_poses(std::string_view text);

/// The motion from a scan to another by a file of either kind: a 4 x 4 matrix is that motion; of poses of scans those
/// with the names of the two files count. Throws Error{bad_file}, also where a scan is not in the file. "-" is standard
/// input.
geometry::RigidTransform load_motion_between(const std::string& path, const std::string& from, const std::string& to);

/// Throws Error{bad_file}.
std::vector<ScanPose> load_scan_poses(const std::string& path);
/// The pose by the name of a file, whatever its folder; nothing where there is none.
const ScanPose* find_pose(const std::vector<ScanPose>& poses, const std::string& path);

}  // namespace stipple::tasks
