// The world around the program: decimal commas, file names of every kind, clocks that jump (rows 31 to 33).

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliEnvironment : public CliTest {};

TEST_F(CliEnvironment, NumbersHavePointsInEveryLocale) {
    std::filesystem::create_directory(folder / "locales");
    // Built here: no machine is asked to have German installed.
    const LaunchResult built = shell(
        "command -p localedef -i de_DE -f UTF-8 --no-archive locales/de_DE.UTF-8 2>&1 || "
        "/usr/sbin/localedef -i de_DE -f UTF-8 locales/de_DE.UTF-8",
        {.arguments = {}, .folder = folder.path()});
    ASSERT_TRUE(std::filesystem::exists(folder / "locales/de_DE.UTF-8/LC_NUMERIC"))
        << "the package locales is missing\n"
        << report(built);
    const Launch german{.arguments = {},
                        .environment = {{"LOCPATH", folder / "locales"}, {"LC_ALL", "de_DE.UTF-8"}},
                        .folder = folder.path()};
    // The locale works: a program that asks for it prints a comma.
    const LaunchResult proof = shell("/usr/bin/printf '%.1f' 1,5", german);
    ASSERT_EQ(proof.out, "1,5") << report(proof);

    write_file(folder / "a.xyz", "1.5 -2.25 3e-1\n0.125 1000000.5 7\n");
    for (const char* format : {"xyz", "csv", "pts", "obj", "off", "ply"}) {
        const std::vector<std::string> call = {"convert", "a.xyz", "-o", "-", "--format", format, "--ascii"};
        const LaunchResult here = stipple(call, {.arguments = {}, .folder = folder.path()});
        const LaunchResult there = stipple(call, german);
        expect_success(there);
        EXPECT_EQ(there.out, here.out) << format;
        EXPECT_TRUE(contains(there.out, "0.125")) << there.out;
    }
    for (const std::vector<std::string>& call :
         {std::vector<std::string>{"info", "a.xyz"}, {"info", "a.xyz", "--table", "md"}, {"info"}})
        EXPECT_EQ(stipple(call, german).out, stipple(call, {.arguments = {}, .folder = folder.path()}).out);
    const Json json = json_of(stipple({"info", "a.xyz", "--json"}, german));
    EXPECT_EQ(json["files"][0]["bounds"]["min"][1], -2.25);
    const LaunchResult picture =
        stipple({"picture", "a.xyz", "-o", "a.png", "--size", "64", "--azimuth", "12.5", "--print-config"}, german);
    expect_success(picture);
    EXPECT_TRUE(contains(picture.out, "azimuth = 12.5\n")) << picture.out;
    expect_error(stipple({"picture", "a.xyz", "-o", "a.png", "--azimuth", "12,5"}, german), 2, "--azimuth");
}

TEST_F(CliEnvironment, FileNamesOfEveryKind) {
    const std::string names[] = {"with space",
                                 "quote\"s 'n' `ticks`",
                                 "Wörter 点群 🪑",
                                 "new\nline",
                                 "-dash",
                                 "$HOME;rm *",
                                 "back\\slash",
                                 "..hidden",
                                 "a.b.c.d",
                                 "%s%n{}",
                                 "\xff\xfe raw bytes"};
    for (const std::string& name : names) {
        SCOPED_TRACE(name);
        const std::string input = cloud(name + ".ply");
        const std::string output = folder / (name + ".out.xyz");
        const LaunchResult convert = stipple({"convert", input, "-o", output});
        expect_success(convert);
        EXPECT_EQ(lines_of(convert.out).size(), 1u);
        EXPECT_EQ(lines_of(read_file(output)).size(), 10u);
        const LaunchResult info = stipple({"info", output, "--json"});
        expect_success(info);
        EXPECT_EQ(json_of(info)["files"][0]["points"], 10);
        expect_error(stipple({"convert", input, "-o", output}), 4, "exists already");
        expect_success(stipple({"picture", input, "-o", folder / (name + ".png"), "--size", "64"}));
    }
    // Relative, and with a dash in front: after --.
    const Launch here{.arguments = {}, .folder = folder.path()};
    expect_success(stipple({"info", "./-dash.ply"}, here));
    expect_success(stipple({"info", "--", "-dash.ply"}, here));
}

TEST_F(CliEnvironment, LongNames) {
    const std::string input = cloud("a.ply");
    const std::string longest = std::string(251, 'n') + ".ply";  // 255 bytes: the most that a file name may have
    const Launch here{.arguments = {}, .folder = folder.path()};
    expect_success(stipple({"convert", "a.ply", "-o", longest}, here));
    EXPECT_EQ(read_file(folder / longest), read_file(input));
    const std::string wide = std::string(80, 'n') + "\xc3\xa4" + std::string(100, '\xc3') + ".ply";
    expect_success(stipple({"convert", "a.ply", "-o", wide}, here));
    expect_error(stipple({"convert", "a.ply", "-o", "n" + longest}, here), 4, "File name too long");
    expect_error(stipple({"info", "n" + longest}, here), 3, "File name too long");
    std::string path = "a.ply";  // more than 4096 bytes, and every part of it exists
    while (path.size() <= 4096) path = "./" + path;
    expect_error(stipple({"info", path}, here), 3, "File name too long");
    expect_error(stipple({"convert", "a.ply", "-o", path, "--overwrite"}, here), 4, "File name too long");
    expect_entries({"a.ply", longest, wide});
}

#if !STIPPLE_TEST_SANITIZED
TEST_F(CliEnvironment, TimingSurvivesAClockThatJumps) {
    const LaunchResult found =
        shell("ls /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1 2>/dev/null | head -1");
    ASSERT_FALSE(found.out.empty()) << "the package libfaketime is missing";
    const std::string library = found.out.substr(0, found.out.find('\n'));
    const std::string input = cloud("a.ply", 1000);
    // The wall clock stands ten years back, or runs a thousand times too fast; the steady clock does not.
    for (const char* fake : {"-3650d", "+0 x1000"}) {
        const Launch launch{.arguments = {},
                            .environment = {{"LD_PRELOAD", library},
                                            {"FAKETIME", fake},
                                            {"FAKETIME_DONT_FAKE_MONOTONIC", "1"},
                                            {"DONT_FAKE_MONOTONIC", "1"}},
                            .folder = folder.path()};
        const LaunchResult date = shell("date +%Y", launch);
        const LaunchResult now = shell("date +%Y");
        if (fake[0] == '-') {
            EXPECT_LT(std::stoi(date.out), std::stoi(now.out));  // the clock is false indeed
        }
        const LaunchResult result = stipple({"convert", "a.ply", "-o", "b.xyz", "--json", "--overwrite"}, launch);
        expect_success(result);
        const double seconds = json_of(result)["timing"]["seconds"];
        EXPECT_GE(seconds, 0);
        EXPECT_LT(seconds, 30);
    }
}
#endif

}  // namespace
}  // namespace stipple::test
