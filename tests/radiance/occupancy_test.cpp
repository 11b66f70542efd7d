// Which nodes are occupied, and which come back.

#include "stipple/radiance/cpu/occupancy.h"

#include <gtest/gtest.h>

#include <bit>

#include "stipple/core/rng.h"
#include "stipple/radiance/march/opacity.h"
#include "stipple/radiance/train.h"
#include "tests/support/analytic_scene.h"
#include "tests/support/margin.h"

namespace stipple::radiance {
namespace {

struct OccupancyGrid {
    GridShape shape;
    BrickTable numbers;
    std::vector<uint64_t> built;
    std::vector<float> density;
    StepConstants constants;

    /// A share of the nodes is occupied; the bricks near them are stored. Densities are transparent.
    OccupancyGrid(std::array<int32_t, 3> size, float share, uint64_t seed) {
        shape.size = size;
        shape.box = {{0, 0, 0}, {1, 1, 1}};
        const std::array<int32_t, 3> count = shape.bricks();
        const Rng rng(seed, 0);
        numbers = number_bricks(std::vector<uint8_t>(static_cast<size_t>(count[0] * count[1] * count[2]), 1));
        const auto occupy = [&] {
            built.assign(numbers.place.size(), 0);
            for_each([&](int x, int y, int z, size_t brick, int place) {
                if (rng.uniform(static_cast<uint64_t>(shape.index(x, y, z))) < share)
                    built[brick] |= uint64_t{1} << place;
            });
        };
        occupy();
        numbers = number_bricks(bricks_near(shape, numbers, built));
        occupy();
        density.assign(numbers.place.size() * kBrickNodes, -20);
        constants.threshold = 1e-3f;
        constants.shift = -2;
    }
    BrickGrid view() const {
        BrickGrid grid;
        grid.view = view_of(shape);
        for (size_t axis = 0; axis < 3; ++axis) grid.bricks[axis] = shape.bricks()[axis];
        grid.table = numbers.table.data();
        grid.occupied = built.data();
        return grid;
    }
    /// body(x, y, z, stored brick, place)
    template <class Body>
    void for_each(const Body& body) const {
        for (int x = 0; x < shape.size[0]; ++x)
            for (int y = 0; y < shape.size[1]; ++y)
                for (int z = 0; z < shape.size[2]; ++z) {
                    const int32_t brick = view().brick_of(x, y, z);
                    if (brick >= 0) body(x, y, z, static_cast<size_t>(brick), BrickGrid::place(x, y, z));
                }
    }
    float& density_at(int x, int y, int z) {
        return density[static_cast<size_t>(view().brick_of(x, y, z) * kBrickNodes + BrickGrid::place(x, y, z))];
    }
    std::vector<uint64_t> refreshed(const std::vector<uint64_t>& candidates) const {
        return cpu::still_occupied(view(), numbers, density, constants, candidates);
    }
};

TEST(Occupancy, IsThatOfNodesBesideSomethingOpaque) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
        OccupancyGrid grid({9, 14, 6}, seed % 2 == 0 ? 0.5f : 0.03f, seed);
        const Rng rng(seed, 1);
        for (size_t i = 0; i < grid.density.size(); ++i)
            if (rng.uniform(i) < 0.02f) grid.density[i] = 0;
        const std::vector<uint64_t> result = grid.refreshed(grid.built);
        int64_t kept = 0, freed = 0;
        grid.for_each([&](int x, int y, int z, size_t brick, int place) {
            bool opaque = false;
            grid.for_each([&](int ox, int oy, int oz, size_t other, int other_place) {
                if (std::max({std::abs(x - ox), std::abs(y - oy), std::abs(z - oz)}) > 1) return;
                const float d = grid.density[other * kBrickNodes + static_cast<size_t>(other_place)];
                opaque = opaque || opacity(d + grid.constants.shift, 1.0f) > grid.constants.threshold;
            });
            const bool was = grid.built[brick] >> place & 1, is = result[brick] >> place & 1;
            EXPECT_EQ(is, was && opaque);
            kept += is, freed += was && !is;
        });
        EXPECT_GT(kept, 0);
        EXPECT_GT(freed, 0);
    }
}

