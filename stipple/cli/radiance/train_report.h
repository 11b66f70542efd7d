#pragma once
// What `stipple radiance train` prints.

#include "stipple/cli/common/table.h"
#include "stipple/radiance/train.h"

namespace stipple::cli {

/// How many pictures, depths and box; and for --json.
std::string scene_text(const radiance::Scene& scene, Json& fields);

/// Parts of the training with their times, memory and samples. `save`: seconds that the file of the field took.
std::string times_text(const radiance::TrainTimes& times, double save, const std::string& style, Json& fields);

/// What the parts of a step took, where --set profile_steps asked for it.
std::string profile_text(const std::vector<radiance::StepPart>& parts, Json& fields, const std::string& style);

/// Beside the bar: "fine, 27.31 dB, test 25.10 dB".
std::string step_note(const radiance::TrainStep& step);

}  // namespace stipple::cli
