#pragma once
// One step of icp(): how far the pairs are apart, and the motion that brings them together. Internal to icp().

#include "stipple/geometry/icp.h"
#include "stipple/geometry/registration/icp_pairs.h"

namespace stipple::geometry {

/// What a level registers: its pairs, the target's normals by slot (empty for IcpMetric::point), the source's by rank
/// (for IcpMetric::generalised only, else empty), the source's mean and RMS distance from it.
struct StepInput {
    const Pairs& pairs;
    const PairTarget& target;
    const std::vector<std::array<float, 3>>& normals;
    const std::vector<std::array<float, 3>>& source_normals;
    Vector3 mean = {};
    double radius = 0;
};

struct Step {
    int64_t within = 0;     // pairs within the greatest distance
    double rmse = 0;        // of their distances
    int64_t used = 0;       // pairs that count
    RigidTransform motion;  // after the present transform; identity when there are too few
    double moved = 0;       // RMS motion of the source
    bool is_enough = false;
    int undetermined = 0;
    std::array<std::array<double, 6>, 6> information = {};
    Vector3 center = {};
};

/// The step from `present`, which pairs.update() has seen last.
Step icp_step(const StepInput& input, const RigidTransform& present, const IcpOptions& options);

/// What the pairs of `present` tell; `cell`: the larger of the level's cells and the target's spacing.
IcpEvidence evidence_of(const StepInput& input, const RigidTransform& present, double cell, double reach);

}  // namespace stipple::geometry
