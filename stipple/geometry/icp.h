#pragma once
// Iterative closest points [Besl and McKay 1992; Chen and Medioni 1992]: the rigid motion that lays one cloud on
// another, from a start that is roughly right.
//
//   IcpResult found = icp(source, target, {});                  // defaults: coarse to fine, point-to-plane, robust
//   IcpTarget prepared(target, options);                        // indexed once, for many sources
//   for (...) icp(sources[i], prepared, initial[i]);

#include <memory>
#include <optional>
#include <vector>

#include "stipple/geometry/rigid_transform.h"

namespace stipple::geometry {

/// point  sum of |T p - q|^2, solved in closed form (best_fit)
/// plane  sum of (n . (T p - q))^2 with the target's normals n, by Gauss-Newton steps
/// generalised  plane to plane [Segal et al. 2009]: d^T (C_q + R C_p R^T)^-1 d with d = T p - q, where the covariance C
/// of
///        a point is 1 along its surface and 0.001 across, by the normals of both clouds; by Gauss-Newton steps, scaled
///        so that a step across two parallel surfaces counts as in `plane`
enum class IcpMetric { point, plane, generalised };
inline constexpr const char* kIcpMetricWords[] = {"point", "plane", "generalised"};

/// Weights that doubt large residuals r, by a scale c (w = 1 at r = 0): huber min(1, c / r), tukey (1 - (r/c)^2)^2 and
/// 0 from c, cauchy 1 / (1 + (r/c)^2), geman_mcclure 1 / (1 + (r/c)^2)^2.
enum class RobustKernel { none, huber, tukey, cauchy, geman_mcclure };
inline constexpr const char* kRobustKernelWords[] = {"none", "huber", "tukey", "cauchy", "geman-mcclure"};

double kernel_weight(RobustKernel kernel, double residual, double scale);

/// One pass of the schedule: both clouds thinned to the centroids of cells of edge `voxel` (0: all points), then at
/// most `iterations` steps with pairs no further apart than `max_distance`.
struct IcpLevel {
    double voxel = 0;
    double max_distance = 0;
    int iterations = 30;
    double share = 1;  // of the source's (thinned) points, evenly spread: the first of every 1 / share, rounded up
};

struct IcpOptions {
    IcpMetric metric = IcpMetric::plane;
    RobustKernel kernel = RobustKernel::tukey;
    double kernel_scale = 0;            // c; 0: from the median of the residuals in every step, for 95 % efficiency
    double trim = 1;                    // share of the pairs that counts, nearest first [Chetverikov et al. 2002]
    std::vector<IcpLevel> levels = {};  // coarse to fine; empty: automatic_levels of the target
    int normal_neighbours = 12;         // for normals that the clouds do not bring
    double motion_tolerance = 1e-5;     // a step that moves the points less than this share of the cloud's radius
    double change_tolerance = 1e-6;     // relative changes of fitness and rmse, both below. 0 switches either test off
};

/// Two levels that fit a cloud of RMS distance R from its mean: cells of R/32, a quarter of the source's and pairs up
/// to R/2, then all and pairs up to R/8. The defaults for the target's own R: they catch starts that are off by about
/// R/5 and 10 degrees, on scans of a hand's width and of a street alike. Smaller cells take longer, and on made-up
/// LiDAR scans rotations are less exact with them (bench/results/geometry.md). Throws Error{bad_argument}
/// unless radius is above 0 and finite.
std::vector<IcpLevel> automatic_levels(double radius);
/// RMS distance of the finite points from their mean; 0 without points. CPU.
double rms_radius(const PointCloud& cloud);

struct IcpIteration {
    int level = 0;
    int64_t pairs = 0;   // that counted
    double fitness = 0;  // before the step, as in IcpResult
    double rmse = 0;
    double motion = 0;     // RMS motion of the source by the step
    int64_t searched = 0;  // source points whose neighbour had to be searched again
};

/// converged  the last level's step was small enough
/// iterations its steps were used up
/// too_few    fewer pairs than the metric needs (3 or 6): the transform is that of the step before
enum class IcpStop { converged, iterations, too_few };

/// How closely the pairs lie at the end of the last level, from which judge() (registration_verdict.h) tells a true
/// alignment from a wrong one that also has pairs.
struct IcpEvidence {
    // Half the level's cells, or half the median distance of neighbours in the target if larger. For IcpMetric::point
    // four times that, and distances are those of points; else those from a disc about the target's point, of a cell's
    // edge (or that median) as radius.
    double near = 0;
    double reach = 0;    // the level's max_distance
    int64_t close = 0;   // source points within `near` of the target
    int64_t around = 0;  // within 4 * near, and within reach
    double across = 0;   // share of the pairs' squared distances along the target's normals; 0 for IcpMetric::point
    int64_t source_points = 0, target_points = 0;  // of the last level, thinned
};

struct IcpResult {
    RigidTransform transform;  // source to target, world coordinates
    double fitness = 0;        // share of the source's finite points (of the last level) with a pair
    double rmse = 0;           // of the distances of these pairs, Euclidean for both metrics; 0 without pairs
    int64_t pairs = 0;
    int iterations = 0;  // of all levels
    IcpStop stop = IcpStop::converged;
    bool converged() const { return stop == IcpStop::converged; }
    std::vector<IcpIteration> history;
    IcpEvidence evidence;  // zeros where the last level was not reached

