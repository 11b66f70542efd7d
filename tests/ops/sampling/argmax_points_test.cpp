#include "stipple/ops/argmax_points.h"

#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "tests/ops/ops.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;

class ArgmaxPoints : public OnDevice {
protected:
    std::vector<int32_t> winners(const Array<float, 2>& scores, const Batch& batch,
                                 const ops::GumbelNoise& noise = {}) const {
        const Array<float, 2> there = scores.to(device());
        Array<int32_t, 2> found({batch.clouds(), scores.size(1)}, device());
        ops::argmax_points(Clouds(there.view(), batch), found.view(), noise);
        const Array<int32_t, 2> host = found.to(Device{});
        return {host.data(), host.data() + host.elements()};
    }
};
STIPPLE_ON_EVERY_DEVICE(ArgmaxPoints);

/// Few different numbers, so that there are ties; some of them odd ones.
Array<float, 2> scores_with_ties(int64_t n, int64_t channels, uint64_t seed) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    Array<float, 2> scores({n, channels});
    const Rng rng(seed);
    for (int64_t i = 0; i < scores.elements(); ++i) {
        const uint32_t kind = rng.below(static_cast<uint64_t>(i), 40);
        scores.data()[i] = kind == 0 ? NAN : kind == 1 ? -kInfinity : static_cast<float>(kind % 7) - 3;
    }
    return scores;
}

std::vector<int32_t> naive_winners(const Array<float, 2>& scores, const Batch& batch) {
    std::vector<int32_t> winners;
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
        for (int64_t c = 0; c < scores.size(1); ++c) {
            int32_t best = -1;
            for (int64_t i = 0; i < batch.size(cloud); ++i) {
                const float score = scores.view()(batch.begin(cloud) + i, c);
                if (std::isnan(score)) continue;
                if (best < 0 || score > scores.view()(batch.begin(cloud) + best, c)) best = static_cast<int32_t>(i);
            }
            winners.push_back(best);
        }
    return winners;
}

TEST_P(ArgmaxPoints, IsTheLoopOverAllPoints) {
    for (const int64_t channels : {1, 7, 32, 65, 200})
        for (const Batch& batch : {Batch::single(1), Batch::dense(3, 50), Batch::ragged({0, 3, 3, 100, 101}),
                                   Batch::single(1000), Batch::dense(2, 0)}) {
            const Array<float, 2> scores = scores_with_ties(batch.rows(), channels, 5);
            EXPECT_EQ(winners(scores, batch), naive_winners(scores, batch)) << channels << " " << batch.rows();
        }
}

TEST_P(ArgmaxPoints, ChannelsWithoutANumberHaveNoWinner) {
    Array<float, 2> scores({3, 2});
    std::fill_n(scores.data(), 6, NAN);
    scores.data()[3] = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(winners(scores, Batch::single(3)), (std::vector<int32_t>{-1, 1}));
}

// With noise of scale 1 point i wins with probability softmax(score)_i.
TEST_P(ArgmaxPoints, NoiseDrawsFromTheSoftmax) {
    const double logits[4] = {0, 1, 2, -1};
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    constexpr int64_t kClouds = 64, kChannels = 500;
    Array<float, 2> scores({4 * kClouds, kChannels});
    for (int64_t i = 0; i < scores.elements(); ++i) scores.data()[i] = static_cast<float>(logits[i / kChannels % 4]);
    const std::vector<int32_t> found = winners(scores, Batch::dense(kClouds, 4), {1, 9});
    double share[4] = {};
    for (const int32_t winner : found) share[winner] += 1.0 / static_cast<double>(found.size());
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(share[i], std::exp(logits[i]) / sum, 0.012) << i;
    EXPECT_EQ(found, winners(scores, Batch::dense(kClouds, 4), {1, 9}));
    EXPECT_NE(found, winners(scores, Batch::dense(kClouds, 4), {1, 10}));
    EXPECT_EQ(winners(scores, Batch::dense(kClouds, 4), {1e-6f, 9}), winners(scores, Batch::dense(kClouds, 4)));
}

TEST_P(ArgmaxPoints, SameForAnyThreads) {
    const Array<float, 2> scores = scores_with_ties(5000, 130, 6);
    set_threads(1);
    const std::vector<int32_t> one = winners(scores, Batch::dense(5, 1000), {0.5f, 1});
    set_threads(3);
    const std::vector<int32_t> three = winners(scores, Batch::dense(5, 1000), {0.5f, 1});
    set_threads(0);
    EXPECT_EQ(one, three);
}

TEST_P(ArgmaxPoints, RefusesWrongShapes) {
    const Array<float, 2> scores = Array<float, 2>({4, 3}).to(device());
    Array<int32_t, 2> right({1, 3}, device()), wrong({3, 1}, device());
    EXPECT_NE(bad_argument_of([&] { ops::argmax_points(scores.view(), wrong.view()); }).find("winners must be"),
              std::string::npos);
    for (const float scale : {-1.f, NAN, INFINITY})
        EXPECT_NE(bad_argument_of([&] {
                      ops::argmax_points(scores.view(), right.view(), {scale, 1});
                  }).find("scale"),
                  std::string::npos);
}

}  // namespace
}  // namespace stipple::test
