#include "stipple/radiance/field/dense_field.h"

#include <algorithm>

#include "stipple/core/error.h"
#include "stipple/core/half.h"
#include "stipple/radiance/march/ray.h"

namespace stipple::radiance {
namespace {

constexpr float kLargestHalf = 65504;

int64_t bit_words(const GridShape& grid) {
    return (grid.nodes() + 31) / 32;
}

void set_bit(std::vector<uint32_t>& bits, int64_t index) {
    bits[static_cast<size_t>(index >> 5)] |= 1u << (index & 31);
}

bool is_occupied(const Field& field, int64_t row) {
    return field.occupied[static_cast<size_t>(row >> 6)] >> (row & 63) & 1;
}

/// Calls visit(row, node) for the nodes of stored bricks that are in the grid; rows ascend within a brick.
template <class Visit>
void for_stored_nodes(const GridShape& grid, const std::vector<int32_t>& brick, const Visit& visit) {
    const std::array<int32_t, 3> bricks = grid.bricks();
    size_t at = 0;
    for (int bx = 0; bx < bricks[0]; ++bx)
        for (int by = 0; by < bricks[1]; ++by)
            for (int bz = 0; bz < bricks[2]; ++bz, ++at) {
                if (brick[at] < 0) continue;
                int64_t row = int64_t{brick[at]} * kBrickNodes;
                for (int x = bx * kBrick; x < (bx + 1) * kBrick; ++x)
                    for (int y = by * kBrick; y < (by + 1) * kBrick; ++y)
                        for (int z = bz * kBrick; z < (bz + 1) * kBrick; ++z, ++row)
                            if (x < grid.size[0] && y < grid.size[1] && z < grid.size[2])
                                visit(row, grid.index(x, y, z));
            }
}

/// ORs each node with its neighbours `stride` before and after, along an axis of `size` nodes.
std::vector<uint8_t> spread(const std::vector<uint8_t>& from, int64_t stride, int32_t size) {
    std::vector<uint8_t> to = from;
    const auto n = static_cast<int64_t>(from.size());
    for (int64_t i = 0; i < n; ++i) {
        if (!from[static_cast<size_t>(i)]) continue;
        const int64_t place = i / stride % size;
        if (place > 0) to[static_cast<size_t>(i - stride)] = 1;
        if (place + 1 < size) to[static_cast<size_t>(i + stride)] = 1;
    }
    return to;
}

}  // namespace

std::vector<float> unpack_density(const Field& field) {
    std::vector<float> density(static_cast<size_t>(field.grid.nodes()), kEmptyDensity);
    for_stored_nodes(field.grid, field.brick, [&](int64_t row, int64_t node) {
        density[static_cast<size_t>(node)] = field.density[static_cast<size_t>(row)];
    });
    return density;
}

std::vector<uint32_t> unpack_occupied(const Field& field) {
    std::vector<uint32_t> bits(static_cast<size_t>(bit_words(field.grid)));
    for_stored_nodes(field.grid, field.brick, [&](int64_t row, int64_t node) {
        if (is_occupied(field, row)) set_bit(bits, node);
    });
    return bits;
}

DenseField unpack(const Field& field) {
    DenseField dense;
    static_cast<FieldSettings&>(dense) = field;
    dense.density = unpack_density(field);
    dense.occupied = unpack_occupied(field);
    dense.features.assign(static_cast<size_t>(field.grid.nodes()) * kFeatures, 0);
    for_stored_nodes(field.grid, field.brick, [&](int64_t row, int64_t node) {
        for (int f = 0; f < kFeatures; ++f)
            dense.features[static_cast<size_t>(node * kFeatures + f)] =
                half_to_float(field.features[static_cast<size_t>(row * kFeatures + f)]);
    });
    return dense;
}

std::vector<uint32_t> dilated(const GridShape& grid, const std::vector<uint32_t>& occupied) {
    std::vector<uint8_t> near(static_cast<size_t>(grid.nodes()));
    for (int64_t i = 0; i < grid.nodes(); ++i) near[static_cast<size_t>(i)] = bit_of(occupied.data(), i);
    near = spread(near, 1, grid.size[2]);
    near = spread(near, grid.size[2], grid.size[1]);
    near = spread(near, int64_t{grid.size[1]} * grid.size[2], grid.size[0]);
    std::vector<uint32_t> bits(static_cast<size_t>(bit_words(grid)));
    for (int64_t i = 0; i < grid.nodes(); ++i)
        if (near[static_cast<size_t>(i)]) set_bit(bits, i);
    return bits;
}

Field pack(const DenseField& dense) {
    const GridShape& grid = dense.grid;
    const auto nodes = static_cast<size_t>(grid.nodes());
    STIPPLE_REQUIRE(dense.density.size() == nodes && dense.features.size() == nodes * kFeatures &&
                        dense.occupied.size() == static_cast<size_t>(bit_words(grid)),
                    "pack: the grids of a dense field do not have its size");
    Field field;
    static_cast<FieldSettings&>(field) = dense;
    const std::vector<uint32_t> near = dilated(grid, dense.occupied);
    const std::array<int32_t, 3> bricks = grid.bricks();
    field.brick.assign(static_cast<size_t>(int64_t{bricks[0]} * bricks[1] * bricks[2]), -1);
    for (int x = 0; x < grid.size[0]; ++x)
        for (int y = 0; y < grid.size[1]; ++y)
            for (int z = 0; z < grid.size[2]; ++z)
                if (bit_of(near.data(), grid.index(x, y, z)))
                    field.brick[static_cast<size_t>((int64_t{x / kBrick} * bricks[1] + y / kBrick) * bricks[2] +
                                                    z / kBrick)] = 0;
    int32_t stored = 0;
    for (int32_t& number : field.brick)
        if (number == 0) number = stored++;

    const size_t rows = static_cast<size_t>(stored) * kBrickNodes;
    field.density.assign(rows, kEmptyDensity);
    field.features.assign(rows * kFeatures, 0);
    field.occupied.assign(rows / 64, 0);
    for_stored_nodes(grid, field.brick, [&](int64_t row, int64_t node) {
        field.density[static_cast<size_t>(row)] = dense.density[static_cast<size_t>(node)];
        if (bit_of(dense.occupied.data(), node)) field.occupied[static_cast<size_t>(row >> 6)] |= 1ull << (row & 63);
        for (int f = 0; f < kFeatures; ++f) {
            const float value = dense.features[static_cast<size_t>(node * kFeatures + f)];
            field.features[static_cast<size_t>(row * kFeatures + f)] =
                float_to_half(std::clamp(value, -kLargestHalf, kLargestHalf));
        }
    });
    return field;
}

}  // namespace stipple::radiance
