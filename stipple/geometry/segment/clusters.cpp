#include "stipple/geometry/clusters.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stipple/core/box.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/cloud/point_cells.h"

namespace stipple::geometry {
namespace {

// 1 / sqrt(3), and less by what point_cells adds to the edge.
constexpr double kClusterEdge = 0.57735026918962576 / 1.0012;

/// Points in cubes whose diagonal is the radius: all points of a cube are neighbours, and neighbours are at most two
/// cubes apart on each axis.
class Clustering {
public:
    Clustering(View<const float, 2> points, double radius, double edge, int64_t min_points)
        : limit_(radius * radius),
          min_points_(min_points),
          cells_(point_cells(points, edge)),
          offsets_(cells_.offsets.data()),
          core_(static_cast<size_t>(cells_.order.size(0)), 0),
          boxes_(static_cast<size_t>(cells_.cells()), Box<float>::none()),
          parent_(static_cast<size_t>(cells_.cells())) {
        std::iota(parent_.begin(), parent_.end(), 0);
        find_core();
        join();
        number();
        label();
    }

    void store(DensityClusters& result) const {
        for (size_t i = 0; i < core_.size(); ++i) {
            const int32_t point = cells_.order.data()[i];
            result.labels.data()[point] = labels_[i];
            result.core.data()[point] = core_[i];
        }
        result.count = count_;
    }

private:
    static constexpr int64_t kCellGrain = 2048;

    struct Run {
        int32_t begin, end;  // cells
    };

    const float* point(int64_t place) const { return cells_.points.data() + 3 * place; }

    bool within(const float* p, const float* q) const {
        const double dx = double{p[0]} - q[0], dy = double{p[1]} - q[1], dz = double{p[2]} - q[2];
        return dx * dx + dy * dy + dz * dz <= limit_;
    }
    /// Whether a point may have a neighbour in a box.
    bool within(const float* p, const Box<float>& box) const {
        double sum = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const double d = std::max({0.0, double{box.low[axis]} - p[axis], double{p[axis]} - box.high[axis]});
            sum += d * d;
        }
        return sum <= limit_;
    }
    bool within(const Box<float>& a, const Box<float>& b) const {
        double sum = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const double d = std::max({0.0, double{a.low[axis]} - b.high[axis], double{b.low[axis]} - a.high[axis]});
            sum += d * d;
        }
        return sum <= limit_;
    }

    bool before(int64_t cell, int32_t x, int32_t y, int32_t z) const {
        const int32_t* c = cells_.coordinates.data() + 3 * cell;
        return c[2] != z ? c[2] < z : c[1] != y ? c[1] < y : c[0] < x;
    }
    int32_t first_from(int32_t x, int32_t y, int32_t z) const {
        auto low = int32_t{0}, high = static_cast<int32_t>(cells_.cells());
        while (low < high) {
            const int32_t middle = low + (high - low) / 2;
            (before(middle, x, y, z) ? low : high) = before(middle, x, y, z) ? middle + 1 : middle;
        }
        return low;
    }

    /// The 25 rows of cubes around a cell, the nearest first: found by walking along from cell to cell.
    struct Around {
        std::array<Run, 25> runs;
    };
    template <class Body>
    void for_each(int64_t begin, int64_t end, const Body& body) const {
        static constexpr int8_t kRow[25][2] = {{0, 0},  {0, 1},   {0, -1},  {1, 0},  {-1, 0}, {1, 1},  {1, -1},
                                               {-1, 1}, {-1, -1}, {0, 2},   {0, -2}, {2, 0},  {-2, 0}, {1, 2},
                                               {1, -2}, {-1, 2},  {-1, -2}, {2, 1},  {2, -1}, {-2, 1}, {-2, -1},
                                               {2, 2},  {2, -2},  {-2, 2},  {-2, -2}};
        Around around;
        const int64_t cells = cells_.cells();
        for (int64_t cell = begin; cell < end; ++cell) {
            const int32_t* at = cells_.coordinates.data() + 3 * cell;
            for (int k = 0; k < 25; ++k) {
                const int32_t y = at[1] + kRow[k][0], z = at[2] + kRow[k][1];
                Run& run = around.runs[k];
                if (cell == begin) run.begin = run.end = first_from(at[0] - 2, y, z);
                while (run.begin < cells && before(run.begin, at[0] - 2, y, z)) ++run.begin;
                run.end = std::max(run.end, run.begin);
                while (run.end < cells && before(run.end, at[0] + 3, y, z)) ++run.end;
            }
            body(cell, around);
        }
    }

    bool is_core(int64_t place, const Around& around) const {
        int64_t neighbours = 0;
        for (const Run run : around.runs)
            for (int64_t j = offsets_[run.begin]; j < offsets_[run.end]; ++j) {
                neighbours += within(point(place), point(j));
                if (neighbours >= min_points_) return true;
            }
        return false;
    }

    void find_core() {
        parallel_for(cells_.cells(), kCellGrain, [&](int64_t begin, int64_t end) {
            for_each(begin, end, [&](int64_t cell, const Around& around) {
                const int64_t first = offsets_[cell], last = offsets_[cell + 1];
                for (int64_t i = first; i < last; ++i) {
                    core_[i] = last - first >= min_points_ || is_core(i, around);
                    if (core_[i]) boxes_[cell].add(point(i));
                }
            });
        });
    }

    int32_t root(int32_t cell) {
        while (parent_[cell] != cell) cell = parent_[cell] = parent_[parent_[cell]];
        return cell;
    }

