#include "stipple/ops/voxel_grid.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/ops/ops.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::VoxelGrid;

class VoxelGridOp : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(VoxelGridOp);

using Cell = std::array<int64_t, 3>;  // z, y, x: the order of the cells

bool is_finite_point(const float* p) {
    return std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
}

/// Cells of one cloud by long double, whose quotients of floats are exact enough for any floor.
std::map<Cell, std::vector<int32_t>> cells_of(View<const float, 2> points, float size,
                                              const std::array<double, 3>& origin) {
    std::map<Cell, std::vector<int32_t>> cells;
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float p[3] = {points(i, 0), points(i, 1), points(i, 2)};
        if (!is_finite_point(p)) continue;
        Cell cell;
        for (int axis = 0; axis < 3; ++axis) {
            const double difference = p[axis] - origin[axis];
            cell[2 - axis] = static_cast<int64_t>(std::floor(static_cast<long double>(difference) / size));
        }
        cells[cell].push_back(static_cast<int32_t>(i));
    }
    return cells;
}

/// The grid, its means and both representatives against the oracle, cloud by cloud.
void expect_grid(Device device, const Array<float, 2>& host, const Batch& batch, float size,
                 const std::array<double, 3>& origin = {}) {
    const Array<float, 2> points = host.to(device);
    const VoxelGrid grid = ops::voxel_grid(Clouds(points.view(), batch), size, origin);
    const int64_t rows = grid.cells.rows();
    ASSERT_EQ(grid.cells.clouds(), batch.clouds());
    ASSERT_EQ(grid.points.rows(), batch.rows());
    // One row more than the output: it must stay as it is.
    Array<float, 2> means({rows + 1, 3}, device);
    Array<int32_t, 1> middles({rows + 1}, device), centrals({rows + 1}, device);
    const std::vector<float> sentinel = {1234, 5678, 91011};
    copy_bytes(means.data() + 3 * rows, device, sentinel.data(), Device{}, 12);
    const int32_t sentinel_index = -77;
    copy_bytes(middles.data() + rows, device, &sentinel_index, Device{}, 4);
    copy_bytes(centrals.data() + rows, device, &sentinel_index, Device{}, 4);
    const auto mean_view = means.view().slice(0, rows);
    ops::voxel_centroids(grid, points.view(), mean_view);
    ops::voxel_representatives(grid, points.view(), middles.view().slice(0, rows));
    ops::voxel_representatives(grid, points.view(), mean_view, centrals.view().slice(0, rows));
    const auto cell_of_point = download(grid.cell_of_point), order = download(grid.order);
    const auto offsets = download(grid.offsets);
    const auto coordinates = download(grid.coordinates);
    const auto mean = download(means);
    const auto middle = download(middles), central = download(centrals);
    ASSERT_EQ(cell_of_point.size(0), batch.rows());
    ASSERT_EQ(offsets.size(0), rows + 1);
    EXPECT_EQ(0, std::memcmp(mean.data() + 3 * rows, sentinel.data(), 12));
    EXPECT_EQ(middle.data()[rows], sentinel_index);
    EXPECT_EQ(central.data()[rows], sentinel_index);

    int64_t row = 0, place = 0;
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
        const auto part = Clouds(host.view(), batch).cloud(cloud);
        const auto cells = cells_of(part, size, origin);
        ASSERT_EQ(grid.cells.size(cloud), static_cast<int64_t>(cells.size())) << "cloud " << cloud;
        ASSERT_EQ(grid.cells.begin(cloud), row);
        std::vector<int32_t> expected_cell(static_cast<size_t>(part.size(0)), -1);
        int32_t number = 0;
        for (const auto& [cell, members] : cells) {
            for (int axis = 0; axis < 3; ++axis) ASSERT_EQ(coordinates.data()[3 * row + axis], cell[2 - axis]);
            ASSERT_EQ(offsets.data()[row], place);
            double total[3] = {}, sum[3] = {};
            for (size_t k = 0; k < members.size(); ++k) {
                ASSERT_EQ(order.data()[place++], members[k]);
                expected_cell[members[k]] = number;
                for (int axis = 0; axis < 3; ++axis) sum[axis] += part(members[k], axis);
                if (k % 256 != 255 && k + 1 != members.size()) continue;
                for (int axis = 0; axis < 3; ++axis) total[axis] += std::exchange(sum[axis], 0);
            }
            int32_t best[2] = {-1, -1};
            double best_sq[2];
            for (int axis = 0; axis < 3; ++axis)
                ASSERT_EQ(mean.data()[3 * row + axis],
                          static_cast<float>(total[axis] / static_cast<double>(members.size())));
            for (int32_t member : members) {
                double sq[2] = {};
                for (int axis = 0; axis < 3; ++axis) {
                    const double centre = origin[axis] + (static_cast<double>(cell[2 - axis]) + 0.5) * size;
                    const double d[2] = {part(member, axis) - centre,
                                         static_cast<double>(part(member, axis)) - mean.data()[3 * row + axis]};
                    for (int k = 0; k < 2; ++k) sq[k] += d[k] * d[k];
                }
                for (int k = 0; k < 2; ++k)
                    if (best[k] < 0 || sq[k] < best_sq[k]) best[k] = member, best_sq[k] = sq[k];
            }
            ASSERT_EQ(middle.data()[row], best[0]);
            ASSERT_EQ(central.data()[row], best[1]);
            ++row, ++number;
        }
        for (int64_t i = 0; i < part.size(0); ++i)
            ASSERT_EQ(cell_of_point.data()[batch.begin(cloud) + i], expected_cell[i]);
    }
    EXPECT_EQ(offsets.data()[rows], place);
    EXPECT_EQ(order.size(0), place);
}

