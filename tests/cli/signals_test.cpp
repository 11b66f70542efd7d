// Signals: the program stops, says so, and leaves nothing behind.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <signal.h>

#include "stipple/core/interrupt.h"
#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

/// A FIFO that has a writer, a beginning, and no end.
class CliSignals : public CliTest {
protected:
    void SetUp() override {
        input = folder / "endless.xyz";
        ASSERT_EQ(::mkfifo(input.c_str(), 0666), 0);
        fd = ::open(input.c_str(), O_RDWR | O_CLOEXEC);  // open for reading too: neither side waits for the other
        ASSERT_GE(fd, 0);
        const std::string text = "1 2 3\n4 5 6\n";
        ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    void TearDown() override { ::close(fd); }

    std::string input;
    int fd = -1;
};

struct Stop {
    int signal, exit_code;
    const char* code;
};

const Stop kStops[] = {{SIGINT, 130, "interrupted"}, {SIGTERM, 143, "terminated"}, {SIGUSR1, 143, "terminated"}};

TEST_F(CliSignals, WhileReading) {
    for (const Stop& stop : kStops) {
        Child child(stipple_launch({"convert", input, "-o", folder / "out.ply"}));
        ASSERT_TRUE(child.wait_for_call(SYS_read));
        child.send(stop.signal);
        const LaunchResult result = child.wait();
        expect_error(result, stop.exit_code, stop.code);
        expect_entries({"endless.xyz"});
        // The beginning is gone with the first reader.
        const std::string text = "1 2 3\n4 5 6\n";
        ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
}

TEST_F(CliSignals, InJson) {
    Child child(stipple_launch({"info", input, "--json"}));
    ASSERT_TRUE(child.wait_for_call(SYS_read));
    child.send(SIGINT);
    const LaunchResult result = child.wait();
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_EQ(json_of(result)["error"]["code"], "interrupted");
}

TEST_F(CliSignals, WhileAFifoHasNoWriter) {
    const std::string path = folder / "silent.ply";
    ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0);
    for (const Stop& stop : kStops) {
        Child child(stipple_launch({"info", path}));
        ASSERT_TRUE(child.wait_for_call(SYS_openat));
        child.send(stop.signal);
        expect_error(child.wait(), stop.exit_code, stop.code);
    }
}

TEST_F(CliSignals, WhileWritingToAFullPipe) {
    // Nobody reads our standard output, and it holds 64 KB only.
    const std::string large = cloud("large.ply", 100'000);
    for (const Stop& stop : kStops) {
        Child child(stipple_launch({"convert", large, "-o", "-", "--format", "xyz"}));
        ASSERT_TRUE(child.wait_for_call(SYS_write));
        child.send(stop.signal);
        const LaunchResult result = child.wait();
        EXPECT_EQ(result.exit_code, stop.exit_code) << report(result);
        EXPECT_TRUE(contains(result.err, stop.code)) << report(result);
    }
}

TEST_F(CliSignals, TheSecondInterruptIsImmediate) {
    // After the first one the program wants to report in JSON, but its standard output is full and nobody reads.
    Launch launch = stipple_launch({"info", input, "--json"});
    launch.before = [] {
        ::fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
        while (::write(STDOUT_FILENO, "####", 4) > 0) {
        }
        ::fcntl(STDOUT_FILENO, F_SETFL, 0);
    };
    Child child(launch);
    ASSERT_TRUE(child.wait_for_call(SYS_read));
    child.send(SIGINT);
    ASSERT_TRUE(child.wait_for_call(SYS_write));
    child.send(SIGINT);
    siginfo_t ended{};  // before anything is read: that would make room for the report
    for (int i = 0; i < 3000 && ended.si_pid == 0; ++i) {
        ::usleep(10'000);
        ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    }
    const LaunchResult result = child.wait();
    EXPECT_EQ(result.exit_code, 130) << report(result);
    EXPECT_EQ(result.out.find_first_not_of('#'), std::string::npos) << report(result);
}

TEST_F(CliSignals, TheSecondInterruptRemovesTemporaryFiles) {
    const ProcessResult result = run_in_child([&] {
        install_signal_handlers();
        AtomicFile unfinished(folder / "out.ply", Overwrite::refuse);
        unfinished.write("half");
        if (folder.entries().size() != 2) return 1;
        ::raise(SIGINT);
        if (caught_signal() != SIGINT) return 2;
        ::raise(SIGINT);
        return 3;
    });
    EXPECT_EQ(result.exit_code, 130) << result.output;
    expect_entries({"endless.xyz"});
}

TEST_F(CliSignals, LeaveNoTemporaryFileWhileWriting) {
    // The signal comes at every moment of a conversion: either the file is whole, or there is none.
    const std::string large = cloud("large.ply", 300'000);
    expect_success(stipple({"convert", large, "-o", folder / "out.xyz"}));
    const uintmax_t whole = std::filesystem::file_size(folder / "out.xyz");
    std::filesystem::remove(folder / "out.xyz");
    int finished = 0, stopped = 0;
    for (int64_t delay = 0; delay <= 20'000'000 || (finished == 0 && delay < 2'000'000'000);
         delay += delay < 20'000'000 ? 1'000'000 : delay) {
        Child child(stipple_launch({"convert", large, "-o", folder / "out.xyz", "--overwrite"}));
        const timespec pause{delay / 1'000'000'000, delay % 1'000'000'000};
        ::nanosleep(&pause, nullptr);
        child.send(delay % 2'000'000 ? SIGINT : SIGTERM);
        const LaunchResult result = child.wait();
        // Before the handlers are there, the signal itself ends the program.
        EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 130 || result.exit_code == 143 ||
                    result.signal == SIGINT || result.signal == SIGTERM)
            << report(result);
        ++(result.exit_code == 0 ? finished : stopped);
        // A signal that comes when the file is there already is too late to take it back.
        if (std::filesystem::exists(folder / "out.xyz")) {
            EXPECT_EQ(std::filesystem::file_size(folder / "out.xyz"), whole);
            std::filesystem::remove(folder / "out.xyz");
        } else {
            EXPECT_NE(result.exit_code, 0);
        }
        expect_entries({"endless.xyz", "large.ply"});
    }
    EXPECT_GE(stopped, 1);
    EXPECT_GE(finished, 1);
}

}  // namespace
}  // namespace stipple::test
