#include "stipple/core/run_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "stipple/core/error.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace stipple {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::write_file;

void expect_error(ErrorCode code, const std::string& part, const std::function<void()>& f) {
    try {
        f();
        ADD_FAILURE() << "nothing was thrown, expected: " << part;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

TEST(RunFolder, CreatesAndResumes) {
    const TemporaryFolder folder;
    const std::string path = folder / "runs/first";
    {
        const RunFolder run = RunFolder::create(path, "seed = 1\n");
        EXPECT_EQ(run.path(), path);
        EXPECT_EQ(read_file(path + "/config.toml"), "seed = 1\n");
        EXPECT_EQ(read_file(path + "/lock"), std::to_string(::getpid()) + "\n");
        EXPECT_TRUE(std::filesystem::is_directory(path + "/ckpt"));
    }
    const RunFolder run = RunFolder::resume(path);
    EXPECT_EQ(run.config(), "seed = 1\n");
}

TEST(RunFolder, RefusesFoldersThatAreNotEmpty) {
    const TemporaryFolder folder;
    write_file(folder / "thesis.tex", "");
    expect_error(ErrorCode::cannot_write, "not empty", [&] { RunFolder::create(folder.path(), ""); });
    EXPECT_EQ(folder.entries(), std::vector<std::string>{"thesis.tex"});  // not even a lock file
    RunFolder::create(folder / "run", "");
    expect_error(ErrorCode::cannot_write, "not empty", [&] { RunFolder::create(folder / "run", ""); });
}

TEST(RunFolder, ARunThatDiedBeforeItWasOneIsStartedAgain) {
    const TemporaryFolder folder;
    write_file(folder / "lock", "1\n");
    write_file(folder / ".config.toml.123-0.tmp", "se");
    const RunFolder run = RunFolder::create(folder.path(), "seed = 2\n");
    EXPECT_EQ(read_file(folder / "config.toml"), "seed = 2\n");
}

TEST(RunFolder, ResumesOnlyRuns) {
    const TemporaryFolder folder;
    expect_error(ErrorCode::bad_file, "config.toml", [&] { RunFolder::resume(folder / "missing"); });
    expect_error(ErrorCode::bad_file, "config.toml", [&] { RunFolder::resume(folder.path()); });
    EXPECT_TRUE(folder.entries().empty());
}

TEST(RunFolder, OneProcessAtATime) {
    const TemporaryFolder folder;
    const std::string path = folder / "run";
    {
        const RunFolder run = RunFolder::create(path, "");
        const std::string part = "in use by process " + std::to_string(::getpid());
        expect_error(ErrorCode::cannot_write, part, [&] { RunFolder::resume(path); });
        const auto other = test::run_in_child([&] {
            expect_error(ErrorCode::cannot_write, part, [&] { RunFolder::resume(path); });
            return ::testing::Test::HasFailure() ? 1 : 0;
        });
        EXPECT_EQ(other.exit_code, 0) << other.output;
    }
    RunFolder run = RunFolder::resume(path);
    RunFolder moved = std::move(run);
    expect_error(ErrorCode::cannot_write, "in use", [&] { RunFolder::resume(path); });
}

TEST(RunFolder, AKilledHolderFreesTheLock) {
    const TemporaryFolder folder;
    const std::string path = folder / "run";
    const auto killed = test::run_in_child([&] {
        const RunFolder run = RunFolder::create(path, "");
        return std::raise(SIGKILL);
    });
    EXPECT_EQ(killed.signal, SIGKILL);
    const RunFolder run = RunFolder::resume(path);
    EXPECT_EQ(read_file(path + "/lock"), std::to_string(::getpid()) + "\n");
}

TEST(RunFolder, RemovesUnfinishedCheckpoints) {
    const TemporaryFolder folder;
    const std::string path = folder / "run";
    RunFolder::create(path, "");
    std::filesystem::create_directories(path + "/ckpt/.tmp-7-1");
    write_file(path + "/ckpt/.tmp-7-1/weights", "half");
    std::filesystem::create_symlink("step-00000001", path + "/ckpt/.tmp-latest-1");
    std::filesystem::create_directories(path + "/ckpt/keep-me");
    const RunFolder run = RunFolder::resume(path);
    EXPECT_FALSE(std::filesystem::exists(path + "/ckpt/.tmp-7-1"));
    EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(path + "/ckpt/.tmp-latest-1")));
    EXPECT_TRUE(std::filesystem::exists(path + "/ckpt/keep-me"));
}

