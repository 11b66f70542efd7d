#include "stipple/core/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "stipple/core/error.h"
#include "tests/support/allocation.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace stipple {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::write_file;

void expect_cannot_write(const std::function<void()>& f, const std::string& part) {
    try {
        f();
        ADD_FAILURE() << "nothing was thrown, expected: " << part;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::cannot_write) << error.what();
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

void save(const std::string& path, std::string_view text, Overwrite overwrite) {
    AtomicFile file(path, overwrite);
    file.write(text);
    file.commit();
}

TEST(AtomicFile, AppearsOnlyAtTheEnd) {
    const TemporaryFolder folder;
    const std::string path = folder / "out.bin";
    {
        AtomicFile file(path, Overwrite::refuse);
        file.write("abc");
        file.write("");
        file.write(nullptr, 0);
        EXPECT_FALSE(std::filesystem::exists(path));
        EXPECT_EQ(folder.entries().size(), 1u);
        file.commit();
        EXPECT_EQ(read_file(path), "abc");
    }
    EXPECT_EQ(folder.entries(), std::vector<std::string>{"out.bin"});
}

TEST(AtomicFile, LargeAndSmallWritesKeepTheirOrder) {
    const TemporaryFolder folder;
    std::string expected;
    AtomicFile file(folder / "out", Overwrite::refuse);
    for (int i = 0; i < 40; ++i) {
        const std::string part(static_cast<size_t>(i % 5 == 0 ? 700'000 * (i % 3) : 33 * i),
                               static_cast<char>('a' + i % 26));
        file.write(part);
        expected += part;
    }
    file.commit();
    EXPECT_TRUE(read_file(folder / "out") == expected);
}

TEST(AtomicFile, RefusesWhatExists) {
    const TemporaryFolder folder;
    write_file(folder / "out", "old");
    expect_cannot_write([&] { AtomicFile(folder / "out", Overwrite::refuse); }, "exists already");
    EXPECT_EQ(read_file(folder / "out"), "old");
    // A dangling link exists too.
    std::filesystem::create_symlink("nowhere", folder / "link");
    expect_cannot_write([&] { AtomicFile(folder / "link", Overwrite::refuse); }, "exists already");
    EXPECT_EQ(folder.entries(), (std::vector<std::string>{"link", "out"}));
}

TEST(AtomicFile, OverwritesWhenAllowed) {
    const TemporaryFolder folder;
    write_file(folder / "out", "old");
    save(folder / "out", "new", Overwrite::allow);
    EXPECT_EQ(read_file(folder / "out"), "new");
    save(folder / "fresh", "new", Overwrite::allow);
    EXPECT_EQ(folder.entries(), (std::vector<std::string>{"fresh", "out"}));
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
    const TemporaryFolder folder;
    write_file(folder / "out", "old");
    try {
        AtomicFile file(folder / "out", Overwrite::allow);
        file.write(std::string(3'000'000, 'x'));
        throw std::runtime_error("on the way");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(read_file(folder / "out"), "old");
    EXPECT_EQ(folder.entries(), std::vector<std::string>{"out"});
}

TEST(AtomicFile, NamesWhatIsWrongWithThePlace) {
    const TemporaryFolder folder;
    expect_cannot_write([&] { AtomicFile(folder / "missing/out", Overwrite::refuse); }, "No such file");
    write_file(folder / "file", "");
    expect_cannot_write([&] { AtomicFile(folder / "file/out", Overwrite::refuse); }, "is not a folder");
    expect_cannot_write([&] { AtomicFile(folder.path(), Overwrite::allow); }, "is a folder");
    ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
    expect_cannot_write([&] { AtomicFile(folder / "pipe", Overwrite::allow); }, "not a regular file");
    EXPECT_THROW(AtomicFile("", Overwrite::allow), Error);
    EXPECT_EQ(folder.entries(), (std::vector<std::string>{"file", "pipe"}));
}

TEST(AtomicFile, RefusesAReadOnlyFolder) {
    const TemporaryFolder folder;
    ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
    // Root may write anywhere; a child that is nobody may not.
    const auto result = test::run_in_child([&] {
        if (::geteuid() == 0 && ::setuid(65534) != 0) return 2;
        expect_cannot_write([&] { AtomicFile(folder / "out", Overwrite::refuse); }, "not writable");
        return ::testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(result.exit_code, 0) << result.output;
    ::chmod(folder.path().c_str(), 0755);
}

TEST(AtomicFile, AFileThatAppearsMeanwhileIsNotReplaced) {
    const TemporaryFolder folder;
    AtomicFile file(folder / "out", Overwrite::refuse);
    file.write("mine");
    write_file(folder / "out", "theirs");
    expect_cannot_write([&] { file.commit(); }, "exists already");
    EXPECT_EQ(read_file(folder / "out"), "theirs");
}

TEST(AtomicFile, TheLoserOfARaceLeavesNoTemporaryFile) {
    const TemporaryFolder folder;
    {
        AtomicFile first(folder / "out", Overwrite::refuse), second(folder / "out", Overwrite::refuse);
        first.write("first");
        second.write("second");
        first.commit();
        EXPECT_THROW(second.commit(), Error);
    }
    EXPECT_EQ(read_file(folder / "out"), "first");
    EXPECT_EQ(folder.entries(), std::vector<std::string>{"out"});
}

TEST(AtomicFile, LongNames) {
    const TemporaryFolder folder;
    const std::string name(255, 'n');
    save(folder / name, "x", Overwrite::refuse);
    EXPECT_EQ(folder.entries(), std::vector<std::string>{name});
    expect_cannot_write([&] { save(folder / (name + "n"), "x", Overwrite::refuse); }, "too long");
    expect_cannot_write(
        [&] { save(folder / std::string(5000, '/') + "x/" + std::string(300, 'y'), "", Overwrite::allow); },
        "too long");
    const std::string odd = "sp ace 'quo\"te' \xc3\xa4\xe7\x82\xb9.ply";
    save(folder / odd, "x", Overwrite::refuse);
    EXPECT_EQ(read_file(folder / odd), "x");
}

TEST(AtomicFile, PassesOverTemporaryFilesOfTheDead) {
    const TemporaryFolder folder;
    std::string used;
    {
        AtomicFile file(folder / "out", Overwrite::refuse);
        used = file.temporary_path();
    }
    const size_t dash = used.rfind('-');
    const int next = std::stoi(used.substr(dash + 1)) + 1;
    write_file(used.substr(0, dash + 1) + std::to_string(next) + ".tmp", "left by another");
    save(folder / "out", "x", Overwrite::refuse);
    EXPECT_EQ(read_file(folder / "out"), "x");
    EXPECT_EQ(folder.entries().size(), 2u);  // theirs stays
}

TEST(AtomicFile, TheTemporaryPathHasTheBytesSoFar) {
    const TemporaryFolder folder;
    AtomicFile file(folder / "out", Overwrite::refuse);
    file.write("abc");
    EXPECT_EQ(read_file(file.temporary_path()), "abc");
    file.write("def");
    file.commit();
    EXPECT_EQ(read_file(folder / "out"), "abcdef");
}

TEST(AtomicFile, AFullDiskLeavesNothing) {
    const TemporaryFolder folder;
    const test::SmallDisk disk(folder.path(), 1 << 20);
    if (!disk.ok()) GTEST_SKIP() << "mounting a tmpfs needs root; AFileSizeLimitLeavesNothing has the same path";
    write_file(folder / "kept", "old");
    expect_cannot_write([&] { save(folder / "out", std::string(4 << 20, 'x'), Overwrite::refuse); }, "No space left");
    expect_cannot_write([&] { save(folder / "kept", std::string(4 << 20, 'x'), Overwrite::allow); }, "No space left");
    // Many small writes: the failure shows in flush().
    expect_cannot_write(
        [&] {
            AtomicFile file(folder / "out", Overwrite::refuse);
            for (int i = 0; i < 4096; ++i) file.write(std::string(1024, 'y'));
            file.commit();
        },
        "No space left");
    EXPECT_EQ(read_file(folder / "kept"), "old");
    EXPECT_EQ(folder.entries(), std::vector<std::string>{"kept"});
    save(folder / "out", "fits", Overwrite::refuse);
}

TEST(AtomicFile, AFileSizeLimitLeavesNothing) {
    const TemporaryFolder folder;
    const auto result = test::run_in_child([&] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit = {65536, 65536};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        expect_cannot_write([&] { save(folder / "out", std::string(4 << 20, 'x'), Overwrite::refuse); }, "too large");
        return ::testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_TRUE(folder.entries().empty());
}

TEST(AtomicFile, TemporaryFilesCanBeRemovedAtOnce) {
    const TemporaryFolder folder;
    AtomicFile file(folder / "out", Overwrite::refuse);
    file.write("x");
    EXPECT_EQ(folder.entries().size(), 1u);
    remove_temporary_files_now();
    EXPECT_TRUE(folder.entries().empty());
}

TEST(AtomicFile, SurvivesAllocationFailures) {
    const TemporaryFolder folder(test::Where::memory);
    const std::string path = folder / "out";
    const int64_t tried = test::for_each_allocation_failure([&] {
        ::unlink(path.c_str());
        try {
            save(path, "content", Overwrite::refuse);
        } catch (...) {
            const int appeared = ::access(path.c_str(), F_OK);
            if (appeared == 0) std::abort();  // thrown, and yet it is there
            throw;
        }
    });
    EXPECT_GT(tried, test::can_fail_allocations() ? 4 : -1);
    EXPECT_EQ(folder.entries(), std::vector<std::string>{"out"});
}

TEST(FolderOf, Paths) {
    EXPECT_EQ(folder_of("a"), ".");
    EXPECT_EQ(folder_of("/a"), "/");
    EXPECT_EQ(folder_of("x/y/a"), "x/y");
    EXPECT_THROW(sync_folder("/nonexistent/folder"), Error);
}

}  // namespace
}  // namespace stipple
