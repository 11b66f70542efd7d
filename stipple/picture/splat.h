#pragma once
// Splats: points drawn as small round bumps that face the camera.

#include "stipple/picture/camera.h"
#include "stipple/picture/visibility.h"

namespace stipple::picture {

struct SplatCounts {
    int64_t drawn = 0;      // points in the picture, hidden ones too
    int64_t nonfinite = 0;  // points without a place
};

/// A radius in scene units for which the cloud looks right from this camera: points of a dense cloud just cover the
/// surface, points of a sparse one stay apart. From the median number of points per cell of the picture.
double choose_splat_radius(const PointCloud& cloud, const Camera& camera, int64_t width, int64_t height);

/// The radius in pixels at a depth: never below 0.7, so that no point falls between the samples.
inline double splat_pixels(const Camera& camera, double radius, double depth) {
    const double pixels = radius * camera.pixels_per_unit(depth);
    return pixels < 0.7 ? 0.7 : pixels > 64 ? 64 : pixels;
}

/// Draws every finite point in front of the camera. A splat is a paraboloid cap, highest in its middle: where splats
/// of one surface overlap, each sample goes to the nearest point. O(n + covered samples), memory bounded for any n.
SplatCounts draw_splats(Visibility& target, const PointCloud& cloud, const Camera& camera, double radius);

}  // namespace stipple::picture
