#pragma once
// The voxels of watertight(): which ones the input touches, and which ones can be reached from outside.
//
// Bits in blocks of 8 x 8 x 8; a block that the input does not touch is one number. Bit 8 * y + x of word z is voxel
// (x, y, z) of its block. Coordinates are in voxels: voxel (x, y, z) is the cube from (x, y, z) to (x + 1, y + 1, z +
// 1).

#include <array>
#include <vector>

#include "stipple/core/vec3.h"
#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

struct ShellBlock {
    std::array<uint64_t, 8> touched{}, outside{};
};

struct ShellVoxels {
    static constexpr int32_t kEnclosed = -1, kOutside = -2;  // blocks that the input does not touch

    Vec3d low{};                    // of voxel (0, 0, 0), in the mesh's coordinates
    double step = 1;                // the edge of a voxel
    std::array<int32_t, 3> size{};  // in blocks
    std::vector<int32_t> slots;     // of each block, x fastest: index into `blocks`, or one of the two above
    std::vector<ShellBlock> blocks;

    int32_t slot(int32_t x, int32_t y, int32_t z) const {
        if (x < 0 || y < 0 || z < 0 || x >= size[0] || y >= size[1] || z >= size[2]) return kOutside;
        return slots[(static_cast<size_t>(z) * size[1] + y) * size[0] + x];
    }
};

/// No input comes nearer than this to a voxel that it does not touch.
constexpr double kShellClearance = 0.01;

/// Voxels of edge `step`, with free ones all around the input; bits for all blocks, or for those alone that the input
/// may touch. `mesh` is valid and has faces.
ShellVoxels voxelize_shell(const MeshView& mesh, double step, bool all_blocks);

/// Marks as outside what is reached from the border through faces of voxels.
void reach_from_outside(ShellVoxels& voxels);

/// The same, but not through gaps narrower than `width` voxels into what is wider than they are; gaps wider than 1.5 *
/// width stay open. What is outside for a width is outside for every smaller one. Wants all blocks.
void reach_through_gaps(ShellVoxels& voxels, double width);

/// Marks every voxel as outside that the input does not touch.
void reach_everything(ShellVoxels& voxels);

}  // namespace stipple::geometry
