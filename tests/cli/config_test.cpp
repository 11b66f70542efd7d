// Configuration: command line > environment > file > default, and every mistake in a file (row 28 of the fault table).

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliConfig : public CliTest {
protected:
    LaunchResult with(const std::string& text, std::vector<std::string> arguments = {"convert", "a.ply"}) const {
        arguments.insert(arguments.end(), {"--config", file("stipple.toml", text)});
        return stipple(arguments);
    }
};

void expect_hint(const LaunchResult& result, const std::string& hint) {
    EXPECT_TRUE(contains(result.err, "\n  hint: ") && contains(result.err, hint)) << report(result);
}

TEST_F(CliConfig, MistakesAreNamedWithTheirLine) {
    const LaunchResult unknown = with("json = false\nsede = 3\n");
    expect_error(unknown, 2, "stipple.toml:2: unknown key sede");
    expect_hint(unknown, "did you mean seed?");
    const LaunchResult in_table = with("[convert]\nformat = \"ply\"\n\n[picture]\n# more\ncolor-map = \"turbo\"\n");
    expect_error(in_table, 2, "stipple.toml:6: unknown key color-map in [picture]");
    expect_hint(in_table, "did you mean colormap?");
    const LaunchResult table = with("seed = 1\n[convrt]\n");
    expect_error(table, 2, "stipple.toml:2: unknown table [convrt]");
    expect_hint(table, "did you mean [convert]?");
    expect_error(with("seed = 1\nthreads = 1\nseed = 2\n"), 2, "stipple.toml:3: key seed twice, first in line 1");
    expect_error(with("seed = 1\nseed = 2\n"), 2, "stipple.toml:2: key seed twice");
    expect_error(with("[info]\n[convert]\n[info]\n"), 2, "stipple.toml:3: table [info] twice");
    expect_error(with("seed = \"many\"\n"), 2, "stipple.toml:1: seed = \"many\": expected a whole number from 0");
    expect_error(with("seed = -1\n"), 2, "stipple.toml:1: seed = \"-1\"");
    expect_error(with("threads = 1.5\n"), 2, "stipple.toml:1: threads");
    expect_error(with("json = \"perhaps\"\n"), 2, "stipple.toml:1: json = \"perhaps\": expected true or false");
    expect_error(with("seed = [1, 2]\n"), 2, "stipple.toml:1: seed");
    expect_error(with("color = \"sometimes\"\n"), 2, "stipple.toml:1: color = \"sometimes\"");
    // A picture's range is two numbers.
    expect_error(with("[picture]\nrange = [1]\n", {"picture", "a.ply"}), 2, "stipple.toml:2: range");
    expect_error(with("config = \"other.toml\"\n"), 2, "unknown key config");
}

TEST_F(CliConfig, WhatIsNoTomlIsNamedWithItsLine) {
    expect_error(with("seed\n"), 2, "stipple.toml:1: expected = after the key");
    expect_error(with("\nseed =\n"), 2, "stipple.toml:2: expected a value");
    expect_error(with("color = never\n"), 2, "stipple.toml:1: expected a value, found \"never\"; text needs quotes");
    expect_error(with("color = \"never\n"), 2, "stipple.toml:1: the string has no closing \"");
    expect_error(with("seed = 1 2\n"), 2, "stipple.toml:1: expected the end of the line, found \"2\"");
    expect_error(with("[convert\n"), 2, "stipple.toml:1: expected ]");
    expect_error(with("[picture]\nrange = [1,\n2\n"), 2, "the array has no ]");
    expect_error(with("[picture]\nrange = [1 2]\n"), 2, "stipple.toml:2: expected ,");
    expect_error(with("[picture.more]\n"), 2, "stipple.toml:1: unknown table [picture.more]");
    expect_error(with("[picture.]\n"), 2, "stipple.toml:1: expected a name and ]");
    expect_error(with("picture.size = 3\n"), 2, "stipple.toml:1: picture.: keys with dots");
    expect_error(with("[picture]\ntitle = \"a\\qb\"\n"), 2, "stipple.toml:2: the string has an unknown escape \\q");
    expect_error(with("[picture]\ntitle = \"\\ud800\"\n"), 2, "no code point");
    expect_error(with("date = 1979-05-27\n"), 2, "stipple.toml:1: ");
    expect_error(with(std::string("\0\0\0", 3)), 2, "stipple.toml:1: ");
}

TEST_F(CliConfig, FilesThatCannotBeRead) {
    expect_error(stipple({"info", "--config", folder / "no.toml"}), 2, "no.toml: cannot open: No such file");
    expect_error(stipple({"info", "--config", folder.path()}), 2, "is a folder");
    expect_error(stipple({"info", "--config", "/dev/zero"}), 2, "is a device");
    expect_error(with(std::string(2 << 20, '#')), 2, "too large");
    EXPECT_EQ(json_of(stipple({"info", "--json", "--config", folder / "no.toml"}))["error"]["code"], "bad_config");
    expect_success(stipple({"info", "--config", file("empty.toml", "")}));
}

