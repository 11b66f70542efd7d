// Outputs that cannot or may not be written: rows 5 and 6 of the fault table. Nothing appears, nothing old is touched.

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliOutputs : public CliTest {
protected:
    /// The commands that write, with an output of that path.
    std::vector<std::vector<std::string>> writers(const std::string& input, const std::string& stem) const {
        return {{"convert", input, "-o", stem + ".xyz"},
                {"convert", input, "-o", stem + ".npz"},
#ifdef STIPPLE_WITH_HDF5
                {"convert", input, "-o", stem + ".h5"},
#endif
                {"picture", input, "-o", stem + ".png", "--size", "64"}};
    }
};

TEST_F(CliOutputs, ExistingFilesAreKept) {
    const std::string input = cloud("a.ply");
    for (std::vector<std::string> call : writers(input, folder / "old")) {
        SCOPED_TRACE(call[3]);
        write_file(call[3], "precious");
        const LaunchResult refused = stipple(call);
        expect_error(refused, 4, call[3] + ": exists already");
        EXPECT_TRUE(contains(refused.err, "--overwrite"));
        EXPECT_EQ(read_file(call[3]), "precious");
        call.push_back("--overwrite");
        const LaunchResult allowed = stipple(call);
        EXPECT_EQ(allowed.exit_code, 0) << report(allowed);
        EXPECT_NE(read_file(call[3]), "precious");
    }
}

TEST_F(CliOutputs, AreCheckedBeforeTheInputIsRead) {
    // The input would be an error too (exit 3): that it is not told proves the order.
    const std::string input = folder / "missing.ply";
    write_file(folder / "old.xyz", "precious");
    expect_error(stipple({"convert", input, "-o", folder / "old.xyz"}), 4, "exists already");
    expect_error(stipple({"convert", input, "-o", folder / "no/new.xyz"}), 4, "No such file");
    expect_error(stipple({"picture", input, "-o", folder / "no/new.png"}), 4, "No such file");
    std::filesystem::create_directory(folder / "folder.png");
    expect_error(stipple({"picture", input, "-o", folder / "folder.png"}), 4, "is a folder");
    expect_error(stipple({"convert", input, "-o", folder / "old.xyz/new.xyz"}), 4, "not a folder");
    expect_error(stipple({"convert", input, "-o", "/dev/full", "--format", "xyz", "--overwrite"}), 4,
                 ::getuid() == 0 ? "not a regular file" : "not writable");
    expect_error(stipple({"picture", input, "-o", folder / "new.jpg"}), 2, "PNG");
    expect_entries({"old.xyz", "folder.png"});
}

TEST_F(CliOutputs, AReadOnlyFolder) {
    const std::string input = cloud("a.ply");
    ::chmod(folder.path().c_str(), 0755);
    std::filesystem::create_directory(folder / "locked");
    ::chmod((folder / "locked").c_str(), 0555);
    Launch launch;
    launch.before = forget_root_rights;
    for (const std::vector<std::string>& call : writers(input, folder / "locked/new"))
        expect_error(stipple(call, launch), 4, "not writable");
    EXPECT_TRUE(std::filesystem::is_empty(folder / "locked"));
}

TEST_F(CliOutputs, TheInputItself) {
    const std::string input = cloud("a.ply", 1000);
    const std::string before = read_file(input);
    expect_error(stipple({"convert", input, "-o", input}), 4, "exists already");
    EXPECT_EQ(read_file(input), before);
    expect_success(stipple({"convert", input, "-o", input, "--overwrite"}));
    EXPECT_EQ(read_file(input), before);
    expect_success(stipple({"convert", input, "-o", input, "--overwrite", "--ascii"}));
    EXPECT_EQ(json_of(stipple({"info", input, "--json"}))["files"][0]["points"], 1000);
    expect_entries({"a.ply"});
}

TEST_F(CliOutputs, BadInputLeavesTheOldOutput) {
    const std::string bad =
        file("bad.ply", "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nend_header\n1\n");
    write_file(folder / "old.xyz", "precious");
    EXPECT_EQ(stipple({"convert", bad, "-o", folder / "old.xyz", "--overwrite"}).exit_code, 3);
    EXPECT_EQ(read_file(folder / "old.xyz"), "precious");
    expect_entries({"bad.ply", "old.xyz"});
}

TEST_F(CliOutputs, ASymbolicLinkIsReplacedNotFollowed) {
    const std::string input = cloud("a.ply");
    write_file(folder / "target", "precious");
    std::filesystem::create_symlink(folder / "target", folder / "link.xyz");
    expect_error(stipple({"convert", input, "-o", folder / "link.xyz"}), 4, "exists already");
    expect_success(stipple({"convert", input, "-o", folder / "link.xyz", "--overwrite"}));
    EXPECT_EQ(read_file(folder / "target"), "precious");
}

TEST_F(CliOutputs, AFullDisk) {
    const std::string input = cloud("a.ply", 300'000);
    std::filesystem::create_directory(folder / "small");
    const SmallDisk disk(folder / "small", 1 << 20);
    Launch launch;
    if (!disk.ok())  // no right to mount: files end at the same size instead
        launch.before = [] {
            const rlimit limit{1u << 20, 1u << 20};
            ::setrlimit(RLIMIT_FSIZE, &limit);
        };
    for (std::vector<std::string> call : writers(input, folder / "small/new")) {
        SCOPED_TRACE(call[3]);
        if (call[0] == "picture") call[5] = "1024";  // noise: a PNG of more than the disk
        write_file(call[3], "precious");
        call.push_back("--overwrite");
        const LaunchResult result = stipple(call, launch);
        expect_error(result, 4, call[3] + ": ");
        EXPECT_EQ(read_file(call[3]), "precious");
        std::filesystem::remove(call[3]);
        EXPECT_TRUE(std::filesystem::is_empty(folder / "small"));
    }
}

TEST_F(CliOutputs, ALimitOnFileSizes) {
    // SIGXFSZ would end the program and leave its temporary file.
    const std::string input = cloud("a.ply", 100'000);
    Launch launch;
    launch.before = [] {
        const rlimit limit{100'000, 100'000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    };
    for (std::vector<std::string> call : writers(input, folder / "new")) {
        if (call[0] == "picture") call[5] = "1024";
        expect_error(stipple(call, launch), 4, call[3] + ": cannot write: File too large");
        expect_entries({"a.ply"});
    }
}

TEST_F(CliOutputs, AFullStandardOutput) {
    const std::string input = cloud("a.ply", 1000);
    const Launch here{.arguments = {}, .folder = folder.path()};
    for (const char* command :
         {"$S info a.ply", "$S info a.ply --json", "$S --help", "$S convert a.ply -o - --format xyz",
          "$S picture a.ply -o - --size 64", "$S convert a.ply --print-config"})
        expect_error(shell(std::string(command) + " > /dev/full", here), 4, "standard output: No space left");
    expect_error(shell("$S info a.ply >&-", here), 4, "standard output");
    // Streams that are closed are not taken over by the output file.
    expect_success(shell("$S convert a.ply -o b.ply >&- 2>&- ; cmp a.ply b.ply", here));
}

}  // namespace
}  // namespace stipple::test
