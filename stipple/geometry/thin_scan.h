#pragma once
// Scans thinned to cells of one edge, with normals: what global registration matches, and what a pose is judged by.

#include <cmath>
#include <optional>

#include "stipple/geometry/rigid_transform.h"
#include "stipple/geometry/sensor_view.h"
#include "stipple/ops/point_index.h"

namespace stipple::geometry {

/// A cloud as the centroids of its cells. Points and normals are relative to `origin`, as in the cloud.
struct ThinScan {
    Array<float, 2> points;   // [n, 3], finite, ordered by cell
    Array<float, 2> normals;  // [n, 3] unit length; (0, 0, 0) where neighbours span no plane
    Vector3 origin = {};      // added to every point
    double voxel = 0;         // edge of the cells
    ops::PointIndex index;    // of the points
    /// Known where the scan looks as if seen from the origin of its coordinates, and brings no normals: those that are
    /// estimated then point to the sensor.
    std::optional<SensorView> sensor = {};

    int64_t size() const { return points.size(0); }
    /// The index is shared.
    ThinScan clone() const { return {points.clone(), normals.clone(), origin, voxel, index, sensor}; }
};

/// The median distance from a point to the nearest point at another place, by a thousand of the points; 0 with one
/// place.
double median_spacing(const PointCloud& cloud);

/// The edge of cells that suits both clouds: a sixteenth of the smaller RMS radius, but no less than one and a half
/// median distances between neighbours of the sparser cloud, and so large that no cloud keeps more than `most` points
/// (by about a tenth). 0 where a cloud has fewer than two places. CPU. O(n) and a few voxel grids.
double common_voxel(const PointCloud& a, const PointCloud& b, int64_t most);
/// The same where the larger median_spacing() of both is known.
double common_voxel(const PointCloud& a, const PointCloud& b, int64_t most, double spacing);
/// The larger median_spacing() of both.
double common_spacing(const PointCloud& a, const PointCloud& b);

/// The cloud thinned to cells of edge `voxel` (above 0). Normals are estimated from the 16 nearest within 3 cells and
/// turned to agree with their neighbours and outwards (orient_consistently), or, with `own_normals`, to the side of
/// the cloud's attribute "normal". Non-finite points do not count. Throws Error{bad_argument} for clouds that are not
/// [n, 3] float32 on the CPU and for a voxel that voxel_grid refuses. Deterministic for any number of threads.
ThinScan thin_scan(const PointCloud& cloud, double voxel, bool own_normals = false);
/// Whether the cloud has the attribute "normal" that thin_scan() can use.
bool has_normals(const PointCloud& cloud);

/// What a pose, source to target in world coordinates, rests on. Distances in cells of the scans' edge.
///
/// A source point is `around` with a target point within 3 cells, and a `support` when also within 1.5 cells, its
/// normal within 30 degrees of the target's, and no more than half a cell off the target's tangent plane. Where
/// surfaces coincide nearly all that is around supports; where they cross, little does.
struct PoseSupport {
    int64_t points = 0;  // of the source
    int64_t around = 0;
    int64_t support = 0;
    int64_t opposite = 0;  // would support, but for a normal that points the other way
    double rmse = 0;       // of the distances of supports; 0 without any
    double through = 0;    // see seen_through(); 0 where support_of() did not ask

    /// Share of the source that supports the pose.
    double overlap() const { return points > 0 ? static_cast<double>(support) / static_cast<double>(points) : 0; }
    /// Share of what is around that supports: 1 where two samples of one surface coincide.
    double agreement() const { return around > 0 ? static_cast<double>(support) / static_cast<double>(around) : 0; }
    /// What poses are compared by: supports, discounted by the agreement.
    double score() const { return static_cast<double>(support) * agreement() * std::pow(1 - through, 24); }
};

/// O(n log m). CPU. `sign` -1 compares with the target's normals turned round, for scans whose sides are not known.
PoseSupport support_of(const ThinScan& source, const ThinScan& target, const RigidTransform& pose, int sign = 1);

/// The share of points, of both scans, that lie clearly nearer to the other's sensor than what it saw in their
/// direction: it saw through them, so they are not there. Of those in directions that it saw anything in; 0 where no
/// sensor is known. O(n).
double seen_through(const ThinScan& source, const ThinScan& target, const RigidTransform& pose);

}  // namespace stipple::geometry
