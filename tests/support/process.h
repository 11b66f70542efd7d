#pragma once
// Child processes of tests: a forked function, a program with its output, a small file system that fills up.

#include <cstdint>
#include <functional>
#include <string>
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

/// The same on a pseudo terminal of that many columns: what a person would have on the screen, escape codes and all.
ProcessResult run_on_terminal(int columns, const std::function<int()>& f);

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
