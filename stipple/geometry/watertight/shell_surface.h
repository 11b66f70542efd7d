#pragma once
// The surface between the outside voxels of watertight() and the rest: closed, 2-manifold and oriented by construction.

#include "stipple/geometry/watertight/shell_voxels.h"

namespace stipple::geometry {

/// Vertices are at voxel corners and, seldom, at middles of voxel edges: places that lie on an outside voxel, so that
/// the input is at least kShellClearance away.
struct ShellSurface {
    /// Several vertices are at this one's place, or it has a place between two of them: `pull` says which way it should
    /// give way, towards its own part of the surface. Not a unit vector.
    struct Crowded {
        int32_t vertex;
        std::array<float, 3> pull;
    };

    std::vector<Vec3d> places;                      // in voxels
    std::vector<uint8_t> lid;                       // 1: no voxel behind the vertex touches the input
    std::vector<Crowded> crowded;                   // by vertex, ascending
    std::vector<std::array<int32_t, 4>> quads;      // may be cut along either diagonal
    std::vector<std::array<int32_t, 3>> triangles;  // in addition
};

ShellSurface extract_surface(const ShellVoxels& voxels);

}  // namespace stipple::geometry
