#include <filesystem>

#include "tests/cli/cli.h"
#include "tests/cli/part_files.h"

namespace stipple::test {
namespace {

class CliEvaluate : public CliTest {
protected:
    /// Random weights of three classes.
    std::string model() const {
        const std::string path = folder / "m.safetensors";
        if (!std::filesystem::exists(path))
            expect_success(stipple({"engine", "new", "pointnet-classifier", "--set", "classes=3", "--set",
                                    "feature_transform=false", "-o", path}));
        return path;
    }
    /// Four clouds of each class, of 30 points.
    std::string clouds(const std::vector<std::string>& classes, const std::string& name = "set") const {
        for (size_t i = 0; i < 4 * classes.size(); ++i) {
            std::filesystem::create_directories(folder / (name + "/" + classes[i / 4]));
            save_as(name + "/" + classes[i / 4] + "/" + std::to_string(i) + ".ply", random_cloud(30, i));
        }
        return folder / name;
    }
    LaunchResult evaluate(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), {"evaluate", "--device", "cpu"});
        return stipple(arguments);
    }
};

TEST_F(CliEvaluate, ScoresPointsConfusionAndPicture) {
    const std::string set = clouds({"bowl", "cup", "vase"});
    const LaunchResult result = evaluate({model(), "--data", set, "--points", "30,12,0", "--draws", "4", "--confusion",
                                          folder / "c.csv", "-o", folder / "a.png", "--json"});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["clouds"], 12);
    EXPECT_EQ(json["split"], "all");
    ASSERT_EQ(json["scores"].size(), 3u);
    EXPECT_EQ(json["scores"][0]["draws"], 1);
    EXPECT_EQ(json["scores"][1]["draws"], 4);
    EXPECT_EQ(json["scores"][1]["most_points"], 12);
    EXPECT_EQ(json["scores"][2]["accuracy"], json["scores"][0]["accuracy"]);
    EXPECT_EQ(json["scores"][0]["classes"][2]["class"], "vase");
    EXPECT_EQ(json["scores"][0]["classes"][2]["clouds"], 4);
    double sum = 0;  // classes are equally frequent: both means agree
    for (const Json& row : json["scores"][1]["classes"]) sum += row["accuracy"].get<double>() / 3;
    EXPECT_NEAR(sum, json["scores"][1]["accuracy"].get<double>(), 1e-9);
    EXPECT_TRUE(contains(json["warnings"].dump(), "weights are random"));
    const std::vector<std::string> lines = lines_of(read_file(folder / "c.csv"));
    ASSERT_EQ(lines.size(), 10u);
    EXPECT_EQ(lines[0], "points,truth,bowl,cup,vase");
    EXPECT_EQ(read_file(folder / "a.png").substr(1, 3), "PNG");

    const LaunchResult text = evaluate({model(), "--data", set, "--points", "12", "-q"});
    expect_success(text);
    for (const char* part : {"split all: 12 clouds", "bowl", "mean class accuracy (%)"})
        EXPECT_TRUE(contains(text.out, part)) << text.out;
    EXPECT_EQ(evaluate({model(), "--data", set, "--points", "12", "-q", "--batch", "5", "--threads", "1"}).out,
              text.out);
    EXPECT_EQ(lines_of(evaluate({model(), "--data", set, "-q", "--table", "csv"}).out).size(), 2u);
    EXPECT_TRUE(contains(evaluate({model(), "--data", set, "--points", "1024", "--json"}).out,
                         "a cloud has 30 points where 1024 were asked for"));
}

TEST_F(CliEvaluate, NamesAreMatched) {
    const std::string set = clouds({"bowl", "cup", "vase"});
    const auto accuracies = [&](const std::string& names) {
        std::map<std::string, double> found;
        const Json json = json_of(
            evaluate({model(), "--data", set, "--points", "0", "--names", file("names.txt", names), "--json", "-q"}));
        for (const Json& row : json["scores"][0]["classes"]) found[row["class"]] = row["accuracy"];
        return found;
    };
    // Random weights take all clouds for one class or nearly so: the name that stands there is right.
    const auto one = accuracies("bowl\ncup\nvase\n"), other = accuracies("cup\nvase\nbowl\n");
    EXPECT_EQ(one.size(), 3u);
    EXPECT_NE(one, other);
    const std::string few = clouds({"bowl", "cup"}, "few");
    expect_error(evaluate({model(), "--data", few}), 2, "has 2 classes, the network 3");
    expect_success(evaluate({model(), "--data", few, "--names", file("n.txt", "vase\ncup\nbowl\n"), "-q"}));
    expect_error(evaluate({model(), "--data", set, "--names", file("n.txt", "vase\ncup\nbath\n")}), 2,
                 "does not know the class bowl");
}

