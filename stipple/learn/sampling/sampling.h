#pragma once
// Trainings on whole shapes: samplers for a frozen task, and the networks of two of the tasks.

#include <memory>

#include "stipple/learn/labels/label_data.h"
#include "stipple/learn/objective.h"

namespace stipple::learn {

/// Whether make_shape_objective() is for the recipe's task: sampling, registration, reconstruction.
bool is_shape_task(const Recipe& recipe);

/// sampling: a samplenet or a gumbel-subset (gumbel_objective.h), trained through a frozen network for sampling.task,
/// which a samplenet's shape tells where it is empty. The frozen network's batch norms keep their running statistics,
/// and its weights get no gradients.
///   classification   a network with points [B, N, 3] and logits [B, classes] of the data's classes
///   segmentation     one with logits [B, N, parts] of the data's parts (segmentation_task.h)
///   registration     a pcrnet; both clouds are sampled
///   reconstruction   an autoencoder
/// registration: a pcrnet on pairs that are drawn. reconstruction: an autoencoder, by the chamfer distance.
///
/// Validation of a sampler is of sampled points, the nearest of the cloud, not of soft-projected ones, which are told
/// beside it. `data` must outlive it. Throws Error{bad_config} for a network that does not fit, and what loading it
/// throws.
std::unique_ptr<Objective> make_shape_objective(const Recipe& recipe, const LabelData& data);

}  // namespace stipple::learn
