#include <filesystem>

#include "tests/cli/cli.h"
#include "tests/cli/part_files.h"

namespace stipple::test {
namespace {

class CliData : public CliTest {
protected:
    /// Two classes of three and two clouds for training, one and one for testing.
    std::string set() const {
        for (const auto& [path, seed] : std::vector<std::pair<std::string, uint64_t>>{{"train/cup/a", 1},
                                                                                      {"train/cup/b", 2},
                                                                                      {"train/cup/c", 3},
                                                                                      {"train/vase/d", 4},
                                                                                      {"train/vase/e", 5},
                                                                                      {"test/cup/f", 6},
                                                                                      {"test/vase/g", 7}}) {
            std::filesystem::create_directories(std::filesystem::path(folder / ("set/" + path)).parent_path());
            save_as("set/" + path + ".ply", random_cloud(static_cast<int64_t>(20 + seed), seed));
        }
        return folder / "set";
    }
};

TEST_F(CliData, InfoTellsWhatThereIs) {
    const LaunchResult result = stipple({"data", "info", set(), "--json"});
    expect_success(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["layout"], "class-folders");
    ASSERT_EQ(json["splits"].size(), 2u);
    EXPECT_EQ(json["splits"][0]["name"], "train");
    EXPECT_EQ(json["splits"][0]["items"], 5);
    EXPECT_EQ(json["splits"][0]["fewest_points"], 21);
    EXPECT_EQ(json["splits"][0]["most_points"], 25);
    EXPECT_EQ(
        json["classes"][0],
        Json({{"class", "cup"}, {"items", {{"train", 3}, {"test", 1}}}, {"first_part", nullptr}, {"parts", nullptr}}));
    EXPECT_LT(json["bounds"]["min"][0], json["bounds"]["max"][0]);
    const LaunchResult text = stipple({"data", "info", folder / "set"});
    expect_success(text);
    for (const char* part : {"layout class-folders", "21 to 25", "vase", "bounds"})
        EXPECT_TRUE(contains(text.out, part)) << text.out;
    EXPECT_EQ(lines_of(stipple({"data", "info", folder / "set", "--table", "csv"}).out).size(), 3u);
    expect_error(stipple({"data", "info", folder / "none"}), 3, "no such file or folder");
    expect_error(stipple({"data", "info", folder.path()}), 3, "no data set of a known layout");
    expect_error(stipple({"data", "info"}), 2, "DATA is missing");
}

TEST_F(CliData, ConvertsBetweenLayouts) {
    const std::string out = folder / "out";
    const LaunchResult result = stipple({"data", "convert", set(), "--to", "class-folders", "-o", out, "--json"});
    expect_success(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["items"], 7);
    EXPECT_EQ(json["outputs"][0]["format"], "class-folders");
    EXPECT_EQ(json_of(stipple({"data", "info", out, "--json"}))["classes"],
              json_of(stipple({"data", "info", folder / "set", "--json"}))["classes"]);
    expect_error(stipple({"data", "convert", folder / "set", "--to", "class-folders", "-o", out}), 4, "exists");
    expect_success(stipple(
        {"data", "convert", folder / "set", "--to", "class-folders", "-o", out, "--overwrite", "--split", "test"}));
    expect_error(stipple({"data", "convert", out, "--to", "class-folders", "-o", folder / "set", "--overwrite"}), 4,
                 "was not written by a conversion");
    expect_error(stipple({"data", "convert", folder / "set", "--to", "part-folders", "-o", folder / "p"}), 2,
                 "needs parts");
    expect_error(stipple({"data", "convert", folder / "set", "--to", "packed", "-o", folder / "p"}), 2, "--to");
    expect_success(
        stipple({"data", "convert", folder / "set", "--to", "class-folders", "-o", folder / "p", "--dry-run"}));
    expect_entries({"out", "set"});
}

#ifdef STIPPLE_WITH_HDF5
TEST_F(CliData, PartsThereAndBack) {
    const std::string parts = save_parts(folder / "parts");
    expect_success(stipple({"data", "convert", parts, "--to", "part-folders", "-o", folder / "files"}));
    expect_success(stipple({"data", "convert", folder / "files", "--to", "part-hdf5", "-o", folder / "again"}));
    const Json before = json_of(stipple({"data", "info", parts, "--json"})),
               after = json_of(stipple({"data", "info", folder / "again", "--json"}));
    for (const char* key : {"layout", "splits", "classes", "part_names", "bounds"}) EXPECT_EQ(after[key], before[key]);
    expect_success(stipple({"data", "pack", folder / "files", "-o", folder / "p.stpk", "--bits", "16"}));
    EXPECT_EQ(json_of(stipple({"data", "info", folder / "p.stpk", "--json"}))["classes"], before["classes"]);
    const Json sheet = json_of(stipple(
        {"data", "preview", parts, "--class", "lamp", "--split", "test", "-o", folder / "lamps.png", "--json"}));
    EXPECT_EQ(sheet["items"], Json({1, 3}));
    EXPECT_EQ(read_file(folder / "lamps.png").substr(1, 3), "PNG");
}
#endif

TEST_F(CliData, PreviewShowsSomeOfEachClass) {
    const Json json = json_of(
        stipple({"data", "preview", set(), "-o", folder / "sheet.png", "--each", "2", "--size", "64", "--json"}));
    EXPECT_EQ(json["split"], "train");
    EXPECT_EQ(json["items"], Json({0, 1, 3, 4}));
    EXPECT_EQ(read_file(folder / "sheet.png").substr(1, 3), "PNG");
    expect_error(stipple({"data", "preview", folder / "set", "-o", folder / "a.png", "--class", "sofa"}), 2,
                 "--class sofa: no such class");
    expect_error(stipple({"data", "preview", folder / "set", "-o", folder / "a.jpg"}), 2, "name it .png");
    expect_error(stipple({"data", "preview", folder / "set", "-o", folder / "sheet.png"}), 4, "exists");
    expect_entries({"set", "sheet.png"});
}

TEST_F(CliData, PackedItIsADataSet) {
    const std::string packed = folder / "set.stpk";
    const LaunchResult result = stipple({"data", "pack", set(), "-o", packed, "--points", "22", "--json"});
    expect_success(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["items"], 7);
    EXPECT_EQ(json["points"], 7 * 22 - 1);
    EXPECT_EQ(json["outputs"][0]["bytes"], std::filesystem::file_size(packed));
    EXPECT_GT(json["largest_error"], 0);
    const Json info = json_of(stipple({"data", "info", packed, "--json"}));
    EXPECT_EQ(info["layout"], "packed");
    EXPECT_EQ(info["bits"], 10);
    EXPECT_EQ(info["classes"], json_of(stipple({"data", "info", folder / "set", "--json"}))["classes"]);
    expect_success(stipple({"engine", "new", "pointnet-classifier", "--set", "classes=2", "--set",
                            "feature_transform=false", "-o", folder / "m.safetensors"}));
    const LaunchResult scores =
        stipple({"evaluate", folder / "m.safetensors", "--data", packed, "--device", "cpu", "--json", "-q"});
    expect_success(scores);
    EXPECT_EQ(json_of(scores)["clouds"], 2);

    expect_error(stipple({"data", "pack", folder / "set", "-o", packed}), 4, "exists");
    expect_success(stipple({"data", "pack", folder / "set", "-o", packed, "--overwrite", "--split", "test"}));
    EXPECT_EQ(json_of(stipple({"data", "info", packed, "--json"}))["splits"].size(), 1u);
    std::string bytes = read_file(packed);
    bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 1);
    file("flipped.stpk", bytes);
    expect_error(stipple({"data", "info", folder / "flipped.stpk"}), 3, "is damaged: its checksum differs");
    expect_error(stipple({"data", "pack", folder / "set", "-o", folder / "a.bin"}), 2, "are named .stpk");
    expect_error(stipple({"data", "pack", folder / "set", "-o", folder / "a.stpk", "--bits", "7"}), 2,
                 "--bits must be 8 to 16");
    expect_success(stipple({"data", "pack", folder / "set", "-o", folder / "a.stpk", "--dry-run"}));
    EXPECT_FALSE(std::filesystem::exists(folder / "a.stpk"));
}

}  // namespace
}  // namespace stipple::test
