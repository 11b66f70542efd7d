#pragma once
// A closed surface of a cloud's points, whose normals are estimated where it has none.

#include "stipple/core/device.h"
#include "stipple/geometry/reconstruct.h"
#include "stipple/tasks/mesh_facts.h"

namespace stipple::tasks {

struct SurfaceOptions {
    geometry::ReconstructOptions reconstruction;
    int k = 16;     // neighbours that tell a normal, where the cloud has none
    Device device;  // where normals are estimated
};
const Fields& surface_options_fields();

/// Where the normals of a surface come from.
enum class NormalsOfSurface { given, estimated };
inline constexpr const char* kNormalsOfSurfaceWords[] = {"given", "estimated"};

struct Surface {
    Mesh mesh = {};  // with the origin of the cloud
    NormalsOfSurface normals = NormalsOfSurface::given;
    bool faces_sensor = false;   // estimated normals point towards the sensor; else they agree and point outwards
    int64_t without_normal = 0;  // points without a normal that can be used, which are left out
    MeshFacts facts;
};
const Fields& surface_fields();

/// The attribute normal says which way is out; without it, normals are estimated and turned towards the cloud's
/// viewpoint or, where it tells none, outwards. The cloud is on the CPU. Throws as geometry::reconstruct_surface(), and
/// Error{bad_file} for normals that have not three components, for fewer than four points with a normal, and where the
/// points make no surface.
Surface make_surface(const PointCloud& cloud, const SurfaceOptions& options);

}  // namespace stipple::tasks
