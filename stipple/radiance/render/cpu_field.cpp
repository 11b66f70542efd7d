#include "stipple/radiance/render/cpu_field.h"

#include <algorithm>

#include "stipple/core/half.h"
#include "stipple/radiance/field/dense_field.h"
#include "stipple/radiance/train/brick_table.h"

namespace stipple::radiance {

CpuField::CpuField(const Field& field)
    : settings(field),
      grid(view_of(field.grid)),
      bricks(field.grid.bricks()),
      brick(field.brick),
      density(unpack_density(field)),
      occupied(unpack_occupied(field)),
      features(field.features.size()),
      brick_bits(field.occupied),
      free(free_bricks(field.grid, brick, brick_bits)),
      colour(field.network) {
    std::transform(field.features.begin(), field.features.end(), features.begin(), half_to_float);
}

BrickGrid CpuField::brick_grid() const {
    BrickGrid view;
    view.view = grid;
    for (size_t axis = 0; axis < 3; ++axis) view.bricks[axis] = bricks[axis];
    view.table = brick.data();
    view.occupied = brick_bits.data();
    view.free = free.data();
    return view;
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
