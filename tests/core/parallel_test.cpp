#include "stipple/core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "stipple/core/error.h"

namespace stipple {
namespace {

class Parallel : public ::testing::TestWithParam<int> {
protected:
    void SetUp() override { set_threads(GetParam()); }
    void TearDown() override { set_threads(0); }
};

TEST_P(Parallel, CoversEverythingOnce) {
    for (int64_t n : {0, 1, 2, 7, 64, 1000, 4097}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
        parallel_for(n, 7, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) visits[static_cast<size_t>(i)].fetch_add(1);
        });
        for (const auto& count : visits) ASSERT_EQ(count.load(), 1);
    }
}

TEST_P(Parallel, ChunksDoNotDependOnThreads) {
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> chunks;
    parallel_for(1000, 64, [&](int64_t begin, int64_t end) {
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(chunks.insert({begin, end}).second);
    });
    std::set<std::pair<int64_t, int64_t>> expected;
    for (int64_t begin = 0; begin < 1000; begin += 64) expected.insert({begin, std::min<int64_t>(1000, begin + 64)});
    EXPECT_EQ(chunks, expected);
}

TEST_P(Parallel, SumsInChunkOrderAreEqualToTheBit) {
    const auto sum = [] {
        std::vector<float> parts(157);
        parallel_for(10000, 64, [&](int64_t begin, int64_t end) {
            float part = 0;
            for (int64_t i = begin; i < end; ++i) part += std::sin(static_cast<float>(i));
            parts[static_cast<size_t>(begin / 64)] = part;
        });
        float total = 0;
        for (float part : parts) total += part;
        return total;
    };
    const float here = sum();
    set_threads(1);
    EXPECT_EQ(here, sum());
}

TEST_P(Parallel, TheLowestChunkThatFailsIsReported) {
    for (int repeat = 0; repeat < 20; ++repeat) {
        try {
            parallel_for(100, 1, [&](int64_t begin, int64_t) {
                if (begin >= 3) {
                    if (begin == 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    throw std::runtime_error(std::to_string(begin));
                }
            });
            FAIL();
        } catch (const std::runtime_error& error) {
            EXPECT_STREQ(error.what(), "3");
        }
    }
    // And it works afterwards.
    std::atomic<int> count{0};
    parallel_for(10, 1, [&](int64_t, int64_t) { ++count; });
    EXPECT_EQ(count.load(), 10);
}

TEST_P(Parallel, NestedCallsRunOnTheCallingThread) {
    std::atomic<int64_t> total{0};
    parallel_for(8, 1, [&](int64_t, int64_t) {
        const auto outer = std::this_thread::get_id();
        parallel_for(100, 10, [&](int64_t begin, int64_t end) {
            EXPECT_TRUE(threads() == 1 || std::this_thread::get_id() == outer);
            total += end - begin;
        });
    });
    EXPECT_EQ(total.load(), 800);
    EXPECT_THROW(parallel_for(4, 1,
                              [](int64_t, int64_t) {
                                  parallel_for(4, 1, [](int64_t, int64_t) { throw std::runtime_error("inner"); });
                              }),
                 std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Threads, Parallel, ::testing::Range(1, 9));

TEST(ParallelFor, Arguments) {
    const auto nothing = [](int64_t, int64_t) {};
    EXPECT_THROW(parallel_for(-1, 1, nothing), Error);
    EXPECT_THROW(parallel_for(1, 0, nothing), Error);
    EXPECT_THROW(set_threads(-1), Error);
    EXPECT_THROW(set_threads(4097), Error);
    EXPECT_GE(threads(), 1);
}

TEST(ParallelFor, HugeCountsDoNotOverflow) {
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    int64_t covered = 0;
    set_threads(1);
    parallel_for(kMax, (int64_t{1} << 62) + 5, [&](int64_t begin, int64_t end) {
        EXPECT_EQ(begin, covered);
        covered = end;
    });
    set_threads(0);
    EXPECT_EQ(covered, kMax);
}

}  // namespace
}  // namespace stipple
