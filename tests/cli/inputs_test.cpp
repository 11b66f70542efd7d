// Inputs that are no plain readable file (rows 4 and 14 of the fault table), and clouds at the edge of sense (row 20).

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliInputs : public CliTest {
protected:
    std::string fifo(const std::string& name) const {
        if (::mkfifo((folder / name).c_str(), 0666) != 0) std::abort();
        return folder / name;
    }
};

/// A header that promises n points of three floats, nothing behind it.
std::string ply_header(int64_t n) {
    return "ply\nformat binary_little_endian 1.0\nelement vertex " + std::to_string(n) +
           "\nproperty float x\nproperty float y\nproperty float z\nend_header\n";
}

TEST_F(CliInputs, ThatAreNoFiles) {
    for (const std::string command : {"info", "convert", "picture"}) {
        const auto run = [&](const std::string& input) {
            std::vector<std::string> arguments = {command, input};
            if (command == "convert") arguments.insert(arguments.end(), {"-o", folder / "out.ply"});
            if (command == "picture") arguments.insert(arguments.end(), {"-o", folder / "out.png"});
            return stipple(arguments);
        };
        expect_error(run(folder.path()), 3, "is a folder");
        expect_error(run(folder / "missing.ply"), 3, "missing.ply: cannot open: No such file");
        expect_error(run("/dev/zero"), 3, "is a device");
        expect_error(run("/dev/full"), 3, "is a device");
        expect_error(run(""), 3, "cannot open");
        expect_entries({});
    }
}

TEST_F(CliInputs, DevicesAsStandardInput) {
    // Without an end they would fill the memory; /dev/null is nothing at all.
    for (const char* device : {"/dev/zero", "/dev/full"})
        expect_error(shell("$S info - --from kitti < " + std::string(device)), 3, "is a device");
    expect_error(shell("$S info - < /dev/null"), 3, "empty");
    expect_error(shell("$S info - <&-"), 3, "-: ");
}

