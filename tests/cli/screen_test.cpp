// What fits a screen: tables, help, and the defaults that the help shows.

#include "stipple/cli/common/help_text.h"
#include "stipple/cli/common/table.h"
#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

size_t characters(const std::string& line) {
    return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

cli::Table wide_table() {
    return {{"file", "points", "what is wrong with it", "spread"},
            {{"scans/of/the/north/side/of_the_house_0001.ply", 1234567, "nothing at all, it is a good file", 0.25},
             {"b.ply", 12, "größer als die Tür, žluťoučký kůň", 1.5}}};
}

TEST(CliTable, IsCompleteWithoutALimit) {
    const std::string text = cli::format_screen_table(wide_table(), 0, false);
    for (const char* part : {"scans/of/the/north/side/of_the_house_0001.ply", "nothing at all, it is a good file",
                             "größer als die Tür, žluťoučký kůň", "1234567"})
        EXPECT_TRUE(contains(text, part)) << text;
    EXPECT_EQ(text, cli::format_table(wide_table(), ""));  // tests have no terminal
    EXPECT_FALSE(contains(text, "\u2026"));
}

TEST(CliTable, TextsAreShortenedThenColumnsFolded) {
    for (int columns = 30; columns <= 120; ++columns) {
        const std::string text = cli::format_screen_table(wide_table(), columns, false);
        for (const std::string& line : lines_of(text))
            EXPECT_LE(characters(line), static_cast<size_t>(columns)) << text;
        for (const char* number : {"1234567", "12", "0.25", "1.5"}) EXPECT_TRUE(contains(text, number)) << text;
    }
    const std::string narrow = cli::format_screen_table(wide_table(), 70, false);
    EXPECT_EQ(lines_of(narrow).size(), 3u) << narrow;
    EXPECT_TRUE(contains(narrow, "_0001.ply ")) << narrow;  // the end of a path
    EXPECT_TRUE(contains(narrow, "\u2026")) << narrow;
    const std::string folded = cli::format_screen_table(wide_table(), 40, false);
    EXPECT_EQ(lines_of(folded).size(), 7u) << folded;  // two blocks and a blank line
    EXPECT_EQ(lines_of(folded)[0].substr(0, 4), lines_of(folded)[4].substr(0, 4)) << folded;
    EXPECT_EQ(cli::format_screen_table({{}, {}}, 40, false), "\n");
    EXPECT_EQ(cli::format_screen_table({{"a"}, {{std::string(50, 'x')}}}, 20, false),
              "a\n" + std::string(19, 'x') + "\u2026\n");
}

TEST(CliTable, HeadsAreBoldWhereAsked) {
    const std::string text = cli::format_screen_table({{"a", "b"}, {{"x", 1}}}, 0, true);
    EXPECT_EQ(text, "\033[1ma  b\033[0m\nx  1\n");
}

TEST(CliHelpText, FoldsBelowTheWords) {
    const std::string option = "  --name TEXT                 Words that tell what it is for and go on";
    EXPECT_EQ(cli::fold_help(option + "\n", 50),
              "  --name TEXT                 Words that tell what\n"
              "                         it is for and go on\n");
    EXPECT_EQ(cli::fold_help("  stipple picture scan.ply dense.ply --captions input output\n", 50),
              "  stipple picture scan.ply dense.ply --captions \\\n      input output\n");
    EXPECT_EQ(cli::fold_help("short\n\nlines\n", 40), "short\n\nlines\n");
    const std::string word(90, 'x');
    EXPECT_EQ(cli::fold_help("  " + word + "\n", 40), "  " + word + "\n");
}

class CliScreen : public CliTest {
protected:
    static ProcessResult on_terminal(int columns, const std::vector<std::string>& arguments) {
        Launch launch = stipple_launch(arguments);
        std::vector<char*> argv;
        for (std::string& argument : launch.arguments) argv.push_back(argument.data());
        argv.push_back(nullptr);
        return run_on_terminal(columns, [&] {
            ::unsetenv("NO_COLOR");
            ::setenv("TERM", "xterm", 1);
            ::execv(argv[0], argv.data());
            return 127;
        });
    }

    /// Every command and group, as words.
    static void collect(const std::vector<std::string>& command, std::vector<std::vector<std::string>>& all) {
        all.push_back(command);
        std::vector<std::string> call = command;
        call.push_back("--help");
        bool is_list = false;
        for (const std::string& line : lines_of(stipple(call).out)) {
            if (is_list && line.empty()) return;
            if (is_list && line.size() > 2 && line[2] != ' ') {
                std::vector<std::string> below = command;
                below.push_back(line.substr(2, line.find(' ', 2) - 2));
                collect(below, all);
            }
            is_list |= line == "Subcommands:";
        }
    }
};

// --print-config knows the defaults; the help shows each of them in the same way.
TEST_F(CliScreen, EveryDefaultIsInTheHelp) {
    std::vector<std::vector<std::string>> commands;
    collect({}, commands);
    ASSERT_GT(commands.size(), 40u);
    int defaults = 0;
    for (const std::vector<std::string>& command : commands) {
        std::vector<std::string> call = command;
        call.push_back("--help");
        const std::string help = stipple(call).out;
        call.back() = "--print-config";
        const LaunchResult config = stipple(call);
        if (config.exit_code != 0) continue;  // a group
        bool own = false;
        for (const std::string& line : lines_of(config.out)) {
            if (!line.empty() && line[0] == '[') own = true;  // the options that all share are in the program's help
            const size_t equals = line.find(" = ");
            if (!own || equals == std::string::npos) continue;
            const std::string name = line.substr(0, equals);
            std::string value;
            for (const char c : line.substr(equals + 3))
                if (c != '"' && c != '[' && c != ']') value += c;
            if (value == "false" || value == "true") continue;  // flags
            ++defaults;
            std::string with_blanks, with_commas;  // of a list
            for (size_t i = 0; i < value.size(); ++i) {
                with_commas += value[i] == ' ' && i && value[i - 1] == ',' ? "" : std::string(1, value[i]);
                with_blanks += value[i] == ',' ? "" : std::string(1, value[i]);
            }
            const size_t at = help.find("--" + name + " ");
            ASSERT_NE(at, std::string::npos) << name << "\n" << help;
            const std::string shown = help.substr(at, help.find('\n', at) - at);
            const bool is_shown = contains(shown, "=" + with_blanks) || contains(shown, "=" + with_commas) ||
                                  contains(shown, "[" + with_blanks + "]") || contains(shown, "[" + with_commas + "]");
            EXPECT_TRUE(is_shown) << shown << "\n" << line;  // in brackets since CLI11 2.4
        }
        for (const std::string& line : lines_of(help)) EXPECT_LE(line.size(), 100u) << line;
    }
    EXPECT_GT(defaults, 100);
}

TEST_F(CliScreen, HelpFitsANarrowTerminal) {
    std::vector<std::vector<std::string>> commands;
    collect({}, commands);
    for (std::vector<std::string> call : commands) {
        call.push_back("--help");
        const ProcessResult result = on_terminal(80, call);
        EXPECT_EQ(result.exit_code, 0) << result.output;
        for (std::string line : lines_of(result.output)) {
            if (!line.empty() && line.back() == '\r') line.pop_back();
            EXPECT_LE(characters(line), 80u) << line;
        }
    }
}

TEST_F(CliScreen, TablesFitTheTerminalAndAreWholeInPipes) {
    const std::string input = cloud("a.ply");
    const LaunchResult piped = stipple({"stats", input});
    expect_success(piped);
    EXPECT_FALSE(contains(piped.out, "\033")) << piped.out;
    const ProcessResult shown = on_terminal(60, {"stats", input});
    EXPECT_EQ(shown.exit_code, 0);
    bool is_table = false;
    for (std::string line : lines_of(shown.output)) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        is_table |= line.rfind("\033[1mvalue", 0) == 0;
        if (!is_table) continue;
        for (const char* code : {"\033[1m", "\033[0m"})
            if (contains(line, code)) line.erase(line.find(code), std::string(code).size());
        EXPECT_LE(characters(line), 60u) << line;
    }
    EXPECT_TRUE(is_table) << shown.output;
    EXPECT_TRUE(contains(stipple({"stats", input, "--color", "always"}).out, "\033[1mvalue"));
}

TEST_F(CliScreen, ErrorsAreRedWhereWanted) {
    const std::vector<std::string> missing = {"info", folder / "missing.ply"}, wrong = {"info", "--bogus"};
    for (const std::vector<std::string>& call : {missing, wrong}) {
        EXPECT_TRUE(contains(on_terminal(80, call).output, "\033[31mstipple:\033[0m"));
        EXPECT_FALSE(contains(stipple(call).err, "\033"));
        std::vector<std::string> never = call, always = call;
        never.insert(never.end(), {"--color", "never"});
        always.push_back("--color=always");
        EXPECT_FALSE(contains(on_terminal(80, never).output, "\033"));
        EXPECT_TRUE(contains(stipple(always).err, "\033[31mstipple:"));
    }
}

}  // namespace
}  // namespace stipple::test
