// Every command of README.md, CONTRIBUTING.md and docs/ is run, and prints what the page shows; those that cannot be
// run say why, and are at least made of commands and options that exist.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "tests/docs/markdown.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> pages_that_run() {
    std::vector<std::string> paths;
    for (const Page& page : pages())
        if (std::any_of(page.blocks.begin(), page.blocks.end(), [](const Block& block) { return block.runs(); }))
            paths.push_back(page.path);
    return paths;
}

/// Signature, width and height of a .png.
std::string png_size(const std::string& path) {
    return read_file(path).substr(0, 24);
}

class DocsPage : public testing::TestWithParam<std::string> {};

/// The blocks of a page run one after the other in one folder that has examples/ and weights/, as a checkout does.
TEST_P(DocsPage, CommandsRunAndPrintWhatItShows) {
    const Page& page =
        *std::find_if(pages().begin(), pages().end(), [](const Page& p) { return p.path == GetParam(); });
    const TemporaryFolder folder;
    const fs::path root = STIPPLE_SOURCE_DIR;
    for (const char* name : {"examples", "weights"}) fs::create_directory_symlink(root / name, folder / name);
    const char* search = std::getenv("PATH");
    const std::string path =
        fs::path(STIPPLE_PROGRAM).parent_path().string() + ":" + (search ? search : "/usr/bin:/bin");
    for (size_t i = 0; i < page.blocks.size(); ++i) {
        const Block& block = page.blocks[i];
        if (!block.runs()) continue;
        SCOPED_TRACE(page.path + ":" + std::to_string(block.line));
        // Progress is for those who wait; when it appears depends on the load of the machine.
        const LaunchResult result = run_launch({
            .arguments = {"/bin/bash", "-e", "-o", "pipefail", "-c", "exec 2>&1\n" + block.text},
            .environment = {{"PATH", path}, {"STIPPLE_PROGRESS", "never"}, {"STIPPLE_COLOR", "never"}},
            .folder = folder.path(),
            .seconds = 200,
        });
        ASSERT_EQ(result.exit_code, block.exit_status()) << block.text << result.out;
        if (i + 1 == page.blocks.size() || page.blocks[i + 1].mark != "output") continue;
        std::string difference;
        EXPECT_TRUE(shows(page.blocks[i + 1].text, result.out, difference)) << difference << "\nall of it:\n"
                                                                            << result.out;
    }
    // Pixels may differ in their last bits between machines; a picture of another size was made by another command.
    for (const std::string& name : folder.entries()) {
        const fs::path shown = root / "docs/images" / name;
        if (shown.extension() == ".png" && fs::exists(shown)) {
            EXPECT_EQ(png_size(shown.string()), png_size(folder / name)) << "make docs/images/" << name << " again";
        }
    }
}

std::string name_of(const testing::TestParamInfo<std::string>& page) {
    std::string name = fs::path(page.param).stem().string();
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Docs, DocsPage, testing::ValuesIn(pages_that_run()), name_of);

TEST(DocsCommands, EveryBlockSaysWhetherItRuns) {
    int running = 0;
    for (const Page& page : pages()) {
        for (const Block* block : page.command_blocks()) {
            running += block->runs();
            EXPECT_TRUE(block->runs() || block->mark.rfind("not run: ", 0) == 0)
                << page.path << ":" << block->line
                << ": put <!-- run --> or <!-- not run: REASON --> on the line before it";
        }
        for (size_t i = 0; i < page.blocks.size(); ++i)
            EXPECT_TRUE(page.blocks[i].mark != "output" || (i > 0 && page.blocks[i - 1].runs()))
                << page.path << ":" << page.blocks[i].line << ": output of no block that runs";
    }
    EXPECT_GE(running, 10);  // a test that runs nothing passes always
}

/// The help of a command, or "" when there is none of this name.
const std::string& help_of(const std::string& command) {
    static std::map<std::string, std::string> known;
    const auto [entry, is_new] = known.emplace(command, "");
    if (is_new) {
        std::vector<std::string> arguments = {STIPPLE_PROGRAM};
        std::istringstream words(command);
        for (std::string word; words >> word;) arguments.push_back(word);
        arguments.push_back("--help");
        const ProcessResult result = run_program(arguments);
        if (result.exit_code == 0) entry->second = result.output;
    }
    return entry->second;
}

