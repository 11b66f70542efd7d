#pragma once
// Splats: points drawn as small round bumps that face the camera.

#include "stipple/picture/camera.h"
#include "stipple/picture/render/visibility.h"

namespace stipple::picture {

struct SplatCounts {
    int64_t drawn = 0;      // points in the picture, hidden ones too
    int64_t nonfinite = 0;  // points without a place
};

/// A radius in scene units for which the cloud looks right from this camera: points of a dense cloud just cover the
/// surface, points of a sparse one stay apart. From the number of points per cell of the picture, where they lie
/// thinner than around most.
double choose_splat_radius(const PointCloud& cloud, const Camera& camera, int64_t width, int64_t height);

/// The radius in pixels at a depth: never below 0.7, so that no point falls between the samples.
inline double splat_pixels(const Camera& camera, double radius, double depth) {
    const double pixels = radius * camera.pixels_per_unit(depth);
    return pixels < 0.7 ? 0.7 : pixels > 64 ? 64 : pixels;
}

/// Splats of few pixels are pieces of a surface (0), large ones are balls (1).
inline float ball_of(double pixels) {
    return smooth_step(2.2f, 4.2f, static_cast<float>(pixels));
}

/// Draws every finite point in front of the camera. A splat is a paraboloid cap over the point, nearest in its middle:
/// where splats of one surface overlap, each sample goes to the nearest point. O(n + covered samples), memory bounded
/// for any n.
SplatCounts draw_splats(Visibility& target, const PointCloud& cloud, const Camera& camera, double radius);

/// Closes pinholes in a dense cloud: a sample that sees nothing, or something far behind, while one surface lies around
/// it on all eight sides within a splat or so, sees that surface. For buffers that hold a cloud and no mesh.
void close_pinholes(Visibility& target, const Camera& camera, double radius);

}  // namespace stipple::picture
