#pragma once
// Runs the system's Python, whose numpy and h5py are the oracles of our files. A missing module fails the test.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/temporary_folder.h"

namespace stipple::test {

/// Runs a script in `folder`; what it printed. A script that ends otherwise than well fails the test with its output.
inline std::string run_python(const TemporaryFolder& folder, const std::string& script) {
    std::ofstream(folder / "script.py") << script;
    // The system's own interpreter: one in front of it in the search path may lack the modules. STIPPLE_PYTHON names
    // another.
    const std::string command =
        "cd '" + folder.path() + "' && \"${STIPPLE_PYTHON:-$(command -p -v python3)}\" script.py > script.out 2>&1";
    const int status = std::system(command.c_str());
    std::ifstream in(folder / "script.out");
    std::string output{std::istreambuf_iterator<char>(in), {}};
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << output;
    return output;
}

}  // namespace stipple::test
