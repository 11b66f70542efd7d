#include "stipple/ops/random_sample.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"

namespace stipple::ops {
namespace cpu {
namespace {

constexpr int64_t kGrain = 1 << 16;

struct Draw {
    uint64_t bits;
    int32_t index;
    bool operator<(const Draw& other) const { return bits != other.bits ? bits < other.bits : index < other.index; }
};

/// The points of a cloud whose bits are not above `most`, by index.
std::vector<Draw> draws_up_to(uint64_t most, uint64_t seed, int64_t cloud, int64_t n) {
    std::vector<std::vector<Draw>> parts(static_cast<size_t>((n + kGrain - 1) / kGrain));
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        std::vector<Draw>& part = parts[begin / kGrain];
        for (int64_t i = begin; i < end; ++i) {
            const uint64_t bits = random_sample_bits(seed, cloud, i);
            if (bits <= most) part.push_back({bits, static_cast<int32_t>(i)});
        }
    });
    if (parts.size() == 1) return std::move(parts[0]);
    std::vector<Draw> all;
    for (const std::vector<Draw>& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

void sample_cloud(uint64_t seed, int64_t cloud, int64_t n, int32_t* indices, int64_t m, SampleOrder order) {
    // The m smallest of n uniform numbers are nearly always below (m + 8 sqrt(m) + 16) / n: few draws need be kept.
    const double wanted = static_cast<double>(m) + 8 * std::sqrt(static_cast<double>(m)) + 16;
    uint64_t most = UINT64_MAX;
    if (wanted < 0.9 * static_cast<double>(n)) most = static_cast<uint64_t>(wanted / static_cast<double>(n) * 0x1p64);
    std::vector<Draw> draws = draws_up_to(most, seed, cloud, n);
    if (static_cast<int64_t>(draws.size()) < m) draws = draws_up_to(UINT64_MAX, seed, cloud, n);
    const auto end = draws.begin() + m;
    if (end != draws.end()) std::nth_element(draws.begin(), end, draws.end());
    if (order == SampleOrder::random) std::sort(draws.begin(), end);
    for (int64_t i = 0; i < m; ++i) indices[i] = draws[i].index;
    if (order == SampleOrder::by_index) std::sort(indices, indices + m);
}

void random_sample(const Batch& points, const Batch& samples, uint64_t seed, View<int32_t, 1> indices,
                   const RandomSampleOptions& options) {
    parallel_for(samples.clouds(), 1, [&](int64_t cloud, int64_t) {
        const int64_t n = points.size(cloud), m = samples.size(cloud);
        int32_t* out = indices.data() + samples.begin(cloud);
        if (m == 0) return;
        if (!options.with_replacement) return sample_cloud(seed, cloud, n, out, m, options.order);
        parallel_for(m, kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                out[i] = random_sample_below(random_sample_bits(seed, cloud, i), static_cast<uint64_t>(n));
        });
    });
}

}  // namespace
}  // namespace cpu

void random_sample(const Batch& points, const Batch& samples, uint64_t seed, View<int32_t, 1> indices,
                   const RandomSampleOptions& options, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "random_sample";
    require_same_batch(kOp, points, samples);
    STIPPLE_REQUIRE(points.largest() <= std::numeric_limits<int32_t>::max(), "{}: a cloud of {} points; the most is {}",
                    kOp, points.largest(), std::numeric_limits<int32_t>::max());
    for (int64_t cloud = 0; cloud < samples.clouds(); ++cloud) {
        const int64_t n = points.size(cloud), m = samples.size(cloud);
        STIPPLE_REQUIRE(m <= n || (options.with_replacement && n > 0), "{}: {} samples of the {} points of cloud {}",
                        kOp, m, n, cloud);
        if (points.is_dense() && samples.is_dense()) break;  // all alike
    }
    require_output(kOp, "indices", indices, {samples.rows()}, indices.device());
    if (samples.rows() == 0) return;
    switch (indices.device().type) {
        case DeviceType::cpu: return cpu::random_sample(points, samples, seed, indices, options);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::random_sample, points, samples, seed, indices, options, stream);
    }
}

}  // namespace stipple::ops
