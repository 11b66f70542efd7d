#pragma once
// Upsampled scans: what can be said without a truth.

#include "stipple/tasks/upsampling_study/inputs.h"

namespace stipple::tasks::study {

struct ScanMeasures {
    int64_t points = 0;
    double spacing = 0;            // mean distance to the nearest other point
    double variation = 0;          // its deviation / mean: 0 on a lattice, about 0.52 for random points of a plane
    double to_input = 0;           // mean distance to the nearest input point, in mean spacings of the input
    double farthest_to_input = 0;  // the largest
    double from_input = 0;         // mean distance of input points to the output, in the same unit
};
ScanMeasures measure_scan(const PointCloud& input, const PointCloud& output);

/// A colour for each point by its place in the cloud's box, so that near points have near colours: attribute "color".
void color_by_place(PointCloud& cloud);
/// The colour of the nearest input point, which has the attribute "color".
void color_by_nearest(PointCloud& cloud, const PointCloud& input);

}  // namespace stipple::tasks::study
