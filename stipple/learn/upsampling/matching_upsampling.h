#pragma once
// Upsampling by flow matching: a network learns the velocity of straight paths from candidate points to the surface.
// No path is followed in training; in use a few Euler steps are.

#include <memory>

#include "stipple/learn/upsampling/surface_objective.h"

namespace stipple::learn {

/// When on their paths the queries of a patch are looked at, by their places in it: [count, 1] in [0, 1), for a count
/// below 10^6. 1 - cos(u pi / 2) of the multiples u of the golden ratio modulo 1: evenly mixed, and more of them early,
/// as all paths begin at 0.
torch::Tensor matching_times(int64_t count);

/// What a network made of a batch of patches, in spacings. Rows of one patch follow each other.
struct MatchedBatch {
    torch::Tensor frames;       // [patches, kFrameNumbers]
    torch::Tensor starts;       // [patches * m, 3] queries
    torch::Tensor ends;         // [patches * m, 3] their closest points of the surface
    torch::Tensor times;        // [patches * m, 1]
    torch::Tensor velocity;     // [patches * m, 3] at position()
    torch::Tensor uncertainty;  // [patches * m, 1]
    torch::Tensor truth;        // [patches * t, 3]

    /// Of the queries at their times, on straight paths.
    torch::Tensor position() const { return starts + times * (ends - starts); }
};

/// Means over all rows, float64, in spacings; the first three with gradients. A query arrives where its velocity takes
/// it from its time to time 1.
///
/// velocity     smooth_distance() of the velocity to ends - starts
/// uncertainty  uncertainty_term() of the distance to the surface of where queries arrive
/// chamfer      as UpsamplingTerms, of where queries arrive
/// before, after  the distance of queries to the surface, and of where they arrive
struct MatchingTerms {
    torch::Tensor velocity, uncertainty, chamfer, before, after;
};
MatchingTerms matching_terms(const SurfaceTruth& surface, const MatchedBatch& batch);

/// Of the flow upsampler with refinement matching: `network` is the one of use, which is evaluated, with the parameters
/// of the one that is trained. Of the loss vector_weight, uncertainty_weight and chamfer_weight count. Throws as
/// SurfaceObjective.
std::unique_ptr<Objective> make_matching_objective(const Recipe& recipe, const SurfaceSet& set,
                                                   network::Network network);

}  // namespace stipple::learn
