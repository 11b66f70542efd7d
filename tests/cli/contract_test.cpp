// What scripts rely on: results on standard output, everything else on standard error, JSON, pipes.

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliContract : public CliTest {};

TEST_F(CliContract, InfoDescribesAFile) {
    const LaunchResult result = stipple({"info", cloud("a.ply", 1234)});
    expect_success(result);
    const std::vector<std::string> lines = lines_of(result.out);
    ASSERT_GE(lines.size(), 6u);
    EXPECT_EQ(lines[0], folder / "a.ply");
    EXPECT_TRUE(contains(result.out, "points      1,234\n")) << result.out;
    EXPECT_TRUE(contains(result.out, "format      ply\n")) << result.out;
    EXPECT_TRUE(contains(result.out, "non-finite  0\n")) << result.out;
}

TEST_F(CliContract, InfoNamesNumbersAsTheyWereWritten) {
    const LaunchResult result = stipple({"info", file("a.xyz", "84.7 500000.25 -0.1\n0.3 500001.5 0.0632\n")});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "  0.3 to 84.7  (84.4 wide)\n")) << result.out;
    EXPECT_TRUE(contains(result.out, "  500000.25 to 500001.5  (1.25 wide)\n")) << result.out;
    EXPECT_TRUE(contains(result.out, "  -0.1 to 0.0632  (0.1632 wide)\n")) << result.out;
}

TEST_F(CliContract, InfoDescribesTheProgram) {
    const LaunchResult result = stipple({"info"});
    expect_success(result);
    EXPECT_EQ(result.out.rfind("stipple ", 0), 0u);
    for (const char* part : {"compiler", "cpu", "ply", "hdf5", "ops"}) EXPECT_TRUE(contains(result.out, part)) << part;
    const Json json = json_of(stipple({"info", "--json"}));
    EXPECT_EQ(json["inputs"], Json::array());
    EXPECT_EQ(json["devices"][0]["device"], "cpu");
    EXPECT_EQ(json["formats"].size(), io::formats().size());
    EXPECT_TRUE(json["ops"].is_array());
    EXPECT_TRUE(json["build"]["version"].is_string());
}

