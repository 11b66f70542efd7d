// lifetimes and plan_memory.

#include <gtest/gtest.h>

#include "stipple/core/rng.h"
#include "stipple/engine/program.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/puflow.h"
#include "tests/engine/lowering.h"
#include "tests/support/devices.h"

namespace stipple::engine {
namespace {

/// Bytes of a plan that are alive at some step: no plan needs less.
int64_t least_bytes(const std::vector<Lifetime>& lifetimes, const std::vector<int64_t>& bytes) {
    int64_t least = 0;
    for (const Lifetime& at : lifetimes) {
        int64_t alive = 0;
        for (size_t i = 0; i < bytes.size(); ++i)
            if (lifetimes[i].first <= at.first && at.first <= lifetimes[i].last) alive += (bytes[i] + 255) / 256 * 256;
        least = std::max(least, alive);
    }
    return least;
}

void expect_sound(const MemoryPlan& plan, const std::vector<Lifetime>& lifetimes, const std::vector<int64_t>& bytes) {
    ASSERT_EQ(plan.offsets.size(), bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i) {
        EXPECT_EQ(plan.offsets[i] % 256, 0);
        EXPECT_GE(plan.offsets[i], 0);
        EXPECT_LE(plan.offsets[i] + bytes[i], plan.bytes);
        for (size_t j = 0; j < i; ++j) {
            const bool together = lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
            if (!together || bytes[i] == 0 || bytes[j] == 0) continue;
            EXPECT_TRUE(plan.offsets[i] + bytes[i] <= plan.offsets[j] || plan.offsets[j] + bytes[j] <= plan.offsets[i])
                << i << " and " << j;
        }
    }
}

TEST(EngineMemoryPlan, SimpleCases) {
    // A chain of values that each live until the next: two of them.
    const std::vector<Lifetime> chain = {{0, 1}, {1, 2}, {2, 3}, {3, 4}};
    EXPECT_EQ(plan_memory(chain, {1000, 1000, 1000, 1000}).bytes, 2048);
    EXPECT_EQ(plan_memory(chain, {1, 1, 1, 1}).bytes, 512);
    EXPECT_EQ(plan_memory(chain, {0, 0, 0, 0}).bytes, 0);
    EXPECT_EQ(plan_memory(std::vector<Lifetime>(), {}).bytes, 0);
    // Two small ones fit where the large one was.
    const MemoryPlan plan = plan_memory(std::vector<Lifetime>{{0, 1}, {2, 3}, {2, 3}}, {1024, 512, 512});
    EXPECT_EQ(plan.bytes, 1024);
    // All at once.
    EXPECT_EQ(plan_memory(std::vector<Lifetime>{{0, 9}, {0, 9}, {0, 9}}, {256, 512, 256}).bytes, 1024);
    EXPECT_THROW(plan_memory(std::vector<Lifetime>{{0, 1}}, {1, 2}), Error);
    EXPECT_THROW(plan_memory(std::vector<Lifetime>{{0, 1}}, {-1}), Error);
}

TEST(EngineMemoryPlan, RandomValues) {
    double worst = 1, sum = 0;
    for (uint64_t seed = 0; seed < 300; ++seed) {
        const Rng rng(seed, 7);
        const size_t n = 2 + rng.below(0, 40);
        std::vector<Lifetime> lifetimes(n);
        std::vector<int64_t> bytes(n);
        for (size_t i = 0; i < n; ++i) {
            lifetimes[i].first = static_cast<int32_t>(rng.below(3 * i + 1, 40));
            lifetimes[i].last = lifetimes[i].first + static_cast<int32_t>(rng.below(3 * i + 2, 6));
            bytes[i] = rng.below(3 * i + 3, 100000);
        }
        const MemoryPlan plan = plan_memory(lifetimes, bytes);
        expect_sound(plan, lifetimes, bytes);
        const double ratio =
            static_cast<double>(plan.bytes) / static_cast<double>(std::max<int64_t>(1, least_bytes(lifetimes, bytes)));
        worst = std::max(worst, ratio);
        sum += ratio;
    }
    EXPECT_LT(worst, 1.35);  // the worst of these has 1.344
    EXPECT_LT(sum / 300, 1.1);
}

TEST(EngineMemoryPlan, Models) {
    for (const network::Network& network :
         {models::pointnet_classifier({}), models::pointnet_part_segmenter({.classes = 50}), models::puflow({})}) {
        const Program program = lower(network, network::initial_weights(network, 1));
        const std::vector<Lifetime> lives = lifetimes(program);
        std::vector<int64_t> bytes;
        int64_t all = 0;
        for (const ValueInfo& value : program.values) {
            bytes.push_back(value.type.channels * value.type.width * 4 * (value.type.level == Level::point ? 1024 : 1));
            all += bytes.back();
        }
        const MemoryPlan plan = plan_memory(program, bytes);
        expect_sound(plan, lives, bytes);
        EXPECT_LT(static_cast<double>(plan.bytes), 1.1 * static_cast<double>(least_bytes(lives, bytes)))
            << network.name;
        EXPECT_LT(plan.bytes, all) << network.name;
    }
}

TEST(EngineMemoryPlan, Lifetimes) {
    const network::Network network = models::pointnet_classifier({});
    const Program program = lower(network, network::initial_weights(network, 1));
    const std::vector<Lifetime> lives = lifetimes(program);
    const auto of = [&](Value value) { return lives[static_cast<size_t>(value)]; };
    EXPECT_EQ(of(program.inputs[0].value).first, 0);
    EXPECT_EQ(of(program.inputs[0].value).last, 6);   // the trunk
    EXPECT_EQ(of(program.steps[2].output).first, 2);  // T3 in conv1's weights
    EXPECT_EQ(of(program.steps[2].output).last, 6);   // computed again in the trunk
    EXPECT_EQ(of(program.steps[4].output).last, 7);   // the 64 x 64 matrix is an output
    EXPECT_EQ(of(program.steps[6].output).first, 6);
    EXPECT_EQ(of(program.steps[6].output).last, 7);
}

}  // namespace
}  // namespace stipple::engine
