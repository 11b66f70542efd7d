#pragma once
// What is told of a mesh: its size, what keeps it from being watertight, its area and its volume.

#include <optional>
#include <string>

#include "stipple/core/point_cloud.h"
#include "stipple/geometry/mesh_check.h"

namespace stipple::tasks {

struct MeshFacts {
    int64_t vertices = 0, faces = 0;
    bool watertight = false;            // closed, manifold, oriented and with a face
    bool closed = false;                // no boundary edges
    bool manifold = false;              // no edges of more than two faces, no vertices of several fans
    bool oriented = false;              // the two faces of every edge run along it in opposite directions
    std::optional<double> volume = {};  // of a mesh that is closed and oriented and has two faces at every edge
    geometry::MeshCheck check = {};
};
const Fields& mesh_facts_fields();

/// Throws as geometry::check_mesh does.
MeshFacts mesh_facts(const Mesh& mesh);

/// "yes", or what stands in the way: "no: 12 boundary edges, 1 non-manifold vertex".
std::string watertight_text(const MeshFacts& facts);

/// What check_mesh() counts, for people.
struct MeshFault {
    const char *one, *many;  // "boundary edge", "boundary edges"
    int64_t count;
    bool is_opening;  // any of these, and the mesh is not watertight
};
std::vector<MeshFault> mesh_faults(const geometry::MeshCheck& check);

}  // namespace stipple::tasks
