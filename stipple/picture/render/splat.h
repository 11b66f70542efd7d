#pragma once
// Splats: points drawn as small round bumps that face the camera.

#include <vector>

#include "stipple/picture/camera.h"
#include "stipple/picture/render/visibility.h"

namespace stipple::picture {

struct SplatCounts {
    int64_t drawn = 0;      // points in the picture, hidden ones too
    int64_t nonfinite = 0;  // points without a place
};

/// How large points are drawn. Where small ones lie thinner than most, in the picture, they are larger than the radius.
struct SplatSizes {
    double radius = 0;  // scene units
    double cell = 0;    // pixels; 0: no cells, all points alike
    int64_t cells_x = 0;
    std::vector<float> factors;  // [cells_y, cells_x] of the radius, 1 to 1.5

    float factor_at(double x, double y) const {
        if (factors.empty() || !(x >= 0 && y >= 0)) return 1;
        const auto column = static_cast<int64_t>(x / cell), row = static_cast<int64_t>(y / cell);
        const auto at = static_cast<size_t>(row * cells_x + column);
        return column < cells_x && at < factors.size() ? factors[at] : 1;
    }
};

/// Sizes for which the cloud looks right from this camera: points of a dense cloud just cover the surface, points of a
/// sparse one stay apart. From the number of points per cell of the picture, where they lie thinner than around most.
SplatSizes choose_splat_sizes(const PointCloud& cloud, const Camera& camera, int64_t width, int64_t height);

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
SplatCounts draw_splats(Visibility& target, const PointCloud& cloud, const Camera& camera, const SplatSizes& sizes);

/// Closes pinholes in a dense cloud: a sample that sees nothing, or something far behind, while one surface lies around
/// it on all eight sides within a splat or so, sees that surface. For buffers that hold a cloud and no mesh.
void close_pinholes(Visibility& target, const Camera& camera, double radius);

}  // namespace stipple::picture
