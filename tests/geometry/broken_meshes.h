#pragma once
// Meshes as users have them: shapes with every fault that watertight() must live with.

#include <string>

#include "stipple/core/point_cloud.h"

namespace stipple::test {

struct BrokenMesh {
    std::string name;  // shape and faults
    Mesh mesh;
};

/// Number 0, 1, 2, ...: a closed or open shape (sphere, cube, wavy torus, bowl, crossed sheets, tetrahedra) with one to
/// four of these faults: holes, flipped, duplicated, collapsed and sliver faces, a copy that cuts through it, loose
/// vertices (some not finite), tiny pieces, coplanar overlapping sheets, noise. `fineness` scales the number of faces.
BrokenMesh broken_mesh(int number, int fineness);

}  // namespace stipple::test