float size_for(Kind kind) {
    switch (kind) {
        case Kind::huge: return 7e16f;
        case Kind::tiny: return 7e-20f;
        case Kind::clustered: return 0.3f;
        case Kind::lattice: return 1;  // every point on a corner of cells
        default: return 0.07f;
    }
}

TEST_P(VoxelGridOp, IsTheOraclesForEveryKindAndSize) {
    for (Kind kind : all_kinds()) {
        for (int64_t n : {0, 1, 2, 63, 1001, 5000}) {
            SCOPED_TRACE(to_string(kind) + " " + std::to_string(n));
            const auto points = make_cloud(kind, n);
            expect_grid(device(), points, Batch::single(n), size_for(kind));
            if (HasFatalFailure()) return;
        }
    }
}

TEST_P(VoxelGridOp, OfBatches) {
    const auto points = make_cloud(Kind::nonfinite, 3000);
    expect_grid(device(), points, Batch::dense(3, 1000), 0.1f);
    expect_grid(device(), points, Batch::ragged({0, 0, 10, 10, 2000, 2001, 3000, 3000}), 0.1f);
    expect_grid(device(), make_cloud(Kind::uniform, 0), Batch::ragged({0, 0, 0}), 0.1f);
    expect_grid(device(), make_cloud(Kind::uniform, 0), Batch::dense(4, 0), 0.1f);
}

TEST_P(VoxelGridOp, CellsBeginAtTheOrigin) {
    const auto points = make_cloud(Kind::uniform, 2000);
    expect_grid(device(), points, Batch::single(2000), 0.11f, {0.013, -7.7, 1e5});
    // Cells that are narrower than the steps of float: many bits of keys, the wide sort.
    expect_grid(device(), make_cloud(Kind::uniform, 3000), Batch::single(3000), 1e-6f, {1, 2, 3});
}

TEST_P(VoxelGridOp, FloorIsExactAtTheBoundaries) {
    // Multiples of the size and their neighbours: a rounded quotient would put some into the wrong cell.
    for (float size : {0.1f, 0.02f, 1 / 3.f, 0.7f, 1e-3f}) {
        Array<float, 2> points({3000, 3});
        for (int64_t i = 0; i < 3000; ++i) {
            const float at = static_cast<float>(i / 3 - 500) * size;
            const float p[3] = {std::nextafter(at, -INFINITY), at, std::nextafter(at, INFINITY)};
            for (int axis = 0; axis < 3; ++axis) points.view()(i, axis) = p[(i + axis) % 3];
        }
        expect_grid(device(), points, Batch::single(3000), size);
    }
}

