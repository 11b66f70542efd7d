#include "stipple/geometry/registration/cell_centroids.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/ops/voxel_grid.h"

namespace stipple::test {
namespace {

using GridCell = std::array<int64_t, 3>;

/// Points in runs, as scanners give them, some of them not finite.
Array<float, 2> scanner_runs(int64_t n, double width) {
    Array<float, 2> points({n, 3});
    const Rng rng(5);
    for (int64_t i = 0; i < 3 * n; ++i)
        points.data()[i] = static_cast<float>(width * (rng.uniform(static_cast<uint64_t>(i / 21 * 3 + i % 3)) - 0.5) +
                                              0.02 * width * rng.uniform(static_cast<uint64_t>(i) + 1'000'000'000));
    for (int64_t i = 7; i < n; i += 100) points.data()[3 * i + i % 3] = i % 2 == 0 ? NAN : -INFINITY;
    return points;
}

TEST(GeometryCellCentroids, AreTheMeansOfTheirCells) {
    for (const int64_t n : {0, 1, 500, 100'000}) {
        for (const float size : {0.03f, 0.7f, 50.0f}) {
            const Array<float, 2> points = scanner_runs(n, 20);
            struct Sum {
                double at[3] = {};
                int64_t count = 0;
            };
            std::map<GridCell, Sum> naive;
            for (int64_t i = 0; i < n; ++i) {
                const float* p = points.data() + 3 * i;
                if (!std::isfinite(p[0]) || !std::isfinite(p[1]) || !std::isfinite(p[2])) continue;
                GridCell cell;
                for (int axis = 0; axis < 3; ++axis)
                    cell[axis] = static_cast<int64_t>(std::floor(double{p[axis]} / double{size}));
                Sum& sum = naive[cell];
                ++sum.count;
                for (int axis = 0; axis < 3; ++axis) sum.at[axis] += p[axis];
            }
            const Array<float, 2> found = geometry::cell_centroids(points.view(), size);
            ASSERT_EQ(found.size(0), static_cast<int64_t>(naive.size())) << n << " points, cells of " << size;
            // In the order of the grid's cells they are what voxel_centroids gives.
            const ops::VoxelGrid grid = ops::voxel_grid(points.view(), size);
            ASSERT_EQ(grid.cells.rows(), found.size(0));
            for (int64_t i = 0; i < found.size(0); ++i) {
                const float* at = found.data() + 3 * i;
                // A mean of float32 numbers may round to the border of its cell: look at both sides.
                bool matches = false;
                for (int side = 0; side < 27 && !matches; ++side) {
                    const int offsets[3] = {side % 3 - 1, side / 3 % 3 - 1, side / 9 - 1};
                    GridCell cell;
                    for (int axis = 0; axis < 3; ++axis)
                        cell[axis] = static_cast<int64_t>(std::floor(double{at[axis]} / double{size})) + offsets[axis];
                    const auto known = naive.find(cell);
                    if (known == naive.end()) continue;
                    matches = true;
                    for (int axis = 0; axis < 3; ++axis)
                        matches &= std::abs(known->second.at[axis] / static_cast<double>(known->second.count) -
                                            at[axis]) <= 2e-6;
                }
                EXPECT_TRUE(matches) << i;
            }
        }
    }
}

TEST(GeometryCellCentroids, ThreadsDoNotMatterAndCellsOutOfRangeAreRefused) {
    const Array<float, 2> points = scanner_runs(200'000, 30);
    const int before = threads();
    set_threads(1);
    const Array<float, 2> one = geometry::cell_centroids(points.view(), 0.4f);
    set_threads(3);
    const Array<float, 2> three = geometry::cell_centroids(points.view(), 0.4f);
    set_threads(before);
    ASSERT_EQ(one.size(0), three.size(0));
    for (int64_t i = 0; i < 3 * one.size(0); ++i) ASSERT_EQ(one.data()[i], three.data()[i]);
    EXPECT_THROW(geometry::cell_centroids(points.view(), 1e-9f), Error);
    EXPECT_THROW(geometry::cell_centroids(points.view(), 0), Error);
    EXPECT_THROW(geometry::cell_centroids(points.view(), NAN), Error);
}

}  // namespace
}  // namespace stipple::test