TEST(Occupancy, ComesBackWhereANeighbourHasGrown) {
    OccupancyGrid grid({16, 16, 16}, 0, 1);
    // Two occupied nodes side by side, and one that never was beside them.
    grid.numbers = number_bricks(std::vector<uint8_t>(64, 1));
    grid.built.assign(64, 0);
    grid.density.assign(64 * kBrickNodes, -20);
    const auto bit = [&](const std::vector<uint64_t>& bits, int x) {
        return bits[static_cast<size_t>(grid.view().brick_of(x, 8, 8))] >> BrickGrid::place(x, 8, 8) & 1;
    };
    for (const int x : {6, 7, 8})
        grid.built[static_cast<size_t>(grid.view().brick_of(x, 8, 8))] |= uint64_t{1} << BrickGrid::place(x, 8, 8);
    grid.density_at(8, 8, 8) = 0;
    const std::vector<uint64_t> first = grid.refreshed(grid.built);
    EXPECT_TRUE(bit(first, 8));
    EXPECT_TRUE(bit(first, 7));  // beside it
    EXPECT_FALSE(bit(first, 6));
    grid.density_at(7, 8, 8) = 0;  // rays that pass at node 7 have made it opaque
    EXPECT_FALSE(bit(grid.refreshed(first), 6));
    const std::vector<uint64_t> second = grid.refreshed(grid.built);
    EXPECT_TRUE(bit(second, 6));
    EXPECT_FALSE(bit(second, 5));  // it was not occupied at the start
    EXPECT_FALSE(bit(second, 9));
}

TEST(Occupancy, WhatComesBackHasAllItsNeighboursStored) {
    OccupancyGrid grid({13, 10, 17}, 0.01f, 5);
    std::fill(grid.density.begin(), grid.density.end(), 3.0f);  // all opaque
    const std::vector<uint64_t> result = grid.refreshed(grid.built);
    EXPECT_EQ(result, grid.built);
    const std::vector<uint8_t> needed = bricks_near(grid.shape, grid.numbers, result);
    for (size_t i = 0; i < needed.size(); ++i) {
        EXPECT_TRUE(!needed[i] || grid.numbers.table[i] >= 0);
    }
}

TrainOptions returning_options(bool returns) {
    TrainOptions options = small_options();
    options.coarse.N_iters = 120;
    options.coarse.lrate_density = 0.5f;
    options.coarse.N_rand = options.fine.N_rand = 256;
    options.coarse.num_voxels = options.coarse.num_voxels_base = 20 * 20 * 20;
    options.fine.N_iters = 120;
    options.fine.num_voxels = options.fine.num_voxels_base = 24 * 24 * 24;
    options.fine.pg_scale = {50};
    options.fine.refresh = 20;
    options.fine.fast_color_thres = 4e-3f;  // what has not grown is freed soon after the grid has
    options.occupancy_returns = returns;
    return options;
}

double occupied_share(const Field& field) {
    int64_t bits = 0;
    for (const uint64_t word : field.occupied) bits += std::popcount(word);
    return static_cast<double>(bits) / static_cast<double>(field.grid.nodes());
}

TEST(Occupancy, ReturnsInTraining) {
    const Scene scene = test::analytic_scene(24, 12, 0, test::trial());
    double psnr[2] = {}, share[2] = {};
    for (const bool returns : {false, true}) {
        TrainOptions options = returning_options(returns);
        options.seed = test::trial();
        const TrainResult result = train(scene, options, {}, [&](const TrainStep& step) { psnr[returns] = step.psnr; });
        share[returns] = occupied_share(result.field);
    }
    std::printf("for good: %.2f dB, %.1f %% occupied; returning: %.2f dB, %.1f %%\n", psnr[0], 100 * share[0], psnr[1],
                100 * share[1]);
    EXPECT_ABOVE(share[1], share[0]);  // some came back
    EXPECT_BELOW(share[1], 0.9);
    EXPECT_ABOVE(psnr[1], psnr[0] - 1);
}

TEST(OccupancyCuda, ReturnsAsOnTheCpu) {
    std::optional<Device> device;
    for (const DeviceInfo& info : list_devices())
        if (info.device.type == DeviceType::cuda) device = info.device;
    if (!device) GTEST_SKIP() << "no GPU";
    const Scene scene = test::analytic_scene(24, 12, 0, 0);
    TrainOptions options = returning_options(true);
    options.deterministic = true;
    options.half_network = false;
    const double on_cpu = occupied_share(train(scene, options, {}).field),
                 on_gpu = occupied_share(train(scene, options, *device).field);
    std::printf("occupied: CPU %.2f %%, CUDA %.2f %%\n", 100 * on_cpu, 100 * on_gpu);
    EXPECT_NEAR(on_cpu, on_gpu, 0.01);
}

}  // namespace
}  // namespace stipple::radiance
