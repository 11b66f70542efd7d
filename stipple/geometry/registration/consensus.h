#pragma once
// Poses that many matches agree on, however many disagree: second-order spatial compatibility [Chen et al. 2022,
// SC2-PCR]. Internal to register_globally().
//
// Two matches are compatible when the same rigid motion can make both: the distance between their source points is that
// between their target points, and the normals make the same angles with each other and with the line between. Wrong
// matches are compatible with others by chance; that a third is compatible with both is rarer still, so the number of
// matches that are compatible with two compatible ones tells true from wrong ones.

#include <vector>

#include "stipple/geometry/registration/descriptor_matches.h"
#include "stipple/geometry/rigid_transform.h"

namespace stipple::geometry {

struct MatchedPair {
    Vector3 p, q;    // source and target
    Vector3 np, nq;  // normals, signs as they shall agree
};

struct ConsensusOptions {
    double tolerance = 0;        // of distances, a length above 0
    double angle_cosine = 0.25;  // greatest difference of cosines of angles between normals and lines
    int seeds = 64;              // matches that a pose is grown from, at most
    int grown = 24;              // matches compatible with a seed that a first pose is fitted to
};

struct ConsensusPose {
    RigidTransform transform;
    int64_t inliers = 0;  // matches within the tolerance
};

/// How many matches a pose explains: points within `tolerance`, normals within 60 degrees.
int64_t explained_matches(const std::vector<MatchedPair>& pairs, const RigidTransform& pose, double tolerance);

/// Poses from the matches, most inliers first; each seed is a match that no earlier pose explains, so they differ.
/// Fewer than three matches give none. Deterministic for any number of threads. O(n^2 + n e / 64) for n matches and e
/// compatible pairs among them.
std::vector<ConsensusPose> consensus_poses(const std::vector<MatchedPair>& pairs, const ConsensusOptions& options);

}  // namespace stipple::geometry