    bool touch(int64_t a, int64_t b) const {
        if (!within(boxes_[a], boxes_[b])) return false;
        for (int64_t i = offsets_[a]; i < offsets_[a + 1]; ++i) {
            if (!core_[i] || !within(point(i), boxes_[b])) continue;
            for (int64_t j = offsets_[b]; j < offsets_[b + 1]; ++j)
                if (core_[j] && within(point(i), point(j))) return true;
        }
        return false;
    }

    /// Cubes whose core points are neighbours become one. The result does not depend on the order.
    void join() {
        for_each(0, cells_.cells(), [&](int64_t cell, const Around& around) {
            if (boxes_[cell].is_none()) return;
            for (const Run run : around.runs)
                for (int32_t other = run.begin; other < run.end; ++other) {
                    if (other >= cell || boxes_[other].is_none()) continue;
                    const int32_t a = root(static_cast<int32_t>(cell)), b = root(other);
                    if (a != b && touch(cell, other)) parent_[std::max(a, b)] = std::min(a, b);
                }
        });
    }

    /// Clusters in the order of their first core points.
    void number() {
        constexpr int32_t kNone = INT32_MAX;
        std::vector<int32_t> first(parent_.size(), kNone);
        for (int32_t cell = 0; cell < static_cast<int32_t>(parent_.size()); ++cell) {
            if (boxes_[cell].is_none()) continue;
            int32_t& lowest = first[root(cell)];
            for (int64_t i = offsets_[cell]; i < offsets_[cell + 1]; ++i)
                if (core_[i]) lowest = std::min(lowest, cells_.order.data()[i]);
        }
        std::vector<std::pair<int32_t, int32_t>> roots;  // first core point, cell
        for (int32_t cell = 0; cell < static_cast<int32_t>(parent_.size()); ++cell)
            if (first[cell] != kNone) roots.emplace_back(first[cell], cell);
        std::sort(roots.begin(), roots.end());
        std::vector<int32_t> number(parent_.size(), -1);
        for (size_t i = 0; i < roots.size(); ++i) number[roots[i].second] = static_cast<int32_t>(i);
        count_ = static_cast<int64_t>(roots.size());
        cluster_.assign(parent_.size(), -1);
        for (int32_t cell = 0; cell < static_cast<int32_t>(parent_.size()); ++cell)
            if (!boxes_[cell].is_none()) cluster_[cell] = number[root(cell)];
    }

    int32_t lowest_around(int64_t place, const Around& around) const {
        int32_t lowest = -1;
        for (const Run run : around.runs)
            for (int32_t cell = run.begin; cell < run.end; ++cell) {
                if (cluster_[cell] < 0 || (lowest >= 0 && cluster_[cell] >= lowest)) continue;
                if (!within(point(place), boxes_[cell])) continue;
                for (int64_t j = offsets_[cell]; j < offsets_[cell + 1]; ++j)
                    if (core_[j] && within(point(place), point(j))) {
                        lowest = cluster_[cell];
                        break;
                    }
            }
        return lowest;
    }

    void label() {
        labels_.assign(core_.size(), -1);
        parallel_for(cells_.cells(), kCellGrain, [&](int64_t begin, int64_t end) {
            for_each(begin, end, [&](int64_t cell, const Around& around) {
                for (int64_t i = offsets_[cell]; i < offsets_[cell + 1]; ++i)
                    labels_[i] = core_[i] ? cluster_[cell] : lowest_around(i, around);
            });
        });
    }

    double limit_;
    int64_t min_points_;
    PointCells cells_;
    const int64_t* offsets_;
    std::vector<uint8_t> core_;      // by place in the order of the cells
    std::vector<Box<float>> boxes_;  // of the core points of each cell
    std::vector<int32_t> parent_;    // of cells: a forest, the root of a cluster is its first cell
    std::vector<int32_t> cluster_;   // of cells; -1 without core points
    std::vector<int32_t> labels_;
    int64_t count_ = 0;
};

}  // namespace

DensityClusters density_clusters(View<const float, 2> points, double radius, int64_t min_points) {
    STIPPLE_REQUIRE(points.size(1) == 3 && points.is_contiguous() && points.device() == Device{},
                    "density_clusters: points must be [n, 3] on the CPU, got {}", shape_text(points.shape().data(), 2));
    STIPPLE_REQUIRE(radius > 0 && std::isfinite(radius), "the radius must be above 0, got {}", radius);
    STIPPLE_REQUIRE(min_points >= 1, "min_points must be from 1, got {}", min_points);
    const int64_t n = points.size(0);
    DensityClusters result;
    result.labels = Array<int32_t, 1>({n});
    result.core = Array<uint8_t, 1>({n});
    std::fill_n(result.labels.data(), n, -1);
    std::fill_n(result.core.data(), n, uint8_t{0});
    double largest = 0;
    for (int64_t i = 0; i < 3 * n; ++i)
        if (std::isfinite(points.data()[i])) largest = std::max(largest, std::abs(double{points.data()[i]}));
    STIPPLE_REQUIRE(radius >= largest * 0x1p-36, "a radius of {} is too small for coordinates of {}", radius, largest);
    // No larger than what holds all points: a cube must have an edge that float32 can tell.
    const double edge = std::min(radius * kClusterEdge, largest > 0 ? 8 * largest : 1);
    const Clustering clustering(points, radius, edge, min_points);
    clustering.store(result);
    return result;
}

}  // namespace stipple::geometry
