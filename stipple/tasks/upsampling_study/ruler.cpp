#include "stipple/tasks/upsampling_study/ruler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "stipple/core/rng.h"
#include "stipple/geometry/dedupe.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/tasks/upsampling_study/local_plane.h"

namespace stipple::tasks::study {
namespace {

constexpr int64_t kNeighbours = 16;
constexpr int kHalvings = 40;  // of the edges between which a voxel's is sought

/// The value below which 99 of 100 lie, between two of them in proportion.
double percentile_99(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const double place = 0.99 * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}
double mean(const std::vector<double>& values) {
    return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Selects points of a cloud without their attributes.
PointCloud places_of(const PointCloud& cloud, const std::vector<int32_t>& rows) {
    PointCloud some = select(cloud, {rows.data(), {static_cast<int64_t>(rows.size())}});
    some.attributes.clear();
    return some;
}

/// The first point in each cube of this edge.
std::vector<int32_t> first_in_cubes(const PointCloud& scan, const Bounds& box, double edge) {
    std::set<std::array<int64_t, 3>> seen;
    std::vector<int32_t> rows;
    for (int64_t i = 0; i < scan.size(); ++i) {
        std::array<int64_t, 3> cube;
        for (int axis = 0; axis < 3; ++axis)
            cube[static_cast<size_t>(axis)] =
                static_cast<int64_t>(std::floor((scan.world(i, axis) - box.min[static_cast<size_t>(axis)]) / edge));
        if (seen.insert(cube).second) rows.push_back(static_cast<int32_t>(i));
    }
    return rows;
}

std::vector<int32_t> thin_by_voxel(const PointCloud& scan, int64_t count) {
    const Bounds box = bounds_of(scan);
    double low = 0, high = 0;
    for (size_t axis = 0; axis < 3; ++axis) high = std::max(high, box.max[axis] - box.min[axis]);
    high *= 1.001;  // one cube
    for (int i = 0; i < kHalvings; ++i) {
        const double edge = (low + high) / 2;
        (static_cast<int64_t>(first_in_cubes(scan, box, edge).size()) > count ? low : high) = edge;
    }
    return first_in_cubes(scan, box, high);
}

}  // namespace

std::array<double, 6> columns_of(const RulerScores& s) {
    return {s.stray_mean, s.stray_99, s.invented, s.off_mean, s.cover_mean, s.cover_99};
}

RulerScores measure_by_ruler(const PointCloud& output, const PointCloud& scan) {
    STIPPLE_REQUIRE(scan.size() > kNeighbours && output.size() > 0, "the ruler: {} points beside a scan of {}",
                    output.size(), scan.size());
    const std::vector<double> spacings = scan_spacings(scan);
    const Nearest to_scan = nearest(output, scan, kNeighbours);
    std::vector<double> stray, off, cover;
    int64_t invented = 0;
    for (int64_t i = 0; i < output.size(); ++i) {
        const int32_t* neighbours = to_scan.indices.data() + i * kNeighbours;
        const double spacing = spacings[static_cast<size_t>(neighbours[0])];
        stray.push_back(std::sqrt(double{to_scan.squares.view()(i, 0)}) / spacing);
        if (stray.back() >= kInventedFrom) {
            ++invented;
            continue;
        }
        std::array<Vec3d, kNeighbours> around;
        for (size_t j = 0; j < around.size(); ++j) around[j] = point_of(scan, neighbours[j]);
        off.push_back(fit_plane(around).distance(point_of(output, i)) / spacing);
    }
    const Nearest to_output = nearest(scan, output, 1);
    for (int64_t i = 0; i < scan.size(); ++i)
        cover.push_back(std::sqrt(double{to_output.squares.view()(i, 0)}) / spacings[static_cast<size_t>(i)]);
    return {
        mean(stray), percentile_99(stray), 100.0 * static_cast<double>(invented) / static_cast<double>(output.size()),
        mean(off),   mean(cover),          percentile_99(cover)};
}

const std::vector<std::string>& thinning_names() {
    static const std::vector<std::string> names = {"fps", "random", "voxel"};
    return names;
}

PointCloud thin(const PointCloud& scan, Thinning thinning, int64_t count, uint64_t seed) {
    const int64_t n = scan.size();
    STIPPLE_REQUIRE(count >= 1 && count <= n, "{} of {} points", count, n);
    std::vector<int32_t> rows(static_cast<size_t>(count));
    switch (thinning) {
        case Thinning::fps:
            ops::farthest_point_sample(scan.positions.view(), ops::Batch::single(count), {rows.data(), {count}});
            break;
        case Thinning::random: {
            const Rng rng(seed, 0x5448494E);
            std::vector<int32_t> all(static_cast<size_t>(n));
            std::iota(all.begin(), all.end(), 0);
            for (int64_t i = 0; i < count; ++i)
                std::swap(
                    all[static_cast<size_t>(i)],
                    all[static_cast<size_t>(i + rng.below(static_cast<uint64_t>(i), static_cast<uint32_t>(n - i)))]);
            rows.assign(all.begin(), all.begin() + count);
            std::sort(rows.begin(), rows.end());
            break;
        }
        case Thinning::voxel: rows = thin_by_voxel(scan, count); break;
    }
    return places_of(scan, rows);
}

PointCloud scan_to_judge_by(const PointCloud& cloud, int64_t most) {
    const auto is_point = [&](int64_t i) {
        bool is_finite = true, is_origin = true;
        for (int axis = 0; axis < 3; ++axis) {
            is_finite &= std::isfinite(cloud.positions.data()[3 * i + axis]);
            is_origin &= cloud.world(i, axis) == 0;
        }
        return is_finite && !is_origin;
    };
    std::vector<int32_t> rows;
    for (int64_t i = 0; i < cloud.size(); ++i)
        if (is_point(i)) rows.push_back(static_cast<int32_t>(i));
    const PointCloud scan = geometry::dedupe_points(places_of(cloud, rows));
    return scan.size() <= most ? scan.clone() : thin(scan, Thinning::voxel, most, 0);
}

}  // namespace stipple::tasks::study
