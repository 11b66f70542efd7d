#pragma once
// Upsampled scans, judged by the scan that was thinned: it has no truth but itself, so all figures are in units of its
// own spacing.

#include "stipple/tasks/upsampling_study/inputs.h"

namespace stipple::tasks::study {

/// Scores of new points beside the scan, in its local spacings (scan_spacings() of local_plane.h).
struct RulerScores {
    double stray_mean = 0;  // distance of the output to the nearest point of the scan
    double stray_99 = 0;    // 99 % of it are nearer
    double invented = 0;    // percent of the output that lies beyond 1.5 spacings: the scan has no surface there
    double off_mean = 0;    // distance of the others to the plane of the 16 nearest points of the scan
    double cover_mean = 0;  // distance of the scan to the nearest point of the output
    double cover_99 = 0;
};
inline constexpr const char* kRulerColumns[] = {"stray", "stray 99 %", "invented %", "off", "cover", "cover 99 %"};
std::array<double, 6> columns_of(const RulerScores& scores);  // in this order

/// Both on the CPU, of finite points with one origin; the scan has 17 or more. Of a cloud of random points of a surface
/// that a scan of other random points was drawn from, stray is about 0.5. O(n log n).
RulerScores measure_by_ruler(const PointCloud& output, const PointCloud& scan);

/// Ways to take points away from a scan, so that what was there is known.
///
///   fps     the farthest point from those taken, again and again, from the first point on
///   random  any points
///   voxel   the first point in each cube of a grid, whose edge leaves as many points as wanted or up to a few less
enum class Thinning { fps, random, voxel };
const std::vector<std::string>& thinning_names();  // in this order

/// `count` points of a scan, or some less by voxel, in their order (fps: in which they were taken), without attributes.
/// Throws Error{bad_argument} for more than there are.
PointCloud thin(const PointCloud& scan, Thinning thinning, int64_t count, uint64_t seed);

/// The scan to judge by: finite points, each place once and none at the origin, where many scanners put beams without
/// an echo, of at most `most` thinned by voxel.
PointCloud scan_to_judge_by(const PointCloud& cloud, int64_t most);

}  // namespace stipple::tasks::study