#ifdef STIPPLE_WITH_HDF5
TEST_F(CliEvaluate, PartsByCategory) {
    const std::string set = save_parts(folder / "parts"), told = folder / "told.safetensors",
                      plain = folder / "plain.safetensors";
    expect_success(stipple({"engine", "new", "pointnet-part-segmenter", "--set", "classes=5", "--set", "categories=2",
                            "--set", "feature_transform=false", "-o", told}));
    expect_success(stipple({"engine", "new", "pointnet-segmenter", "--set", "classes=3", "--set",
                            "feature_transform=false", "-o", plain}));
    const LaunchResult result =
        evaluate({told, "--data", set, "--points", "0,16", "--draws", "3", "-o", folder / "iou.png", "--json"});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["split"], "test");
    EXPECT_EQ(json["clouds"], 5);
    ASSERT_EQ(json["scores"].size(), 2u);
    const Json& all = json["scores"][0];
    EXPECT_EQ(all["most_points"], 40);
    EXPECT_EQ(json["scores"][1]["draws"], 3);
    ASSERT_EQ(all["categories"].size(), 2u);
    const double cup = all["categories"][0]["iou"], lamp = all["categories"][1]["iou"];
    EXPECT_EQ(all["categories"][0]["clouds"], 3);
    EXPECT_EQ(all["categories"][1]["parts"], 3);
    EXPECT_NEAR(all["instance_iou"], (3 * cup + 2 * lamp) / 5, 1e-9);
    EXPECT_NEAR(all["class_iou"], (cup + lamp) / 2, 1e-9);
    EXPECT_EQ(read_file(folder / "iou.png").substr(1, 3), "PNG");

    const LaunchResult text = evaluate({told, "--data", set, "-q"});
    expect_success(text);
    for (const char* part : {"instance mIoU (%)", "class mIoU (%)", "Lamp", "point accuracy (%)"})
        EXPECT_TRUE(contains(text.out, part)) << text.out;
    EXPECT_EQ(evaluate({told, "--data", set, "-q", "--batch", "1"}).out, text.out);
    expect_error(evaluate({plain, "--data", set}), 2, "5 parts in 2 categories, the network 3 parts");
    EXPECT_EQ(json_of(evaluate({plain, "--data", set, "--category", "lamp", "--json"}))["clouds"], 2);
    expect_error(evaluate({plain, "--data", set, "--category", "cup"}), 2, "Cup has 2 parts, the network 3");
    expect_error(evaluate({plain, "--data", set, "--category", "sofa"}), 2, "sofa: no such category");
    expect_error(evaluate({told, "--data", set, "--confusion", folder / "c.csv"}), 2, "--confusion");
    expect_error(evaluate({told, "--data", clouds({"bowl"})}), 2, "has no parts to compare with");
    expect_error(evaluate({model(), "--data", set, "--category", "cup"}), 2, "--category is for");
}
#endif

TEST_F(CliEvaluate, RefusesWhatMakesNoSense) {
    const std::string set = clouds({"bowl", "cup", "vase"});
    expect_error(evaluate({model()}), 2, "--data is missing");
    expect_error(evaluate({"--data", set}), 2, "MODEL is missing");
    expect_error(evaluate({model(), "--data", folder / "none"}), 3, "no such file or folder");
    expect_error(evaluate({model(), "--data", set, "--layout", "heap"}), 2, "heap: no such layout");
    expect_error(evaluate({model(), "--data", set, "--layout", "part-hdf5"}), 3, "no data set of layout part-hdf5");
    expect_error(evaluate({model(), "--data", set, "--split", "test"}), 2, "no split test; there are: all");
    expect_error(evaluate({model(), "--data", set, "--points", "100", "--of", "64"}), 2, "100 points of the first 64");
    expect_error(evaluate({model(), "--data", set, "--sample", "best"}), 2, "--sample");
    expect_error(evaluate({model(), "--data", set, "--batch", "0"}), 2, "--batch must be 1 to");
    expect_error(evaluate({model(), "--data", set, "-o", folder / "a.jpg"}), 2, "name it .png");
    std::filesystem::create_directories(folder / "pairs/input");
    std::filesystem::create_directories(folder / "pairs/gt");
    for (const char* side : {"pairs/input/a.xyz", "pairs/gt/a.xyz"}) cloud(side, 9);
    expect_error(evaluate({model(), "--data", folder / "pairs", "--of", "0"}), 2, "has no classes to compare with");
    expect_entries({"m.safetensors", "pairs", "set"});
}

}  // namespace
}  // namespace stipple::test