TEST_F(CliConfig, Precedence) {
    const std::string config = file("stipple.toml", "seed = 11\nthreads = 1\ncolor = \"never\"\n");
    const auto resolved = [&](std::vector<std::string> more,
                              std::vector<std::pair<std::string, std::string>> environment, bool use_file = true) {
        std::vector<std::string> arguments = {"info", "--print-config"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        if (use_file) arguments.insert(arguments.end(), {"--config", config});
        const LaunchResult result = stipple(arguments, {.arguments = {}, .environment = std::move(environment)});
        expect_success(result);
        return result.out;
    };
    EXPECT_TRUE(contains(resolved({}, {}, false), "\nseed = 0\n"));
    EXPECT_TRUE(contains(resolved({}, {}), "\nseed = 11\n"));
    EXPECT_TRUE(contains(resolved({}, {{"STIPPLE_SEED", "22"}}), "\nseed = 22\n"));
    EXPECT_TRUE(contains(resolved({"--seed", "33"}, {{"STIPPLE_SEED", "22"}}), "\nseed = 33\n"));
    EXPECT_TRUE(contains(resolved({"--seed", "33"}, {}), "\nseed = 33\n"));
    EXPECT_TRUE(contains(resolved({}, {{"STIPPLE_DRY_RUN", "true"}}), "\ndry-run = true\n"));
    EXPECT_TRUE(contains(resolved({}, {{"STIPPLE_SEED", ""}}), "\nseed = 11\n"));
    expect_error(stipple({"info"}, {.arguments = {}, .environment = {{"STIPPLE_SEED", "x"}}}), 2, "STIPPLE_SEED: seed");
}

TEST_F(CliConfig, PrecedenceInWhatHappens) {
    const std::string input = cloud("a.ply", 3);
    const std::string config = file("stipple.toml", "json = true\n[convert]\nformat = \"pcd\"\noutput = \"-\"\n");
    const auto first_word = [&](const std::vector<std::string>& more, const std::string& environment) {
        std::vector<std::string> arguments = {"convert", input, "--config", config};
        arguments.insert(arguments.end(), more.begin(), more.end());
        Launch launch{.arguments = {}, .environment = {{"STIPPLE_JSON", "false"}}};
        if (!environment.empty()) launch.environment.emplace_back("STIPPLE_FORMAT", environment);
        const LaunchResult result = stipple(arguments, launch);
        expect_success(result);
        return result.out.substr(0, 3);
    };
    EXPECT_EQ(first_word({}, ""), "# .");
    EXPECT_EQ(first_word({}, "off"), "OFF");
    EXPECT_EQ(first_word({"--format", "ply"}, "off"), "ply");
    // Another command's table is checked, and has no effect here.
    EXPECT_EQ(json_of(stipple({"info", input, "--config", config}))["ok"], true);
}

TEST_F(CliConfig, PrintedConfigReadsBackTheSame) {
    const std::vector<std::vector<std::string>> calls = {
        {"info"},
        {"convert", "--format", "ply", "-v", "--ascii", "-o", "a b.ply"},
        {"picture", "-o",   "x.png",      "--captions", "one \"two\"", "#3, [x]",      "back\\slash",
         "--title", "2024", "--range",    "-1.5",       "2e3",         "--inset",      "0.5",
         "0.5",     "0.2",  "--color-by", "#ff0000",    "--dark",      "--point-size", "2.5"},
        {"picture", "--title", "line\nend\tUmläut", "--unit", "m", "--seed", "18446744073709551615"}};
    for (std::vector<std::string> call : calls) {
        call.push_back("--print-config");
        const LaunchResult first = stipple(call);
        expect_success(first);
        const std::string config = file("stipple.toml", first.out);
        const LaunchResult second = stipple({call[0], "--print-config", "--config", config});
        expect_success(second);
        EXPECT_EQ(second.out, first.out);
    }
}

TEST_F(CliConfig, AFileMayHoldEverythingButTheInputs) {
    const std::string input = cloud("a.ply", 3);
    const std::string config =
        file("run.toml",
             "\xef\xbb\xbf# a run\r\nquiet = true  # hush\r\n\r\n[picture]\r\noutput = 'out.png'\r\n"
             "size = \"80x40\"\r\nrange = [\r\n  0,  # low\r\n  1_000,\r\n]\r\ncolor-by = [\"z\"]\r\n");
    const LaunchResult result =
        stipple({"picture", input, "--config", config}, {.arguments = {}, .folder = folder.path()});
    expect_success(result);
    EXPECT_EQ(result.out.rfind("wrote out.png: ", 0), 0u) << result.out;
}

}  // namespace
}  // namespace stipple::test
