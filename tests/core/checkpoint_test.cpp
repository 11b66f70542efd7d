#include "stipple/core/checkpoint.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>

#include "stipple/core/error.h"
#include "stipple/core/failpoint.h"
#include "stipple/core/rng.h"
#include "stipple/core/run_folder.h"
#include "tests/support/allocation.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace stipple {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::write_file;

// The files of a pretended trainer: their content follows from the step, so that any of them can be checked.
std::string weights_of(int64_t step, size_t bytes = 3000) {
    std::string text(bytes, '\0');
    const Rng rng(static_cast<uint64_t>(step));
    for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(rng.bits(i));
    return text;
}

std::vector<CheckpointFile> files_of(int64_t step, size_t bytes = 3000) {
    return {{"weights.bin", [=](ByteSink& sink) { sink.write(weights_of(step, bytes)); }, static_cast<int64_t>(bytes)},
            {"optimizer.bin", [=](ByteSink& sink) { sink.write("step " + std::to_string(step)); }},
            {"empty.bin", [](ByteSink&) {}, 0}};
}

CheckpointInfo info_of(int64_t step, std::optional<double> score = {}) {
    CheckpointInfo info;
    info.step = step;
    info.config_hash = "abc123";
    info.world_size = 2;
    info.threads = 4;
    info.versions = {{"stipple", "0.1.0"}, {"torch", "1.13.1"}};
    info.score = score;
    info.extra = R"({"epoch":3})";
    return info;
}

std::string save(const std::string& run, int64_t step, KeepRule keep = {}, std::optional<double> score = {}) {
    const auto files = files_of(step);
    return save_checkpoint(run, info_of(step, score), files, keep);
}

int64_t newest(const std::string& run, std::vector<std::string>* warnings = nullptr) {
    std::vector<std::string> unwanted;
    const auto found = find_checkpoint(run, Damaged::skip, warnings ? *warnings : unwanted);
    if (!found) return -1;
    const int64_t step = found->info.step;
    EXPECT_TRUE(read_file(found->file("weights.bin")) == weights_of(step));
    EXPECT_EQ(read_file(found->file("optimizer.bin")), "step " + std::to_string(step));
    return step;
}

