#pragma once
// Upsampling: a network learns to move candidate points onto the surface that a cloud was sampled from. The truth is
// the closest points there: exact ones of meshes, those of triangles between the points of a scan, or of discs around
// the dense points of a pair.

#include <memory>

#include "stipple/learn/objective.h"
#include "stipple/learn/recipe.h"
#include "stipple/learn/upsampling/surface_index.h"

namespace stipple::learn {

/// What a network made of a batch of patches, in spacings. Rows of one patch follow each other.
struct UpsampledBatch {
    torch::Tensor frames;              // [patches, kFrameNumbers]
    torch::Tensor queries;             // [patches * m, 3]
    std::vector<torch::Tensor> moved;  // [patches * m, 3] by each step, one or more
    torch::Tensor uncertainty;         // [patches * m, 1]
    torch::Tensor truth;               // [patches * t, 3]
};

/// Means over all rows, float64, in spacings; the first five with gradients.
///
/// vector       over the steps, the distance from where a step has put a query to the closest point of where it was
///              before: a target on the surface, not towards the input points that lie on it too
/// distance     over the steps, the distance from there to the surface
/// coverage     the distance of the truth to the nearest query of the last step
/// chamfer      half of the coverage plus the distance of a query of the last step to the nearest point of the truth
/// uncertainty  uncertainty_term() of the last step's distance
/// before, after  the distance of queries to the surface, and of those of the last step
///
/// Distances of the first two are smooth_distance() (surface_terms.h). Closest points are constants. What is not finite
/// makes its terms NaN.
struct UpsamplingTerms {
    torch::Tensor vector, distance, coverage, chamfer, uncertainty, before, after;
};
UpsamplingTerms upsampling_terms(const SurfaceTruth& surface, const UpsampledBatch& batch);

/// Trains on patches of set.train, recipe.data.items of them in an epoch, new ones in each; evaluates
/// recipe.data.validation_items fixed ones of set.held_out: of even clouds, random clouds and noisy ones a third each,
/// without noise of the queries. Their first score, validation_gain, is the share of the queries' distance to the
/// surface that the network takes away. Of a network with a velocity: matching_upsampling.h; of one that tells
/// distances: distance_upsampling.h; of one that makes children: child_upsampling.h. The set must outlive it. Throws
/// Error{bad_config} for a model that does not upsample, and as validate() of PatchOptions.
std::unique_ptr<Objective> make_upsampling_objective(const Recipe& recipe, const SurfaceSet& set);

}  // namespace stipple::learn