TEST(Metrics, OneObjectPerLine) {
    const TemporaryFolder folder;
    RunFolder run = RunFolder::create(folder / "run", "");
    run.append_metrics(R"({"step":1,"loss":0.5})");
    EXPECT_EQ(read_file(folder / "run/metrics.jsonl"), "{\"step\":1,\"loss\":0.5}\n");  // handed over at once
    run.append_metrics(R"({"step":2})");
    run.sync_metrics();
    EXPECT_EQ(read_file(folder / "run/metrics.jsonl"), "{\"step\":1,\"loss\":0.5}\n{\"step\":2}\n");
    for (const char* bad : {"", "1", "[]", "{", "{}{}", "{\"a\":\n1}", "nan"})
        expect_error(ErrorCode::bad_argument, "one JSON object", [&] { run.append_metrics(bad); });
}

TEST(Metrics, ATornLineIsCutOff) {
    const TemporaryFolder folder;
    const std::string path = folder / "run", file = path + "/metrics.jsonl";
    RunFolder::create(path, "");
    const std::string good = "{\"step\":1}\n{\"step\":2}\n";
    const std::string third = "{\"step\":3,\"text\":\"" + std::string(10000, 'x') + "\"}\n";
    for (size_t length : {size_t{0}, size_t{1}, size_t{9}, size_t{4096}, size_t{9000}, third.size() - 1}) {
        write_file(file, good + third.substr(0, length));
        RunFolder::resume(path);
        EXPECT_EQ(read_file(file), good) << length;
    }
    write_file(file, good + third);
    RunFolder::resume(path).append_metrics("{}");
    EXPECT_TRUE(read_file(file) == good + third + "{}\n");
    // A power failure can leave zeros, and only a torn line.
    write_file(file, good + std::string(5000, '\0') + "\n");
    RunFolder::resume(path);
    EXPECT_EQ(read_file(file), good);
    for (const char* all : {"{\"st", "\n", "\n\n\n", "garbage\n"}) {
        write_file(file, all);
        RunFolder::resume(path);
        EXPECT_EQ(read_file(file), "");
    }
}

TEST(Metrics, RewindDropsWhatWillBeDoneAgain) {
    const TemporaryFolder folder;
    RunFolder run = RunFolder::create(folder / "run", "");
    for (int step = 1; step <= 500; ++step) run.append_metrics("{\"step\":" + std::to_string(step) + "}");
    run.rewind_metrics(500);
    run.rewind_metrics(3);
    EXPECT_EQ(read_file(folder / "run/metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
    run.append_metrics("{\"note\":\"no step\"}");
    run.rewind_metrics(0);
    EXPECT_EQ(read_file(folder / "run/metrics.jsonl").size(), 3u * 11 + 19);
}

TEST(Metrics, AFullDiskLeavesWholeLines) {
    const TemporaryFolder folder;
    const test::SmallDisk disk(folder.path(), 1 << 20);
    if (!disk.ok()) GTEST_SKIP() << "mounting a tmpfs needs root";
    RunFolder run = RunFolder::create(folder / "run", "");
    const std::string line = "{\"text\":\"" + std::string(5000, 'x') + "\"}";
    expect_error(ErrorCode::cannot_write, "No space left", [&] {
        for (int i = 0; i < 1000; ++i) run.append_metrics(line);
    });
    const std::string text = read_file(folder / "run/metrics.jsonl");
    EXPECT_GT(text.size(), 100'000u);
    EXPECT_EQ(text.size() % (line.size() + 1), 0u);
}

TEST(FreeSpace, IsAskedForBeforeARun) {
    const TemporaryFolder folder;
    const int64_t there = free_space(folder.path());
    EXPECT_GT(there, 0);
    require_free_space(folder.path(), 1, 3);
    require_free_space(folder.path(), 0, 0);
    expect_error(ErrorCode::cannot_write, "are free", [&] { require_free_space(folder.path(), there, 1); });
    expect_error(ErrorCode::bad_argument, "overflows", [&] { require_free_space(folder.path(), INT64_MAX, 1); });
    expect_error(ErrorCode::cannot_write, "No such file", [&] { free_space(folder / "missing"); });
}

}  // namespace
}  // namespace stipple
