#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <linux/capability.h>
#include <signal.h>
#include <termios.h>
#include <thread>

namespace stipple::test {
namespace {

[[noreturn]] void finish_child(const std::function<int()>& f) {
    int code = 99;
    try {
        code = f();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "child: %s\n", error.what());
    }
    std::fflush(nullptr);
    ::_exit(code);
}

ProcessResult collect(pid_t child, int output) {
    ProcessResult result;
    char block[4096];
    for (;;) {
        const ssize_t count = ::read(output, block, sizeof block);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;  // a terminal whose other side is closed says EIO
        result.output.append(block, static_cast<size_t>(count));
    }
    ::close(output);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    return result;
}

ProcessResult run_piped(const std::function<int()>& f) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) std::abort();
    if (child == 0) {
        ::dup2(ends[1], STDOUT_FILENO);
        ::dup2(ends[1], STDERR_FILENO);
        finish_child(f);
    }
    ::close(ends[1]);
    return collect(child, ends[0]);
}

}  // namespace

ProcessResult run_in_child(const std::function<int()>& f) {
    return run_piped(f);
}

ProcessResult run_program(const std::vector<std::string>& arguments) {
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    return run_piped([&] {
        const int empty = ::open("/dev/null", O_RDONLY);
        ::dup2(empty, STDIN_FILENO);
        ::execv(argv[0], argv.data());
        return 127;
    });
}

Child::Child(Launch launch) : launch_(std::move(launch)) {
    int in[2], out[2], err[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) std::abort();
    std::vector<char*> argv;
    for (const std::string& argument : launch_.arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::signal(SIGPIPE, SIG_IGN);  // a program need not read what it is fed
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) std::abort();
    if (pid_ == 0) {
        ::signal(SIGPIPE, SIG_DFL);
        ::dup2(in[0], STDIN_FILENO);
        ::dup2(out[1], STDOUT_FILENO);
        ::dup2(err[1], STDERR_FILENO);
        if (!launch_.folder.empty() && ::chdir(launch_.folder.c_str()) != 0) ::_exit(126);
        for (const auto& [name, value] : launch_.environment) ::setenv(name.c_str(), value.c_str(), 1);
        if (launch_.before) launch_.before();
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    ::close(err[1]);
    in_ = in[1];
    out_ = out[0];
    err_ = err[0];
    ::fcntl(in_, F_SETFL, O_NONBLOCK);
}

Child::~Child() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    for (int fd : {in_, out_, err_})
        if (fd >= 0) ::close(fd);
}

void Child::send(int signal) const {
    if (pid_ > 0) ::kill(pid_, signal);
}

bool Child::wait_for_call(long number) const {
    const std::string path = "/proc/" + std::to_string(pid_) + "/syscall";
    for (int attempt = 0; attempt < 3000; ++attempt) {
        std::string first;
        if (!(std::ifstream(path) >> first)) return false;
        if (first == std::to_string(number)) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

void Child::close_output() {
    if (out_ >= 0) ::close(out_);
    out_ = -1;
}

LaunchResult Child::wait() {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::seconds(launch_.seconds);
    LaunchResult result;
    size_t fed = 0;
    const auto close_one = [](int& fd) {
        ::close(fd);
        fd = -1;
    };
    while (out_ >= 0 || err_ >= 0) {
        if (in_ >= 0 && fed == launch_.input.size()) close_one(in_);
        pollfd watched[] = {{in_, POLLOUT, 0}, {out_, POLLIN, 0}, {err_, POLLIN, 0}};  // negative ones are skipped
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left <= 0) {
            result.timed_out = true;
            ::kill(pid_, SIGKILL);
            break;
        }
        ::poll(watched, 3, static_cast<int>(std::min<int64_t>(left, 1000)));
        if (in_ >= 0 && watched[0].revents) {
            const ssize_t count = ::write(in_, launch_.input.data() + fed, launch_.input.size() - fed);
            if (count > 0) fed += static_cast<size_t>(count);
            if (count < 0 && errno != EAGAIN && errno != EINTR) close_one(in_);
        }
        char block[65536];
        for (int i = 1; i <= 2; ++i) {
            int& fd = i == 1 ? out_ : err_;
            if (fd < 0 || !watched[i].revents) continue;
            const ssize_t count = ::read(fd, block, sizeof block);
            if (count > 0) (i == 1 ? result.out : result.err).append(block, static_cast<size_t>(count));
            if (count == 0 || (count < 0 && errno != EINTR)) close_one(fd);
        }
    }
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    return result;
}

LaunchResult run_launch(Launch launch) {
    return Child(std::move(launch)).wait();
}

ProcessResult run_on_terminal(int columns, const std::function<int()>& f) {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) std::abort();
    const int slave = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) std::abort();
    struct winsize size {};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = 24;
    ::ioctl(slave, TIOCSWINSZ, &size);
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) std::abort();
    if (child == 0) {
        ::dup2(slave, STDOUT_FILENO);
        ::dup2(slave, STDERR_FILENO);
        finish_child(f);
    }
    ::close(slave);
    return collect(child, master);
}

void forget_root_rights() {
    if (::geteuid() != 0) return;
    bool dropped = true;
    for (const int right : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) dropped &= ::prctl(PR_CAPBSET_DROP, right) == 0;
    if (!dropped && ::setuid(65534) != 0) ::_exit(125);
}

SmallDisk::SmallDisk(std::string path, int64_t bytes) : path_(std::move(path)) {
    const std::string options = "size=" + std::to_string(bytes);
    mounted_ = ::mount("stipple-test", path_.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

SmallDisk::~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
}

}  // namespace stipple::test