TEST_P(VoxelGridOp, OneCellOfManyPoints) {
    // More than the block of a kernel adds in one round, and a small cell beside it.
    auto points = make_cloud(Kind::uniform, 40001);
    points.view()(0, 0) = 100;
    expect_grid(device(), points, Batch::single(40001), 2);
}

TEST_P(VoxelGridOp, AveragesAttributesOfAnyWidthAndStride) {
    const auto host = make_cloud(Kind::uniform, 500), features = make_features(500, 11);
    const auto points = upload(host), rows = upload(features);
    const VoxelGrid grid = ops::voxel_grid(points.view(), 0.25f);
    const auto cell_of_point = download(grid.cell_of_point);
    for (int64_t c : {0, 1, 2, 3, 5, 7}) {
        Array<float, 2> out({grid.cells.rows(), c}, device());
        const View<const float, 2> columns(rows.data() + 2, {500, c}, {11, 1}, device());
        ops::voxel_centroids(grid, columns, out.view());
        const auto means = download(out);
        for (int64_t cell = 0; cell < grid.cells.rows(); ++cell) {
            for (int64_t k = 0; k < c; ++k) {
                double sum = 0, count = 0;
                for (int64_t i = 0; i < 500; ++i)
                    if (cell_of_point.data()[i] == cell) sum += features.view()(i, 2 + k), ++count;
                ASSERT_EQ(means.view()(cell, k), static_cast<float>(sum / count));
            }
        }
    }
}

TEST_P(VoxelGridOp, PointsOfAnyStride) {
    const auto wide = make_features(1000, 5);
    Array<float, 2> packed({1000, 3});
    for (int64_t i = 0; i < 1000; ++i)
        for (int axis = 0; axis < 3; ++axis) packed.view()(i, axis) = wide.view()(i, axis + 1);
    const auto on_device = upload(wide), packed_on_device = upload(packed);
    const View<const float, 2> view(on_device.data() + 1, {1000, 3}, {5, 1}, device());
    const VoxelGrid a = ops::voxel_grid(view, 0.1f), b = ops::voxel_grid(packed_on_device.view(), 0.1f);
    const auto cells_a = download(a.cell_of_point), cells_b = download(b.cell_of_point);
    EXPECT_EQ(0, std::memcmp(cells_a.data(), cells_b.data(), 4000));
    Array<int32_t, 1> chosen_a({a.cells.rows()}, device()), chosen_b({b.cells.rows()}, device());
    ops::voxel_representatives(a, view, chosen_a.view());
    ops::voxel_representatives(b, packed_on_device.view(), chosen_b.view());
    const auto host_a = download(chosen_a), host_b = download(chosen_b);
    EXPECT_EQ(0, std::memcmp(host_a.data(), host_b.data(), 4 * a.cells.rows()));
}

TEST(VoxelGridCpu, SameOnOneThreadAndThree) {
    expect_same_on_threads([] {
        std::vector<Array<float, 2>> results;
        for (Kind kind : {Kind::uniform, Kind::nonfinite, Kind::duplicated}) {
            const auto points = make_cloud(kind, 150000);
            const VoxelGrid grid = ops::voxel_grid(Clouds(points.view(), Batch::ragged({0, 70000, 150000})), 0.05f);
            Array<float, 2> means({grid.cells.rows(), 3});
            ops::voxel_centroids(grid, points.view(), means.view());
            Array<float, 2> numbers({grid.order.size(0) + grid.cell_of_point.size(0), 1});
            std::memcpy(numbers.data(), grid.order.data(), 4 * grid.order.size(0));
            std::memcpy(numbers.data() + grid.order.size(0), grid.cell_of_point.data(), 4 * 150000);
            results.push_back(std::move(means));
            results.push_back(std::move(numbers));
        }
        return results;
    });
}

