#include "stipple/ops/farthest_point_sample.h"

#include <algorithm>
#include <limits>
#include <span>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/sampling/farthest_tree.h"

namespace stipple::ops {
namespace cpu {
namespace {

void sample_cloud(View<const float, 2> points, std::span<const int32_t> chosen, int32_t start,
                  std::span<int32_t> indices, float* distances_sq) {
    FarthestTree tree(points, static_cast<int64_t>(indices.size()));
    size_t count = 0;
    const auto take = [&](int64_t position) {
        const float distance_sq = tree.distance_sq(position);
        indices[count] = tree.index(position);
        if (distances_sq) distances_sq[count] = distance_sq;
        ++count;
        tree.choose(position);
    };
    if (!chosen.empty()) {
        const std::vector<int32_t> positions = tree.positions();
        for (const int32_t index : chosen) {
            if (count == indices.size()) return;
            if (index < 0 || index >= points.size(0)) continue;
            const int64_t position = positions[index];
            if (position >= 0 && !tree.is_chosen(position)) take(position);
        }
    }
    if (count == 0) {
        const int64_t position = tree.find(start);
        if (position >= 0) take(position);
    }
    while (count < indices.size()) {
        const int64_t position = tree.farthest();
        if (position < 0) break;
        take(position);
    }
    std::fill(indices.begin() + static_cast<int64_t>(count), indices.end(), -1);
    if (distances_sq) std::fill(distances_sq + count, distances_sq + indices.size(), 0.0f);
}

void farthest_point_sample(const Clouds& points, const Batch& samples, View<int32_t, 1> indices,
                           View<float, 1> distances_sq, const FarthestPointOptions& options) {
    parallel_for(samples.clouds(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t cloud = begin; cloud < end; ++cloud) {
            if (samples.size(cloud) == 0) continue;
            std::span<const int32_t> chosen;
            if (options.chosen_batch.rows() > 0)
                chosen = {options.chosen.data() + options.chosen_batch.begin(cloud),
                          static_cast<size_t>(options.chosen_batch.size(cloud))};
            sample_cloud(points.cloud(cloud), chosen, options.start,
                         {indices.data() + samples.begin(cloud), static_cast<size_t>(samples.size(cloud))},
                         distances_sq.data() ? distances_sq.data() + samples.begin(cloud) : nullptr);
        }
    });
}

}  // namespace
}  // namespace cpu

void farthest_point_sample(const Clouds& points, const Batch& samples, View<int32_t, 1> indices,
                           View<float, 1> distances_sq, const FarthestPointOptions& options,
                           [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "farthest_point_sample";
    require_clouds(kOp, "points", points);
    require_same_batch(kOp, points.batch, samples);
    for (int64_t cloud = 0; cloud < samples.clouds(); ++cloud) {
        const int64_t n = points.batch.size(cloud), m = samples.size(cloud);
        STIPPLE_REQUIRE(m <= n, "{}: {} samples of the {} points of cloud {}", kOp, m, n, cloud);
        STIPPLE_REQUIRE(m == 0 || (options.start >= 0 && options.start < n),
                        "{}: start {} of the {} points of cloud {}", kOp, options.start, n, cloud);
        if (points.batch.is_dense() && samples.is_dense()) break;  // all alike
    }
    require_output(kOp, "indices", indices, {samples.rows()}, points.device());
    if (distances_sq.size(0) == 0)
        distances_sq = {};  // not wanted: what it points to is not touched
    else
        require_output(kOp, "distances_sq", distances_sq, {samples.rows()}, points.device());
    if (options.chosen.size(0) > 0 || options.chosen_batch.rows() > 0) {
        require_same_batch(kOp, points.batch, options.chosen_batch);
        STIPPLE_REQUIRE(options.chosen_batch.largest() <= std::numeric_limits<int32_t>::max(), "{}: {} chosen points",
                        kOp, options.chosen_batch.largest());
        require_output(kOp, "chosen", options.chosen, {options.chosen_batch.rows()}, points.device());
    }
    if (samples.rows() == 0) return;
    switch (points.device().type) {
        case DeviceType::cpu: return cpu::farthest_point_sample(points, samples, indices, distances_sq, options);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::farthest_point_sample, points, samples, indices, distances_sq, options, stream);
    }
}

}  // namespace stipple::ops
