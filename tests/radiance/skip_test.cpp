// Skipping along rays against looking at every sample.

#include "stipple/radiance/march/skip.h"

#include <gtest/gtest.h>

#include "stipple/core/rng.h"
#include "stipple/radiance/train/brick_table.h"

namespace stipple::radiance {
namespace {

struct SkipGrid {
    GridShape shape;
    BrickTable numbers;
    std::vector<uint64_t> occupied;
    std::vector<uint8_t> free;

    BrickGrid view() const {
        BrickGrid grid;
        grid.view = view_of(shape);
        for (size_t axis = 0; axis < 3; ++axis) grid.bricks[axis] = shape.bricks()[axis];
        grid.table = numbers.table.data();
        grid.occupied = occupied.data();
        grid.free = free.data();
        return grid;
    }
};

class Dice {
public:
    explicit Dice(uint64_t seed) : rng_(seed, 0) {}
    float between(float low, float high) { return low + (high - low) * rng_.uniform(next_++); }
    int below(int n) { return static_cast<int>(rng_.below(next_++, static_cast<uint32_t>(n))); }

private:
    Rng rng_;
    uint64_t next_ = 0;
};

/// Nodes are occupied in clusters of up to 3^3; `clusters` 0: none.
SkipGrid random_grid(Dice& dice, int clusters) {
    SkipGrid grid;
    // Half of the boxes have corners that floats hold exactly, so that rays can run along the borders of bricks.
    const bool exact = dice.below(2) == 0;
    const float away = dice.below(4) == 0 ? 900.0f : 0.0f;
    for (int axis = 0; axis < 3; ++axis) {
        const int32_t size = 2 + dice.below(60);
        grid.shape.size[static_cast<size_t>(axis)] = size;
        const float low = away + (exact ? -2.0f : dice.between(-3, 1));
        grid.shape.box.low[axis] = low;
        grid.shape.box.high[axis] = low + (exact ? 0.25f * static_cast<float>(size - 1) : dice.between(0.5f, 9));
    }
    grid.shape.voxel = std::min({grid.shape.spacing(0), grid.shape.spacing(1), grid.shape.spacing(2)});
    const std::array<int32_t, 3> count = grid.shape.bricks();
    std::vector<uint8_t> stored(static_cast<size_t>(count[0] * count[1] * count[2]));
    for (uint8_t& s : stored) s = dice.below(3) > 0;
    stored[0] = 1;
    grid.numbers = number_bricks(stored);
    grid.occupied.assign(grid.numbers.place.size(), 0);
    for (int c = 0; c < clusters; ++c) {
        int at[3];
        for (size_t axis = 0; axis < 3; ++axis) at[axis] = dice.below(grid.shape.size[axis]);
        for (int k = 0; k < 27; ++k) {
            const int n[3] = {at[0] + k / 9 - 1, at[1] + k / 3 % 3 - 1, at[2] + k % 3 - 1};
            if (dice.below(2) == 0) continue;
            bool within = true;
            for (size_t axis = 0; axis < 3; ++axis) within = within && n[axis] >= 0 && n[axis] < grid.shape.size[axis];
            if (!within) continue;
            const int32_t brick = grid.view().brick_of(n[0], n[1], n[2]);
            if (brick >= 0)
                grid.occupied[static_cast<size_t>(brick)] |= uint64_t{1} << BrickGrid::place(n[0], n[1], n[2]);
        }
    }
    grid.free = free_bricks(grid.shape, grid.numbers.table, grid.occupied);
    return grid;
}

/// Towards the grid from outside or inside; some along axes, some nearly, some through corners of bricks.
Ray random_ray(Dice& dice, const GridShape& shape) {
    const auto place = [&](bool on_borders) {
        Vec3f p;
        for (int axis = 0; axis < 3; ++axis) {
            const float low = shape.box.low[axis], extent = shape.box.extent(axis);
            p[axis] = low + dice.between(0, 1) * extent;
            if (on_borders) {
                const auto brick = static_cast<float>(dice.below(shape.bricks()[static_cast<size_t>(axis)]));
                p[axis] = low + (brick * kBrick - 0.5f) * shape.spacing(axis);
            }
        }
        return p;
    };
    const bool on_borders = dice.below(3) == 0;
    const Vec3f target = place(on_borders);
    Ray ray;
    ray.origin = place(on_borders && dice.below(2) == 0);
    if (dice.below(4) != 0) {
        for (int axis = 0; axis < 3; ++axis) ray.origin[axis] += dice.between(-12, 12);
    }
    ray.direction = target - ray.origin;
    const int kind = dice.below(4);
    for (int axis = 0; kind > 0 && axis < 3; ++axis) {
        if (dice.below(2) == 0) continue;
        // Nearly or exactly across this axis.
        ray.direction[axis] = kind == 1 ? 0 : kind == 2 ? dice.between(-1e-6f, 1e-6f) : dice.between(-1e-3f, 1e-3f);
        ray.origin[axis] = target[axis];
    }
    if (ray.direction.x == 0 && ray.direction.y == 0 && ray.direction.z == 0) ray.direction.z = 1;
    return ray;
}

TEST(SkipFreeBricks, LeavesTheSamplesThatAreOccupied) {
    Dice dice(11);
    int64_t looked_at = 0, in_box = 0, accepted = 0;
    for (int trial = 0; trial < 160; ++trial) {
        const int clusters[] = {0, 1, 4, 20, 200, 3000};
        const SkipGrid shape = random_grid(dice, clusters[trial % 6]);
        const BrickGrid grid = shape.view();
        for (int r = 0; r < 120; ++r) {
            const Ray ray = random_ray(dice, shape.shape);
            const float step = shape.shape.voxel * (dice.below(2) == 0 ? 0.5f : dice.between(0.1f, 3));
            const March march = march_through(ray, grid.view.low, grid.view.high, dice.below(3) == 0 ? 1.0f : 0.0f,
                                              step, dice.below(2) == 0 ? 0.0f : dice.between(0, 1));
            std::vector<int32_t> every, skipped;
            int32_t inside_count = 0;
            for (int32_t i = 0; i < march.samples; ++i) {
                const Vec3f p = march.at(i);
                if (!is_inside(grid.view, p)) continue;
                ++inside_count;
                if (is_occupied(grid, to_nodes(grid.view, p))) every.push_back(i);
            }
            const SampleRange inside = samples_inside(grid.view, march);
            ASSERT_EQ(inside.end - inside.begin, inside_count);
            const Vec3f per_node = samples_per_node(grid.view, march);
            for (int32_t i = inside.begin;; ++i) {
                i = next_sample(grid, march, per_node, i, inside.end);
                if (i >= inside.end) break;
                ++looked_at;
                if (is_occupied(grid, to_nodes(grid.view, march.at(i)))) skipped.push_back(i);
            }
            ASSERT_EQ(skipped, every) << "trial " << trial << ", ray " << r;
            in_box += inside_count;
            accepted += static_cast<int64_t>(every.size());
        }
    }
    std::printf("%ld samples in boxes, %ld looked at, %ld occupied\n", long(in_box), long(looked_at), long(accepted));
    EXPECT_GT(accepted, 10000);
    EXPECT_LT(looked_at, in_box / 2);  // most bricks are free
}

TEST(SkipFreeBricks, StopsAtTheEndThatItIsGiven) {
    Dice dice(5);
    const SkipGrid shape = random_grid(dice, 6);
    const BrickGrid grid = shape.view();
    for (int r = 0; r < 400; ++r) {
        const March march =
            march_through(random_ray(dice, shape.shape), grid.view.low, grid.view.high, 0, 0.5f * shape.shape.voxel);
        const SampleRange inside = samples_inside(grid.view, march);
        const Vec3f per_node = samples_per_node(grid.view, march);
        for (int32_t begin = inside.begin; begin < inside.end; begin += 16) {
            const int32_t end = std::min(begin + 16, inside.end);
            int32_t first = end;
            for (int32_t i = end; i-- > begin;) {
                const BrickPlace b = nearest_brick(grid.view, to_nodes(grid.view, march.at(i)));
                if (shape.free[static_cast<size_t>((b.x * grid.bricks[1] + b.y) * grid.bricks[2] + b.z)] == 0)
                    first = i;
            }
            EXPECT_EQ(next_sample(grid, march, per_node, begin, end), first);
        }
    }
}

TEST(SkipFreeBricks, WithoutATableNothingIsSkipped) {
    Dice dice(6);
    const SkipGrid shape = random_grid(dice, 1);
    BrickGrid grid = shape.view();
    grid.free = nullptr;
    EXPECT_EQ(next_sample(grid, March{}, {}, 3, 9), 3);
}

TEST(FreeBricks, AreCountedToTheNearestOccupiedOne) {
    Dice dice(3);
    for (int trial = 0; trial < 40; ++trial) {
        const SkipGrid grid = random_grid(dice, trial % 4);
        const std::array<int32_t, 3> size = grid.shape.bricks();
        for (size_t i = 0; i < grid.free.size(); ++i) {
            const auto place = [&](size_t at, int axis) {
                const auto n = static_cast<int32_t>(at);
                return axis == 0 ? n / (size[1] * size[2]) : axis == 1 ? n / size[2] % size[1] : n % size[2];
            };
            int nearest = kMostFree;
            for (size_t j = 0; j < grid.free.size(); ++j) {
                const int32_t number = grid.numbers.table[j];
                if (number < 0 || grid.occupied[static_cast<size_t>(number)] == 0) continue;
                int farthest = 0;
                for (int axis = 0; axis < 3; ++axis)
                    farthest = std::max(farthest, std::abs(place(i, axis) - place(j, axis)));
                nearest = std::min(nearest, farthest);
            }
            ASSERT_EQ(grid.free[i], nearest);
        }
    }
}

}  // namespace
}  // namespace stipple::radiance
