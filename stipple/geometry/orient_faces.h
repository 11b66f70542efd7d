#pragma once
// Faces turned so that neighbours agree and closed parts face outwards. CPU.

#include <vector>

#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

/// Patches are faces connected by edges of exactly two faces; across edges of more there is no telling which two belong
/// together. They are numbered in the order of their first faces.
struct Orientation {
    Array<uint8_t, 1> turned;         // [m] 1 for faces that run the other way round now
    Array<int32_t, 1> patch_of_face;  // [m]
    std::vector<uint8_t> closed;      // [patches] 1 where every edge has two faces
    std::vector<uint8_t> orientable;  // [patches] 0 for what has one side only (a Moebius strip)
    int64_t turned_faces = 0;

    int64_t patches() const { return static_cast<int64_t>(closed.size()); }
};

/// Which faces to turn so that neighbours in each patch run along their common edge in opposite directions.
///
/// Closed patches end with a positive volume, so normals point outwards (the wall of a cavity is a patch of its own and
/// gets the same). Open patches keep the direction of most of their faces, of the first face when it is half and half.
/// Patches that cannot be oriented stay as they are. Faces that have a vertex twice are on fewer edges and stay.
///
/// Throws Error{bad_argument} as require_mesh does and for a mesh on another device. O(n + m), on one thread.
Orientation find_orientation(const MeshView& mesh);

/// find_orientation, carried out: the last two corners of a turned face change places, its attribute `normal`
/// (float32 [m, 3]) changes sign. Attributes of vertices stay as they are: vertex normals may want to be computed anew.
Orientation orient_faces(Mesh& mesh);

}  // namespace stipple::geometry
