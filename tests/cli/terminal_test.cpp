// What people see: nothing behind a closed pipe, escape codes on terminals only, and bars that fit (rows 29 and 30).

#include <unistd.h>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliTerminal : public CliTest {
protected:
    /// The program on a terminal of that width.
    ProcessResult on_terminal(int columns, const std::vector<std::string>& arguments,
                              const std::vector<std::pair<std::string, std::string>>& environment = {}) const {
        Launch launch = stipple_launch(arguments);
        std::vector<char*> argv;
        for (std::string& argument : launch.arguments) argv.push_back(argument.data());
        argv.push_back(nullptr);
        return run_on_terminal(columns, [&] {
            ::unsetenv("NO_COLOR");
            ::setenv("TERM", "xterm", 1);
            for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
            ::execv(argv[0], argv.data());
            return 127;
        });
    }
    /// 60 MB of points, most of the file a hole: enough for the bar to be drawn.
    std::string large() const {
        const std::string header =
            "ply\nformat binary_little_endian 1.0\nelement vertex 5000000\n"
            "property float x\nproperty float y\nproperty float z\nend_header\n";
        const std::string path = file("large.ply", header);
        if (::truncate(path.c_str(), static_cast<off_t>(header.size()) + 60'000'000) != 0) std::abort();
        return path;
    }
    std::string with_warning() const { return file("warn.xyz", "0 0 0\nnan 0 0\n"); }
};

TEST_F(CliTerminal, AClosedPipeIsNoError) {
    const std::string input = cloud("a.ply", 200'000);
    const std::vector<std::vector<std::string>> calls = {{"convert", input, "-o", "-", "--format", "xyz"},
                                                         {"picture", input, "-o", "-", "--size", "512"},
                                                         {"info", input},
                                                         {"info", input, "--json"},
                                                         {"info", folder / "missing.ply", "--json"},
                                                         {"--help"}};
    for (const std::vector<std::string>& call : calls) {
        Child child(stipple_launch(call));
        child.close_output();
        const LaunchResult result = child.wait();
        EXPECT_EQ(result.signal, 0) << report(result);
        EXPECT_EQ(result.exit_code, 141) << report(result);
        if (call.back() != "--json" || call[1] == input) {
            EXPECT_EQ(result.err, "") << report(result);
        }
    }
    const LaunchResult head =
        shell("$S convert a.ply -o - --format xyz | head -1 | wc -l", {.arguments = {}, .folder = folder.path()});
    expect_success(head);
}

TEST_F(CliTerminal, NoEscapeCodesInPipes) {
    const std::string input = large();
    for (const char* progress : {"auto", "always", "never"}) {
        const LaunchResult result = stipple({"info", input, "--progress", progress});
        EXPECT_EQ(result.exit_code, 0);
        EXPECT_FALSE(contains(result.out + result.err, "\033")) << report(result);
        EXPECT_FALSE(contains(result.out + result.err, "\r")) << report(result);
        EXPECT_EQ(contains(result.err, "reading " + input), std::string(progress) == "always") << report(result);
    }
    const LaunchResult warning = stipple({"convert", with_warning(), "-o", "-", "--format", "xyz", "--drop-nonfinite"});
    EXPECT_FALSE(contains(warning.err, "\033")) << report(warning);
    // Unless asked for.
    const LaunchResult colored =
        stipple({"convert", with_warning(), "-o", "-", "--format", "xyz", "--drop-nonfinite", "--color", "always"});
    EXPECT_TRUE(contains(colored.err, "\033[33mwarning")) << report(colored);
}

TEST_F(CliTerminal, ColorOnTerminalsOnlyWhenWanted) {
    const std::string input = with_warning();
    std::vector<std::string> call = {"convert", input, "-o", folder / "b.ply", "--drop-nonfinite", "--overwrite"};
    const ProcessResult colored = on_terminal(80, call);
    EXPECT_EQ(colored.exit_code, 0) << colored.output;
    EXPECT_TRUE(contains(colored.output, "\033[33mwarning")) << colored.output;
    for (const auto& environment : {std::pair<std::string, std::string>{"NO_COLOR", "1"}, {"TERM", "dumb"}}) {
        const ProcessResult plain = on_terminal(80, call, {environment});
        EXPECT_TRUE(contains(plain.output, "warning")) << plain.output;
        EXPECT_FALSE(contains(plain.output, "\033")) << environment.first << plain.output;
    }
    call.insert(call.end(), {"--color", "never"});
    const ProcessResult never = on_terminal(80, call);
    EXPECT_FALSE(contains(never.output, "\033")) << never.output;
}

TEST_F(CliTerminal, TheBarFitsANarrowTerminal) {
    const std::string input = large();
    for (const int columns : {20, 10, 80}) {
        const ProcessResult info = on_terminal(columns, {"info", input, "--progress", "always"});
        EXPECT_EQ(info.exit_code, 0) << info.output;
        // What stands between two clearings of the line is one state of the bar.
        const std::string clear = "\r\033[K";
        size_t at = info.output.find(clear);
        ASSERT_NE(at, std::string::npos) << info.output;
        int states = 0;
        for (size_t next = 0; at != std::string::npos; at = next) {
            at += clear.size();
            next = info.output.find(clear, at);
            if (next == std::string::npos) break;
            std::string bar = info.output.substr(at, next - at);
            for (const char* code : {"\033[32m", "\033[0m"})
                while (contains(bar, code)) bar.erase(bar.find(code), std::string(code).size());
            EXPECT_LT(static_cast<int>(bar.size()), columns) << bar;
            EXPECT_FALSE(contains(bar, "\n")) << bar;
            EXPECT_FALSE(contains(bar, "\033")) << bar;
            ++states;
        }
        EXPECT_GE(states, 1) << info.output;
    }
    // A terminal that cannot clear its line gets plain lines, and NO_COLOR leaves the bar without colour.
    const ProcessResult dumb = on_terminal(80, {"info", input, "--progress", "always"}, {{"TERM", "dumb"}});
    EXPECT_FALSE(contains(dumb.output, "\033")) << dumb.output;
    EXPECT_TRUE(contains(dumb.output, "reading " + input + ": ")) << dumb.output;
    const ProcessResult plain = on_terminal(80, {"info", input, "--progress", "always"}, {{"NO_COLOR", "1"}});
    EXPECT_FALSE(contains(plain.output, "\033[32m")) << plain.output;
}

TEST_F(CliTerminal, NamesCannotWriteToTheTerminal) {
    // A file name and a property name with escape codes in them: shown, not obeyed.
    const std::string name = folder / "evil\033[2J\nname.xyz";
    write_file(name, "1 2 3\n");
    const LaunchResult info = stipple({"info", name});
    expect_success(info);
    EXPECT_FALSE(contains(info.out, "\033")) << report(info);
    EXPECT_TRUE(contains(info.out, "evil?[2J?name.xyz\n")) << report(info);
    for (const char* style : {"md", "csv"})
        EXPECT_EQ(lines_of(stipple({"info", name, "--table", style}).out).size(), std::string(style) == "md" ? 3u : 2u);
    EXPECT_EQ(json_of(stipple({"info", name, "--json"}))["inputs"][0], name);
    const LaunchResult missing = stipple({"info", name + "x"});
    expect_error(missing, 3, "evil?[2J?name.xyzx");
    EXPECT_FALSE(contains(missing.err, "\033"));
    expect_error(stipple({"info", "--bad\033[2J\nflag"}), 2, "unknown option --bad?[2J?flag");
}

}  // namespace
}  // namespace stipple::test