TEST_F(CliContract, ResultsOnStdoutWarningsOnStderr) {
    const std::string input = file("a.xyz", "0 0 0\nnan 0 0\n1 1 1\n");
    const LaunchResult result = stipple({"convert", input, "-o", folder / "b.ply", "--drop-nonfinite"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.out, "wrote " + (folder / "b.ply") + ": 2 points\n");
    EXPECT_EQ(result.err, "stipple: warning: " + input + ": 1 of 3 points not finite, dropped\n");
    const LaunchResult quiet = stipple({"convert", input, "-o", folder / "c.ply", "--drop-nonfinite", "-q"});
    EXPECT_EQ(quiet.exit_code, 0);
    EXPECT_EQ(quiet.err, "");
    const Json json = json_of(stipple({"info", folder / "b.ply", "--json"}));
    EXPECT_EQ(json["files"][0]["points"], 2);
}

TEST_F(CliContract, JsonHasEveryField) {
    const std::string input = cloud("a.ply", 12);
    const std::vector<std::vector<std::string>> calls = {
        {"info", input}, {"convert", input, "-o", folder / "b.xyz"}, {"picture", input, "-o", folder / "b.png"}};
    for (std::vector<std::string> call : calls) {
        call.push_back("--json");
        SCOPED_TRACE(call[0]);
        const LaunchResult result = stipple(call);
        expect_success(result);
        const Json json = json_of(result);
        EXPECT_EQ(json["schema_version"], 1);
        EXPECT_EQ(json["ok"], true);
        EXPECT_EQ(json["command"], call[0]);
        EXPECT_EQ(json["inputs"], Json::array({input}));
        EXPECT_TRUE(json["timing"]["seconds"].is_number());
        EXPECT_TRUE(json["device"] == "cpu" || contains(json["device"], "cuda:")) << json["device"];
        EXPECT_EQ(json["warnings"], Json::array());
        EXPECT_FALSE(json.contains("error"));
        if (call[0] != "info") {
            ASSERT_TRUE(json["outputs"].is_array()) << json;
            EXPECT_EQ(json["outputs"][0]["path"], call[3]);
            EXPECT_EQ(json["outputs"][0]["written"], true);
        }
    }
    expect_entries({"a.ply", "b.xyz", "b.png"});
}

TEST_F(CliContract, JsonOfAFailure) {
    const std::string input = file("chair.off", "OF490\n1 2 3\n");
    const LaunchResult result = stipple({"info", input, "--json"});
    EXPECT_EQ(result.exit_code, 3);
    const Json json = json_of(result);
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_EQ(json["ok"], false);
    EXPECT_EQ(json["command"], "info");
    EXPECT_EQ(json["error"]["code"], "bad_file");
    EXPECT_EQ(json["error"]["path"], input);
    EXPECT_EQ(json["error"]["line"], 1);
    EXPECT_TRUE(contains(json["error"]["message"], "OFF"));
    EXPECT_EQ(result.err.rfind("stipple: " + input + ":1: ", 0), 0u) << result.err;

    std::string bytes = read_file(cloud("a.las"));
    const Json binary = json_of(stipple({"info", file("cut.las", bytes.substr(0, 300)), "--json"}));
    EXPECT_EQ(binary["error"]["code"], "bad_file");
    EXPECT_TRUE(binary["error"]["offset"].is_number()) << binary;

    const LaunchResult usage = stipple({"info", "--frobnicate", "--json"});
    EXPECT_EQ(usage.exit_code, 2);
    EXPECT_EQ(json_of(usage)["error"]["code"], "bad_argument");
}

TEST_F(CliContract, Tables) {
    const std::string input = cloud("a,b.ply", 7);
    const LaunchResult md = stipple({"info", input, "--table", "md"});
    expect_success(md);
    const std::vector<std::string> rows = lines_of(md.out);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].rfind("| file", 0), 0u);
    EXPECT_EQ(rows[1].find_first_not_of("|-:"), std::string::npos) << rows[1];
    const auto bars = [](const std::string& row) { return std::count(row.begin(), row.end(), '|'); };
    EXPECT_EQ(bars(rows[0]), bars(rows[2]));
    const LaunchResult csv = stipple({"info", input, "--table", "csv"});
    expect_success(csv);
    ASSERT_EQ(lines_of(csv.out).size(), 2u);
    EXPECT_EQ(lines_of(csv.out)[1].rfind("\"" + input + "\",ply,7,", 0), 0u) << csv.out;
    const LaunchResult json = stipple({"info", input, "--table", "json"});
    expect_success(json);
    const Json table = Json::parse(json.out);
    ASSERT_EQ(table.size(), 1u);
    EXPECT_EQ(table[0]["points"], 7);
    for (const char* style : {"md", "csv", "json"}) expect_success(stipple({"info", "--table", style}));
    EXPECT_EQ(lines_of(stipple({"convert", input, "-o", folder / "c.ply", "--table", "csv"}).out).size(), 2u);
    expect_error(stipple({"info", input, "--table", "xml"}), 2, "xml");
}

TEST_F(CliContract, StandardInput) {
    const std::string ply = read_file(cloud("a.ply", 20));
    const LaunchResult result = stipple({"info", "-", "--json"}, {.arguments = {}, .input = ply});
    expect_success(result);
    EXPECT_EQ(json_of(result)["files"][0]["points"], 20);
    const std::string text = "1 2 3\n4 5 6\n";
    const LaunchResult named = stipple({"info", "-", "--from", "xyz", "--json"}, {.arguments = {}, .input = text});
    expect_success(named);
    EXPECT_EQ(json_of(named)["files"][0]["points"], 2);
    for (const auto& [given, format] :
         {std::pair(text.c_str(), "xyz"), std::pair("# points\n1 2 3 0.5\n", "xyz"), std::pair("1,2,3\n", "csv"),
          std::pair("X,Y,Z,label\n1,2,3,4\n", "csv"),
          std::pair("1.23456789012345678 2.23456789012345678 3.23456789012345678 9\n", "xyz")}) {
        const LaunchResult told = stipple({"info", "-", "--json"}, {.arguments = {}, .input = given});
        expect_success(told);
        EXPECT_EQ(json_of(told)["files"][0]["format"], format) << given;
    }
    for (const char* other : {"v 1 2 3\n", "solid a\n", "1 2\n", "once upon a time\n"}) {
        const LaunchResult unnamed = stipple({"info", "-"}, {.arguments = {}, .input = other});
        expect_error(unnamed, 3, "format of standard input");
        EXPECT_TRUE(contains(unnamed.err, "--from")) << unnamed.err;
    }
    expect_error(stipple({"info", "-"}), 3, "empty");
    expect_error(stipple({"convert", "-", "-", "-o", folder.path(), "--format", "ply"}), 2, "standard input");
    const LaunchResult picture = stipple({"picture", "-", "-o", "-", "--size", "64"}, {.arguments = {}, .input = ply});
    expect_success(picture);
    EXPECT_EQ(picture.out.substr(0, 8), "\x89PNG\r\n\x1a\n");
}