/// One command line, from "stipple" on: its command exists, and so does every long option.
void check_names(const std::string& command_line, const std::string& where) {
    static const std::regex option(R"((^|\s)(--[a-z][a-z-]*))");
    std::istringstream words(command_line);
    std::string program, command, second;
    words >> program >> command >> second;
    if (command.empty() || !std::islower(static_cast<unsigned char>(command[0]))) return;  // "stipple COMMAND"
    const bool is_group = command == "mesh" || command == "engine" || command == "data" || command == "weights" ||
                          command == "bench" || command == "study" || command == "radiance";
    if (is_group && !second.empty() && std::islower(static_cast<unsigned char>(second[0]))) command += " " + second;
    const std::string &help = help_of(command), &everywhere = help_of("");
    ASSERT_NE(help, "") << where << ": there is no command " << command << ": " << command_line;
    for (std::sregex_iterator at(command_line.begin(), command_line.end(), option), end; at != end; ++at) {
        const std::string name = (*at)[2];
        const std::regex whole(name + R"((?![a-z-]))");
        EXPECT_TRUE(std::regex_search(help, whole) || std::regex_search(everywhere, whole))
            << where << ": " << command << " has no option " << name << ": " << command_line;
    }
}

TEST(DocsCommands, CommandsThatAreNotRunExistToo) {
    static const std::regex joined(R"(\\\n)"), start(R"(\bstipple [^|#;&\n]*)");
    int checked = 0;
    for (const Page& page : pages()) {
        for (const std::string& command : page.commands) {
            check_names(command.substr(0, command.find('|')), page.path);
            ++checked;
        }
        for (const Block* block : page.command_blocks()) {
            if (block->runs()) continue;
            const std::string text = std::regex_replace(block->text, joined, " ");
            for (std::sregex_iterator at(text.begin(), text.end(), start), end; at != end; ++at, ++checked)
                check_names(at->str(), page.path + ":" + std::to_string(block->line));
        }
    }
    EXPECT_GE(checked, 30);
}

TEST(DocsCommands, OutputIsComparedByWords) {
    std::string difference;
    EXPECT_TRUE(shows("a  b\n", "a b\n", difference));
    EXPECT_FALSE(shows("a b\n", "a c\n", difference));
    EXPECT_NE(difference.find("\"a b\""), std::string::npos);
    EXPECT_FALSE(shows("a\n", "a\nb\n", difference));
    EXPECT_TRUE(shows("a\n...\nd\n", "a\nb\nc\nd\n", difference));
    EXPECT_TRUE(shows("took ... s\n", "took 0.31 s\n", difference));
    EXPECT_TRUE(shows("1,2... points\n", "1,234 points\n", difference));
    EXPECT_FALSE(shows("1,2... points\n", "1,334 points\n", difference));
    EXPECT_TRUE(shows("rotation 13.92 (0.0606,\n", "rotation 13.93 (0.0605,\n", difference));
    EXPECT_FALSE(shows("rotation 13.92\n", "rotation 14.92\n", difference));
    EXPECT_FALSE(shows("12 points\n", "13 points\n", difference));  // counts are exact
    EXPECT_TRUE(shows("0.8991\n", "0.899\n", difference));
    EXPECT_TRUE(shows("2.08e-08\n", "2.09e-08\n", difference));
}

TEST(DocsCommands, BlocksAreFoundWithTheirMarks) {
    const Page page = parse_page("a.md",
                                 "# A b-c, d\n<!-- run: exit 3 -->\n```sh\nstipple x\n```\n<!-- output -->\n"
                                 "```\nno\n```\ntext `stipple info` [l](b.md#c)\n```\nstipple y\n```\n");
    ASSERT_EQ(page.blocks.size(), 3u);
    EXPECT_TRUE(page.blocks[0].runs());
    EXPECT_EQ(page.blocks[0].exit_status(), 3);
    EXPECT_EQ(page.blocks[0].text, "stipple x\n");
    EXPECT_EQ(page.blocks[0].line, 3);
    EXPECT_EQ(page.blocks[1].mark, "output");
    EXPECT_EQ(page.blocks[2].mark, "");
    EXPECT_EQ(page.command_blocks().size(), 2u);
    EXPECT_EQ(page.commands, std::vector<std::string>{"stipple info"});
    EXPECT_EQ(page.links, std::vector<std::string>{"b.md#c"});
    EXPECT_EQ(page.anchors, std::vector<std::string>{"a-b-c-d"});
}

}  // namespace
}  // namespace stipple::test
