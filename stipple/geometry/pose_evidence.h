#pragma once
// What speaks for and against a pose of two scans, as numbers that a wrong pose is unlikely to have, and the confidence
// that follows from them.

#include "stipple/geometry/thin_scan.h"

namespace stipple::geometry {

/// thin_scan() without strays: cells with fewer than three others within two edges (dust, points between the sides of
/// an edge), unless they are more than a fifth of all.
ThinScan judged_scan(const PointCloud& cloud, double voxel, bool own_normals);

/// Two scans as judged_scan() thins them. The sides of their normals are known where both clouds bring normals, or both
/// sensors are known.
struct JudgedPair {
    ThinScan source, target;
    bool is_sided = false;
};

/// Thins both clouds to cells of one edge.
JudgedPair judged_pair(const PointCloud& source, const PointCloud& target, double edge);
/// The same of scans that were thinned before, whose normals have sides as `own_normals` says. Copies both.
JudgedPair judged_pair(const ThinScan& source, const ThinScan& target, bool own_normals);
/// The edge of the cells by which poses are judged that were found with cells of edge `voxel`: half of it, where the
/// clouds are dense enough.
double judged_edge(const PointCloud& source, const PointCloud& target, double voxel);
/// The same where their common_spacing() is known.
double judged_edge(double voxel, double spacing);

/// support_of() where the sides of normals are known (`is_sided`); where they were guessed, a normal that points the
/// other way agrees as well, since each connected part of a scan may have been turned its own way.
PoseSupport judged_support(const ThinScan& source, const ThinScan& target, const RigidTransform& pose, bool is_sided);

/// By scans thinned to cells of one edge; supports, around: as in PoseSupport. Agreements are means of both directions,
/// source on target and target on source.
struct PoseEvidence {
    PoseSupport forth, back;  // of the source on the target, of the target on the source
    double close = 0;         // agreement: supports over points within 1.5 cells of the other scan
    double wide = 0;          // the same within 8 cells: what one scan has and the other has not speaks against
    double even = 0;  // the same within 3 cells, for each of 48 directions of normals that has some, then the mean:
                      // walls and floors, which fit in many poses, count no more than what stands between them
    /// How firmly the supports hold the pose: the least eigenvalue of the information of point-to-plane distances over
    /// the number of supports, turns in units of the supports' RMS radius. 1/6 for normals and levers of all
    /// directions, 0 where something can slide or turn: planes, spheres, bodies of revolution.
    double stiffness = 0;
    /// RMS distance of the supports from the tangent plane of their partner, over that of neighbours within the target:
    /// about 1 or less where the surfaces are one, whatever the noise.
    double residual = 0;
    double spread = 0;     // RMS distance of the supports from their mean, over the RMS radius of the smaller scan
    double inliers = 0;    // of a search: matches of descriptors that the pose explains, to 1.5 of the matched cells
    double rival = 0;      // of a search: the most of them that a distinct pose explains
    double matches = 0;    // of a search: how many there were
    double through = 0;    // seen_through()
    double sidedness = 0;  // of the supports: 1 where all normals point the same or all the opposite way, 0 for halves
    double other = 0;      // of a search: the odds of the best distinct pose over this one's, each by its confidence as
                           // if there were no other; 0 without one, at most 1

    double overlap() const;    // the larger share of supports of the two directions
    double agreement() const;  // supports over points within 3 cells
};

/// 0 to 1: the chance that a pose with this evidence is right, by logistic regressions over simulated and real pairs,
/// one for poses of a search and one for those of ICP alone (bench/results/geometry.md), and at most 1 / (1 + other), a
/// half for two poses that are equally likely. 0 without supports. Symmetric shapes, which fit in several poses, have
/// little, and so have surfaces that only cross or that slide on a patch.
double pose_confidence(const PoseEvidence& evidence);

/// A look at a doubtful result is the unit of cost: acting on a wrong result that was called good costs 20 of them, and
/// losing a right one that was called failed costs 5. With a calibrated confidence the cheapest verdict is then good
/// from kGood, failed below kWritten, and doubtful between.
inline constexpr double kCostOfActingOnWrong = 20, kCostOfLosingRight = 5;
inline constexpr double kGood = 1 - 1 / kCostOfActingOnWrong, kWritten = 1 / kCostOfLosingRight;

/// Cost of three support_of(). Deterministic for any number of threads.
PoseEvidence evidence_of(const ThinScan& source, const ThinScan& target, const RigidTransform& pose, bool is_sided);
PoseEvidence evidence_of(const JudgedPair& scans, const RigidTransform& pose);

}  // namespace stipple::geometry
