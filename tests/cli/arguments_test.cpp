// The command line: what is accepted, what is refused, and how a refusal reads.

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliArguments : public CliTest {};

/// Exit status 2, one line, one hint.
void expect_usage(const LaunchResult& result, const std::string& text, const std::string& hint) {
    expect_error(result, 2, text);
    const std::vector<std::string> lines = lines_of(result.err);
    ASSERT_EQ(lines.size(), 2u) << report(result);
    EXPECT_TRUE(contains(lines[1], hint)) << report(result);
}

TEST_F(CliArguments, WrongUseIsNamedWithAHint) {
    expect_usage(stipple({"frobnicate"}), "unknown command frobnicate", "stipple --help");
    expect_usage(stipple({"covnert"}), "unknown command covnert", "did you mean convert?");
    expect_usage(stipple({"info", "--jsn"}), "unknown option --jsn", "did you mean --json?");
    expect_usage(stipple({"picture", "a.ply", "--colour-by=z"}), "unknown option --colour-by", "--color-by?");
    expect_usage(stipple({"info", "--bogusness"}), "unknown option --bogusness", "stipple info --help");
    expect_usage(stipple({"convert"}), "INPUT is missing", "stipple convert --help");
    expect_usage(stipple({"convert", "a.ply"}), "--output is missing", "stipple convert --help");
    expect_usage(stipple({"picture", "a.ply"}), "--output is missing", "stipple picture --help");
    expect_usage(stipple({"convert", "a.ply", "-o"}), "--output", "stipple convert --help");
    expect_usage(stipple({"info", "--seed", "x"}), "--seed", "stipple info --help");
    expect_usage(stipple({"info", "--seed", "-1"}), "--seed", "stipple info --help");
    expect_usage(stipple({"info", "--threads", "1.5"}), "--threads", "stipple info --help");
    expect_usage(stipple({"info", "--progress", "maybe"}), "maybe", "stipple info --help");
    expect_usage(stipple({"info", "a.ply", "--from", "doc"}), "unknown format \"doc\"", "ply");
    expect_usage(stipple({"convert", cloud("a.ply"), "-o", folder / "b.doc"}), "unknown extension .doc", "ply");
    expect_usage(stipple({"--print-config"}), "--print-config needs a command", "stipple convert --print-config");
    expect_usage(stipple({"picture", "a.ply", "--range", "1", "-o", "b.png"}), "--range", "stipple picture --help");
    expect_error(stipple({"convert", "a.ply", "-o", ""}), 2, "output path is empty");
    expect_error(stipple({"picture", "a.ply", "-o", ""}), 2, ".png");
    expect_error(stipple({"picture", "a.ply", "-o", "b.png", "--point-size", "-3"}), 2, "--point-size must be from 0");
    expect_error(stipple({"picture", "a.ply", "-o", "b.png", "--columns", "-3"}), 2, "--columns must be from 0");
    expect_error(stipple({"picture", folder / "a.ply", "-o", folder / "b.png", "--size", "0"}), 2, "0 x 0");
    expect_error(stipple({"picture", "a.ply", "-o", "b.png", "--captions", "x", "y"}), 2, "2 captions for 1 input");
    expect_error(stipple({"convert", folder / "a.ply", "-o", folder / "b.stl"}), 2, "b.stl: STL holds faces only");
    expect_entries({"a.ply"});
}

TEST_F(CliArguments, RunOptionsAreAcceptedEverywhere) {
    const std::string input = cloud("a.ply");
    int made = 0;
    for (const std::vector<std::string>& call : {std::vector<std::string>{"info", input},
                                                 {"convert", input, "-o", folder / "b.xyz"},
                                                 {"picture", input, "-o", folder / "b.png", "--size", "64"}}) {
        std::vector<std::string> arguments = {"--seed", "7", "--threads", "2", "--overwrite", "-v"};
        arguments.insert(arguments.begin(), call.begin(), call.end());
        arguments.insert(arguments.end(), {"--device", "cpu", "--progress", "never", "--color", "never"});
        EXPECT_EQ(stipple(arguments).exit_code, 0) << call[0];
        made += call[0] != "info";
    }
    EXPECT_EQ(folder.entries().size(), static_cast<size_t>(1 + made));
}

