#include "stipple/core/profile.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trace.h"

namespace stipple {
namespace {

using test::read_file;
using test::read_trace;
using test::TemporaryFolder;
using test::TraceEvent;

constexpr int64_t kProfileMs = 1'000'000;

std::string profile_trace(const Profile& profile) {
    MemorySink sink;
    write_trace(profile, sink);
    return {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()};
}

/// Two steps of 10 ms: forward 6 (conv1 2, pool 1), backward 3 (conv1 3).
void fill_profile(Profile& profile) {
    const int32_t step = profile.row(Profile::kRoot, "step"), forward = profile.row(step, "forward"),
                  backward = profile.row(step, "backward");
    const int32_t main = profile.track("thread 1"), other = profile.track("thread 2");
    for (const int64_t at : {int64_t{0}, 20 * kProfileMs}) {
        profile.add({profile.row(forward, "conv1"), main, at, 2 * kProfileMs, 100, 150});
        profile.add({profile.row(forward, "pool"), main, at + 3 * kProfileMs, kProfileMs, 20, 170});
        profile.add({forward, main, at, 6 * kProfileMs, 120, 170});
        profile.add({profile.row(backward, "conv1"), other, at + 6 * kProfileMs, 3 * kProfileMs, 50});
        profile.add({backward, main, at + 6 * kProfileMs, 3 * kProfileMs, 50});
        profile.add({step, main, at, 10 * kProfileMs, 170});
    }
}

TEST(CoreProfile, RowsAreSumsInTheOrderOfTheTree) {
    Profile profile;
    fill_profile(profile);
    const std::vector<ProfileRow> rows = profile.rows();
    ASSERT_EQ(rows.size(), 6u);
    const char* const names[] = {"step", "forward", "conv1", "pool", "backward", "conv1"};
    const int32_t parents[] = {-1, 0, 1, 1, 0, 4}, depths[] = {0, 1, 2, 2, 1, 2};
    const double totals[] = {20, 12, 4, 2, 6, 6}, selves[] = {2, 6, 4, 2, 0, 6};  // ms
    double shares = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
        SCOPED_TRACE(i);
        EXPECT_EQ(rows[i].name, names[i]);
        EXPECT_EQ(rows[i].parent, parents[i]);
        EXPECT_EQ(rows[i].depth, depths[i]);
        EXPECT_EQ(rows[i].calls, 2);
        EXPECT_NEAR(1e3 * rows[i].cpu_total, totals[i], 1e-9);
        EXPECT_NEAR(1e3 * rows[i].cpu_self, selves[i], 1e-9);
        EXPECT_NEAR(rows[i].cpu_share, selves[i] / 20, 1e-9);
        EXPECT_EQ(rows[i].gpu_total, 0);
        shares += rows[i].cpu_share;
    }
    EXPECT_NEAR(shares, 1, 1e-12);
    EXPECT_EQ(rows[2].bytes, 200);
    EXPECT_EQ(rows[2].peak_bytes, 150);
    EXPECT_FALSE(profile.has_gpu());
}

TEST(CoreProfile, TheGpuHasColumnsOfItsOwn) {
    Profile profile;
    const int32_t step = profile.row(Profile::kRoot, "step"), layer = profile.row(step, "conv1");
    const int32_t cpu = profile.track("thread 1"), gpu = profile.track("cuda:0", ProfileDevice::gpu);
    profile.add({step, cpu, 0, 5 * kProfileMs});
    profile.add({layer, cpu, 0, kProfileMs});
    profile.add({step, gpu, 0, 9 * kProfileMs});
    profile.add({layer, gpu, 0, 8 * kProfileMs});
    const std::vector<ProfileRow> rows = profile.rows();
    EXPECT_TRUE(profile.has_gpu());
    EXPECT_EQ(rows[0].calls, 1);  // not two, one for each device
    EXPECT_NEAR(rows[0].gpu_self, 1e-3, 1e-9);
    EXPECT_NEAR(rows[1].gpu_share, 8.0 / 9, 1e-9);
    EXPECT_NEAR(rows[1].cpu_share, 1.0 / 5, 1e-9);
}

TEST(CoreProfile, ThreadsThatDoTheSameSideBySideCountOnce) {
    Profile profile;
    const int32_t run = profile.row(Profile::kRoot, "run"), step = profile.row(run, "conv1");
    for (int i = 0; i < 4; ++i)
        profile.add({.row = step,
                     .track = profile.track("thread " + std::to_string(i + 1)),
                     .begin = 0,
                     .duration = 8 * kProfileMs,
                     .side_by_side = 4});
    profile.add({run, 0, 0, 9 * kProfileMs});
    const std::vector<ProfileRow> rows = profile.rows();
    EXPECT_NEAR(rows[1].cpu_total, 8e-3, 1e-9);
    EXPECT_NEAR(rows[0].cpu_self, 1e-3, 1e-9);
    EXPECT_EQ(rows[1].calls, 4);
}

TEST(CoreProfile, RowsWithoutTimeAreNotShown) {
    Profile profile;
    const int32_t run = profile.row(Profile::kRoot, "run");
    profile.row(run, "never");
    const int32_t above = profile.row(run, "above");  // no span of its own
    profile.add({profile.row(above, "below"), profile.track("thread 1"), 0, 1});
    const std::vector<ProfileRow> rows = profile.rows();
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[2].name, "below");
    EXPECT_TRUE(Profile().rows().empty());
}

