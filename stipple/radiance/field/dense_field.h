#pragma once
// A field on a grid of all its nodes, as training changes it and devices march through it.

#include "stipple/radiance/field.h"

namespace stipple::radiance {

/// The density of nodes in bricks that are not stored: with any shift that training uses, a voxel of it has opacity 0
/// in single precision.
inline constexpr float kEmptyDensity = -100;

struct DenseField : FieldSettings {
    std::vector<float> density;      // [nodes]
    std::vector<float> features;     // [nodes, kFeatures]
    std::vector<uint32_t> occupied;  // a bit per node, the lowest first: [nodes / 32, rounded up]
};

/// Nodes of bricks that are not stored: kEmptyDensity, features 0, not occupied. The bits behind the last node are 0.
DenseField unpack(const Field& field);

/// The bricks with a node within one node of an occupied one (in its 3 x 3 x 3 neighbourhood) are stored, numbered in
/// their order: rays look at places whose nearest node is occupied and interpolate between eight nodes, all of them
/// such. Features become half precision, at most the largest of it. Nodes of a brick beyond the grid are as those of
/// none. unpack(pack(d)) is d with rounded features, but for nodes that no ray can see.
Field pack(const DenseField& dense);

/// The densities alone, and the bits: what a march needs of the whole grid.
std::vector<float> unpack_density(const Field& field);
std::vector<uint32_t> unpack_occupied(const Field& field);

/// Nodes with an occupied node in their 3 x 3 x 3 neighbourhood, themselves included; bits as in DenseField.
std::vector<uint32_t> dilated(const GridShape& grid, const std::vector<uint32_t>& occupied);

/// Where a node of a field is stored: the row of density and features, -1 where its brick is not there.
inline int64_t row_of(const Field& field, int x, int y, int z) {
    const std::array<int32_t, 3> bricks = field.grid.bricks();
    const size_t at = static_cast<size_t>((int64_t{x / kBrick} * bricks[1] + y / kBrick) * bricks[2] + z / kBrick);
    const int64_t number = field.brick[at];
    if (number < 0) return -1;
    return number * kBrickNodes + (x % kBrick * kBrick + y % kBrick) * kBrick + z % kBrick;
}

}  // namespace stipple::radiance
