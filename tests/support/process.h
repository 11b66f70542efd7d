#pragma once
// Child processes of tests: a forked function, a program with its output, a small file system that fills up.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace stipple::test {

struct ProcessResult {
    int exit_code = -1;  // -1 when a signal ended it
    int signal = 0;
    std::string output;  // what it wrote to standard output and standard error
};

/// Runs f in a forked child; the child ends with f's value. An exception that f lets out ends it with 99.
ProcessResult run_in_child(const std::function<int()>& f);

/// Runs a program (absolute path and arguments), standard input empty.
ProcessResult run_program(const std::vector<std::string>& arguments);

/// A program and everything around it.
struct Launch {
    std::vector<std::string> arguments;                                 // the program's path first
    std::string input = {};                                             // of its standard input
    std::vector<std::pair<std::string, std::string>> environment = {};  // added to ours
    std::string folder = {};                                            // where it runs; empty: here
    std::function<void()> before = {};  // called in the child, before the program starts
    int seconds = 60;                   // it is killed after so many: a guard against hangs
};

struct LaunchResult {
    int exit_code = -1;  // -1 when a signal ended it
    int signal = 0;
    bool timed_out = false;
    std::string out, err;
};

/// A program that runs while the test goes on.
class Child {
public:
    explicit Child(Launch launch);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    pid_t pid() const { return pid_; }
    void send(int signal) const;
    /// Waits until it sleeps in a system call of that name's number (SYS_read ...); false when it has ended or the time
    /// is over.
    bool wait_for_call(long number) const;
    /// Closes our end of its standard output, as `head` does when it has seen enough.
    void close_output();
    /// Feeds the input, gathers both outputs and waits for the end.
    LaunchResult wait();

private:
    Launch launch_;
    pid_t pid_ = -1;
    int in_ = -1, out_ = -1, err_ = -1;
};

LaunchResult run_launch(Launch launch);

/// The same on a pseudo terminal of that many columns: what a person would have on the screen, escape codes and all.
ProcessResult run_on_terminal(int columns, const std::function<int()>& f);

/// In a child before it executes a program: root loses the right to read and write everything, and keeps its uid, so
/// that the program itself stays within reach wherever it was built. Nothing to do for any other user.
void forget_root_rights();

/// A tmpfs of `bytes` mounted at the existing folder `path`, unmounted at the end. ok() is false without the right to.
class SmallDisk {
public:
    SmallDisk(std::string path, int64_t bytes);
    ~SmallDisk();
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;
    bool ok() const { return mounted_; }

private:
    std::string path_;
    bool mounted_ = false;
};

}  // namespace stipple::test
