#pragma once

#include "stipple/core/fields.h"
#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

/// Lengths are in voxels: the longest side of the input's bounding box / resolution.
struct WatertightOptions {
    int32_t resolution = 64;  // 2 .. 2048; twice the resolution, four times the faces
    double offset = 0.05;     // from the input to the output's vertices, 0.01 .. 0.5: shells are twice as thick
    bool project = true;      // onto the input; false leaves the boundary of cells, within two voxels of the input
    int32_t cap_holes = 0;    // closes gaps narrower than this, none twice as wide; 0 closes none on purpose
    bool keep_inner = false;  // also the walls of cavities that cannot be reached from outside
    double tolerance = 0;     // decimates while the error, max_error of decimate(), is at most this; 0: does not
    int64_t faces = 0;        // decimates to at most so many faces, whatever the error; 0: tolerance alone decides
};
const Fields& watertight_fields();

/// A closed, 2-manifold, oriented mesh around any triangle soup: with holes, self-intersections, flipped, duplicated
/// and degenerate faces, coplanar sheets, loose vertices. check_mesh(output).is_watertight(output) always holds.
///
/// Every point of the output is within one voxel of the input (lids over capped holes apart), and every point of the
/// input that a ball of one voxel's radius can touch, coming from outside, is within one voxel of the output; both are
/// a tenth of that on even ground. Open surfaces become shells of 2 * offset, looked at from both sides; their holes
/// and all gaps wider than two voxels stay open, narrower ones may close. Cavities that cannot be reached are filled,
/// what is inside them is lost, unless keep_inner. cap_holes makes the inside of a vessel solid where it is wider than
/// the gap; a greater value makes solid all that a smaller one does; lids are smooth and near the gap's narrowest
/// place. Faces look outward.
///
/// How: cells with a diagonal of one voxel; those that the input touches [Schwarz & Seidel 2010]; what can be reached
/// from outside through faces of free cells; the boundary between, one vertex for each loop of surface around a cell
/// corner [Nielson 2004], with edges that would occur twice taken apart, so that it is a manifold by construction. Its
/// vertices are at free places and go to the nearest point of the input, but for the offset; a segment to the nearest
/// point crosses no face, so both sides of a sheet stay on their sides. Last, vertices that met are merged where the
/// mesh stays a manifold. The guarantee is one of indices: edges between parts nearer than a voxel may cut through a
/// neighbouring face (one in some thousands), and few faces may be left without area.
///
/// Faces are as wide as half a voxel everywhere; a tolerance leaves few of them where the surface is flat, faces > 0 as
/// many as asked for, more where fewer would break the surface (decimate.h). Either keeps the surface watertight and of
/// the same genus, and adds its own error to the bounds above.
///
/// Positions are relative to the input's origin; attributes are not carried over. CPU only. Throws Error{bad_argument}
/// for what require_mesh refuses (non-finite vertices of faces among it), a mesh without faces or all at one point,
/// options out of range, cap_holes with keep_inner, and voxels too small for float32 at these coordinates.
/// Deterministic, threads do not matter. Time and memory about O(faces + the input's area in cells), and
/// resolution^3 / 9 bytes; with cap_holes 13 * resolution^3.
Mesh watertight(const MeshView& mesh, const WatertightOptions& options = {});

/// The share of the space that the input encloses, as its winding number says, which is outside of `solid`, the result
/// of watertight(): nearly 1 where holes of the input have let the outside in and the result is a shell with two walls,
/// 0 where it is solid. 0 as well where the input encloses too little to tell, or its faces look all ways. By some
/// thousand places; deterministic. CPU only.
double hollow_share(const MeshView& input, const MeshView& solid);

}  // namespace stipple::geometry
