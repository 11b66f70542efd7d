#pragma once
// Colours that show what upsampled scans are made of.

#include "stipple/tasks/upsampling_study/inputs.h"

namespace stipple::tasks::study {

/// A colour for each point by its place in the cloud's box, so that near points have near colours: attribute "color".
void color_by_place(PointCloud& cloud);
/// The colour of the nearest input point, which has the attribute "color".
void color_by_nearest(PointCloud& cloud, const PointCloud& input);

}  // namespace stipple::tasks::study