TEST(CoreProfile, MemoryIsBounded) {
    Profile profile(1000);
    const int32_t row = profile.row(Profile::kRoot, "step"), track = profile.track("thread 1");
    for (int64_t i = 0; i < 1000; ++i) profile.add({row, track, i, 1});
    const int64_t full = profile.memory_bytes();
    EXPECT_GE(full, 1000 * static_cast<int64_t>(sizeof(ProfileSpan)));
    for (int64_t i = 0; i < 50000; ++i) {
        profile.add({profile.row(Profile::kRoot, "step"), profile.track("thread 1"), i, 1});
    }
    EXPECT_EQ(profile.memory_bytes(), full);
    EXPECT_EQ(profile.spans().size(), 1000u);
    EXPECT_EQ(profile.left_out(), 50000);
    EXPECT_EQ(profile.rows()[0].calls, 51000);  // rows count them all
    EXPECT_NE(profile_trace(profile).find("\"spans_left_out\":50000"), std::string::npos);
}

TEST(CoreProfile, ThreadsAddAtTheSameTime) {
    Profile profile(100);
    const auto work = [&](int thread) {
        for (int64_t i = 0; i < 2000; ++i)
            profile.add({profile.row(Profile::kRoot, i % 2 ? "odd" : "even"),
                         profile.track("thread " + std::to_string(thread)), i, 10});
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
    for (std::thread& thread : threads) thread.join();
    const std::vector<ProfileRow> rows = profile.rows();
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].calls, 4000);
    EXPECT_EQ(rows[1].calls, 4000);
    EXPECT_EQ(profile.tracks().size(), 4u);
}

TEST(CoreProfile, TheTraceSaysWhatWasAdded) {
    Profile profile;
    fill_profile(profile);
    profile.add({profile.row(Profile::kRoot, "a \"name\"\n\\ with \x01 \xc3\xa4"),
                 profile.track("cuda:0", ProfileDevice::gpu), 30 * kProfileMs, 1500});
    const std::vector<TraceEvent> events = read_trace(profile_trace(profile));
    std::set<std::string> processes, threads;
    std::vector<TraceEvent> spans;
    for (const TraceEvent& event : events) {
        if (event.name == "process_name") processes.insert(event.path);
        if (event.name == "thread_name") threads.insert(event.path);
        if (event.phase == "X") spans.push_back(event);
    }
    EXPECT_EQ(processes, (std::set<std::string>{"CPU", "GPU"}));
    EXPECT_EQ(threads, (std::set<std::string>{"thread 1", "thread 2", "cuda:0"}));
    ASSERT_EQ(spans.size(), 13u);
    EXPECT_EQ(spans[0].name, "conv1");
    EXPECT_EQ(spans[0].path, "step/forward/conv1");
    EXPECT_EQ(spans[0].bytes, 100);
    EXPECT_DOUBLE_EQ(spans[6].begin, 20000);
    EXPECT_DOUBLE_EQ(spans[6].duration, 2000);
    EXPECT_EQ(spans[3].path, "step/backward/conv1");
    EXPECT_NE(spans[3].thread, spans[0].thread);
    EXPECT_EQ(spans[12].name, "a \"name\"\n\\ with \x01 \xc3\xa4");
    EXPECT_EQ(spans[12].category, "gpu");
    EXPECT_NE(spans[12].process, spans[0].process);
    EXPECT_DOUBLE_EQ(spans[12].duration, 1.5);
    for (const TraceEvent& span : spans) EXPECT_GE(span.duration, 0);
    EXPECT_TRUE(read_trace(profile_trace(Profile())).empty());
}

TEST(CoreProfile, TheTraceAppearsWholeOrNotAtAll) {
    const TemporaryFolder folder;
    Profile profile;
    fill_profile(profile);
    const std::string path = folder / "trace.json";
    save_trace(profile, path, Overwrite::refuse);
    EXPECT_EQ(read_file(path), profile_trace(profile));
    EXPECT_ERROR(save_trace(profile, path, Overwrite::refuse), cannot_write, "");
    profile.add({profile.row(Profile::kRoot, "not \xff UTF-8"), 0, 0, 1});
    const std::string before = read_file(path);
    EXPECT_ERROR(save_trace(profile, path, Overwrite::allow), bad_argument, "");
    EXPECT_EQ(read_file(path), before);
}

TEST(CoreProfile, Refuses) {
    Profile profile;
    const int32_t row = profile.row(Profile::kRoot, "a"), track = profile.track("thread 1");
    const auto fails = [&](const ProfileSpan& span) { EXPECT_ERROR(profile.add(span), bad_argument, ""); };
    fails({row, track, 0, -1});
    fails({row + 1, track, 0, 1});
    fails({-1, track, 0, 1});
    fails({row, track + 1, 0, 1});
    fails({.row = row, .track = track, .side_by_side = 0});
    EXPECT_ERROR(profile.row(7, "b"), bad_argument, "");
    EXPECT_TRUE(profile.rows().empty());
    EXPECT_GE(profile.now(), 0);
}

}  // namespace
}  // namespace stipple
