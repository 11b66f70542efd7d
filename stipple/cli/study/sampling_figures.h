#pragma once
// The figures of the study of samplers: scores against the number of points, and the points themselves.

#include "stipple/core/image.h"
#include "stipple/tasks/sampling_study/tables.h"

namespace stipple::cli {

/// A task's main score against the number of points, a chart for each of its networks, beside each other with one
/// scale; soft points are dashed. Registration has consistency beside it.
Image draw_sampling_task(const std::vector<tasks::study::SamplingRow>& rows, tasks::study::SamplingTask task);

/// Scores of soft points over neighbours or temperature, a chart for each task.
Image draw_sampling_sweep(const std::vector<tasks::study::SamplingRow>& rows, tasks::study::SamplingSweep sweep);

/// Chosen points as balls on the pale clouds: shapes below each other, methods beside each other.
Image draw_samples(const std::vector<tasks::study::SamplePicture>& samples);

}  // namespace stipple::cli
