#include "tests/support/data_sets.h"

#include <cstdlib>
#include <filesystem>

namespace stipple::test {

std::optional<std::string> data_file(const std::string& relative) {
    const char* folder = std::getenv("STIPPLE_TEST_DATA");
    const std::string path = (folder ? std::string(folder) : STIPPLE_SOURCE_DIR "/../shared/data") + "/" + relative;
    if (!std::filesystem::exists(path)) return std::nullopt;
    return path;
}

}  // namespace stipple::test
