#pragma once
// Upsampling by descent: a network learns the distance of candidate points to the surface, down which they are moved
// in use (tasks/upsample/descend.h).

#include <memory>

#include "stipple/learn/upsampling/surface_objective.h"

namespace stipple::learn {

/// Means over all rows, float64, in spacings.
///
/// error   |distance - that of the query to the surface|, with gradients
/// before  the distance of queries to the surface
struct DistanceTerms {
    torch::Tensor error, before;
};
/// frames    [patches, kFrameNumbers]
/// queries   [patches * m, 3], rows of one patch follow each other
/// distance  [patches * m, 1] of the network
DistanceTerms distance_terms(const SurfaceTruth& surface, const torch::Tensor& frames, const torch::Tensor& queries,
                             const torch::Tensor& distance);

/// Whether a network has queries [B, M, 3] among its inputs and distance [B, M, 1] as an output.
bool tells_distances(const network::Network& network);

/// The loss is distance_weight times the error. Evaluates queries that have been moved down, as in use. Throws
/// as SurfaceObjective.
std::unique_ptr<Objective> make_distance_objective(const Recipe& recipe, const SurfaceSet& set,
                                                   network::Network network);

}  // namespace stipple::learn
