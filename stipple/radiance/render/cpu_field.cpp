#include "stipple/radiance/render/cpu_field.h"

#include <algorithm>

#include "stipple/core/half.h"
#include "stipple/radiance/field/dense_field.h"

namespace stipple::radiance {

FreeSpace::FreeSpace(const GridShape& grid, const std::vector<uint32_t>& occupied) {
    for (size_t axis = 0; axis < 3; ++axis) size_[axis] = (grid.size[axis] + kSide - 1) / kSide;
    const auto at = [&](int x, int y, int z) -> uint8_t& {
        return distance_[static_cast<size_t>((int64_t{x} * size_[1] + y) * size_[2] + z)];
    };
    distance_.assign(static_cast<size_t>(int64_t{size_[0]} * size_[1] * size_[2]), 255);
    for (int x = 0; x < grid.size[0]; ++x)
        for (int y = 0; y < grid.size[1]; ++y)
            for (int z = 0; z < grid.size[2]; ++z)
                if (bit_of(occupied.data(), grid.index(x, y, z))) at(x / kSide, y / kSide, z / kSide) = 0;
    // Two sweeps over the neighbours before and after give the exact distance of this norm.
    const auto relax = [&](int x, int y, int z, int sign) {
        int best = at(x, y, z);
        for (int neighbour = 0; neighbour < 13; ++neighbour) {  // the 13 that come first in a cube of 27
            const int nx = x + sign * (neighbour / 9 - 1), ny = y + sign * (neighbour / 3 % 3 - 1),
                      nz = z + sign * (neighbour % 3 - 1);
            if (nx >= 0 && ny >= 0 && nz >= 0 && nx < size_[0] && ny < size_[1] && nz < size_[2])
                best = std::min(best, at(nx, ny, nz) + 1);
        }
        at(x, y, z) = static_cast<uint8_t>(best);
    };
    for (int x = 0; x < size_[0]; ++x)
        for (int y = 0; y < size_[1]; ++y)
            for (int z = 0; z < size_[2]; ++z) relax(x, y, z, 1);
    for (int x = size_[0]; x-- > 0;)
        for (int y = size_[1]; y-- > 0;)
            for (int z = size_[2]; z-- > 0;) relax(x, y, z, -1);
    for (uint8_t& d : distance_) d = std::max<uint8_t>(d, 1);
}

CpuField::CpuField(const Field& field)
    : settings(field),
      grid(view_of(field.grid)),
      bricks(field.grid.bricks()),
      brick(field.brick),
      density(unpack_density(field)),
      occupied(unpack_occupied(field)),
      features(field.features.size()),
      free_space(field.grid, occupied),
      colour(field.network) {
    std::transform(field.features.begin(), field.features.end(), features.begin(), half_to_float);
}

Vec3f CpuField::gradient_at(const Cell& cell) const {
    float d[8];
    for (int c = 0; c < 8; ++c) d[c] = density[static_cast<size_t>(cell.node(c))];
    const float gx = 1 - cell.fx, gy = 1 - cell.fy, gz = 1 - cell.fz;
    const float x =
        gy * (gz * (d[4] - d[0]) + cell.fz * (d[5] - d[1])) + cell.fy * (gz * (d[6] - d[2]) + cell.fz * (d[7] - d[3]));
    const float y =
        gx * (gz * (d[2] - d[0]) + cell.fz * (d[3] - d[1])) + cell.fx * (gz * (d[6] - d[4]) + cell.fz * (d[7] - d[5]));
    const float z =
        gx * (gy * (d[1] - d[0]) + cell.fy * (d[3] - d[2])) + cell.fx * (gy * (d[5] - d[4]) + cell.fy * (d[7] - d[6]));
    return {x * grid.per_unit.x, y * grid.per_unit.y, z * grid.per_unit.z};
}

void CpuField::features_at(const Cell& cell, float* to) const {
    const auto x = static_cast<int32_t>(cell.base / cell.stride_x);
    const auto rest = static_cast<int32_t>(cell.base % cell.stride_x);
    const int32_t y = rest / cell.stride_y, z = rest % cell.stride_y;
    std::fill_n(to, kFeatures, 0.0f);
    for (int c = 0; c < 8; ++c) {
        const int32_t nx = x + (c >> 2), ny = y + (c >> 1 & 1), nz = z + (c & 1);
        const int64_t number =
            brick[static_cast<size_t>((int64_t{nx / kBrick} * bricks[1] + ny / kBrick) * bricks[2] + nz / kBrick)];
        if (number < 0) continue;
        const int64_t row = number * kBrickNodes + (nx % kBrick * kBrick + ny % kBrick) * kBrick + nz % kBrick;
        const float* from = features.data() + row * kFeatures;
        const float weight = cell.weight(c);
        for (int f = 0; f < kFeatures; ++f) to[f] += weight * from[f];
    }
}

}  // namespace stipple::radiance
