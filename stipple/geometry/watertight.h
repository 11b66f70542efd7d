#pragma once

#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

/// A voxel is the longest side of the input's bounding box / resolution.
struct WatertightOptions {
    int32_t resolution = 128;  // 2 .. 2048; faces grow with its square, about 4 times for twice as many voxels
    bool project = true;       // onto the input; false leaves the boundary of voxels as it is
    double offset = 0.05;     // voxels between the output's vertices and the input, 0.01 .. 0.5: shells have twice that
    int32_t cap_holes = 0;    // voxels: gaps narrower than this are closed, those twice as wide never; 0 closes none
    bool keep_inner = false;  // also the walls of cavities that cannot be reached from outside
};

/// A closed, 2-manifold, oriented mesh around any triangle soup: holes, self-intersections, flipped, duplicated and
/// degenerate faces, coplanar sheets, loose vertices. check_mesh(output).is_watertight(output) always holds.
///
/// The input is voxelised; the voxels reached from outside are free; the surface between them and the rest, a manifold
/// by construction (one vertex for each loop of surface around a voxel corner [Nielson 2004], edges that would occur
/// twice split), is projected: its vertices, all of them at free places, move to the nearest point of the input less
/// `offset`. No vertex passes through a face of the input, because segments to nearest points cannot. Edges that then
/// lie away from the input (at creases) are divided and their middles projected in turn.
///
/// Open surfaces become shells of 2 * offset. Gaps narrower than about two voxels may be closed, wider ones are not
/// (unless cap_holes says so). Faces look outward. Where two parts of the input come nearer to each other than a voxel
/// the output may touch itself.
///
/// Distances: every point of the output is within one voxel of the input (lids of cap_holes apart), and every point of
/// the input that a ball of one voxel can touch from outside within one voxel of the output.
///
/// CPU only. Throws Error{bad_argument} for what require_mesh refuses (non-finite vertices among it), a mesh without
/// faces or without extent, options out of range, and voxels too small for float32 at these coordinates (move the
/// origin). Deterministic, threads do not matter. About O(faces + area of the input in voxels); memory too, and
/// resolution^3 / 128 bytes.
Mesh watertight(const MeshView& mesh, const WatertightOptions& options = {});

}  // namespace stipple::geometry
