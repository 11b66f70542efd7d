#pragma once
// A pinhole camera whose pixels are rays: for depth pictures and simulated scans of a mesh.

#include "stipple/core/fields.h"
#include "stipple/picture/camera.h"

namespace stipple::picture {

struct RayCameraOptions {
    bool orbit = false;                   // from an orbit that sees all of the mesh, ...
    double azimuth = 35, elevation = 22;  // ... degrees about the up axis and above the horizon
    std::vector<double> eye = {};         // x, y, z in world coordinates; instead of an orbit
    std::vector<double> look_at = {};     // x, y, z in the middle of the picture of an eye; none: the mesh's middle
    UpAxis up = UpAxis::z;
    double field_of_view = 40;  // degrees, over the smaller side
    int64_t width = 512, height = 512;

    bool is_wanted() const { return orbit || !eye.empty(); }
};
/// All but the up axis and the size.
const Fields& ray_camera_fields();
/// Throws Error{bad_argument} for numbers out of range, and for a place to look at without an eye.
void require_valid(const RayCameraOptions& options);

/// Rays through the middles of all pixels, row by row from the upper left one, relative to the origin of the mesh.
/// Directions have length 1 along the camera's axis, so that t is depth.
struct PixelRays {
    Array<float, 2> origins, directions;  // [width * height, 3]
};
/// Throws as require_valid(), and Error{bad_argument} for an eye that is where it looks at, or not finite.
PixelRays pixel_rays(const RayCameraOptions& options, const Mesh& mesh);

}  // namespace stipple::picture