TEST(VoxelGridCpu, PermutedPointsGiveTheSameCells) {
    const auto points = make_cloud(Kind::clustered, 4000);
    Array<float, 2> reversed({4000, 3});
    for (int64_t i = 0; i < 4000; ++i) std::memcpy(reversed.data() + 3 * i, points.data() + 3 * (3999 - i), 12);
    const VoxelGrid a = ops::voxel_grid(points.view(), 0.01f), b = ops::voxel_grid(reversed.view(), 0.01f);
    ASSERT_EQ(a.cells.rows(), b.cells.rows());
    for (int64_t i = 0; i < 4000; ++i) ASSERT_EQ(a.cell_of_point.data()[i], b.cell_of_point.data()[3999 - i]);
}

TEST(VoxelGridCpu, RefusesWhatMakesNoSense) {
    const auto points = make_cloud(Kind::uniform, 10);
    const float infinity = std::numeric_limits<float>::infinity();
    for (float size : {0.f, -1.f, infinity, std::nanf("")}) {
        const std::string message = bad_argument_of([&] { ops::voxel_grid(points.view(), size); });
        EXPECT_NE(message.find("voxel_grid: the size of a cell must be above 0"), std::string::npos) << message;
    }
    bad_argument_of([&] { ops::voxel_grid(points.view(), 1, {0, std::nan(""), 0}); });
    bad_argument_of([&] { ops::voxel_grid(make_features(10, 2).view(), 1); });
    const std::string small = bad_argument_of([&] { ops::voxel_grid(points.view(), 1e-12f); });
    EXPECT_NE(small.find("268435456"), std::string::npos) << small;
    const std::string many = bad_argument_of([&] { ops::voxel_grid(make_cloud(Kind::uniform, 100).view(), 1e-8f); });
    EXPECT_NE(many.find("are too many"), std::string::npos) << many;

    const VoxelGrid grid = ops::voxel_grid(points.view(), 0.5f);
    const int64_t cells = grid.cells.rows();
    Array<float, 2> out({cells, 3}), wrong({cells + 1, 3});
    Array<int32_t, 1> chosen({cells}), chosen_wrong({cells + 1});
    bad_argument_of([&] { ops::voxel_centroids(grid, points.view().slice(0, 9), out.view()); });
    bad_argument_of([&] { ops::voxel_centroids(grid, points.view(), wrong.view()); });
    bad_argument_of([&] { ops::voxel_representatives(grid, points.view(), chosen_wrong.view()); });
    bad_argument_of([&] { ops::voxel_representatives(grid, points.view(), wrong.view(), chosen.view()); });
    bad_argument_of([&] { ops::voxel_representatives(grid, make_features(10, 4).view(), chosen.view()); });
    const Device gpu{DeviceType::cuda, 0};
    bad_argument_of([&] { ops::voxel_centroids(grid, View<const float, 2>(nullptr, {10, 3}, gpu), out.view()); });
    bad_argument_of([&] { ops::voxel_centroids(grid, points.view(), View<float, 2>(nullptr, {cells, 3}, gpu)); });
    const int64_t huge = int64_t{1} << 31;
    bad_argument_of([&] { ops::voxel_grid(View<const float, 2>(nullptr, {huge, 3}, {0, 1}), 1); });
}

TEST(VoxelGridCpu, SurvivesFailingAllocations) {
    const auto points = make_cloud(Kind::nonfinite, 3000);
    EXPECT_GE(for_each_allocation_failure([&] {
                  const VoxelGrid grid = ops::voxel_grid(points.view(), 0.2f);
                  Array<float, 2> means({grid.cells.rows(), 3});
                  ops::voxel_centroids(grid, points.view(), means.view());
              }),
              can_fail_allocations() ? 5 : 0);
}

TEST(VoxelGridCpu, KeepsNoMemory) {
    const auto points = make_cloud(Kind::uniform, 20);
    const auto once = [&] {
        const VoxelGrid grid = ops::voxel_grid(points.view(), 0.3f);
        Array<float, 2> means({grid.cells.rows(), 3});
        ops::voxel_centroids(grid, points.view(), means.view());
    };
    once();
    const int64_t before = live_allocations();
    for (int i = 0; i < 3000; ++i) once();
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace stipple::test
