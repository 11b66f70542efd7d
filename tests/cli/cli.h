#pragma once
// What the tests of the program share: running it, small inputs, and what an error must look like.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/clouds.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

// The sanitizers map terabytes and want to be loaded first: no small address space, no other preloaded library.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STIPPLE_TEST_SANITIZED 1
#else
#define STIPPLE_TEST_SANITIZED 0
#endif

namespace stipple::test {

using Json = nlohmann::json;

inline Launch stipple_launch(const std::vector<std::string>& arguments, Launch launch = {}) {
    launch.arguments = {STIPPLE_PROGRAM};
    launch.arguments.insert(launch.arguments.end(), arguments.begin(), arguments.end());
    // After half a second progress is written, and how long a command takes is the machine's affair. --progress
    // decides.
    launch.environment.emplace(launch.environment.begin(), "STIPPLE_PROGRESS", "never");
#if STIPPLE_TEST_SANITIZED
    launch.environment.emplace_back("ASAN_OPTIONS", "detect_leaks=0");  // takes seconds at each end of the program
#endif
    return launch;
}

inline LaunchResult stipple(const std::vector<std::string>& arguments, Launch launch = {}) {
    return run_launch(stipple_launch(arguments, std::move(launch)));
}

/// A line of sh; $S is the program.
inline LaunchResult shell(const std::string& command, Launch launch = {}) {
    launch.arguments = {"/bin/sh", "-c", command};
    launch.environment.emplace_back("S", STIPPLE_PROGRAM);
    return run_launch(std::move(launch));
}

inline std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

inline std::string report(const LaunchResult& result) {
    return "exit " + std::to_string(result.exit_code) + ", signal " + std::to_string(result.signal) +
           (result.timed_out ? ", timed out" : "") + "\nstdout: " + result.out.substr(0, 2000) +
           "\nstderr: " + result.err.substr(0, 2000);
}

/// Exit status 0 and not a word on standard error.
inline void expect_success(const LaunchResult& result) {
    EXPECT_EQ(result.exit_code, 0) << report(result);
    EXPECT_EQ(result.err, "");
}

/// The exit status, one line that begins with "stipple: " and has `text`, at most one line with a hint, no result.
inline void expect_error(const LaunchResult& result, int exit_code, const std::string& text) {
    EXPECT_EQ(result.exit_code, exit_code) << report(result);
    EXPECT_EQ(result.out, "") << report(result);
    const std::vector<std::string> lines = lines_of(result.err);
    ASSERT_GE(lines.size(), 1u) << report(result);
    EXPECT_LE(lines.size(), 2u) << report(result);
    EXPECT_EQ(lines[0].rfind("stipple: ", 0), 0u) << report(result);
    EXPECT_TRUE(contains(lines[0], text)) << "expected \"" << text << "\"\n" << report(result);
    if (lines.size() > 1) {
        EXPECT_EQ(lines[1].rfind("  hint: ", 0), 0u) << report(result);
    }
}

/// Standard output as the one JSON object that it must be.
inline Json json_of(const LaunchResult& result) {
    const Json object = Json::parse(result.out, nullptr, false);
    EXPECT_TRUE(object.is_object()) << report(result);
    return object.is_object() ? object : Json::object();
}

class CliTest : public ::testing::Test {
protected:
    /// Writes `text` into the folder; its path.
    std::string file(const std::string& name, std::string_view text) const {
        write_file(folder / name, text);
        return folder / name;
    }
    /// A cloud of n points in the format of the name's extension; its path.
    std::string cloud(const std::string& name, int64_t n = 10) const { return save_as(name, random_cloud(n)); }
    std::string save_as(const std::string& name, const Mesh& mesh) const {
        io::Warnings warnings;
        io::save(folder / name, mesh, Overwrite::allow, {}, warnings);
        return folder / name;
    }
    /// Nothing in the folder but these, hidden temporary files included.
    void expect_entries(std::vector<std::string> names) const {
        std::sort(names.begin(), names.end());
        EXPECT_EQ(folder.entries(), names);
    }

    TemporaryFolder folder{Where::memory};
};

}  // namespace stipple::test
