#include "stipple/geometry/ground.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/box.h"
#include "stipple/core/number_text.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/segment/height_field.h"

namespace stipple::geometry {
namespace {

/// The plan of the cloud in cells. Cells begin at the lowest x and y, so that moving the cloud changes nothing.
class Plan {
public:
    Plan(const PointCloud& cloud, double cell) : points_(cloud.positions.data()), n_(cloud.size()), cell_(cell) {
        auto box = Box<double>::none();
        for (int64_t i = 0; i < n_; ++i)
            if (is_finite(i)) box.add(std::array<float, 3>{x(i), y(i), z(i)});
        if (box.is_none()) return;
        low_ = {box.low[0], box.low[1]};
        const double columns = std::floor(box.extent(0) / cell) + 1, rows = std::floor(box.extent(1) / cell) + 1;
        constexpr double kMost = 0x1p26;
        STIPPLE_REQUIRE(columns * rows <= kMost,
                        "the plan of {:.4g} x {:.4g} has more than {} cells of {}: are there strays far away?",
                        box.extent(0), box.extent(1), grouped(static_cast<int64_t>(kMost)), cell);
        columns_ = static_cast<int64_t>(columns), rows_ = static_cast<int64_t>(rows);
    }

    bool is_finite(int64_t i) const { return std::isfinite(x(i)) && std::isfinite(y(i)) && std::isfinite(z(i)); }
    float x(int64_t i) const { return points_[3 * i]; }
    float y(int64_t i) const { return points_[3 * i + 1]; }
    float z(int64_t i) const { return points_[3 * i + 2]; }
    /// In cells.
    double u(int64_t i) const { return (x(i) - low_[0]) / cell_; }
    double v(int64_t i) const { return (y(i) - low_[1]) / cell_; }
    int64_t cell_of(int64_t i) const {
        const int64_t column = std::min(columns_ - 1, static_cast<int64_t>(u(i)));
        return std::min(rows_ - 1, static_cast<int64_t>(v(i))) * columns_ + column;
    }
    int64_t points() const { return n_; }
    int64_t columns() const { return columns_; }
    int64_t rows() const { return rows_; }
    double cell() const { return cell_; }

private:
    const float* points_;
    int64_t n_;
    double cell_;
    std::array<double, 2> low_ = {};
    int64_t columns_ = 0, rows_ = 0;
};

HeightField lowest_points(const Plan& plan) {
    HeightField lowest(plan.columns(), plan.rows());
    for (int64_t i = 0; i < plan.points(); ++i) {
        if (!plan.is_finite(i)) continue;
        float& height = lowest.heights[plan.cell_of(i)];
        if (std::isnan(height) || plan.z(i) < height) height = plan.z(i);
    }
    return lowest;
}

/// Pits of one cell, deeper than any ground is steep: echoes from below the ground. Their height is not known.
void drop_pits(HeightField& lowest, double depth) {
    const HeightField surface = filled(lowest), closed = lowest_around(highest_around(surface, 1), 1);
    for (size_t i = 0; i < lowest.heights.size(); ++i)
        if (closed.heights[i] - surface.heights[i] > depth) lowest.heights[i] = NAN;
}

/// Forgets the heights of cells that stand out of what a larger window leaves.
void drop_objects(HeightField& lowest, const GroundOptions& options) {
    HeightField surface = filled(lowest);
    const auto most = static_cast<int64_t>(std::ceil(0.5 * options.window / options.cell));
    const int64_t side = std::max(lowest.columns, lowest.rows);
    const double limit = 2 * options.cell * options.slope + options.step;
    for (int64_t radius = 1; radius <= std::min(most, side); ++radius) {
        HeightField opened = highest_around(lowest_around(surface, radius), radius);
        for (size_t i = 0; i < lowest.heights.size(); ++i)
            if (surface.heights[i] - opened.heights[i] > limit) lowest.heights[i] = NAN;
        surface = std::move(opened);
    }
}

/// Sums for a plane through points, about a cell's middle.
struct CellSums {
    double n = 0, u = 0, v = 0, z = 0, uu = 0, uv = 0, vv = 0, uz = 0, vz = 0;
};

struct Surface {
    HeightField heights, rise;  // rise: of the surface over a cell
};

/// The surface through points that are near a first one: at the middle of each cell the plane of least squares through
/// those in it and in the eight cells around.
Surface fitted_surface(const Plan& plan, const HeightField& first, double tolerance, double rise_share) {
    const int64_t columns = plan.columns(), rows = plan.rows();
    std::vector<CellSums> sums(static_cast<size_t>(columns * rows));
    for (int64_t i = 0; i < plan.points(); ++i) {
        if (!plan.is_finite(i)) continue;
        const double u = plan.u(i), v = plan.v(i), around = first.between(u, v);
        const double rise = std::hypot(first.between(u + 0.5, v) - first.between(u - 0.5, v),
                                       first.between(u, v + 0.5) - first.between(u, v - 0.5));
        const int64_t cell = plan.cell_of(i);
        if (std::abs(plan.z(i) - around) > tolerance + rise_share * rise) continue;
        CellSums& s = sums[cell];
        const double du = u - static_cast<double>(cell % columns) - 0.5,
                     dv = v - static_cast<double>(cell / columns) - 0.5, z = plan.z(i);
        s.n += 1, s.u += du, s.v += dv, s.z += z;
        s.uu += du * du, s.uv += du * dv, s.vv += dv * dv, s.uz += du * z, s.vz += dv * z;
    }
    Surface surface{HeightField(columns, rows), HeightField(columns, rows)};
    parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
            for (int64_t column = 0; column < columns; ++column) {
                if (sums[row * columns + column].n == 0) continue;
                CellSums t;
                for (int64_t r = std::max<int64_t>(0, row - 1); r <= std::min(rows - 1, row + 1); ++r)
                    for (int64_t c = std::max<int64_t>(0, column - 1); c <= std::min(columns - 1, column + 1); ++c) {
                        const CellSums& s = sums[r * columns + c];
                        const auto a = static_cast<double>(c - column), b = static_cast<double>(r - row);
                        t.n += s.n, t.u += s.u + a * s.n, t.v += s.v + b * s.n, t.z += s.z;
                        t.uu += s.uu + 2 * a * s.u + a * a * s.n, t.vv += s.vv + 2 * b * s.v + b * b * s.n;
                        t.uv += s.uv + a * s.v + b * s.u + a * b * s.n;
                        t.uz += s.uz + a * s.z, t.vz += s.vz + b * s.z;
                    }
                const double uu = t.uu - t.u * t.u / t.n, uv = t.uv - t.u * t.v / t.n, vv = t.vv - t.v * t.v / t.n,
                             uz = t.uz - t.u * t.z / t.n, vz = t.vz - t.v * t.z / t.n;
                const double det = uu * vv - uv * uv;
                // Points at one place or on a line tell no slope.
                const bool has_slope = t.n >= 4 && det > 1e-3 * t.n * t.n;
                const double a = has_slope ? (uz * vv - vz * uv) / det : 0,
                             b = has_slope ? (vz * uu - uz * uv) / det : 0;
                surface.heights.at(column, row) = static_cast<float>((t.z - a * t.u - b * t.v) / t.n);
                surface.rise.at(column, row) = static_cast<float>(std::hypot(a, b));
            }
    });
    surface.heights = filled(surface.heights);
    surface.rise = filled(surface.rise);
    return surface;
}

}  // namespace

