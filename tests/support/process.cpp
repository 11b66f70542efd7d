#include "tests/support/process.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <termios.h>

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

SmallDisk::SmallDisk(std::string path, int64_t bytes) : path_(std::move(path)) {
    const std::string options = "size=" + std::to_string(bytes);
    mounted_ = ::mount("stipple-test", path_.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

SmallDisk::~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
}

}  // namespace stipple::test
