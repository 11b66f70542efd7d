#include "stipple/ops/argmax_points.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"

namespace stipple::ops {
namespace cpu {
namespace {

constexpr int64_t kChannels = 64;  // that are compared at a time: their best numbers stay in the first cache

/// Channels [first, last) of a cloud.
void argmax_of_channels(const Clouds& scores, int64_t cloud, int64_t first, int64_t last, const GumbelNoise& noise,
                        int32_t* winners) {
    float best[kChannels];
    std::fill_n(best, kChannels, -std::numeric_limits<float>::infinity());
    std::fill_n(winners, last - first, -1);
    const int64_t begin = scores.batch.begin(cloud), n = scores.batch.size(cloud);
    for (int64_t i = 0; i < n; ++i) {
        const float* row = scores.rows.data() + (begin + i) * scores.rows.stride(0);
        for (int64_t c = first; c < last; ++c) {
            float score = row[c];
            if (noise.scale > 0) score += noise.scale * gumbel_noise(noise.seed, cloud, i, c, scores.dimension());
            // -infinity is a number like any other: the first one wins where there is nothing else.
            const bool wins = score > best[c - first] || (winners[c - first] < 0 && score == best[c - first]);
            if (!wins) continue;
            best[c - first] = score;
            winners[c - first] = static_cast<int32_t>(i);
        }
    }
}

void argmax_points(const Clouds& scores, View<int32_t, 2> winners, const GumbelNoise& noise) {
    const int64_t channels = scores.dimension(), parts = (channels + kChannels - 1) / kChannels;
    parallel_for(scores.batch.clouds() * parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
            const int64_t cloud = task / parts, first = task % parts * kChannels;
            argmax_of_channels(scores, cloud, first, std::min(first + kChannels, channels), noise,
                               winners.data() + cloud * channels + first);
        }
    });
}

}  // namespace
}  // namespace cpu

void argmax_points(const Clouds& scores, View<int32_t, 2> winners, const GumbelNoise& noise,
                   [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "argmax_points";
    require_clouds(kOp, "scores", scores, scores.dimension());
    require_output<int32_t, 2>(kOp, "winners", winners, {scores.batch.clouds(), scores.dimension()}, scores.device());
    STIPPLE_REQUIRE(noise.scale >= 0 && std::isfinite(noise.scale), "{}: the scale of noise must be from 0, got {}",
                    kOp, noise.scale);
    if (winners.elements() == 0) return;
    switch (scores.device().type) {
        case DeviceType::cpu: return cpu::argmax_points(scores, winners, noise);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::argmax_points, scores, winners, noise, stream);
    }
}

}  // namespace stipple::ops