const Fields& ground_fields() {
    using Options = GroundOptions;
    constexpr const char* kUnit = "unit of the cloud";
    static const Fields fields = {
        field<&Options::window>("window", "Width of the widest building").unit(kUnit).above(0),
        field<&Options::slope>("slope", "Of the steepest ground, rise over run").from(0),
        field<&Options::cell>("cell", "Edge of the squares that the ground is made of").unit(kUnit).above(0),
        field<&Options::step>("step", "Height by which things stand out of the ground").unit(kUnit).above(0),
        field<&Options::height>("height", "Of ground points above or below the ground").unit(kUnit).above(0)};
    return fields;
}

Ground find_ground(const PointCloud& cloud, const GroundOptions& options) {
    check_fields(ground_fields(), &options);
    const int64_t n = cloud.size();
    Ground ground;
    ground.is_ground.assign(static_cast<size_t>(n), 0);
    ground.height = Array<float, 1>({n});
    std::fill_n(ground.height.data(), n, std::nanf(""));
    ground.cell = options.cell;
    const Plan plan(cloud, options.cell);
    ground.columns = plan.columns(), ground.rows = plan.rows();
    if (plan.columns() == 0) return ground;
    HeightField lowest = lowest_points(plan);
    const double pit = 4 * (options.cell * options.slope + options.step);
    drop_pits(lowest, pit);
    drop_objects(lowest, options);
    // Lowest points lie below the ground by half a cell's rise and by the noise: a wide tolerance first.
    const Surface first = fitted_surface(plan, filled(lowest), 2 * options.height, 1);
    const Surface surface = fitted_surface(plan, first.heights, options.height, 0.5);
    parallel_for(n, 16384, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            if (!plan.is_finite(i)) continue;
            const double u = plan.u(i), v = plan.v(i), height = plan.z(i) - surface.heights.between(u, v);
            ground.height.data()[i] = static_cast<float>(height);
            ground.is_ground[i] = std::abs(height) <= options.height + 0.5 * surface.rise.between(u, v);
        }
    });
    return ground;
}

}  // namespace stipple::geometry
