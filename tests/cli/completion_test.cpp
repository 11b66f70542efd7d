// Completions, manual pages, synonyms and numbers: what the command line does for people who type.

#include <filesystem>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliCompletion : public CliTest {};

/// What bash would offer for the last of these words.
std::string offered(const std::string& words) {
    const std::string script = "source <(\"$0\" completion bash); COMP_WORDS=(" + words +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _stipple; echo \"${COMPREPLY[@]}\"";
    const LaunchResult result = run_launch({.arguments = {"/bin/bash", "-c", script, STIPPLE_PROGRAM}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return result.out;
}

TEST_F(CliCompletion, BashOffersCommandsOptionsAndTheirWords) {
    EXPECT_EQ(offered("stipple conv"), "convert\n");
    EXPECT_EQ(offered("stipple mesh samp"), "sample\n");
    EXPECT_EQ(offered("stipple picture --azi"), "--azimuth\n");
    EXPECT_EQ(offered("stipple picture --up ''"), "z y x -z -y -x\n");
    EXPECT_EQ(offered("stipple convert --tab"), "--table\n");  // an option of all commands
    EXPECT_EQ(offered("stipple convert --table ''"), "md csv json\n");
    EXPECT_EQ(offered("stipple completion ''"), "bash zsh fish\n");
}

TEST_F(CliCompletion, WritesPagesAndScriptsOfEveryCommand) {
    const LaunchResult result = stipple({"completion", "-o", folder / "share"});
    expect_success(result);
    for (const char* name :
         {"bash-completion/completions/stipple", "zsh/site-functions/_stipple",
          "fish/vendor_completions.d/stipple.fish", "man/man1/stipple.1", "man/man1/stipple-mesh-sample.1"})
        EXPECT_TRUE(std::filesystem::exists(folder / (std::string("share/") + name))) << name;
    const std::string page = read_file(folder / "share/man/man1/stipple-mesh-sample.1");
    EXPECT_TRUE(contains(page, ".B \\-n, \\-\\-count\nPoints wanted")) << page;
    EXPECT_TRUE(contains(page, "stipple mesh sample")) << page;
    expect_error(stipple({"completion", "-o", folder / "share"}), 4, "exists already");
    expect_error(stipple({"completion", "tcsh"}), 2, "tcsh");
    expect_error(stipple({"completion"}), 2, "a shell, or a folder with -o");
}

TEST_F(CliCompletion, HelpNamesACommand) {
    EXPECT_EQ(stipple({"help", "mesh", "sample"}).out, stipple({"mesh", "sample", "--help"}).out);
    EXPECT_EQ(stipple({"help"}).out, stipple({"--help"}).out);
    EXPECT_EQ(stipple({"-V"}).out, stipple({"--version"}).out);
}

TEST_F(CliCompletion, NamesOfOtherProgramsAreUnderstood) {
    for (const auto& [word, meant] : {std::pair("downsample", "sample"), std::pair("icp", "register"),
                                      std::pair("render", "picture"), std::pair("voxelize", "sample")}) {
        const LaunchResult result = stipple({word, "scan.ply"});
        expect_error(result, 2, std::string("unknown command ") + word);
        EXPECT_TRUE(contains(result.err, std::string("did you mean ") + meant + "?")) << result.err;
    }
}

TEST_F(CliCompletion, WholeNumbersMayHaveExponents) {
    const std::string knot = std::string(STIPPLE_SOURCE_DIR) + "/examples/data/knot.ply";
    const LaunchResult result =
        stipple({"sample", knot, "-n", "1.5e3", "--method", "random", "-o", folder / "few.ply"});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "1,500 of")) << result.out;
    for (const char* text : {"1.5e0", "1e-1", "1e", "1e99", "nane"})
        expect_error(stipple({"sample", knot, "-n", text, "-o", folder / "none.ply"}), 2, "--count");
}

}  // namespace
}  // namespace stipple::test
