#pragma once

#include "stipple/geometry/watertight/shell_projection.h"

namespace stipple::geometry {

/// Edges below `shortest` go, one end of them to the other: vertices that were projected onto one point. An edge stays
/// where the mesh would not remain manifold without it, or a face would turn over. `mesh` is closed and manifold.
void collapse_short_edges(ShellMesh& mesh, double shortest);

}  // namespace stipple::geometry
