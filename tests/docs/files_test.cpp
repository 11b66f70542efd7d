// Links of pages, of results and of the READMEs of folders lead somewhere; pictures are small, shown, and made by
// commands on a page.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/docs/markdown.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = STIPPLE_SOURCE_DIR;

/// The pages, and what is written about results, tests, the Python module and examples.
std::vector<Page> all_pages() {
    std::vector<Page> all = pages();
    for (const char* folder : {"bench/results", "tests", "python", "examples"}) {
        for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
            const std::string path = entry.path().lexically_relative(kRoot).string();
            if (entry.path().extension() != ".md" || path.find("/node_modules/") != std::string::npos) continue;
            all.push_back(parse_page(path, read_file(entry.path().string())));
        }
    }
    return all;
}

TEST(DocsFiles, LinksLeadSomewhere) {
    const std::vector<Page> all = all_pages();
    int checked = 0;
    for (const Page& page : all) {
        for (const std::string& link : page.links) {
            if (link.rfind("http://", 0) == 0 || link.rfind("https://", 0) == 0) continue;
            ++checked;
            const size_t hash = link.find('#');
            const std::string file = link.substr(0, hash);
            const fs::path target = file.empty() ? kRoot / page.path : (kRoot / page.path).parent_path() / file;
            EXPECT_TRUE(fs::exists(target)) << page.path << ": " << link;
            if (hash == std::string::npos) continue;
            const std::string path =
                fs::weakly_canonical(target).lexically_relative(fs::weakly_canonical(kRoot)).string();
            const auto found = std::find_if(all.begin(), all.end(), [&](const Page& p) { return p.path == path; });
            ASSERT_NE(found, all.end()) << page.path << ": " << link;
            EXPECT_NE(std::count(found->anchors.begin(), found->anchors.end(), link.substr(hash + 1)), 0)
                << page.path << ": no heading for " << link;
        }
    }
    EXPECT_GE(checked, 100);
}

TEST(DocsFiles, PicturesTogetherAreSmall) {
    uintmax_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs"))
        if (entry.is_regular_file() && entry.path().extension() != ".md") bytes += entry.file_size();
    EXPECT_GT(bytes, 0u);
    EXPECT_LE(bytes, 4'000'000u);
}

TEST(DocsFiles, EveryPictureIsShownAndMadeByACommandThatRuns) {
    for (const auto& entry : fs::directory_iterator(kRoot / "docs/images")) {
        const std::string name = entry.path().filename().string();
        bool shown = false, made = entry.path().extension() != ".png";  // an .svg may be drawn by hand
        for (const Page& page : pages()) {
            for (const std::string& link : page.links) shown |= fs::path(link).filename() == name;
            for (const Block& block : page.blocks)
                made |= block.runs() && (block.text.find("-o " + name) != std::string::npos ||
                                         block.text.find("--picture " + name) != std::string::npos);
        }
        EXPECT_TRUE(shown) << name << " is on no page";
        EXPECT_TRUE(made) << name << " is made by no command that a test runs";
    }
}

}  // namespace
}  // namespace stipple::test
