#pragma once
// Points on the surface of a mesh, as a cloud.

#include "stipple/core/fields.h"
#include "stipple/core/point_cloud.h"

namespace stipple::tasks {

enum class SurfaceSampling {
    poisson,  // spread evenly (geometry::sample_surface_poisson)
    uniform,  // independent, by area (geometry::sample_surface)
};
inline constexpr const char* kSurfaceSamplingWords[] = {"poisson", "uniform"};

struct SampleMeshOptions {
    int64_t count = 0;  // points wanted, above 0
    SurfaceSampling method = SurfaceSampling::poisson;
    bool normals = false;  // those of the faces, as attribute normal, instead of the mesh's
    uint64_t seed = 0;
};
const Fields& sample_mesh_fields();

struct SampledMesh {
    PointCloud cloud = {};  // with the attributes and the origin of the mesh (geometry::cloud_of_samples)
    int64_t faces = 0;      // of the mesh
    SurfaceSampling method = SurfaceSampling::poisson;
    int64_t sampled = 0;
};
const Fields& sampled_mesh_fields();

/// Throws Error{bad_argument} for a count of 0 and as the samplers do: for a mesh without area.
SampledMesh sample_mesh(const Mesh& mesh, const SampleMeshOptions& options);

}  // namespace stipple::tasks
