#pragma once
// Scans that hold together, grown from registrations of pairs some of which are wrong. Internal to register_scans().
//
// A wrong registration of two scans can look as good as a right one, where a room repeats itself. But it lays all that
// holds together with one scan on all that holds together with the other, and there wrong ones show: surfaces lie where
// other scans saw through, or near each other without being one.

#include <map>
#include <span>
#include <vector>

#include "stipple/geometry/global_registration.h"
#include "stipple/geometry/pose_graph.h"

namespace stipple::tasks {

/// An edge and the chance that it is right.
struct SureEdge {
    geometry::PoseEdge edge;
    double confidence = 0;
    double radius = 0;  // RMS radius of the scan that moves
};
/// How far poses of two scans are from an edge: the shift of the overlap's middle, and the way that the turn moves
/// points at the radius. Unlike the residual of a pose graph it counts motions along a surface in full.
double off_by(const SureEdge& edge, const geometry::RigidTransform& from, const geometry::RigidTransform& to);

struct ScanParts {
    std::vector<int32_t> part;                    // of each scan: equal for those that hold together
    std::vector<geometry::RigidTransform> poses;  // of each scan in the coordinates of its part
    std::vector<uint8_t> agrees;                  // of each edge: within one part, and not contradicted by its poses
};

class PartMerger {
public:
    /// `scans` must outlive the merger.
    explicit PartMerger(std::span<const geometry::SearchScan> scans);

    /// Edges join parts, the surest first, where they are sure, alone or by others that agree with them, and where the
    /// parts as a whole do not contradict; the poses of each part are optimised. tolerance: of PoseGraphOptions.
    /// Deterministic for any number of threads.
    ScanParts merge(std::span<const SureEdge> edges, double tolerance);

private:
    /// How one part lies on another by a hypothesis.
    struct Contact {
        double agreement = 0;  // of what is near: the share that supports
        double through = 0;    // the share that lies where the other's sensor saw nothing
    };
    Contact contact_of(const ScanParts& parts, int32_t moving, int32_t staying,
                       const geometry::RigidTransform& shift) const;
    bool may_join(const ScanParts& parts, std::span<const SureEdge> edges, size_t one,
                  const geometry::RigidTransform& shift, double gate);
    /// By edges that are off the poses by no more than `gate`, sure ones by `drift` times that.
    void optimise(ScanParts& parts, std::span<const SureEdge> edges, double tolerance, double gate, double drift) const;

    std::span<const geometry::SearchScan> scans_;
    std::vector<geometry::ThinScan> some_;  // of each scan every few points
    double voxel_ = 0;
};

}  // namespace stipple::tasks
