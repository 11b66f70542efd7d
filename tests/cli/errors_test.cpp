// The table of core/error.h against the program: each code that a command line can provoke ends with its status.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <set>
#include <signal.h>

#include "stipple/core/error.h"
#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliErrors : public CliTest {
protected:
    /// The code that the JSON names has a rule, and the program ended with the rule's status.
    void expect_code(const LaunchResult& result, const std::string& name) {
        const Json json = json_of(result);
        EXPECT_EQ(json["error"]["code"], name) << report(result);
        EXPECT_FALSE(json["error"]["message"].get<std::string>().empty());
        for (const ErrorRule& rule : error_table()) {
            if (rule.name != name) continue;
            EXPECT_EQ(result.exit_code, rule.exit_code) << report(result);
            seen.insert(name);
        }
    }
    LaunchResult interrupted(int signal) const {
        Child child(stipple_launch({"info", folder / "endless.xyz", "--json"}));
        EXPECT_TRUE(child.wait_for_call(SYS_openat));  // waits for a writer
        child.send(signal);
        return child.wait();
    }

    std::set<std::string> seen;
};

TEST_F(CliErrors, EveryCodeHasItsStatus) {
    const std::string input = cloud("a.ply");
    expect_code(stipple({"info", "--frobnicate", "--json"}), "bad_argument");
    expect_code(stipple({"info", "--json", "--config", file("a.toml", "x = 1\n")}), "bad_config");
    expect_code(stipple({"info", folder / "missing.ply", "--json"}), "bad_file");
    expect_code(stipple({"convert", input, "-o", input, "--json"}), "cannot_write");
    expect_code(stipple({"info", input, "--device", "cuda:1000", "--json"}), "no_device");
    ASSERT_EQ(::mkfifo((folder / "endless.xyz").c_str(), 0666), 0);
    expect_code(interrupted(SIGINT), "interrupted");
    expect_code(interrupted(SIGTERM), "terminated");
    std::set<std::string> expected;
    for (const ErrorRule& rule : error_table()) expected.insert(std::string(rule.name));
    // Not from here: our own mistakes, a broken GPU, and what no command of today computes or checks.
    for (const char* name : {"internal", "cuda", "not_finite", "check_failed", "lost_rank"}) expected.erase(name);
#if STIPPLE_TEST_SANITIZED
    expected.erase("out_of_memory");
#else
    const std::string header =
        "ply\nformat binary_little_endian 1.0\nelement vertex 50000000\n"
        "property float x\nproperty float y\nproperty float z\nend_header\n";
    const std::string large = file("large.ply", header);
    ASSERT_EQ(::truncate(large.c_str(), static_cast<off_t>(header.size()) + 600'000'000), 0);
    Launch small;
    small.before = [] {
        const rlimit limit{300u << 20, 300u << 20};
        ::setrlimit(RLIMIT_AS, &limit);
    };
    expect_code(stipple({"info", large, "--json"}, small), "out_of_memory");
#endif
    EXPECT_EQ(seen, expected);
}

TEST_F(CliErrors, StatusesAreThePublishedOnes) {
    // Scripts depend on these numbers: a change is a break.
    const std::pair<const char*, int> published[] = {
        {"internal", 1},  {"bad_argument", 2}, {"bad_config", 2},   {"bad_file", 3},     {"cannot_write", 4},
        {"no_device", 5}, {"cuda", 5},         {"not_finite", 6},   {"check_failed", 7}, {"out_of_memory", 5},
        {"lost_rank", 8}, {"terminated", 143}, {"interrupted", 130}};
    EXPECT_EQ(std::size(published), error_table().size());
    for (const auto& [name, exit_code] : published)
        for (const ErrorRule& rule : error_table())
            if (rule.name == name) {
                EXPECT_EQ(rule.exit_code, exit_code) << name;
            }
}

TEST_F(CliErrors, FilesOfOtherKindsNameAConverter) {
    const std::pair<const char*, const char*> kinds[] = {
        {"a.e57", "pdal"}, {"a.pth", "pth_to_safetensors"}, {"a.pkl", "numpy.savez"}};
    for (const auto& [name, converter] : kinds) {
        const LaunchResult result = stipple({"info", file(name, "whatever is in it")});
        expect_error(result, 3, name);
        EXPECT_TRUE(contains(result.err, "\n  hint: ") && contains(result.err, converter)) << report(result);
    }
    const LaunchResult pickle = stipple({"info", file("a.ply", std::string("\x80\x04\x95", 3) + std::string(90, 'x'))});
    expect_error(pickle, 3, "pickle files are not read");
    expect_error(stipple({"info", file("noname", "1 2 3\n")}), 3, "no extension");
    expect_error(stipple({"info", file("a.doc", "1 2 3\n")}), 3, "unknown extension .doc");
}

}  // namespace
}  // namespace stipple::test