TEST_F(CliArguments, OptionsMayStandBeforeTheCommand) {
    const std::string input = cloud("a.ply");
    const LaunchResult result = stipple({"--json", "--seed", "3", "info", input});
    expect_success(result);
    EXPECT_EQ(json_of(result)["files"][0]["points"], 10);
}

TEST_F(CliArguments, Devices) {
    const std::string input = cloud("a.ply");
    for (const char* device : {"cpu", "auto"}) expect_success(stipple({"info", input, "--device", device}));
    EXPECT_EQ(json_of(stipple({"info", input, "--device", "cpu", "--json"}))["device"], "cpu");
    for (const char* device : {"foo", "", "cuda:", "cuda:x", "cuda:-1", "CPU"})
        expect_error(stipple({"info", input, "--device", device}), 2, "device must be cpu, cuda, cuda:N or auto");
    // No machine has a thousand GPUs, and a build without CUDA has none.
    const LaunchResult none = stipple({"info", input, "--device", "cuda:1000"});
    expect_error(none, 5, "");
    EXPECT_EQ(json_of(stipple({"info", input, "--device", "cuda:1000", "--json"}))["error"]["code"], "no_device");
#ifndef STIPPLE_WITH_CUDA
    expect_error(stipple({"info", input, "--device", "cuda"}), 5, "no CUDA");
#endif
    // `auto` without a GPU in sight falls back.
    const Launch hidden{.arguments = {}, .environment = {{"CUDA_VISIBLE_DEVICES", ""}}};
    EXPECT_EQ(json_of(stipple({"info", input, "--device", "auto", "--json"}, hidden))["device"], "cpu");
}

TEST_F(CliArguments, SeveralInputsIntoAFolder) {
    const std::string a = cloud("a.ply", 5), b = cloud("b.xyz", 6);
    std::filesystem::create_directory(folder / "out");
    const LaunchResult result = stipple({"convert", a, b, "-o", folder / "out", "--format", "pcd", "--json"});
    expect_success(result);
    const Json json = json_of(result);
    ASSERT_EQ(json["outputs"].size(), 2u);
    EXPECT_EQ(json["outputs"][1]["points"], 6);
    EXPECT_TRUE(std::filesystem::exists(folder / "out/a.pcd"));
    EXPECT_TRUE(std::filesystem::exists(folder / "out/b.pcd"));
    expect_error(stipple({"convert", a, b, "-o", folder / "out"}), 2, "--format");
    expect_error(stipple({"convert", a, b, "-o", folder / "one.ply"}), 2, "2 inputs need a folder");
    expect_error(stipple({"convert", a, b, "-o", "-", "--format", "xyz"}), 2, "2 inputs need a folder");
    expect_error(stipple({"convert", a, b, "-o", folder / "nowhere/", "--format", "ply"}), 4, "No such file");
    // One that exists stops all of them before the first is read.
    std::filesystem::remove(folder / "out/a.pcd");
    expect_error(stipple({"convert", a, b, "-o", folder / "out", "--format", "pcd"}), 4, "b.pcd: exists already");
    EXPECT_FALSE(std::filesystem::exists(folder / "out/a.pcd"));
}

TEST_F(CliArguments, OutputNamesThatCollide) {
    std::filesystem::create_directory(folder / "out");
    const std::string a = cloud("a.ply"), same = cloud("a.xyz");
    const LaunchResult result = stipple({"convert", a, same, "-o", folder / "out", "--format", "pcd"});
    expect_error(result, 2, "would both become " + (folder / "out/a.pcd"));
    EXPECT_TRUE(std::filesystem::is_empty(folder / "out"));
}

