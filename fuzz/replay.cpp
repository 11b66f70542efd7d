// Runs a fuzz target on files and on all files of folders, once each: what a fuzzer found before is found again within
// seconds and without clang. A failure ends the program, and the last line it printed is the file.
//   replay/fuzz_ply tests/corpus/ply

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<std::string> files_of(int count, char** arguments) {
    std::vector<std::string> files;
    for (int i = 1; i < count; ++i) {
        if (!std::filesystem::is_directory(arguments[i])) {
            files.emplace_back(arguments[i]);
            continue;
        }
        for (const auto& entry : std::filesystem::recursive_directory_iterator(arguments[i]))
            if (entry.is_regular_file()) files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace

int main(int count, char** arguments) {
    LLVMFuzzerInitialize(&count, &arguments);
    const std::vector<std::string> files = files_of(count, arguments);
    for (const std::string& file : files) {
        std::printf("%s\n", file.c_str());
        std::fflush(stdout);  // a crash leaves the name of its file
        std::ifstream in(file, std::ios::binary);
        if (!in) return 2;
        const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
        LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    }
    std::printf("%zu inputs\n", files.size());
    return files.empty() ? 1 : 0;
}