    /// Directions of the last step that the pairs do not determine (three for a plane); the motion along them is 0.
    int undetermined = 0;
    /// J^T W J of the last step in (turn about the x, y, z axes through `center`, shift), row by row: the inverse of
    /// the covariance of the motion for residuals of unit variance.
    std::array<std::array<double, 6>, 6> information = {};
    Vector3 center = {};  // the mean of the source in the target, world coordinates
};

struct IcpCloud;  // registration/icp_cloud.h

/// The target of icp(), indexed for every level.
class IcpTarget {
public:
    /// Takes what it needs; the cloud may go. Non-finite points do not count. But for IcpMetric::point the attribute
    /// "normal" (float32 [n, 3]) is used, at levels with cells as the mean over a cell; without it normals are
    /// estimated at each level. Points with a zero normal find no pair; source points with one (generalised) have a
    /// covariance of 1 every way. Throws Error{bad_argument} for options out of
    /// range and clouds that are not on the CPU. Copies share the data.
    explicit IcpTarget(const PointCloud& cloud, const IcpOptions& options = {});

    const IcpOptions& options() const { return options_; }  // levels filled in
    struct Level;
    const std::vector<std::shared_ptr<const Level>>& levels() const { return levels_; }
    const std::array<double, 3>& origin() const { return origin_; }

private:
    IcpOptions options_;
    std::array<double, 3> origin_ = {};
    std::vector<std::shared_ptr<const Level>> levels_;
};

/// The source of icp(), thinned as the target's levels want it, once for many starts.
class IcpSource {
public:
    /// For this target, and others of the same options. Takes what it needs; the cloud may go. Throws as IcpTarget.
    IcpSource(const PointCloud& cloud, const IcpTarget& target);

    const std::vector<std::shared_ptr<const IcpCloud>>& levels() const { return levels_; }
    const std::array<double, 3>& origin() const { return origin_; }

private:
    std::array<double, 3> origin_ = {};
    std::vector<std::shared_ptr<const IcpCloud>> levels_;
};

/// Registers `source` to the target, from `initial`. Both transforms are in world coordinates; origins are taken into
/// account in float64, so clouds in UTM coordinates lose nothing.
///
/// Empty clouds and starts without pairs end as IcpStop::too_few with the transform of the start. Directions that the
/// pairs leave open (sliding on a plane, turning a sphere) get the solution of least motion: eigenvalues of the normal
/// equations, turns scaled by the cloud's radius, count as 0 below 1e-6 of the largest. The same bits on any number of
/// threads: sums are in float64 in a fixed order.
///
/// Each step costs a nearest-neighbour search for the points whose neighbour may have changed: a point that moved by
/// less than half the difference between its two nearest distances keeps its neighbour. Exact, and most points rest
/// when the motion gets small. CPU.
IcpResult icp(const PointCloud& source, const IcpTarget& target, const RigidTransform& initial = {});
IcpResult icp(const IcpSource& source, const IcpTarget& target, const RigidTransform& initial = {});
IcpResult icp(const PointCloud& source, const PointCloud& target, const IcpOptions& options = {},
              const RigidTransform& initial = {});

}  // namespace stipple::geometry
