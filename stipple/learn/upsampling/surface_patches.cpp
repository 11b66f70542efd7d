#include "stipple/learn/upsampling/surface_patches.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/learn/upsampling/patch_cut.h"

namespace stipple::learn {
namespace {

constexpr int64_t kThinnedShare = 4;  // of a pool: clouds of uneven density have at most a quarter of its points

/// As a scanner would: noise along its rays, and points between what lies before and behind an edge.
void spoil(const SurfacePool& pool, const PatchPlan& plan, const Rng& rng, PatchScratch& scratch) {
    for (size_t i = 0; i < scratch.chosen.size(); ++i) {
        const auto row = static_cast<size_t>(3 * int64_t{scratch.chosen[i]});
        const float along = plan.scan_noise > 0 ? static_cast<float>(plan.scan_noise) * rng.normal(2 * i) : 0;
        const float mixed = plan.mixed > 0 && rng.uniform(2 * i + 1) < plan.mixed ? 1 : 0;
        for (size_t axis = 0; axis < 3; ++axis)
            scratch.cloud[3 * i + axis] +=
                along * pool.noise.data()[row + axis] + mixed * pool.mixed.data()[row + axis];
    }
}

/// The cloud's points, with noise, into scratch.cloud.
void draw_cloud(const SurfaceShape& shape, const PatchPlan& plan, const PatchRandom& random, PatchScratch& scratch) {
    const SurfacePool& pool = shape.pools[static_cast<size_t>(plan.pool)];
    const int64_t samples = pool.points.size(0);
    const Rng rng = random.of(Draws::cloud);
    scratch.chosen.clear();
    switch (plan.sampling) {
        case PatchSampling::uniform: scratch.chosen.assign(pool.order.begin(), pool.order.begin() + plan.cloud); break;
        case PatchSampling::random: {  // a run of independent points, from anywhere
            const int64_t first = rng.below(0, static_cast<uint32_t>(samples));
            for (int64_t i = 0; i < plan.cloud; ++i)
                scratch.chosen.push_back(static_cast<int32_t>((first + i) % samples));
            break;
        }
        case PatchSampling::gradient:
        case PatchSampling::scan:
        case PatchSampling::voxel:
            choose_points(pool.points.view(), shape.area, plan.sampling, std::min(plan.cloud, samples / kThinnedShare),
                          rng, scratch);
            break;
    }
    take_points(pool.points.view(), pool.noise.size(0) > 0 ? 0 : plan.noise, random.of(Draws::noise), scratch);
    if (pool.noise.size(0) > 0) spoil(pool, plan, random.of(Draws::noise), scratch);
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
    require(o.region >= o.samples && o.region <= 1 << 24, "patch.region must be patch.samples to 16777216");
    require(points >= 2 && points <= o.cloud_min, "data.points must be 2 to patch.cloud_min");
    require(o.cloud_min <= o.cloud_max, "patch.cloud_min must not be above cloud_max");
    require(o.cloud_max <= o.samples / 2, "patch.samples must be at least twice patch.cloud_max");
    require(o.cloud_min <= o.samples / kThinnedShare, "patch.samples must be at least four times patch.cloud_min");
    require(is_share(o.random_share) && is_share(o.gradient_share) && is_share(o.scan_share) &&
                is_share(o.voxel_share) && o.random_share + o.gradient_share + o.scan_share + o.voxel_share <= 1 + 1e-9,
            "patch.random_share, gradient_share, scan_share and voxel_share must be 0 to 1, and so must their sum");
    require(is_share(o.noise_share) && is_share(o.scan_noise_share) && is_share(o.mixed_share) &&
                is_share(o.query_noise_share),
            "patch.noise_share, scan_noise_share, mixed_share and query_noise_share must be 0 to 1");
    require(o.scans >= 0 && o.scans <= 16, "patch.scans must be 0 to 16");
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
    double kind = rng.uniform(3);
    for (const auto& [share, sampling] : {std::pair{options.random_share, PatchSampling::random},
                                          {options.gradient_share, PatchSampling::gradient},
                                          {options.scan_share, PatchSampling::scan},
                                          {options.voxel_share, PatchSampling::voxel},
                                          {1.0, PatchSampling::uniform}}) {
        plan.sampling = sampling;
        if (kind < share) break;
        kind -= share;
    }
    if (rng.uniform(4) < options.noise_share) plan.noise = options.noise_max * rng.uniform(5);
    if (rng.uniform(8) < options.scan_noise_share)
        plan.scan_noise = options.noise_max * rng.uniform(9) * rng.uniform(9);
    if (rng.uniform(6) < options.mixed_share) plan.mixed = rng.uniform(7);
    return plan;
}

PatchFrame make_patch(const SurfaceShape& shape, const PatchOptions& options, const PatchPlan& plan,
                      const PatchKey& key, const PatchArrays& arrays, PatchScratch& scratch) {
    const int64_t n = arrays.points.size(0);
    const auto pools = static_cast<int64_t>(shape.pools.size());
    STIPPLE_REQUIRE(plan.pool >= 0 && plan.pool < pools && plan.truth_pool >= 0 && plan.truth_pool < pools,
                    "make_patch: pools {} and {} of {}", plan.pool, plan.truth_pool, pools);
    const SurfacePool& truth = shape.pools[static_cast<size_t>(plan.truth_pool)];
    STIPPLE_REQUIRE(n >= 2 && n <= plan.cloud && 2 * plan.cloud <= truth.points.size(0),
                    "make_patch: {} points of a cloud of {} from {} samples", n, plan.cloud, truth.points.size(0));
    const PatchRandom random(key);
    draw_cloud(shape, plan, random, scratch);
    const auto size = static_cast<uint32_t>(scratch.cloud.size() / 3);
    const int64_t centre = random.of(Draws::centre).below(0, size);
    return cut_patch(centre, {truth.points.view(), truth.order}, options, random, arrays, scratch);
}

}  // namespace stipple::learn
