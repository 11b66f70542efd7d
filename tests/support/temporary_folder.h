#pragma once
// A folder of its own for a test, removed afterwards; and small files read and written whole.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace stipple::test {

/// In memory, for tests that flush so often that a slow disk would hold them up; on disk where there is no /dev/shm.
enum class Where { disk, memory };

class TemporaryFolder {
public:
    explicit TemporaryFolder(Where where = Where::disk) {
        std::filesystem::path parent = std::filesystem::temp_directory_path();
        if (where == Where::memory && ::access("/dev/shm", W_OK | X_OK) == 0) parent = "/dev/shm";
        std::string name = (parent / "stipple-test-XXXXXX").string();
        if (!::mkdtemp(name.data())) std::abort();
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::string& path() const { return path_; }
    std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

    /// Names of everything in the folder, hidden entries too, sorted.
    std::vector<std::string> entries() const {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(path_))
            names.push_back(entry.path().filename().string());
        std::sort(names.begin(), names.end());
        return names;
    }

private:
    std::string path_;
};

inline std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string& path, std::string_view content) {
    std::ofstream file(path, std::ios::binary);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!file.flush()) std::abort();
}

}  // namespace stipple::test
