#include "stipple/learn/surface_patches.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/rng.h"
#include "stipple/core/vec3.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/ops/knn.h"

namespace stipple::learn {
namespace {

constexpr uint64_t kPatchStream = uint64_t{0x50415443} << 32;
constexpr int64_t kMidpointNeighbours = 8;
constexpr int64_t kThinnedShare = 4;      // of a pool: clouds of uneven density have at most a quarter of its points
constexpr double kStripeShare = 0.35;     // of the distance from scan line to scan line, at most
constexpr double kBetweenStripes = 1e-3;  // density there, so that any shape has the points that are wanted

/// What numbers are drawn for; each has a stream of its own.
enum class Draws : uint64_t { plan, cloud, noise, centre, turn, queries, more_queries, query_noise, query_kinds };

class PatchRandom {
public:
    explicit PatchRandom(const PatchKey& key) : item_(static_cast<uint64_t>(key.item)) {
        const RandomBlock block = Rng(key.seed, kPatchStream).block(static_cast<uint64_t>(key.epoch));
        key_ = uint64_t{block.word[1]} << 32 | block.word[0];
    }
    Rng of(Draws what) const { return Rng(key_, 16 * item_ + static_cast<uint64_t>(what)); }
    uint64_t seed(Draws what) const {
        const RandomBlock block = of(what).block(0);
        return uint64_t{block.word[1]} << 32 | block.word[0];
    }

private:
    uint64_t key_ = 0, item_;
};

Vec3f row_of(const float* rows, int64_t i) {
    return {rows[3 * i], rows[3 * i + 1], rows[3 * i + 2]};
}

Vec3d direction(const Rng& rng, uint64_t first) {
    return unit(Vec3d{rng.normal(first), rng.normal(first + 1), rng.normal(first + 2)});
}

/// The n samples with the smallest -log(u) / density: a choice without replacement [Efraimidis, Spirakis 2006].
template <class Density>
void choose_by_density(const SurfacePool& pool, int64_t n, const Rng& rng, const Density& density,
                       PatchScratch& scratch) {
    const int64_t samples = pool.points.size(0);
    scratch.keyed.clear();
    for (int64_t i = 0; i < samples; ++i) {
        const double u = (rng.bits(64 + static_cast<uint64_t>(i)) + 0.5) * 0x1p-32;
        scratch.keyed.emplace_back(static_cast<float>(-std::log(u) / density(row_of(pool.points.data(), i))),
                                   static_cast<int32_t>(i));
    }
    std::nth_element(scratch.keyed.begin(), scratch.keyed.begin() + (n - 1), scratch.keyed.end());
    for (int64_t i = 0; i < n; ++i) scratch.chosen.push_back(scratch.keyed[static_cast<size_t>(i)].second);
}

/// Density 8 to 1 along a direction.
void choose_by_gradient(const SurfacePool& pool, int64_t n, const Rng& rng, PatchScratch& scratch) {
    const Vec3d along = direction(rng, 0);
    choose_by_density(
        pool, n, rng,
        [&](Vec3f p) {
            const double t = p.x * along.x + p.y * along.y + p.z * along.z;
            return std::exp2(1.5 * t);
        },
        scratch);
}

/// As a scanner outside of the shape would: lines of equal elevation some spacings apart, points on them by solid
/// angle.
void choose_by_scan(const SurfaceShape& shape, const SurfacePool& pool, int64_t n, const Rng& rng,
                    PatchScratch& scratch) {
    const Vec3d axis = direction(rng, 0), to_eye = direction(rng, 4);
    const double away = 2 + 2 * rng.uniform(32), phase = rng.uniform(33);
    const Vec3d eye = away * to_eye;
    const double spacing = std::sqrt(shape.area / static_cast<double>(n));
    const double pitch = (1.5 + 3.5 * rng.uniform(34)) * spacing / away;  // radians
    // As narrow as the samples allow: two for each point in the stripes.
    const double least = std::min(kStripeShare, 2 * static_cast<double>(n) / static_cast<double>(pool.points.size(0)));
    const double share = least + (kStripeShare - least) * rng.uniform(35);
    choose_by_density(
        pool, n, rng,
        [&](Vec3f p) {
            const Vec3d seen = Vec3d{p.x, p.y, p.z} - eye;
            const double square = dot(seen, seen);
            const double elevation = std::asin(std::clamp(dot(seen, axis) / std::sqrt(square), -1.0, 1.0));
            const double line = elevation / pitch + phase;
            return (line - std::floor(line) < share ? 1 : kBetweenStripes) / square;
        },
        scratch);
}

/// The cloud's points, with noise, into scratch.cloud.
void draw_cloud(const SurfaceShape& shape, const PatchPlan& plan, const PatchRandom& random, PatchScratch& scratch) {
    const SurfacePool& pool = shape.pools[static_cast<size_t>(plan.pool)];
    const int64_t samples = pool.points.size(0);
    const Rng rng = random.of(Draws::cloud);
    const bool is_thinned = plan.sampling == PatchSampling::gradient || plan.sampling == PatchSampling::scan;
    const int64_t n = is_thinned ? std::min(plan.cloud, samples / kThinnedShare) : plan.cloud;
    scratch.chosen.clear();
    switch (plan.sampling) {
        case PatchSampling::uniform: scratch.chosen.assign(pool.order.begin(), pool.order.begin() + n); break;
        case PatchSampling::random: {  // a run of independent points, from anywhere
            const int64_t first = rng.below(0, static_cast<uint32_t>(samples));
            for (int64_t i = 0; i < n; ++i) scratch.chosen.push_back(static_cast<int32_t>((first + i) % samples));
            break;
        }
        case PatchSampling::gradient: choose_by_gradient(pool, n, rng, scratch); break;
        case PatchSampling::scan: choose_by_scan(shape, pool, n, rng, scratch); break;
    }
    const Rng noise = random.of(Draws::noise);
    scratch.cloud.resize(static_cast<size_t>(3 * n));
    for (int64_t i = 0; i < n; ++i)
        for (int64_t axis = 0; axis < 3; ++axis) {
            float x = pool.points.data()[3 * scratch.chosen[static_cast<size_t>(i)] + axis];
            if (plan.noise > 0) x += static_cast<float>(plan.noise) * noise.normal(static_cast<uint64_t>(3 * i + axis));
            scratch.cloud[static_cast<size_t>(3 * i + axis)] = x;
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

void to_patch(const PatchFrame& frame, const float* x, float* p) {
    double offset[3];
    for (int axis = 0; axis < 3; ++axis) offset[axis] = (double{x[axis]} - frame.centre[axis]) / frame.scale;
    for (int row = 0; row < 3; ++row)
        p[row] = static_cast<float>(frame.rotation[3 * row] * offset[0] + frame.rotation[3 * row + 1] * offset[1] +
                                    frame.rotation[3 * row + 2] * offset[2]);
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

void validate(const PatchOptions& o, int64_t points) {
    const auto require = [](bool holds, const char* message) {
        if (!holds) throw Error(ErrorCode::bad_config, message);
    };
    const auto is_share = [](double x) { return x >= 0 && x <= 1; };
    require(o.queries >= 1 && o.queries <= 1 << 20, "patch.queries must be 1 to 1048576");
    require(o.truth >= 1 && o.truth <= 1 << 20, "patch.truth must be 1 to 1048576");
    require(o.inner_share > 0 && o.inner_share <= 1, "patch.inner_share must be above 0 and at most 1");
    require(o.truth_radius > 0 && o.truth_radius <= 2, "patch.truth_radius must be above 0 and at most 2");
    require(o.pools >= 2 && o.pools <= 64, "patch.pools must be 2 to 64");
    require(o.samples >= 16 && o.samples <= 1 << 24, "patch.samples must be 16 to 16777216");
    require(points >= 2 && points <= o.cloud_min, "data.points must be 2 to patch.cloud_min");
    require(o.cloud_min <= o.cloud_max, "patch.cloud_min must not be above cloud_max");
    require(o.cloud_max <= o.samples / 2, "patch.samples must be at least twice patch.cloud_max");
    require(o.cloud_min <= o.samples / kThinnedShare, "patch.samples must be at least four times patch.cloud_min");
    require(is_share(o.random_share) && is_share(o.gradient_share) && is_share(o.scan_share) &&
                o.random_share + o.gradient_share + o.scan_share <= 1 + 1e-9,
            "patch.random_share, gradient_share and scan_share must be 0 to 1, and so must their sum");
    require(is_share(o.noise_share) && is_share(o.query_noise_share),
            "patch.noise_share and query_noise_share must be 0 to 1");
    require(is_share(o.midpoint_share) && is_share(o.input_share) && o.midpoint_share + o.input_share <= 1 + 1e-9,
            "patch.midpoint_share and input_share must be 0 to 1, and so must their sum");
    require(o.noise_max >= 0 && o.noise_max <= 1, "patch.noise_max must be 0 to 1");
    require(o.query_noise >= 0 && o.query_noise <= 100, "patch.query_noise must be 0 to 100");
    require(o.scale_min > 0 && o.scale_min <= o.scale_max && o.scale_max <= 100,
            "patch.scale_min must be above 0, scale_max at least as large and at most 100");
}

PatchPlan plan_patch(std::span<const int64_t> shapes, const PatchOptions& options, const PatchKey& key) {
    STIPPLE_REQUIRE(!shapes.empty() && key.item >= 0, "plan_patch: item {} of {} shapes", key.item, shapes.size());
    const Rng rng = PatchRandom(key).of(Draws::plan);
    PatchPlan plan;
    plan.shape = shapes[static_cast<size_t>(key.item) % shapes.size()];
    plan.pool = rng.below(0, static_cast<uint32_t>(options.pools));
    plan.truth_pool = rng.below(1, static_cast<uint32_t>(options.pools - 1));
    if (plan.truth_pool >= plan.pool) ++plan.truth_pool;
    const double ratio = static_cast<double>(options.cloud_max) / static_cast<double>(options.cloud_min);
    plan.cloud = std::min(options.cloud_max, static_cast<int64_t>(static_cast<double>(options.cloud_min) *
                                                                  std::pow(ratio, double{rng.uniform(2)})));
    const double kind = rng.uniform(3);
    const double to_gradient = options.random_share + options.gradient_share;
    plan.sampling = kind < options.random_share               ? PatchSampling::random
                    : kind < to_gradient                      ? PatchSampling::gradient
                    : kind < to_gradient + options.scan_share ? PatchSampling::scan
                                                              : PatchSampling::uniform;
    if (rng.uniform(4) < options.noise_share) plan.noise = options.noise_max * rng.uniform(5);
    return plan;
}

PatchFrame make_patch(const SurfaceShape& shape, const PatchOptions& options, const PatchPlan& plan,
                      const PatchKey& key, const PatchArrays& arrays, PatchScratch& scratch) {
    const int64_t n = arrays.points.size(0), inner = inner_points(n, options), t = arrays.truth.size(0);
    const auto pools = static_cast<int64_t>(shape.pools.size());
    STIPPLE_REQUIRE(plan.pool >= 0 && plan.pool < pools && plan.truth_pool >= 0 && plan.truth_pool < pools,
                    "make_patch: pools {} and {} of {}", plan.pool, plan.truth_pool, pools);
    const SurfacePool& truth = shape.pools[static_cast<size_t>(plan.truth_pool)];
    STIPPLE_REQUIRE(n >= 2 && n <= plan.cloud && 2 * plan.cloud <= truth.points.size(0),
                    "make_patch: {} points of a cloud of {} from {} samples", n, plan.cloud, truth.points.size(0));
    const PatchRandom random(key);
    draw_cloud(shape, plan, random, scratch);
    const auto size = static_cast<int64_t>(scratch.cloud.size() / 3);
    STIPPLE_REQUIRE(n <= size, "make_patch: {} points of a cloud of {}", n, size);

    const Rng of_centre = random.of(Draws::centre);
    const Vec3f centre = row_of(scratch.cloud.data(), of_centre.below(0, static_cast<uint32_t>(size)));
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
    const double reach =
        options.truth_radius * options.truth_radius * scratch.keyed[static_cast<size_t>(inner - 1)].first;
    scratch.truth.clear();
    std::pair<float, int32_t> nearest = {INFINITY, 0};  // where a hole has no other truth
    for (const int32_t sample : truth.order) {
        const Vec3f offset = row_of(truth.points.data(), sample) - centre;
        const float square = dot(offset, offset);
        nearest = std::min(nearest, {square, sample});
        if (square <= reach) scratch.truth.push_back(sample);
        if (static_cast<int64_t>(scratch.truth.size()) == t) break;
    }
    if (scratch.truth.empty()) scratch.truth.push_back(nearest.second);
    for (int64_t i = 0; i < t; ++i)
        to_patch(frame, truth.points.data() + 3 * scratch.truth[static_cast<size_t>(i) % scratch.truth.size()],
                 arrays.truth.data() + 3 * i);
    return frame;
}

}  // namespace stipple::learn
