#pragma once
// Upsampling by children: a network makes several points of each point of a patch, as PU-Flow does, and learns to cover
// the surface with them. A flow is also asked how likely the patch is.

#include <memory>

#include "stipple/learn/upsampling/surface_objective.h"

namespace stipple::learn {

/// What a network made of a batch of patches, in spacings.
struct ChildBatch {
    torch::Tensor frames;    // [patches, kFrameNumbers]
    torch::Tensor children;  // [patches * m, 3]
    torch::Tensor truth;     // [patches * t, 3], t = m where the earth mover's distance is asked for
    torch::Tensor nll;       // [patches, 1] negative log-likelihoods; undefined: the network has none
    int64_t points = 0;      // of a patch, before
};

/// Means over all rows, float64, in spacings, with gradients.
///
/// transport  the earth mover's distance of children and truth, of a matching that is near the best
/// distance   of the children to the surface
/// coverage   of the truth to the nearest child
/// nll        of a patch, in nats for each coordinate
/// chamfer    half of the distance of a child to the nearest point of the truth plus that of the truth to the nearest
///            child
struct ChildTerms {
    torch::Tensor transport, distance, coverage, nll, chamfer;
};
/// Terms of weight 0 are not computed, and are 0.
ChildTerms child_terms(const SurfaceTruth& surface, const ChildBatch& batch, const LossRecipe& weights);

/// Whether a network has points [B, N, 3] as its input and children upsampled [B, N, R, 3] among its outputs.
bool makes_children(const network::Network& network);

/// Trains on patches of set.train that are moved and scaled into the unit sphere, as they are in use; evaluates fixed
/// ones of set.held_out. Their first score, validation_gain, is 1 - (c + d) / c0, where c is the distance of the truth
/// to the nearest child, d that of the children to the surface, and c0 that of the truth to the nearest input point.
/// Throws Error{bad_config} for a patch.truth other than the number of children, and as SurfaceObjective.
std::unique_ptr<Objective> make_child_objective(const Recipe& recipe, const SurfaceSet& set, network::Network network);

}  // namespace stipple::learn
