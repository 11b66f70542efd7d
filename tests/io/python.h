#pragma once
// Runs the system's Python, whose numpy and h5py are the oracles of our files. A missing module fails the test.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace stipple::test {

/// A folder of its own for one test, removed with everything in it.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "stipple-test-XXXXXX").string();
        if (!::mkdtemp(name.data())) ADD_FAILURE() << "cannot make " << name;
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

/// Runs a script in `folder`; what it printed. A script that ends otherwise than well fails the test with its output.
inline std::string run_python(const TemporaryFolder& folder, const std::string& script) {
    std::ofstream(folder / "script.py") << script;
    // The system's own interpreter: one in front of it in the search path may lack the modules.
    const std::string command =
        "cd '" + folder.path().string() + "' && \"$(command -p -v python3)\" script.py > script.out 2>&1";
    const int status = std::system(command.c_str());
    std::ifstream in(folder / "script.out");
    std::string output{std::istreambuf_iterator<char>(in), {}};
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << output;
    return output;
}

}  // namespace stipple::test
