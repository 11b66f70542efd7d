// The two searches of the CPU's knn step, each by itself; the step is tested on every device in
// run/device_steps_test.cpp.

#include "stipple/ops/knn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stipple/engine/cpu/steps.h"
#include "tests/engine/programs.h"

namespace stipple::test {
namespace {

using namespace engine;

std::vector<int32_t> neighbours(const std::vector<float>& points, int64_t k) {
    const auto n = static_cast<int64_t>(points.size()) / 3;
    std::vector<int32_t> found(static_cast<size_t>(n * k), -7);
    std::vector<std::byte> scratch(static_cast<size_t>(cpu::knn_scratch_bytes(3, k)));
    cpu::knn_all(points.data(), 3, n, 3, k, found.data(), 0, n, scratch.data());
    return found;
}

TEST(EngineCpuKnn, NeighboursAreThoseOfTheOp) {
    // A grid: nearly all distances are ties. 1500 points: more than one block of candidates.
    std::vector<float> grid = random_numbers(1500 * 3, 4);
    for (float& x : grid) x = std::round(x * 4);
    for (const std::vector<float>& points : {grid, random_numbers(1500 * 3, 5)})
        for (const int64_t k : {1, 7, 8, 9, 16, 20, 32, 33, 100}) {
            SCOPED_TRACE(k);
            std::vector<int32_t> expected(static_cast<size_t>(1500 * k)), tree = expected;
            const ops::Clouds cloud(View<const float, 2>(points.data(), {1500, 3}));
            ops::knn(ops::PointIndex(cloud), cloud, View<int32_t, 2>(expected.data(), {1500, k}), {});
            EXPECT_EQ(neighbours(points, k), expected);
            cpu::knn_tree(ops::PointIndex(cloud), {points.data(), 3, 1500}, true, k, tree.data());
            EXPECT_EQ(tree, expected);
        }
}

TEST(EngineCpuKnn, NeighboursThatAreMissingAreThePointItself) {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> points = {0, 0, 0, NAN, 0, 0, 1, 0, 0, 0, infinity, 0, 3e38f, 0, 0};
    const std::vector<int32_t> expected = {0, 2, 0, 1, 1, 1, 2, 0, 2, 3, 3, 3, 4, 4, 4};
    EXPECT_EQ(neighbours(points, 3), expected);
    std::vector<int32_t> tree(15);
    const ops::PointIndex index(ops::Clouds(View<const float, 2>(points.data(), {5, 3})));
    cpu::knn_tree(index, {points.data(), 3, 5}, true, 3, tree.data());
    EXPECT_EQ(tree, expected);
}

}  // namespace
}  // namespace stipple::test
