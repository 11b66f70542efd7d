#pragma once
// Points, meshes and grids of a field.

#include <functional>
#include <optional>

#include "stipple/radiance/field.h"

namespace stipple::radiance {

struct PointsOptions {
    int64_t count = 200'000;              // so many points, if there are; 0: as many as the spacing leaves
    double spacing = 0;                   // edge of cubes of which each keeps one point; 0: by the count
    double least_confidence = 0.5;        // points below it are left out
    std::optional<Box<double>> box = {};  // points outside are left out; world coordinates
    uint64_t seed = 0;
};
const Fields& point_export_fields();

/// The surface that the field's cameras see: every camera's depth map, a point for each pixel, fused and thinned.
///
///   normal      float32  towards lower density
///   color       uint8    of the place, as that camera sees it
///   confidence  float32  opacity of the pixel times (1 + a) / (1 + a + f): of the other cameras that have the point in
///               their picture, a see their surface within two voxels of it, f see through it to something further
///               away; those that see something before it have no say
///
/// Depth maps are rendered as large as the count or the spacing needs, at most as large as the photographs: then the
/// cloud may have fewer points than asked for. Of the points in one cube the one nearest to their mean stays; of those,
/// `count` at random by the seed. Deterministic. Throws Error{bad_argument} for a field without cameras and for options
/// out of range. `done` is called with the views that
/// are rendered, of how many; it may begin again with larger pictures. O(pixels + points * cameras).
PointCloud export_points(const Field& field, const PointsOptions& options, Device device,
                         const std::function<void(int64_t done, int64_t total)>& done = {});

struct MeshOptions {
    /// Opacity of a voxel at the surface, above 0 and below 1. Fields whose training was short are nowhere dense: 0.5
    /// tears them apart, 0.1 keeps most of the surface (lego at 80 voxels after 700 fine steps).
    double level = 0.1;
    double least_part = 0;                // parts of less than this share of the whole area are left out: 0 keeps all
    std::optional<Box<double>> box = {};  // space outside counts as empty; world coordinates
};
const Fields& mesh_export_fields();

/// The surface where the opacity of a voxel passes the level, by marching cubes over nodes that rays can see. It is
/// closed: space outside the grid and the box is empty.
///
///   normal      float32  of the density's gradient, outwards
///   color       uint8    as the camera sees it that looks at it most squarely (whether something is in the way or
///   not), or
///               straight down on it for a field without cameras
///
/// Empty where nothing is that dense. Throws Error{bad_argument} for options out of range.
Mesh export_mesh(const Field& field, const MeshOptions& options);

/// The density by the world's length at every node [X, Y, Z]: light that goes a length l through a density d is dimmed
/// by exp(-d l). 0 where rays skip the node and all around it.
Array<float, 3> export_density(const Field& field);

/// The density of a node at which a voxel of the field has that opacity.
float density_of_opacity(const FieldSettings& settings, double opacity);

}  // namespace stipple::radiance
