#include "stipple/geometry/cloud/point_cells.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/ops/sampling/voxel_cell.h"

namespace stipple::geometry {
namespace {

/// Numbers cells along an axis anew so that they fit in 32 bits: neighbours stay neighbours, gaps become one cell wide.
void close_gaps(std::vector<int64_t>& cells) {
    std::vector<int64_t> sorted = cells;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    std::vector<int64_t> number(sorted.size(), 0);
    for (size_t i = 1; i < sorted.size(); ++i) number[i] = number[i - 1] + (sorted[i] - sorted[i - 1] == 1 ? 1 : 2);
    for (int64_t& cell : cells) cell = number[std::lower_bound(sorted.begin(), sorted.end(), cell) - sorted.begin()];
}

/// The same as ops::voxel_grid, by comparison, for cells that it refuses to number.
PointCells wide_cells(View<const float, 2> points, double size) {
    std::vector<int32_t> finite;
    for (int64_t i = 0; i < points.size(0); ++i)
        if (std::isfinite(points(i, 0)) && std::isfinite(points(i, 1)) && std::isfinite(points(i, 2)))
            finite.push_back(static_cast<int32_t>(i));
    struct Entry {
        int32_t at[3];
        int32_t index;
        bool operator<(const Entry& o) const {
            for (int axis = 2; axis >= 0; --axis)
                if (at[axis] != o.at[axis]) return at[axis] < o.at[axis];
            return index < o.index;
        }
    };
    std::vector<Entry> entries(finite.size());
    std::vector<int64_t> cells(finite.size());
    for (int axis = 0; axis < 3; ++axis) {
        for (size_t i = 0; i < finite.size(); ++i)
            cells[i] = static_cast<int64_t>(std::floor(points(finite[i], axis) / size));
        close_gaps(cells);
        for (size_t i = 0; i < finite.size(); ++i) entries[i].at[axis] = static_cast<int32_t>(cells[i]);
    }
    for (size_t i = 0; i < finite.size(); ++i) entries[i].index = finite[i];
    std::sort(entries.begin(), entries.end());
    const auto starts = [&](size_t i) {
        return i == 0 || !std::equal(entries[i].at, entries[i].at + 3, entries[i - 1].at);
    };
    int64_t count = 0;
    for (size_t i = 0; i < entries.size(); ++i) count += starts(i);
    PointCells result;
    result.order = Array<int32_t, 1>({static_cast<int64_t>(entries.size())});
    result.offsets = Array<int64_t, 1>({count + 1});
    result.coordinates = Array<int32_t, 2>({count, 3});
    int64_t cell = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
        result.order.data()[i] = entries[i].index;
        if (!starts(i)) continue;
        result.offsets.data()[cell] = static_cast<int64_t>(i);
        std::copy_n(entries[i].at, 3, result.coordinates.data() + 3 * cell++);
    }
    result.offsets.data()[count] = static_cast<int64_t>(entries.size());
    return result;
}

}  // namespace

int32_t PointCells::lower_bound(int32_t x, int32_t y, int32_t z) const {
    auto low = int32_t{0}, high = static_cast<int32_t>(cells());
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (before(middle, x, y, z))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

namespace {

PointCells sort_points(View<const float, 2> points, double size) {
    const ops::FiniteBox box = ops::cpu::finite_boxes(points)[0];
    double extent = 0, largest = 0;
    for (int axis = 0; axis < 3 && !box.empty(); ++axis) {
        extent = std::max(extent, double{box.high[axis]} - box.low[axis]);
        largest = std::max({largest, std::abs(double{box.low[axis]}), std::abs(double{box.high[axis]})});
    }
    // A little wider: quotients up to 2^40 are rounded by less than that in float64.
    size = 1.001 * std::max(size, largest * 0x1p-40);
    const auto edge = std::nextafter(static_cast<float>(size), std::numeric_limits<float>::infinity());
    if (box.empty() || !(extent < size * 0x1p20)) return wide_cells(points, size);
    ops::VoxelGrid grid = ops::voxel_grid(points, edge, {box.low[0], box.low[1], box.low[2]});
    return {std::move(grid.order), {}, std::move(grid.offsets), std::move(grid.coordinates)};
}

}  // namespace

PointCells point_cells(View<const float, 2> points, double size) {
    PointCells cells = sort_points(points, size);
    cells.points = Array<float, 2>({cells.order.size(0), 3});
    parallel_for(cells.order.size(0), 8192, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            for (int axis = 0; axis < 3; ++axis)
                cells.points.data()[3 * i + axis] = points(cells.order.data()[i], axis);
    });
    return cells;
}

}  // namespace stipple::geometry
