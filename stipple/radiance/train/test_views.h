#pragma once
// Pictures of a field while it is trained, of cameras that it does not learn from.

#include "stipple/radiance/evaluate.h"
#include "stipple/radiance/train/state.h"

namespace stipple::radiance {

/// At most `count` of `views`, evenly spread, the first one among them.
std::vector<size_t> spread_views(size_t views, int count);

/// Renders the views `chosen` of scene.test and writes each with the photograph to its right:
/// FOLDER/step-NNNNNNNN-VVVV.png, VVVV being the place in scene.test. Files that are there are replaced. Throws
/// Error{cannot_write}, and what Renderer throws.
ViewScores render_test_views(const Field& field, const Scene& scene, const std::vector<size_t>& chosen, Device device,
                             const std::string& folder, int64_t step);

/// Grids of the coarse stage as a field without a network; settings are the caller's.
void pack_coarse(const TrainState& state, Field& field);

}  // namespace stipple::radiance
