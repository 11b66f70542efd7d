// examples/data/table.field: where it comes from, and that it still is what the documentation shows.

#include <gtest/gtest.h>

#include <cstdlib>

#include "stipple/radiance/evaluate.h"
#include "tests/support/analytic_scene.h"
#include "tests/support/radiance_fields.h"

namespace stipple::radiance {
namespace {

constexpr const char* kExampleField = STIPPLE_SOURCE_DIR "/examples/data/table.field";

/// Of the things in the analytic scene, by their places: a chequered disc below, what is on it in colours of its own.
Vec3f example_colour(Vec3d p) {
    constexpr double kFloor = -0.58, kSquare = 0.44;
    if (p.z < kFloor) {
        const bool is_dark = (static_cast<int>(std::floor(p.x / kSquare) + std::floor(p.y / kSquare)) & 1) != 0;
        return is_dark ? Vec3f{0.25f, 0.3f, 0.35f} : Vec3f{0.9f, 0.9f, 0.85f};
    }
    if (p.y > 0.2) return {0.2f, 0.45f, 0.8f};
    return p.x < 0 ? Vec3f{0.85f, 0.3f, 0.2f} : Vec3f{0.25f, 0.65f, 0.3f};
}

/// The analytic scene's surface as a density two voxels thick, without a network.
DenseField example_field() {
    DenseField dense = test::empty_field({26, 26, 20}, {{-1.15f, -1.15f, -0.9f}, {1.15f, 1.15f, 0.9f}});
    const float voxel = dense.grid.voxel;
    test::set_density(dense, [&](Vec3f p) {
        const auto inside = static_cast<float>(-test::analytic_distance({p.x, p.y, p.z})) / voxel;
        return inside < -1.2f || inside > 2 ? kEmptyDensity : std::fmin(20.0f, 6 + 14 * inside);
    });
    const GridShape& grid = dense.grid;
    for (int x = 0; x < grid.size[0]; ++x)
        for (int y = 0; y < grid.size[1]; ++y)
            for (int z = 0; z < grid.size[2]; ++z) {
                const Vec3f colour = example_colour({grid.box.low[0] + static_cast<double>(x) * grid.spacing(0),
                                                     grid.box.low[1] + static_cast<double>(y) * grid.spacing(1),
                                                     grid.box.low[2] + static_cast<double>(z) * grid.spacing(2)});
                for (int c = 0; c < 3; ++c)
                    dense.features[static_cast<size_t>(grid.index(x, y, z) * kFeatures + c)] =
                        std::log(colour[c] / (1 - colour[c]));
            }
    dense.cameras = test::cameras_about({0, 0, 0}, test::kAnalyticDistance, 24, 160);
    dense.near = test::kAnalyticNear;
    dense.notes = {{"scene", "a table, by its distance function"}};
    return dense;
}

TEST(ExampleField, IsTheOneThatIsMadeHere) {
    const Field made = pack(example_field());
    if (std::getenv("STIPPLE_WRITE_EXAMPLES")) save_field(kExampleField, made, Overwrite::allow);
    const Field field = load_field(kExampleField);
    EXPECT_EQ(field.grid.size, made.grid.size);
    EXPECT_EQ(field.brick, made.brick);
    EXPECT_EQ(field.occupied, made.occupied);
    ASSERT_EQ(field.density.size(), made.density.size());
    for (size_t i = 0; i < field.density.size(); ++i) EXPECT_NEAR(field.density[i], made.density[i], 1e-3);
    EXPECT_EQ(field.features, made.features);
    EXPECT_EQ(field.cameras.size(), made.cameras.size());
}

}  // namespace
}  // namespace stipple::radiance
