#include <filesystem>

#include "tests/cli/cli.h"

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
    EXPECT_EQ(json["classes"][0], Json({{"class", "cup"}, {"items", {{"train", 3}, {"test", 1}}}}));
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
