#include "stipple/core/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "stipple/core/log.h"
#include "tests/support/process.h"

namespace stipple {
namespace {

void wait(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

int xterm() {
    ::setenv("TERM", "xterm", 1);
    ::setenv("NO_COLOR", "1", 1);
    return 0;
}

// What a terminal of that width shows: lines, after carriage returns and erasures. Fails on any other escape code and
// on text that reaches the last column.
std::vector<std::string> screen(const std::string& output, int width) {
    std::vector<std::string> lines(1);
    size_t column = 0;
    for (size_t i = 0; i < output.size(); ++i) {
        if (output[i] == '\r') {
            column = 0;
        } else if (output[i] == '\n') {
            lines.emplace_back();
            column = 0;
        } else if (output.compare(i, 3, "\033[K") == 0) {
            lines.back().resize(column);
            i += 2;
        } else {
            EXPECT_NE(output[i], '\033');
            lines.back().resize(std::max(lines.back().size(), column + 1), ' ');
            lines.back()[column++] = output[i];
            EXPECT_LT(column, static_cast<size_t>(width)) << "wraps: " << lines.back();
        }
    }
    return lines;
}

TEST(ProgressBar, FitsEveryWidth) {
    for (int width = 0; width <= 200; ++width)
        for (int64_t total : {int64_t{0}, int64_t{7}, int64_t{1} << 60})
            for (int64_t done : {int64_t{0}, int64_t{1}, total / 2, total})
                for (double seconds : {0.0, 0.001, 10.0, 1e7}) {
                    const std::string bar =
                        progress_bar("a long label of words", done, total, seconds, "points", width, false);
                    ASSERT_LE(static_cast<int>(bar.size()), std::max(0, width - 1)) << bar;
                    ASSERT_EQ(bar.find('\n'), std::string::npos);
                }
}

TEST(ProgressBar, Looks) {
    EXPECT_EQ(progress_bar("fps", 500, 1000, 10, "clouds", 60, false),
              "fps  50% [############------------]  0:10 left  50 clouds/s");
    EXPECT_EQ(progress_bar("fps", 500, 1000, 10, "clouds", 20, false), "fps  50%  0:10 left");
    EXPECT_EQ(progress_bar("upsample", 1, 1000, 10, "", 20, false), "upsample   0%");
    EXPECT_EQ(progress_bar("upsample", 999'999, 1'000'000, 10, "", 14, false), "upsample  99%");
    EXPECT_EQ(progress_bar("upsample", 1, 2, 1, "", 9, false), "ups  50%");
    EXPECT_EQ(progress_bar("read", 12'345'678, 0, 10, "points", 60, false), "read 12.3M  1.23M points/s");
    EXPECT_EQ(progress_bar("\xc3\xa4\xc3\xb6\xc3\xbc", 1, 2, 1, "", 9, false), "\xc3\xa4\xc3\xb6\xc3\xbc  50%");
    EXPECT_NE(progress_bar("fps", 500, 1000, 10, "clouds", 60, true).find("\033[32m"), std::string::npos);
    // What the job tells: a note, and its pace of now instead of the mean.
    EXPECT_EQ(progress_bar("train", 500, 1000, 10, "steps", 70, false, "fine, 27.31 dB", 5),
              "train  50% [#########---------]  1:40 left  fine, 27.31 dB  5 steps/s");
    EXPECT_EQ(progress_bar("train", 500, 1000, 10, "steps", 40, false, "fine, 27.31 dB", 5),
              "train  50%  1:40 left  fine, 27.31 dB");
    EXPECT_EQ(progress_bar("train", 500, 1000, 10, "steps", 26, false, "fine", 0), "train  50% [###---]  fine");
}

TEST(ProgressLine, Looks) {
    EXPECT_EQ(progress_line("upsample", 48, 120, 3, "tiles"), "upsample: 40% (48 of 120 tiles), 16 tiles/s, 0:05 left");
    EXPECT_EQ(progress_line("read", 10, 0, 2, ""), "read: 10, 5/s");
    EXPECT_EQ(progress_line("x", 0, 10, 0, ""), "x: 0% (0 of 10)");
    EXPECT_EQ(progress_line("x", 5, 10, 1, "", "fine", 0.5), "x: 50% (5 of 10), 0.50/s, 0:10 left, fine");
    EXPECT_EQ(progress_line("x", 5, 10, 1, "", "fine", 0), "x: 50% (5 of 10), fine");
    EXPECT_EQ(progress_line("x", 1, 3601 * 2, 1, ""), "x: 0% (1 of 7202), 1/s, 2:00:01 left");
}

TEST(Progress, NothingForShortJobs) {
    for (bool terminal : {false, true}) {
        const auto job = [] {
            xterm();
            Progress progress("job", 100);
            for (int i = 0; i < 100; ++i) progress.add();
            progress.finish();
            return 0;
        };
        EXPECT_EQ((terminal ? test::run_on_terminal(80, job) : test::run_in_child(job)).output, "");
    }
}

TEST(Progress, NeverIsNever) {
    const auto result = test::run_on_terminal(80, [] {
        xterm();
        Progress progress("job", 2, ProgressMode::never);
        wait(600);
        progress.add(2);
        progress.finish();
        return 0;
    });
    EXPECT_EQ(result.output, "");
}

TEST(Progress, PlainLinesEveryTenPercent) {
    const auto result = test::run_in_child([] {
        Progress progress("job", 1000, ProgressMode::always, "points");
        for (int i = 0; i < 1000; ++i) progress.add();
        progress.finish("wrote x");
        return 0;
    });
    EXPECT_EQ(result.output.find('\033'), std::string::npos);
    EXPECT_EQ(result.output.find('\r'), std::string::npos);
    std::vector<std::string> lines(1);
    for (char c : result.output) {
        if (c == '\n')
            lines.emplace_back();
        else
            lines.back() += c;
    }
    ASSERT_EQ(lines.size(), 11u) << result.output;
    EXPECT_EQ(lines[0].substr(0, 30), "job: 10% (100 of 1000 points),");
    EXPECT_EQ(lines[8].substr(0, 30), "job: 90% (900 of 1000 points),");
    EXPECT_EQ(lines[9], "job: wrote x (1000 points in 0.0 s)");
}

TEST(Progress, QuietForHalfASecondThenPlainLines) {
    const auto result = test::run_in_child([] {
        Progress progress("job", 100);
        progress.add(50);
        wait(520);
        progress.add(1);
        progress.finish();
        return 0;
    });
    EXPECT_EQ(result.output.substr(0, 22), "job: 51% (51 of 100), ");
    EXPECT_NE(result.output.find("\njob: done (0.5 s)\n"), std::string::npos) << result.output;
}

TEST(Progress, ABarThatDoesNotWrapAndIsClearedAtTheEnd) {
    for (int width : {20, 40, 80, 200}) {
        const auto result = test::run_on_terminal(width, [] {
            xterm();
            Progress progress("upsampling", 40, ProgressMode::always, "tiles");
            for (int i = 0; i < 4; ++i) {
                progress.add(10);
                wait(110);
            }
            progress.finish("ok");
            return 0;
        });
        EXPECT_NE(result.output.find("\r\033[K"), std::string::npos);
        EXPECT_NE(result.output.find("50%"), std::string::npos);
        // The bar is gone; one line is left. That line may be wider than a very narrow terminal: it is text, not a bar.
        const auto lines = screen(result.output, std::max(width, 60));
        ASSERT_EQ(lines.size(), 2u) << result.output;
        EXPECT_EQ(lines[0].rfind("upsampling: ok (40 tiles in ", 0), 0u) << lines[0];  // 0.4 s, more under load
        EXPECT_EQ(lines[0].substr(lines[0].size() - 3), " s)");
        EXPECT_EQ(lines[1], "");
    }
}

TEST(Progress, BarOnATwentyColumnTerminal) {
    const auto result = test::run_on_terminal(20, [] {
        xterm();
        Progress progress("upsampling a long name", 40, ProgressMode::always, "tiles");
        for (int i = 0; i < 3; ++i) {
            progress.add(10);
            wait(110);
        }
        return 0;  // no finish(): an exception, say
    });
    EXPECT_EQ(screen(result.output, 20), std::vector<std::string>{""});
}

TEST(Progress, StepsAsideForTheLog) {
    const auto result = test::run_on_terminal(80, [] {
        xterm();
        Progress progress("job", 40, ProgressMode::always);
        progress.add(10);
        log_warn("careful");
        progress.finish("ok");
        return 0;
    });
    const auto lines = screen(result.output, 80);
    ASSERT_EQ(lines.size(), 3u) << result.output;
    EXPECT_EQ(lines[0], "stipple: warning: careful");
    EXPECT_EQ(lines[1], "job: ok (0.0 s)");
}

TEST(Progress, CountsFromManyThreads) {
    const auto result = test::run_in_child([] {
        Progress progress("job", 40000, ProgressMode::always, "points");
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&] {
                for (int i = 0; i < 10000; ++i) progress.add();
            });
        for (auto& thread : threads) thread.join();
        progress.finish();
        return 0;
    });
    EXPECT_NE(result.output.find("job: done (40000 points in "), std::string::npos) << result.output;
}

}  // namespace
}  // namespace stipple
