#pragma once

#include <vector>

#include "stipple/core/fields.h"
#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

/// Lengths in the cloud's unit; the defaults are for metres.
struct GroundOptions {
    double cell = 1;       // edge of the squares that the surface is made of
    double window = 40;    // width of the widest thing that is not ground: the longer side of a building's plan
    double slope = 0.3;    // of the steepest ground, rise over run
    double step = 0.3;     // what stands out of the ground by less is not told from it while windows grow
    double height = 0.25;  // of ground points from the surface in the end, on level ground
};
const Fields& ground_fields();

struct Ground {
    std::vector<uint8_t> is_ground;  // [n]
    Array<float, 1> height;          // [n] above the ground's surface, negative below; NaN for non-finite points
    double cell = 0;
    int64_t columns = 0, rows = 0;  // of the surface
};

/// Which points of an aerial or street scan, z up, are ground: the progressive morphological filter [Zhang et al. 2003,
/// A progressive morphological filter for removing nonground measurements from airborne LIDAR data].
///
/// The lowest point of each cell makes a surface, in which single deep pits are closed (stray echoes). It is opened by
/// windows that grow by two cells up to `window`; a cell that an opening lowers by more than slope * growth + step is
/// not ground. The ground's surface goes through the other cells, by planes fitted to the points around each, and is
/// interpolated where there are none. A point is ground when it is within `height` of that surface, and further by half
/// a cell's rise where it is steep [as Pingel et al. 2013 do].
///
/// Non-finite points are not ground. The same for any number of threads. Throws Error{bad_argument} for options out
/// of the ranges of their fields, and when the plan has more than 2^26 cells: strays far away, or cells too small.
/// O(n + cells * window / cell). CPU.
Ground find_ground(const PointCloud& cloud, const GroundOptions& options);

}  // namespace stipple::geometry
