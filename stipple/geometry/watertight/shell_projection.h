#pragma once
// The surface of watertight() moved onto the input.

#include "stipple/geometry/watertight/shell_surface.h"

namespace stipple::geometry {

struct ShellMesh {
    std::vector<Vec3d> positions;  // in the input's coordinates
    std::vector<std::array<int32_t, 3>> triangles;
};

/// Vertices go to the nearest point of the input but for `offset`, in its unit; lids become even.
ShellMesh project_surface(const ShellSurface& surface, const ShellVoxels& voxels, const MeshView& mesh, double offset);

/// The surface as it is.
ShellMesh place_surface(const ShellSurface& surface, const ShellVoxels& voxels);

}  // namespace stipple::geometry
