#pragma once
// Rays that are cast at a mesh: single ones, those of a file, those through the pixels of a camera.

#include <limits>
#include <optional>
#include <vector>

#include "stipple/core/device.h"
#include "stipple/core/fields.h"
#include "stipple/core/point_cloud.h"

namespace stipple::tasks {

/// Rays in the frame of a mesh, relative to its origin.
struct RaySet {
    Array<float, 2> origins, directions;  // [m, 3]; t counts in lengths of the direction
};

/// One ray, in world coordinates.
struct OneRay {
    std::vector<double> origin, direction;  // x, y, z; both or none
};
const Fields& one_ray_fields();
/// Throws Error{bad_argument} unless both have three numbers.
RaySet ray_of(const OneRay& ray, const Mesh& mesh);

/// Positions are origins; directions are the attribute direction, normal, extra (six columns of an .xyz), or the
/// columns dx, dy, dz. Throws Error{bad_file} for a cloud without directions.
RaySet rays_of(const PointCloud& cloud, const Mesh& mesh);

struct RayRange {
    double min = std::numeric_limits<double>::quiet_NaN(), max = std::numeric_limits<double>::quiet_NaN();
};

/// The first hits, on the CPU.
struct MeshHits {
    Array<float, 1> t;            // of every ray
    Array<int32_t, 1> ray_faces;  // of every ray; -1 where it hits nothing
    /// The places that were hit, with t, face and ray, and with what the mesh carries there.
    PointCloud cloud;
    int64_t rays = 0, hits = 0;
    RayRange t_range = {};             // of all hits; NaN without any
    std::optional<int32_t> face = {};  // of a single ray that hits, and the place in world coordinates, else none
    std::vector<double> point = {};
};
const Fields& mesh_hits_fields();

/// Throws as geometry::first_hit() does.
MeshHits cast_at_mesh(const Mesh& mesh, const RaySet& rays, Device device);

}  // namespace stipple::tasks
