#include "stipple/learn/upsampling/surface_patches.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/learn/upsampling/patch_cut.h"

namespace stipple::learn {
namespace {

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
