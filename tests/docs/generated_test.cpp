// Parts of pages that scripts write: they are what the scripts would write now, and the scripts see differences. The
// code that README.md shows is that of an example, which `make test` compiles.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/docs/markdown.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

namespace fs = std::filesystem;

const fs::path kSources = STIPPLE_SOURCE_DIR;

LaunchResult run_check(const std::string& script, const fs::path& root = kSources) {
    return run_launch({.arguments = {"/usr/bin/env", "python3", "-B", (kSources / "scripts" / script).string(),
                                     "--check", "--root", root.string()}});
}

void copy_file_to(const fs::path& from, const fs::path& to) {
    fs::create_directories(to.parent_path());
    fs::copy_file(from, to);
}

/// Replaces the first `before` in a file, which must be there.
void replace_in_file(const std::string& path, const std::string& before, const std::string& after) {
    std::string text = read_file(path);
    const size_t at = text.find(before);
    ASSERT_NE(at, std::string::npos) << path << ": " << before;
    write_file(path, text.replace(at, before.size(), after));
}

TEST(GeneratedPages, AreWhatTheirScriptsWrite) {
    for (const char* script : {"performance_page.py", "folder_map.py"}) {
        const LaunchResult result = run_check(script);
        EXPECT_EQ(result.exit_code, 0) << script << "\n" << result.out << result.err;
    }
}

TEST(GeneratedPages, AFigureThatIsNotInTheResultsIsSeen) {
    const TemporaryFolder folder;
    for (const char* file :
         {"README.md", "docs/performance.md", "tests/corpus/expected.tsv", "tests/corpus/packed.tsv"})
        copy_file_to(kSources / file, folder / file);
    for (const auto& entry : fs::directory_iterator(kSources / "bench/results"))
        if (entry.path().extension() == ".md")
            copy_file_to(entry.path(), fs::path(folder / "bench/results") / entry.path().filename());
    const auto fails = [&](const std::string& said) {
        const LaunchResult result = run_check("performance_page.py", folder.path());
        EXPECT_EQ(result.exit_code, 1) << said;
        EXPECT_NE((result.out + result.err).find(said), std::string::npos) << result.out << result.err;
    };
    ASSERT_EQ(run_check("performance_page.py", folder.path()).exit_code, 0);
    const std::string page = folder / "docs/performance.md", results = folder / "bench/results/ops.md";
    replace_in_file(page, "| 40.47 ms |", "| 86 ms |");  // of another run
    fails("docs/performance.md differs");
    replace_in_file(page, "| 86 ms |", "| 40.47 ms |");
    replace_in_file(results, "       284.9 |", "       289.0 |");  // measured again, and the page forgotten
    fails("docs/performance.md differs");
    replace_in_file(results, "       289.0 |", "       284.9 |");
    replace_in_file(results, "## EMD, 2048 points", "## EMD, 2049 points");
    fails("0 sections begin with 'EMD, 2048 points'");
    replace_in_file(results, "## EMD, 2049 points", "## EMD, 2048 points");
    replace_in_file(results, "## EMD, 2048 points\n\nMeasured at 5415163",
                    "## EMD, 2048 points\n\nMeasured at 5415164");
    fails("docs/performance.md differs");
    replace_in_file(folder / "bench/results/picture.md", "Measured at", "At");
    fails("no line \"Measured at COMMIT (DATE) on MACHINE.\"");
}

TEST(GeneratedPages, AFolderWithoutALineIsSeen) {
    const TemporaryFolder folder;
    for (const char* file : {"CONTRIBUTING.md", "docs/architecture.md", "docs/images/architecture.svg"})
        copy_file_to(kSources / file, folder / file);
    for (const auto& entry : fs::directory_iterator(kSources))
        if (entry.is_directory() && entry.path().filename() != "build")
            fs::create_directories(fs::path(folder / entry.path().filename().string()));
    for (const char* top : {"stipple", "python", "tests", "bench"}) {
        for (const auto& entry : fs::recursive_directory_iterator(kSources / top)) {
            const fs::path to = fs::path(folder.path()) / fs::relative(entry.path(), kSources);
            if (entry.is_directory()) fs::create_directories(to);
            if (entry.path().filename() == "CMakeLists.txt") copy_file_to(entry.path(), to);
        }
    }
    const auto fails = [&](const std::string& said) {
        const LaunchResult result = run_check("folder_map.py", folder.path());
        EXPECT_EQ(result.exit_code, 1) << said;
        EXPECT_NE((result.out + result.err).find(said), std::string::npos) << result.out << result.err;
    };
    ASSERT_EQ(run_check("folder_map.py", folder.path()).exit_code, 0);
    fs::create_directory(folder / "stipple/core/unknown");
    fails("stipple/core/unknown: has no line");
    fs::remove(folder / "stipple/core/unknown");
    fs::remove_all(folder / "stipple/core/text");
    fails("stipple/core/text: there is no such folder");
    fs::create_directory(folder / "stipple/core/text");
    replace_in_file(folder / "docs/architecture.md", "sorts, prefix sums", "sorts");
    fails("docs/architecture.md differs");
    replace_in_file(folder / "docs/architecture.md", "sorts", "sorts, prefix sums");
    replace_in_file(folder / "stipple/picture/CMakeLists.txt", "stipple::io",
                    "stipple::io stipple::ops");  // a new link
    fails("docs/images/architecture.svg differs");
}

TEST(GeneratedPages, ReadmeShowsCodeOfAnExample) {
    std::vector<std::string> sources;
    for (const auto& entry : fs::recursive_directory_iterator(kSources / "examples"))
        if (entry.path().extension() == ".cpp") sources.push_back(read_file(entry.path().string()));
    const auto readme =
        std::find_if(pages().begin(), pages().end(), [](const Page& p) { return p.path == "README.md"; });
    int shown = 0;
    for (const Block& block : readme->blocks) {
        if (block.language != "cpp") continue;
        ++shown;
        EXPECT_TRUE(std::any_of(sources.begin(), sources.end(),
                                [&](const std::string& text) { return text.find(block.text) != std::string::npos; }))
            << "README.md:" << block.line << " is in no file of examples/";
    }
    EXPECT_GE(shown, 1);
}

}  // namespace
}  // namespace stipple::test
