#pragma once
// Where the rays of `stipple mesh rays` come from.

#include "stipple/cli/common/files.h"

namespace stipple::cli {

struct RayOptions {
    std::vector<double> origin, direction;  // one ray
    std::string file;                       // origins with directions
    bool camera = false;                    // on an orbit, far enough to see all of the mesh
    double azimuth = 35, elevation = 22;
    std::vector<double> eye, look_at;  // a camera at a place
    std::string up = "z", size = "512x512";
    double field_of_view = 40;  // degrees, over the smaller side
};

/// Rays in the frame of the mesh. Those of a camera have directions of length 1 along its axis, so that t is depth, and
/// go row by row from the upper left pixel.
struct RaySet {
    Array<float, 2> origins, directions;  // [m, 3]
    int64_t width = 0, height = 0;        // of a camera's picture
};

/// Throws Error{bad_argument} when not exactly one source is named, or a camera has no direction to look in;
/// Error{bad_file} for a file without directions.
void require_ray_source(const RayOptions& options);
RaySet make_rays(const RayOptions& options, const Mesh& mesh, const Common& common, Result& result);

}  // namespace stipple::cli