TEST_F(CliInputs, AFifoIsReadLikeAFile) {
    const std::string ply = read_file(cloud("a.ply", 50'000));  // more than a pipe and a buffer hold
    for (const std::string command : {"info", "convert"}) {
        const std::string path = fifo(command + ".ply");
        std::thread writer([&] { write_file(path, ply); });
        std::vector<std::string> arguments = {command, path, "--json"};
        if (command == "convert") arguments.insert(arguments.end(), {"-o", folder / "out.xyz"});
        const LaunchResult result = stipple(arguments);
        writer.join();
        expect_success(result);
        EXPECT_EQ(json_of(result)[command == "info" ? "files" : "outputs"][0]["points"], 50'000);
    }
}

TEST_F(CliInputs, AnUnreadableFile) {
    const std::string input = cloud("a.ply");
    ::chmod(input.c_str(), 0);
    Launch launch;
    launch.before = forget_root_rights;
    expect_error(stipple({"info", input}, launch), 3, "cannot open: Permission denied");
}

TEST_F(CliInputs, AFileThatShrinksWhileItIsRead) {
    // An element to skip that takes a minute to read, made of a hole. The size was taken when the file was opened; a
    // mapped file would end in SIGBUS.
    std::string header = "ply\nformat binary_little_endian 1.0\nelement junk 2000000000\n";
    for (int i = 0; i < 16; ++i) header += "property double p" + std::to_string(i) + "\n";
    header += "element vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n";
    const std::string input = file("a.ply", header);
    ASSERT_EQ(::truncate(input.c_str(), static_cast<off_t>(header.size()) + 256'000'000'012), 0);
    Child child(stipple_launch({"convert", input, "-o", folder / "out.ply", "--progress", "never"}));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ASSERT_EQ(::truncate(input.c_str(), 1000), 0);
    const LaunchResult result = child.wait();
    expect_error(result, 3, "a.ply: byte ");
    expect_entries({"a.ply"});
}

TEST_F(CliInputs, AStreamThatEndsTooSoon) {
    const std::string ply = ply_header(1000) + std::string(600, '\0');
    const LaunchResult result = stipple({"info", "-"}, {.arguments = {}, .input = ply});
    expect_error(result, 3, "-: byte " + std::to_string(ply.size()));
}

TEST_F(CliInputs, AStreamThatPromisesTooMuch) {
    // 2 billion points in a header, and no size to hold it against: memory may grow only with the bytes that come.
    const std::string ply = ply_header(2'000'000'000) + std::string(3'000'000, '\0');
    Launch launch{.arguments = {}, .input = ply};
#if !STIPPLE_TEST_SANITIZED
    launch.before = [] {
        const rlimit limit{1u << 30, 1u << 30};
        ::setrlimit(RLIMIT_AS, &limit);
    };
#endif
    expect_error(stipple({"info", "-"}, launch), 3, "ends in the middle");
}

#if !STIPPLE_TEST_SANITIZED
TEST_F(CliInputs, MoreThanTheAddressSpaceHolds) {
    const std::string header = ply_header(20'000'000);
    const std::string input = file("a.ply", header);
    ASSERT_EQ(::truncate(input.c_str(), static_cast<off_t>(header.size()) + 240'000'000), 0);  // takes no room
    Launch launch;
    launch.before = [] {
        const rlimit limit{200u << 20, 200u << 20};
        ::setrlimit(RLIMIT_AS, &limit);
    };
    for (const std::string output : {"out.ply", "out.xyz", "out.png"}) {
        const std::string command = output == "out.png" ? "picture" : "convert";
        const LaunchResult result = stipple({command, input, "-o", folder / output}, launch);
        expect_error(result, 5, "out of memory: 240000000 bytes wanted");
        expect_entries({"a.ply"});
    }
    const LaunchResult json = stipple({"info", input, "--json"}, launch);
    EXPECT_EQ(json.exit_code, 5);
    EXPECT_EQ(json_of(json)["error"]["code"], "out_of_memory");
}

TEST_F(CliInputs, TextThatOutgrowsTheAddressSpace) {
    std::string text;
    while (text.size() < 80'000'000) text += "1 2 3\n4 5 6\n7 8 9\n";
    const std::string input = file("a.xyz", text);
    Launch launch;
    launch.before = [] {
        const rlimit limit{160u << 20, 160u << 20};
        ::setrlimit(RLIMIT_AS, &limit);
    };
    const LaunchResult result =
        stipple({"convert", input, "-o", folder / "out.ply", "--threads", "1", "--progress", "never"}, launch);
    expect_error(result, 5, "a.xyz: out of memory");
    expect_entries({"a.xyz"});
}
#endif

struct Degenerate {
    const char* name;
    const char* text;
    int64_t points, non_finite;
};

TEST_F(CliInputs, DegenerateClouds) {
    std::string equal, collinear, duplicates;
    for (int i = 0; i < 500; ++i) {
        equal += "1.5 -2.5 3.5\n";
        collinear += std::to_string(i) + " " + std::to_string(2 * i) + " 0\n";
        duplicates += std::to_string(i % 5) + " " + std::to_string(i % 3) + " " + std::to_string(i % 2) + "\n";
    }
    const Degenerate cases[] = {{"one", "1 2 3\n", 1, 0},
                                {"two", "0 0 0\n1 1 1\n", 2, 0},
                                {"equal", equal.c_str(), 500, 0},
                                {"collinear", collinear.c_str(), 500, 0},
                                {"duplicates", duplicates.c_str(), 500, 0},
                                {"nan", "nan nan nan\nnan 1 2\n", 2, 2},
                                {"infinite", "inf 0 0\n0 -inf 0\n1 1 1\n", 3, 2},
                                {"huge", "1e30 -1e30 1e30\n-1e30 1e30 0\n0 0 0\n", 3, 0},
                                {"tiny", "1e-40 0 0\n0 1e-40 0\n", 2, 0},
                                {"far", "500000.25 5400000.5 100\n500001 5400001 101\n", 2, 0}};
    for (const Degenerate& one : cases) {
        SCOPED_TRACE(one.name);
        const std::string input = file(std::string(one.name) + ".xyz", one.text);
        const LaunchResult info = stipple({"info", input, "--json"});
        EXPECT_EQ(info.exit_code, 0) << report(info);
        const Json about = json_of(info)["files"][0];
        EXPECT_EQ(about["points"], one.points);
        EXPECT_EQ(about["non_finite"], one.non_finite);
        EXPECT_EQ(!about["bounds"].is_null(), one.non_finite < one.points);
        EXPECT_EQ(stipple({"info", input}).exit_code, 0);
        const std::string copy = folder / (std::string(one.name) + ".ply");
        const LaunchResult convert = stipple({"convert", input, "-o", copy});
        EXPECT_EQ(convert.exit_code, 0) << report(convert);
        EXPECT_EQ(json_of(stipple({"info", copy, "--json"}))["files"][0]["non_finite"], one.non_finite);
        const std::string picture = folder / (std::string(one.name) + ".png");
        const LaunchResult drawn = stipple({"picture", input, "-o", picture, "--size", "64", "--color-by", "z"});
        EXPECT_EQ(drawn.exit_code, 0) << report(drawn);
        EXPECT_EQ(read_file(picture).substr(0, 4), "\x89PNG");
        EXPECT_EQ(contains(drawn.err, "not drawn"), one.non_finite > 0) << report(drawn);
    }
    expect_error(stipple({"info", file("none.xyz", "")}), 3, "empty");
    const LaunchResult empty = stipple({"info", file("zero.ply", ply_header(0))});
    expect_success(empty);
    EXPECT_TRUE(contains(empty.out, "points      0")) << empty.out;
}

}  // namespace
}  // namespace stipple::test