void expect_error(ErrorCode code, const std::string& part, const std::function<void()>& f) {
    try {
        f();
        ADD_FAILURE() << "nothing was thrown, expected: " << part;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

std::vector<std::string> entries(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

class CheckpointTest : public ::testing::Test {
protected:
    void SetUp() override { RunFolder::create(run, "seed = 1\n"); }
    void TearDown() override { set_failpoints(""); }

    TemporaryFolder folder{test::Where::memory};
    std::string run = folder / "run", ckpt = run + "/ckpt";
};

TEST_F(CheckpointTest, RoundTrip) {
    EXPECT_EQ(newest(run), -1);
    const std::string path = save(run, 1234, {}, 0.25);
    EXPECT_EQ(path, ckpt + "/step-00001234");
    EXPECT_EQ(entries(ckpt), (std::vector<std::string>{"latest", "step-00001234"}));
    EXPECT_EQ(std::filesystem::read_symlink(ckpt + "/latest"), "step-00001234");
    EXPECT_EQ(entries(path), (std::vector<std::string>{"empty.bin", "manifest.json", "optimizer.bin", "weights.bin"}));

    const Checkpoint checkpoint = open_checkpoint(path);
    EXPECT_EQ(checkpoint.info.step, 1234);
    EXPECT_EQ(checkpoint.info.config_hash, "abc123");
    EXPECT_EQ(checkpoint.info.world_size, 2);
    EXPECT_EQ(checkpoint.info.threads, 4);
    EXPECT_EQ(checkpoint.info.versions, info_of(0).versions);
    EXPECT_EQ(checkpoint.info.score, 0.25);
    EXPECT_EQ(checkpoint.info.extra, R"({"epoch":3})");
    EXPECT_EQ(checkpoint.files.size(), 3u);
    EXPECT_EQ(checkpoint.bytes(), 3009);
    EXPECT_EQ(newest(run), 1234);
    expect_error(ErrorCode::bad_file, "has no file scaler.bin", [&] { checkpoint.file("scaler.bin"); });
}

TEST(CheckpointOnDisk, RoundTrip) {
    const TemporaryFolder folder;
    const std::string run = folder / "run";
    const RunFolder held = RunFolder::create(run, "");
    for (int64_t step = 1; step <= 4; ++step) save(run, step, {2, false});
    save(run, 4);  // exchanged with the one that is there
    EXPECT_EQ(newest(run), 4);
    EXPECT_EQ(entries(run + "/ckpt"), (std::vector<std::string>{"latest", "step-00000003", "step-00000004"}));
}

TEST_F(CheckpointTest, TheManifestIsJsonForOthersToo) {
    const auto json = nlohmann::json::parse(read_file(save(run, 7) + "/manifest.json"));
    EXPECT_EQ(json.at("format"), "stipple-checkpoint");
    EXPECT_EQ(json.at("format_version"), 1);
    EXPECT_EQ(json.at("step"), 7);
    EXPECT_EQ(json.at("files").size(), 3u);
    EXPECT_EQ(json.at("files")[0].at("name"), "weights.bin");
    EXPECT_EQ(json.at("files")[0].at("bytes"), 3000);
    EXPECT_TRUE(json.at("score").is_null());
}

TEST_F(CheckpointTest, LargeFilesAndSmallWrites) {
    const std::string large = weights_of(1, 5 << 20);
    const std::vector<CheckpointFile> files = {{"large", [&](ByteSink& sink) { sink.write(large); }, 5 << 20},
                                               {"pieces", [&](ByteSink& sink) {
                                                    for (size_t i = 0; i < large.size(); i += 10007)
                                                        sink.write(std::string_view(large).substr(i, 10007));
                                                    sink.write(nullptr, 0);
                                                }}};
    const Checkpoint checkpoint = open_checkpoint(save_checkpoint(run, info_of(1), files));
    EXPECT_TRUE(read_file(checkpoint.file("large")) == large);
    EXPECT_TRUE(read_file(checkpoint.file("pieces")) == large);
    EXPECT_EQ(checkpoint.files[0].crc32, checkpoint.files[1].crc32);
}

TEST_F(CheckpointTest, KeepsTheLastAndTheBest) {
    const std::optional<double> scores[] = {5.0, 1.0, 4.0, std::nan(""), {}, 3.0};
    for (int64_t step = 0; step < 6; ++step) save(run, step, {2, true}, scores[step]);
    EXPECT_EQ(entries(ckpt), (std::vector<std::string>{"latest", "step-00000001", "step-00000004", "step-00000005"}));
    save(run, 6, {1, false});
    EXPECT_EQ(entries(ckpt), (std::vector<std::string>{"latest", "step-00000006"}));
    EXPECT_EQ(std::filesystem::read_symlink(ckpt + "/latest"), "step-00000006");
}

TEST_F(CheckpointTest, DamagedOnesDoNotCountAsTheLast) {
    save(run, 1);
    save(run, 2);
    write_file(ckpt + "/step-00000002/weights.bin", "short");
    save(run, 3, {2, false});
    EXPECT_EQ(entries(ckpt), (std::vector<std::string>{"latest", "step-00000001", "step-00000002", "step-00000003"}));
    save(run, 4, {2, false});  // now two good ones are newer
    EXPECT_EQ(entries(ckpt), (std::vector<std::string>{"latest", "step-00000003", "step-00000004"}));
}

TEST_F(CheckpointTest, TheSameStepIsReplaced) {
    save(run, 5);
    std::vector<CheckpointFile> files = {{"other", [](ByteSink& sink) { sink.write("new"); }}};
    const std::string path = save_checkpoint(run, info_of(5), files);
    EXPECT_EQ(entries(path), (std::vector<std::string>{"manifest.json", "other"}));
    EXPECT_EQ(entries(ckpt), (std::vector<std::string>{"latest", "step-00000005"}));
    open_checkpoint(path);
}

TEST_F(CheckpointTest, StepsAreOrderedAsNumbers) {
    save(run, 99999999, {9, false});
    save(run, 100000000, {9, false});
    save(run, 3, {9, false});
    EXPECT_EQ(newest(run), 100000000);
    std::filesystem::create_directories(ckpt + "/step-abc");
    std::filesystem::create_directories(ckpt + "/step-");
    std::vector<std::string> warnings;
    EXPECT_EQ(newest(run, &warnings), 100000000);
    EXPECT_TRUE(warnings.empty());
}

TEST_F(CheckpointTest, RefusesWrongUse) {
    const auto one = [](std::string name) { return std::vector<CheckpointFile>{{std::move(name), [](ByteSink&) {}}}; };
    for (const char* name : {"", ".", "..", "a/b", "manifest.json", ".hidden"})
        expect_error(ErrorCode::bad_argument, "not a name", [&] { save_checkpoint(run, info_of(1), one(name)); });
    auto twice = files_of(1);
    twice.push_back(twice[0]);
    expect_error(ErrorCode::bad_argument, "not a name", [&] { save_checkpoint(run, info_of(1), twice); });
    expect_error(ErrorCode::bad_argument, "step -1", [&] { save_checkpoint(run, info_of(-1), one("a")); });
    CheckpointInfo odd = info_of(1);
    odd.extra = "[1]";
    expect_error(ErrorCode::bad_argument, "JSON object", [&] { save_checkpoint(run, odd, one("a")); });
    odd = info_of(1);
    odd.config_hash = "\xff";
    expect_error(ErrorCode::bad_argument, "UTF-8", [&] { save_checkpoint(run, odd, one("a")); });
    const std::vector<CheckpointFile> liar = {{"a", [](ByteSink& sink) { sink.write("ab"); }, 3}};
    expect_error(ErrorCode::internal, "3 bytes announced, 2 written", [&] { save_checkpoint(run, info_of(1), liar); });
    EXPECT_TRUE(entries(ckpt).empty());
    std::vector<std::string> warnings;
    expect_error(ErrorCode::bad_file, "no such run", [&] { find_checkpoint(folder / "no", Damaged::skip, warnings); });
    expect_error(ErrorCode::cannot_write, "No such file", [&] { save(folder / "no", 1); });
}

TEST_F(CheckpointTest, AWriterThatThrowsLeavesNothing) {
    save(run, 1);
    auto files = files_of(2);
    files[1].write = [](ByteSink& sink) {
        sink.write("half");
        throw std::runtime_error("no more");
    };
    EXPECT_THROW(save_checkpoint(run, info_of(2), files), std::runtime_error);
    EXPECT_EQ(entries(ckpt), (std::vector<std::string>{"latest", "step-00000001"}));
    EXPECT_EQ(newest(run), 1);
}

// === Damage

TEST_F(CheckpointTest, AnyFlippedBitIsFound) {
    save(run, 1);
    const std::string path = save(run, 2);
    const std::vector<std::string> names = {"manifest.json", "weights.bin", "optimizer.bin"};
    int flipped = 0;
    const Rng rng(7);
    for (const std::string& name : names) {
        const std::string file = path + "/" + name, content = read_file(file);
        const size_t step = name == "weights.bin" ? 37 : name == "manifest.json" ? 4 : 1;
        for (size_t at = 0; at < content.size(); at += step) {
            std::string damaged = content;
            damaged[at] = static_cast<char>(damaged[at] ^ (1 << rng.below(at, 8)));
            write_file(file, damaged);
            ++flipped;
            std::vector<std::string> warnings;
            ASSERT_EQ(newest(run, &warnings), 1) << name << " byte " << at;
            ASSERT_EQ(warnings.size(), 1u);
            ASSERT_NE(warnings[0].find("step-00000002/" + name), std::string::npos) << warnings[0];
            expect_error(ErrorCode::bad_file, name, [&] { find_checkpoint(run, Damaged::refuse, warnings); });
        }
        write_file(file, content);
    }
    EXPECT_GE(flipped, 200);
    EXPECT_EQ(newest(run), 2);
}

TEST_F(CheckpointTest, TruncatedMissingAndStrangeFiles) {
    save(run, 1);
    const std::string path = save(run, 2);
    const auto expect_skipped = [&](const std::string& part) {
        std::vector<std::string> warnings;
        EXPECT_EQ(newest(run, &warnings), 1);
        ASSERT_EQ(warnings.size(), 1u);
        EXPECT_NE(warnings[0].find(part), std::string::npos) << warnings[0];
    };
    const std::string weights = read_file(path + "/weights.bin"), manifest = read_file(path + "/manifest.json");
    write_file(path + "/weights.bin", weights.substr(1));
    expect_skipped("2999 bytes, the manifest says 3000");
    std::filesystem::remove(path + "/weights.bin");
    expect_skipped("cannot open");
    std::filesystem::create_directory(path + "/weights.bin");
    expect_skipped("not a regular file");
    std::filesystem::remove(path + "/weights.bin");
    write_file(path + "/weights.bin", weights);
    for (size_t length = 0; length < manifest.size(); length += 7) {
        write_file(path + "/manifest.json", manifest.substr(0, length));
        expect_skipped("manifest.json");
    }
    std::filesystem::remove(path + "/manifest.json");
    expect_skipped("manifest.json: cannot open");
    write_file(path + "/manifest.json", read_file(ckpt + "/step-00000001/manifest.json"));
    expect_skipped("");  // files of step 2, manifest of step 1
    write_file(path + "/manifest.json", manifest);
    EXPECT_EQ(newest(run), 2);
    std::filesystem::rename(path, ckpt + "/step-00000009");
    expect_skipped("the manifest says step 2");
}

TEST_F(CheckpointTest, NothingSoundIsNothing) {
    const std::string path = save(run, 1);
    write_file(path + "/manifest.json", "");
    std::vector<std::string> warnings;
    EXPECT_FALSE(find_checkpoint(run, Damaged::skip, warnings));
    EXPECT_EQ(warnings.size(), 1u);
}

// The checksum line again, as any later version of the format must write it.
std::string sealed(std::string text) {
    uint32_t crc = 0xffffffff;
    for (unsigned char c : text) {
        crc ^= c;
        for (int k = 0; k < 8; ++k) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return text + fmt::format("  \"manifest_crc32\": \"{:08x}\"\n}}\n", ~crc);
}

TEST_F(CheckpointTest, ANewerFormatIsAnErrorThatNamesBothVersions) {
    save(run, 1);
    const std::string manifest = save(run, 2) + "/manifest.json";
    std::string text = read_file(manifest);
    text = text.substr(0, text.find("  \"manifest_crc32\""));
    EXPECT_EQ(sealed(text), read_file(manifest));  // the golden rule of the last line
    const size_t at = text.find("\"format_version\": 1");
    ASSERT_NE(at, std::string::npos);
    text.replace(at, 19, "\"format_version\": 12");
    write_file(manifest, sealed(text));
    std::vector<std::string> warnings;
    for (Damaged damaged : {Damaged::skip, Damaged::refuse})
        expect_error(ErrorCode::bad_file, "format 12 is newer than 1",
                     [&] { find_checkpoint(run, damaged, warnings); });
    // Nor is it deleted by an older program.
    save(run, 3, {1, false});
    EXPECT_TRUE(std::filesystem::exists(manifest));
    // Text with a good checksum that is no manifest is damage.
    for (const char* other : {"{\n", "{\"format\": \"x\",\n", "{\"format\": \"stipple-checkpoint\",\n",
                              "{\"format\": \"stipple-checkpoint\", \"format_version\": \"1\",\n", "[\n"}) {
        write_file(ckpt + "/step-00000003/manifest.json", sealed(other));
        expect_error(ErrorCode::bad_file, "step-00000003", [&] { find_checkpoint(run, Damaged::refuse, warnings); });
    }
}

// === Crashes

// Saves steps in a child and reports each one through a pipe once it is saved; returns what was reported last.
struct Saver {
    pid_t child = -1;
    int reports = -1;

    Saver(const std::string& run, const std::string& failpoints, int64_t first, int64_t last, KeepRule keep) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
        child = ::fork();
        if (child == 0) {
            try {
                const RunFolder held = RunFolder::resume(run);
                set_failpoints(failpoints);
                for (int64_t step = first; step <= last; ++step) {
                    save(run, step, keep);
                    if (::write(ends[1], &step, sizeof step) != sizeof step) ::_exit(3);
                }
                ::_exit(0);
            } catch (...) {
                ::_exit(2);
            }
        }
        ::close(ends[1]);
        reports = ends[0];
    }

    // Ends the child if it lives; returns the last step that it reported, and how it ended.
    int64_t last_report(int& status) {
        int64_t last = -1, step = 0;
        while (::read(reports, &step, sizeof step) == sizeof step) last = step;
        ::close(reports);
        ::waitpid(child, &status, 0);
        return last;
    }
};

TEST_F(CheckpointTest, KilledAtEachFailpoint) {
    save(run, 1, {2, false});
    int64_t step = 1;
    for (const char* name : checkpoint_failpoints()) {
        // The third save is hit: by then each save also deletes an old checkpoint.
        const bool per_file = std::string(name) == "ckpt.mid_write" || std::string(name) == "ckpt.after_write" ||
                              std::string(name) == "ckpt.after_fsync";
        for (int pass : per_file ? std::vector<int>{9, 10, 11, 12} : std::vector<int>{3}) {
            if (std::string(name).find("delete") != std::string::npos) pass = 1;
            Saver saver(run, fmt::format("{}:kill:{}", name, pass), step + 1, step + 5, {2, false});
            int status = 0;
            const int64_t reported = std::max(step, saver.last_report(status));
            ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << name << " was not passed";
            std::vector<std::string> warnings;
            const int64_t found = newest(run, &warnings);
            EXPECT_GE(found, reported) << name;
            EXPECT_LE(found, reported + 1) << name;
            EXPECT_TRUE(warnings.empty()) << name << ": " << warnings[0];  // a crash is not damage
            const RunFolder resumed = RunFolder::resume(run);
            for (const std::string& entry : entries(ckpt)) EXPECT_NE(entry.rfind(".tmp-", 0), 0u) << name;
            EXPECT_EQ(newest(run), found);
            step = found;
        }
    }
}

TEST_F(CheckpointTest, AnErrorAtEachFailpointLeavesSoundCheckpoints) {
    for (int64_t step = 1; step <= 3; ++step) save(run, step, {3, false});
    int64_t step = 3;
    for (const char* name : checkpoint_failpoints())
        for (const char* action : {"error", "enospc"}) {
            set_failpoints(fmt::format("{}:{}", name, action));
            EXPECT_THROW(save(run, step + 1, {3, false}), Error) << name;
            set_failpoints("");
            const int64_t found = newest(run);
            EXPECT_TRUE(found == step || found == step + 1) << name;
            save(run, found + 1, {3, false});  // the retry
            step = found + 1;
            EXPECT_EQ(newest(run), step);
        }
    RunFolder::resume(run);
    EXPECT_EQ(entries(ckpt).size(), 4u);
}

TEST_F(CheckpointTest, KilledAHundredTimesAtRandom) {
    // Anywhere in the first two saves of the child, however fast the disk is.
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 3; ++i) save(run, 1, {2, false});
    const auto saves = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
    const auto longest = static_cast<uint32_t>(std::clamp<int64_t>(saves.count() * 2 / 3, 2000, 80'000));
    int64_t step = 1;
    const Rng rng(2024);
    for (uint64_t round = 0; round < 100; ++round) {
        Saver saver(run, "", step + 1, step + 1'000'000, {2, false});
        ::usleep(rng.below(round, longest));
        ::kill(saver.child, SIGKILL);
        int status = 0;
        const int64_t reported = std::max(step, saver.last_report(status));
        ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
        std::vector<std::string> warnings;
        const int64_t found = newest(run, &warnings);
        ASSERT_GE(found, reported) << "round " << round;
        ASSERT_LE(found, reported + 1) << "round " << round;
        ASSERT_TRUE(warnings.empty()) << warnings[0];
        step = found;
    }
    EXPECT_GT(step, 1);  // it did save in between
    RunFolder::resume(run);
    save(run, step + 1, {2, false});  // cleans up what the dead had no time for
    EXPECT_EQ(entries(ckpt).size(), 3u);
}

TEST_F(CheckpointTest, KilledWhileTheSameStepIsReplaced) {
    save(run, 1);
    for (const char* name : {"ckpt.after_dir_fsync", "ckpt.after_rename", "ckpt.after_ckpt_fsync"}) {
        Saver saver(run, fmt::format("{}:kill", name), 1, 1, {});
        int status = 0;
        saver.last_report(status);
        ASSERT_TRUE(WIFSIGNALED(status));
        EXPECT_EQ(newest(run), 1) << name;
    }
    RunFolder::resume(run);
    EXPECT_EQ(entries(ckpt), (std::vector<std::string>{"latest", "step-00000001"}));
}

// === Full disks

TEST_F(CheckpointTest, AFullDiskLeavesTheOneBefore) {
    const std::string mount = folder / "disk";
    std::filesystem::create_directory(mount);
    const test::SmallDisk disk(mount, 1 << 20);
    if (!disk.ok()) GTEST_SKIP() << "mounting a tmpfs needs root; AFileSizeLimitLeavesTheOneBefore has the same path";
    const std::string small = mount + "/run";
    const RunFolder held = RunFolder::create(small, "");
    save(small, 1);
    for (const bool announced : {true, false}) {
        auto files = files_of(2, 4 << 20);
        if (!announced) files[0].bytes = -1;
        expect_error(ErrorCode::cannot_write, "No space left", [&] { save_checkpoint(small, info_of(2), files); });
        EXPECT_EQ(entries(small + "/ckpt"), (std::vector<std::string>{"latest", "step-00000001"}));
        EXPECT_EQ(newest(small), 1);
    }
    // 300 KB each, keep 9: fills up after three; all of them stay sound.
    int64_t step = 2;
    expect_error(ErrorCode::cannot_write, "No space left", [&] {
        for (; step < 20; ++step) save_checkpoint(small, info_of(step), files_of(step, 300'000), {9, false});
    });
    EXPECT_GT(step, 3);
    std::vector<std::string> warnings;
    const auto found = find_checkpoint(small, Damaged::refuse, warnings);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->info.step, step - 1);
    expect_error(ErrorCode::cannot_write, "will not fit", [&] { require_free_space(small, found->bytes(), 3); });
    save(small, step, {1, false});
    EXPECT_EQ(newest(small), step);
}

TEST_F(CheckpointTest, AFileSizeLimitLeavesTheOneBefore) {
    save(run, 1);
    const auto result = test::run_in_child([&] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit = {65536, 65536};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        for (const int64_t announced : {int64_t{4} << 20, int64_t{-1}}) {
            auto files = files_of(2, 4 << 20);
            files[0].bytes = announced;
            expect_error(ErrorCode::cannot_write, "too large", [&] { save_checkpoint(run, info_of(2), files); });
        }
        return ::testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(entries(ckpt), (std::vector<std::string>{"latest", "step-00000001"}));
    EXPECT_EQ(newest(run), 1);
}

TEST_F(CheckpointTest, TwoWriters) {
    const RunFolder held = RunFolder::resume(run);
    Saver saver(run, "", 1, 1, {});
    int status = 0;
    EXPECT_EQ(saver.last_report(status), -1);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2);  // RunFolder::resume threw
    EXPECT_TRUE(entries(ckpt).empty());
}

TEST_F(CheckpointTest, SurvivesAllocationFailures) {
    save(run, 1);
    const int64_t tried = test::for_each_allocation_failure([&] { save(run, 2); });
    EXPECT_GT(tried, test::can_fail_allocations() ? 50 : -1);
    EXPECT_EQ(newest(run), 2);
}

}  // namespace
}  // namespace stipple
