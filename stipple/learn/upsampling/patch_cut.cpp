#include "stipple/learn/upsampling/patch_cut.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stipple/core/error.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/ops/knn.h"

namespace stipple::learn {
namespace {

constexpr int64_t kMidpointNeighbours = 8;
constexpr double kStripeShare = 0.35;     // of the distance from scan line to scan line, at most
constexpr double kBetweenStripes = 1e-3;  // density there, so that any shape has the points that are wanted

Vec3f row_of(const float* rows, int64_t i) {
    return {rows[3 * i], rows[3 * i + 1], rows[3 * i + 2]};
}

/// The n samples with the smallest -log(u) / density: a choice without replacement [Efraimidis, Spirakis 2006].
template <class Density>
void choose_by_density(View<const float, 2> points, int64_t n, const Rng& rng, const Density& density,
                       PatchScratch& scratch) {
    const int64_t samples = points.size(0);
    scratch.keyed.clear();
    for (int64_t i = 0; i < samples; ++i) {
        const double u = (rng.bits(64 + static_cast<uint64_t>(i)) + 0.5) * 0x1p-32;
        scratch.keyed.emplace_back(static_cast<float>(-std::log(u) / density(row_of(points.data(), i))),
                                   static_cast<int32_t>(i));
    }
    std::nth_element(scratch.keyed.begin(), scratch.keyed.begin() + (n - 1), scratch.keyed.end());
    for (int64_t i = 0; i < n; ++i) scratch.chosen.push_back(scratch.keyed[static_cast<size_t>(i)].second);
}

/// Density 8 to 1 along a direction.
void choose_by_gradient(View<const float, 2> points, int64_t n, const Rng& rng, PatchScratch& scratch) {
    const Vec3d along = random_direction(rng, 0);
    choose_by_density(
        points, n, rng,
        [&](Vec3f p) {
            const double t = p.x * along.x + p.y * along.y + p.z * along.z;
            return std::exp2(1.5 * t);
        },
        scratch);
}

/// As a scanner outside of the shape would: lines of equal elevation some spacings apart, points on them by solid
/// angle.
void choose_by_scan(View<const float, 2> points, double area, int64_t n, const Rng& rng, PatchScratch& scratch) {
    const Vec3d axis = random_direction(rng, 0), to_eye = random_direction(rng, 4);
    const double away = 2 + 2 * rng.uniform(32), phase = rng.uniform(33);
    const Vec3d eye = away * to_eye;
    const double spacing = std::sqrt(area / static_cast<double>(n));
    const double pitch = (1.5 + 3.5 * rng.uniform(34)) * spacing / away;  // radians
    // As narrow as the samples allow: two for each point in the stripes.
    const double least = std::min(kStripeShare, 2 * static_cast<double>(n) / static_cast<double>(points.size(0)));
    const double share = least + (kStripeShare - least) * rng.uniform(35);
    choose_by_density(
        points, n, rng,
        [&](Vec3f p) {
            const Vec3d seen = Vec3d{p.x, p.y, p.z} - eye;
            const double square = dot(seen, seen);
            const double elevation = std::asin(std::clamp(dot(seen, axis) / std::sqrt(square), -1.0, 1.0));
            const double line = elevation / pitch + phase;
            return (line - std::floor(line) < share ? 1 : kBetweenStripes) / square;
        },
        scratch);
}

/// Appends the first sample of each cell of a grid to scratch.chosen.
void first_in_cells(View<const float, 2> points, const std::array<double, 3>& origin, double edge,
                    PatchScratch& scratch) {
    scratch.cells.clear();
    for (int64_t i = 0; i < points.size(0); ++i) {
        uint64_t cell = 0;  // 2^21 cells along each axis
        for (int axis = 0; axis < 3; ++axis)
            cell = cell << 21 | static_cast<uint64_t>(std::clamp(
                                    (points(i, axis) - origin[static_cast<size_t>(axis)]) / edge, 0.0, 0x1p21 - 1));
        scratch.cells.emplace_back(cell, static_cast<int32_t>(i));
    }
    std::sort(scratch.cells.begin(), scratch.cells.end());
    for (size_t i = 0; i < scratch.cells.size(); ++i)
        if (i == 0 || scratch.cells[i].first != scratch.cells[i - 1].first)
            scratch.chosen.push_back(scratch.cells[i].second);
}

/// Cells of the edge that leaves about n points: that of the second try. What is too many goes at random, and what is
/// missing comes from anywhere.
void choose_by_voxel(View<const float, 2> points, double area, int64_t n, const Rng& rng, PatchScratch& scratch) {
    std::array<double, 3> origin;
    for (uint64_t axis = 0; axis < 3; ++axis) origin[axis] = -2 - rng.uniform(axis);
    double edge = std::sqrt(1.5 * area / static_cast<double>(n));  // a plane of any tilt meets 1.5 cells in its square
    for (int attempt = 0; attempt < 2; ++attempt) {
        scratch.chosen.clear();
        first_in_cells(points, origin, edge, scratch);
        edge *= std::sqrt(static_cast<double>(scratch.chosen.size()) / static_cast<double>(n));
    }
    std::vector<uint8_t> is_chosen(static_cast<size_t>(points.size(0)), 0);
    for (const int32_t i : scratch.chosen) is_chosen[static_cast<size_t>(i)] = 1;
    for (uint64_t draw = 8; static_cast<int64_t>(scratch.chosen.size()) < n; ++draw) {
        const auto i = static_cast<size_t>(rng.below(draw, static_cast<uint32_t>(points.size(0))));
        if (!std::exchange(is_chosen[i], uint8_t{1})) scratch.chosen.push_back(static_cast<int32_t>(i));
    }
    for (uint64_t last = scratch.chosen.size(); last > static_cast<uint64_t>(n); --last) {
        std::swap(scratch.chosen[rng.below(last, static_cast<uint32_t>(last))], scratch.chosen[last - 1]);
        scratch.chosen.pop_back();
    }
}

/// Uniform over all rotations, from a unit quaternion.
std::array<float, 9> random_rotation(const Rng& rng) {
    double q[4], square = 0;
    for (uint64_t i = 0; i < 4; ++i) q[i] = rng.normal(i), square += q[i] * q[i];
    const double length = std::sqrt(square);
    for (double& value : q) value = length > 0 ? value / length : 0.5;
    const auto [w, x, y, z] = std::array{q[0], q[1], q[2], q[3]};
    const double rows[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                            2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                            2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    std::array<float, 9> rotation;
    std::copy_n(rows, 9, rotation.begin());
    return rotation;
}

int64_t inner_points(int64_t n, const PatchOptions& options) {
    return std::clamp<int64_t>(static_cast<int64_t>(options.inner_share * static_cast<double>(n)), 1, n);
}

/// The same number of each of the first `inner` points up to one, the odd ones of different points at random.
void make_queries(View<const float, 2> points, int64_t inner, const PatchOptions& options, const PatchRandom& random,
                  View<float, 2> queries, PatchScratch& scratch) {
    const int64_t n = points.size(0), m = queries.size(0);
    if (m == 0) return;
    const int64_t k = std::min(n, data::kQueryNeighbours), each = m / inner, odd = m % inner;
    Array<int32_t, 2> near({n, k});
    ops::knn(ops::PointIndex(points), points, near.view(), {});
    scratch.which.resize(static_cast<size_t>(inner));
    for (int64_t i = 0; i < inner; ++i) scratch.which[static_cast<size_t>(i)] = static_cast<int32_t>(i);
    data::neighbour_queries(points, near.view(), scratch.which, each, random.seed(Draws::queries), queries.data());
    const Rng rng = random.of(Draws::more_queries);
    for (int64_t i = 0; i < odd; ++i)
        std::swap(scratch.which[static_cast<size_t>(i)],
                  scratch.which[static_cast<size_t>(
                      i + rng.below(static_cast<uint64_t>(4 + i), static_cast<uint32_t>(inner - i)))]);
    scratch.which.resize(static_cast<size_t>(odd));
    data::neighbour_queries(points, near.view(), scratch.which, 1, random.seed(Draws::more_queries),
                            queries.data() + 3 * each * inner);
    const Rng kinds = random.of(Draws::query_kinds);
    for (int64_t i = 0; i < each * inner; ++i) {
        const float kind = kinds.uniform(static_cast<uint64_t>(2 * i));
        if (kind >= options.input_share + options.midpoint_share) continue;
        const int64_t point = i / each, places = std::min(kMidpointNeighbours, k - 1);
        int64_t other = point;
        if (kind >= options.input_share && places > 0)
            other =
                near.view()(point, 1 + kinds.below(static_cast<uint64_t>(2 * i + 1), static_cast<uint32_t>(places)));
        for (int64_t axis = 0; axis < 3; ++axis) queries(i, axis) = 0.5f * (points(point, axis) + points(other, axis));
    }
    const Rng noise = random.of(Draws::query_noise);
    for (int64_t i = 0; i < m; ++i) {
        const auto at = static_cast<uint64_t>(8 * i);
        if (!(noise.uniform(at) < options.query_noise_share)) continue;
        const auto sigma = static_cast<float>(options.query_noise) * noise.uniform(at + 1);
        for (uint64_t axis = 0; axis < 3; ++axis)
            queries.data()[3 * i + static_cast<int64_t>(axis)] += sigma * noise.normal(at / 2 + 1 + axis);
    }
}

}  // namespace

Vec3d random_direction(const Rng& rng, uint64_t first) {
    return unit(Vec3d{rng.normal(first), rng.normal(first + 1), rng.normal(first + 2)});
}

void choose_points(View<const float, 2> points, double area, PatchSampling sampling, int64_t n, const Rng& rng,
                   PatchScratch& scratch) {
    scratch.chosen.clear();
    if (sampling == PatchSampling::gradient)
        choose_by_gradient(points, n, rng, scratch);
    else if (sampling == PatchSampling::scan)
        choose_by_scan(points, area, n, rng, scratch);
    else if (sampling == PatchSampling::voxel)
        choose_by_voxel(points, area, n, rng, scratch);
    else
        choose_by_density(
            points, n, rng, [](Vec3f) { return 1.0; }, scratch);
}

void take_points(View<const float, 2> points, double noise, const Rng& rng, PatchScratch& scratch) {
    scratch.cloud.resize(3 * scratch.chosen.size());
    for (size_t i = 0; i < scratch.chosen.size(); ++i)
        for (size_t axis = 0; axis < 3; ++axis) {
            float x = points.data()[3 * static_cast<size_t>(scratch.chosen[i]) + axis];
            if (noise > 0) x += static_cast<float>(noise) * rng.normal(3 * i + axis);
            scratch.cloud[3 * i + axis] = x;
        }
}

void to_patch(const PatchFrame& frame, const float* x, float* p) {
    double offset[3];
    for (int axis = 0; axis < 3; ++axis) offset[axis] = (double{x[axis]} - frame.centre[axis]) / frame.scale;
    for (int row = 0; row < 3; ++row)
        p[row] = static_cast<float>(frame.rotation[3 * row] * offset[0] + frame.rotation[3 * row + 1] * offset[1] +
                                    frame.rotation[3 * row + 2] * offset[2]);
}

PatchFrame cut_patch(int64_t centre_point, const TruthSource& source, const PatchOptions& options,
                     const PatchRandom& random, const PatchArrays& arrays, PatchScratch& scratch) {
    const int64_t n = arrays.points.size(0), inner = inner_points(n, options), t = arrays.truth.size(0);
    const auto size = static_cast<int64_t>(scratch.cloud.size() / 3);
    STIPPLE_REQUIRE(n >= 2 && n <= size, "a patch of {} points of a cloud of {}", n, size);
    const Vec3f centre = row_of(scratch.cloud.data(), centre_point);
    scratch.keyed.clear();
    for (int64_t i = 0; i < size; ++i) {
        const Vec3f offset = row_of(scratch.cloud.data(), i) - centre;
        scratch.keyed.emplace_back(dot(offset, offset), static_cast<int32_t>(i));
    }
    std::nth_element(scratch.keyed.begin(), scratch.keyed.begin() + (n - 1), scratch.keyed.end());
    std::sort(scratch.keyed.begin(), scratch.keyed.begin() + n);
    scratch.patch.clear();
    for (int64_t i = 0; i < n; ++i) {
        const float* row = scratch.cloud.data() + 3 * scratch.keyed[static_cast<size_t>(i)].second;
        scratch.patch.insert(scratch.patch.end(), row, row + 3);
    }

    const Rng of_turn = random.of(Draws::turn);
    const double spacing = data::mean_spacing({scratch.patch.data(), {n, 3}});
    const double factor = options.scale_min * std::pow(options.scale_max / options.scale_min, of_turn.uniform(16));
    PatchFrame frame;
    frame.rotation = random_rotation(of_turn);
    frame.centre = {centre.x, centre.y, centre.z};
    frame.scale = static_cast<float>(spacing > 0 ? spacing * factor : 1);
    for (int64_t i = 0; i < n; ++i) to_patch(frame, scratch.patch.data() + 3 * i, arrays.points.data() + 3 * i);
    make_queries(arrays.points, inner, options, random, arrays.queries, scratch);

    if (t == 0) return frame;
    const double inner_sq = scratch.keyed[static_cast<size_t>(inner - 1)].first;
    const double reach = source.is_whole ? INFINITY : options.truth_radius * options.truth_radius * inner_sq;
    scratch.truth.clear();
    std::pair<float, int32_t> nearest = {INFINITY, 0};  // where a hole has no other truth
    for (const int32_t sample : source.order) {
        const Vec3f offset = row_of(source.points.data(), sample) - centre;
        const float square = dot(offset, offset);
        nearest = std::min(nearest, {square, sample});
        if (square <= reach) scratch.truth.push_back(sample);
        if (static_cast<int64_t>(scratch.truth.size()) == t) break;
    }
    if (scratch.truth.empty()) scratch.truth.push_back(nearest.second);
    for (int64_t i = 0; i < t; ++i)
        to_patch(frame, source.points.data() + 3 * scratch.truth[static_cast<size_t>(i) % scratch.truth.size()],
                 arrays.truth.data() + 3 * i);
    return frame;
}

}  // namespace stipple::learn
