#include "stipple/core/log.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <thread>

#include "tests/support/process.h"

namespace stipple {
namespace {

void say_all() {
    log_debug("d {}", 1);
    log_info("i {}", 2);
    log_warn("w {}", 3);
    log_error("e {}", 4);
}

TEST(Log, PlainLinesWithoutATerminal) {
    const auto result = test::run_in_child([] {
        say_all();
        return 0;
    });
    EXPECT_EQ(result.output, "stipple: i 2\nstipple: warning: w 3\nstipple: error: e 4\n");
}

TEST(Log, LevelsCutOff) {
    const auto lines = [](LogLevel level) {
        return test::run_in_child([=] {
                   set_log_level(level);
                   say_all();
                   return log_level() == level ? 0 : 1;
               })
            .output;
    };
    EXPECT_EQ(lines(LogLevel::debug),
              "stipple: debug: d 1\nstipple: i 2\nstipple: warning: w 3\nstipple: error: e 4\n");
    EXPECT_EQ(lines(LogLevel::warn), "stipple: warning: w 3\nstipple: error: e 4\n");
    EXPECT_EQ(lines(LogLevel::error), "stipple: error: e 4\n");
    EXPECT_EQ(lines(LogLevel::off), "");
}

TEST(Log, OneMessageIsOneLine) {
    const auto result = test::run_in_child([] {
        log_warn("{}", "a\nb\x1b[2Jc");
        log_message(LogLevel::warn, "{} is not a format");
        return 0;
    });
    EXPECT_EQ(result.output, "stipple: warning: a?b?[2Jc\nstipple: warning: {} is not a format\n");
}

TEST(Log, ColourOnATerminalOnly) {
    const auto on_terminal = [](const char* no_color, ColorMode mode) {
        return test::run_on_terminal(80,
                                     [=] {
                                         ::setenv("TERM", "xterm", 1);
                                         ::unsetenv("NO_COLOR");
                                         if (no_color) ::setenv("NO_COLOR", no_color, 1);
                                         set_color_mode(mode);
                                         log_warn("w");
                                         return 0;
                                     })
            .output;
    };
    EXPECT_EQ(on_terminal(nullptr, ColorMode::automatic), "stipple: \033[33mwarning: \033[0mw\r\n");
    EXPECT_EQ(on_terminal("1", ColorMode::automatic), "stipple: warning: w\r\n");
    EXPECT_EQ(on_terminal("", ColorMode::automatic),
              "stipple: \033[33mwarning: \033[0mw\r\n");  // set to nothing: unset
    EXPECT_EQ(on_terminal(nullptr, ColorMode::never), "stipple: warning: w\r\n");
    EXPECT_EQ(on_terminal("1", ColorMode::always), "stipple: \033[33mwarning: \033[0mw\r\n");
    const auto dumb = test::run_on_terminal(80, [] {
        ::setenv("TERM", "dumb", 1);
        log_warn("w");
        return 0;
    });
    EXPECT_EQ(dumb.output, "stipple: warning: w\r\n");
}

TEST(Log, JsonLines) {
    const auto result = test::run_in_child([] {
        set_log_format(LogFormat::json);
        log_warn("a \"quoted\"\nthing {}", "\xff");
        log_info("b");
        return 0;
    });
    const size_t newline = result.output.find('\n');
    const auto first = nlohmann::json::parse(result.output.substr(0, newline));
    EXPECT_EQ(first.at("level"), "warning");
    EXPECT_EQ(first.at("message"), "a \"quoted\"\nthing \xef\xbf\xbd");
    const std::string time = first.at("time");
    ASSERT_EQ(time.size(), 24u) << time;
    EXPECT_EQ(time[10], 'T');
    EXPECT_EQ(time[23], 'Z');
    EXPECT_EQ(nlohmann::json::parse(result.output.substr(newline + 1)).at("level"), "info");
}

TEST(Log, LinesOfThreadsDoNotMix) {
    const auto result = test::run_in_child([] {
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([] {
                for (int i = 0; i < 200; ++i) log_info("{}", std::string(100, 'x'));
            });
        for (auto& thread : threads) thread.join();
        return 0;
    });
    std::string expected;
    for (int i = 0; i < 800; ++i) expected += "stipple: " + std::string(100, 'x') + "\n";
    EXPECT_TRUE(result.output == expected);
}

TEST(Printable, LeavesTextAlone) {
    EXPECT_EQ(printable("a\xc3\xa4\xe7\x82\xb9 \xc2\xa0z"), "a\xc3\xa4\xe7\x82\xb9 \xc2\xa0z");
    EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
    EXPECT_EQ(printable("\xc2"), "\xc2");
}

}  // namespace
}  // namespace stipple