TEST_F(CliArguments, DryRunWritesNothing) {
    const std::string input = cloud("a.ply");
    const LaunchResult convert = stipple({"convert", input, "-o", folder / "b.xyz", "--dry-run"});
    expect_success(convert);
    EXPECT_EQ(convert.out, "would write " + (folder / "b.xyz") + ": 10 points\n");
    const LaunchResult picture = stipple({"picture", input, "-o", folder / "b.png", "--dry-run", "--size", "64"});
    expect_success(picture);
    EXPECT_EQ(picture.out, "would write " + (folder / "b.png") + ": 64 x 64 pixels\n");
    const Json json = json_of(stipple({"convert", input, "-o", folder / "b.xyz", "--dry-run", "--json"}));
    EXPECT_EQ(json["outputs"][0]["written"], false);
    // It checks what a real run would check.
    expect_error(stipple({"convert", input, "-o", input, "--dry-run"}), 4, "exists already");
    expect_error(stipple({"convert", folder / "no.ply", "-o", folder / "b.xyz", "--dry-run"}), 3, "No such file");
    expect_entries({"a.ply"});
}

TEST_F(CliArguments, DropNonFinite) {
    const std::string input = file("a.xyz", "0 0 0\nnan 0 0\n0 inf 0\n1 1 1\n");
    const LaunchResult result = stipple({"convert", input, "-o", "-", "--format", "xyz", "--drop-nonfinite", "-q"});
    expect_success(result);
    EXPECT_EQ(lines_of(result.out).size(), 2u);
    EXPECT_EQ(lines_of(stipple({"convert", input, "-o", "-", "--format", "xyz"}).out).size(), 4u);
    const std::string none = file("none.xyz", "nan 0 0\n");
    expect_error(stipple({"convert", none, "-o", folder / "b.ply", "--drop-nonfinite"}), 3, "no finite points");
    const std::string mesh = save_as("mesh.ply", random_mesh(6));
    expect_error(stipple({"convert", mesh, "-o", folder / "b.ply", "--drop-nonfinite"}), 2, "faces");
    expect_entries({"a.xyz", "none.xyz", "mesh.ply"});
}

TEST_F(CliArguments, ItemOfANumpyArrayOfClouds) {
    // 2 clouds of 3 points: version 1.0, a header padded to 64 bytes in all.
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 3), }";
    header.resize(128 - 10 - 1, ' ');
    header += '\n';
    std::string bytes = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
    for (int i = 0; i < 18; ++i) {
        const auto value = static_cast<float>(i);
        bytes.append(reinterpret_cast<const char*>(&value), 4);
    }
    const std::string input = file("two.npy", bytes);
    const LaunchResult second = stipple({"convert", input, "-o", "-", "--format", "xyz", "--item", "1"});
    expect_success(second);
    EXPECT_EQ(second.out, "9 10 11\n12 13 14\n15 16 17\n");
    expect_error(stipple({"convert", input, "-o", "-", "--format", "xyz", "--item", "2"}), 3, "item");
    expect_error(stipple({"convert", input, "-o", "-", "--format", "xyz"}), 3, "--item");
    expect_error(stipple({"info", input, "--item", "-5"}), 2, "--item");
    // A file of one cloud has an item 0 and no other.
    expect_success(stipple({"info", cloud("one.ply"), "--item", "0"}));
    expect_error(stipple({"info", folder / "one.ply", "--item", "1"}), 3, "item 1 of a file that holds 1 cloud");
}

#ifdef STIPPLE_WITH_HDF5
TEST_F(CliArguments, ItemOfAnHdf5File) {
    const std::string input = save_as("set.h5", random_cloud(9));
    const Json all = json_of(stipple({"info", input, "--json"}));
    EXPECT_EQ(all["files"][0]["clouds"], 1);
    const Json one = json_of(stipple({"info", input, "--item", "0", "--json"}));
    EXPECT_EQ(one["files"][0]["points"], 9);
    expect_success(stipple({"convert", input, "--item", "0", "-o", folder / "one.ply"}));
    expect_error(stipple({"info", input, "--item", "1"}), 3, "item");
    expect_error(stipple({"info", "-"}, {.arguments = {}, .input = read_file(input)}), 3, "HDF5");
}
#endif

}  // namespace
}  // namespace stipple::test
