#include "stipple/radiance/field/dense_field.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "stipple/radiance/march/ray.h"
#include "tests/support/expect_error.h"
#include "tests/support/radiance_fields.h"

namespace stipple::radiance {
namespace {

// Straight from the definition.
bool is_near_occupied(const DenseField& dense, int x, int y, int z) {
    for (int dx = -1; dx <= 1; ++dx)
        for (int dy = -1; dy <= 1; ++dy)
            for (int dz = -1; dz <= 1; ++dz) {
                const int nx = x + dx, ny = y + dy, nz = z + dz;
                if (nx < 0 || ny < 0 || nz < 0 || nx >= dense.grid.size[0] || ny >= dense.grid.size[1] ||
                    nz >= dense.grid.size[2])
                    continue;
                if (bit_of(dense.occupied.data(), dense.grid.index(nx, ny, nz))) return true;
            }
    return false;
}

TEST(DenseField, PackedAndUnpackedIsTheSameWhereRaysLook) {
    for (float share : {0.0f, 0.002f, 0.02f, 1.0f}) {
        const DenseField dense = test::random_field({13, 8, 21}, {{0, 0, 0}, {1, 2, 3}}, share, 11);
        const Field field = pack(dense);
        EXPECT_EQ(fault_of(field), "");
        const DenseField again = unpack(field);
        EXPECT_EQ(again.occupied, dense.occupied);
        ASSERT_EQ(again.density.size(), dense.density.size());
        ASSERT_EQ(again.features.size(), dense.features.size());
        const std::vector<uint32_t> near = dilated(dense.grid, dense.occupied);
        std::vector<bool> wanted(field.brick.size());
        const std::array<int32_t, 3> bricks = dense.grid.bricks();
        for (int x = 0; x < dense.grid.size[0]; ++x)
            for (int y = 0; y < dense.grid.size[1]; ++y)
                for (int z = 0; z < dense.grid.size[2]; ++z) {
                    const int64_t i = dense.grid.index(x, y, z);
                    const bool is_near = is_near_occupied(dense, x, y, z);
                    EXPECT_EQ(bit_of(near.data(), i), is_near);
                    const int64_t b = (int64_t{x / kBrick} * bricks[1] + y / kBrick) * bricks[2] + z / kBrick;
                    if (is_near) wanted[static_cast<size_t>(b)] = true;
                    const bool stored = field.brick[static_cast<size_t>(b)] >= 0;
                    EXPECT_EQ(row_of(field, x, y, z) >= 0, stored);
                    const auto at = static_cast<size_t>(i);
                    EXPECT_EQ(again.density[at], stored ? dense.density[at] : kEmptyDensity);
                    for (size_t f = 0; f < kFeatures; ++f)
                        EXPECT_EQ(again.features[at * kFeatures + f], stored ? dense.features[at * kFeatures + f] : 0);
                }
        for (size_t b = 0; b < wanted.size(); ++b) EXPECT_EQ(field.brick[b] >= 0, wanted[b]) << b;
        // And once more: nothing changes any more.
        const Field twice = pack(again);
        EXPECT_EQ(twice.brick, field.brick);
        EXPECT_EQ(twice.density, field.density);
        EXPECT_EQ(twice.features, field.features);
        EXPECT_EQ(twice.occupied, field.occupied);
    }
}

TEST(DenseField, FeaturesBeyondHalfPrecisionAreCut) {
    DenseField dense = test::random_field({4, 4, 4}, {{0, 0, 0}, {1, 1, 1}}, 1, 1);
    dense.features[0] = 1e9f, dense.features[1] = -1e9f;
    const DenseField again = unpack(pack(dense));
    EXPECT_EQ(again.features[0], 65504.0f);
    EXPECT_EQ(again.features[1], -65504.0f);
}

TEST(DenseField, WrongSizesAreRefused) {
    DenseField dense = test::random_field({4, 4, 4}, {{0, 0, 0}, {1, 1, 1}}, 1, 1);
    dense.occupied.pop_back();
    EXPECT_ERROR(pack(dense), bad_argument, "size");
}

TEST(DenseField, EmptyDensityHasNoOpacity) {
    for (float alpha : {1e-6f, 1e-2f}) EXPECT_LT(opacity(kEmptyDensity + shift_of(alpha), 1.0f), 1e-30f);
}

}  // namespace
}  // namespace stipple::radiance