TEST_F(CliContract, StandardOutput) {
    const std::string input = cloud("a.ply", 20);
    expect_error(stipple({"convert", input, "-o", "-"}), 2, "--format");
    const LaunchResult copy = stipple({"convert", input, "-o", "-", "--format", "ply"});
    expect_success(copy);
    EXPECT_EQ(copy.out, read_file(input));
    for (const io::FormatInfo& info : io::formats()) {
        if (info.name == "stl" || info.name == "xyzn" || info.name == "xyzrgb")
            continue;  // need faces, normals, colours
        const LaunchResult result = stipple({"convert", input, "-o", "-", "--format", std::string(info.name), "-q"});
        if (info.write) {
            expect_success(result);
            EXPECT_GT(result.out.size(), 100u) << info.name;
        } else {
            expect_error(result, 2, "standard output");
        }
    }
    expect_error(stipple({"convert", input, "-o", "-", "--format", "ply", "-q", "-v", "--threads", "-3"}), 2,
                 "threads");
    // Two results cannot share one stream; a script that parses JSON must not meet the bytes of a cloud.
    const LaunchResult both = stipple({"convert", input, "-o", "-", "--format", "xyz", "--json"});
    EXPECT_EQ(both.exit_code, 2);
    EXPECT_EQ(json_of(both)["ok"], false);
    EXPECT_EQ(json_of(stipple({"picture", input, "-o", "-", "--json"}))["ok"], false);
}

TEST_F(CliContract, Pipes) {
    const std::string input = cloud("a.ply", 5000);
    const Launch here{.arguments = {}, .folder = folder.path()};
    const LaunchResult count = shell("$S convert a.ply -o - --format xyz | wc -l", here);
    expect_success(count);
    EXPECT_EQ(std::stoi(count.out), 5000);
    const LaunchResult head = shell("$S info a.ply | head -1", here);
    expect_success(head);
    EXPECT_EQ(head.out, "a.ply\n");
    const LaunchResult jq = shell("$S info a.ply --json | jq -e .files[0].points", here);
    expect_success(jq);
    EXPECT_EQ(jq.out, "5000\n");
    const LaunchResult failed = shell("$S info missing.ply --json 2>/dev/null | jq -er .error.code", here);
    expect_success(failed);
    EXPECT_EQ(failed.out, "bad_file\n");
    const LaunchResult chain =
        shell("cat a.ply | $S convert - -o - --format pcd | $S info - --json | jq .files[0].points", here);
    expect_success(chain);
    EXPECT_EQ(chain.out, "5000\n");
    const LaunchResult brace = shell("$S convert a.ply -o - --format ply | cmp - a.ply", here);
    expect_success(brace);
}

TEST_F(CliContract, Version) {
    for (const char* flag : {"--version"}) {
        const LaunchResult result = stipple({flag});
        expect_success(result);
        EXPECT_EQ(result.out.rfind("stipple ", 0), 0u);
        EXPECT_EQ(lines_of(result.out).size(), 1u);
    }
}

TEST_F(CliContract, HelpFitsAScreenAndShowsAnExample) {
    for (const std::string command :
         {"", "info", "convert", "picture", "bench", "evaluate", "sample", "crop", "transform", "merge", "split",
          "filter", "planes", "clusters", "ground", "distance", "stats", "mesh simplify", "reconstruct"}) {
        std::vector<std::string> arguments = {"--help"};
        std::istringstream words(command);
        for (std::string word; words >> word;) arguments.insert(arguments.end() - 1, word);
        const LaunchResult result = stipple(arguments);
        expect_success(result);
        const std::vector<std::string> lines = lines_of(result.out);
        EXPECT_LE(lines.size(), command.empty() ? 60u : 48u) << result.out;  // a line for each command
        for (const std::string& line : lines) EXPECT_LE(line.size(), 100u) << line;
        EXPECT_TRUE(contains(result.out, "Example:\n  stipple " + command)) << result.out;
        EXPECT_FALSE(contains(result.out, "\033")) << result.out;
    }
    EXPECT_EQ(stipple({}).out, stipple({"--help"}).out);
    EXPECT_EQ(stipple({"info", "-h"}).out, stipple({"info", "--help"}).out);
}

TEST_F(CliContract, HelpNamesEveryFormat) {
    const std::string help = stipple({"convert", "--help"}).out;
    for (const io::FormatInfo& info : io::formats()) EXPECT_TRUE(contains(help, std::string(info.name))) << info.name;
}

}  // namespace
}  // namespace stipple::test
