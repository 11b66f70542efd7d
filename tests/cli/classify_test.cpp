#include <sys/stat.h>

#include <map>

#include "stipple/io/hdf5.h"
#include "stipple/network/weights.h"
#include "stipple/tasks/confidence.h"
#include "tests/cli/cli.h"
#include "tests/support/data_sets.h"

namespace stipple::test {
namespace {

class CliClassify : public CliTest {
protected:
    std::string model() const {
        expect_success(stipple({"engine", "new", "pointnet-classifier", "--set", "classes=5", "--set",
                                "feature_transform=false", "-o", folder / "m.safetensors"}));
        return folder / "m.safetensors";
    }
    LaunchResult classify(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), {"classify", "--device", "cpu"});
        return stipple(arguments);
    }
};

TEST_F(CliClassify, FilesFoldersAndSets) {
    const std::string path = model();
    ::mkdir((folder / "scans").c_str(), 0777);
    cloud("scans/b.ply", 300);
    cloud("scans/a.xyz", 20);
    file("scans/notes.md", "not a cloud");
    io::CloudSet set;
    set.points = Array<float, 3>({3, 40, 3});
    for (int64_t i = 0; i < 360; ++i) set.points.data()[i] = static_cast<float>(i % 17) - 8;
    io::save_hdf5(folder / "set.h5", set, Overwrite::refuse);
    const std::string single = save_as("mesh.off", random_mesh(30));
    const LaunchResult result = classify(
        {"--model", path, folder / "scans", folder / "set.h5", single, "--points", "100", "--top", "2", "--json"});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    const Json json = json_of(result);
    ASSERT_EQ(json["files"].size(), 6u) << json;
    EXPECT_EQ(json["files"][0]["path"], folder / "scans/a.xyz");
    EXPECT_EQ(json["files"][0]["points"], 20);
    EXPECT_EQ(json["files"][1]["points"], 100);
    EXPECT_EQ(json["files"][2]["path"], (folder / "set.h5") + "[0]");
    EXPECT_EQ(json["files"][5]["points"], 100);  // of the mesh's surface
    for (const Json& entry : json["files"]) {
        ASSERT_EQ(entry["top"].size(), 2u);
        EXPECT_GE(entry["top"][0]["probability"], entry["top"][1]["probability"]);
        EXPECT_EQ(entry["top"][0]["class"], "class " + std::to_string(entry["top"][0]["index"].get<int>()));
    }
    EXPECT_TRUE(contains(json["warnings"].dump(), "weights are random"));
    EXPECT_EQ(json["model"], "pointnet-classifier");
}

/// Accuracy, and its mean over classes, of what --json lists.
std::pair<double, double> accuracy_of(const Json& files) {
    std::map<std::string, std::pair<int, int>> classes;  // right, all
    for (const Json& entry : files) {
        if (entry["truth"].is_null()) continue;
        auto& [right, all] = classes[entry["truth"]];
        right += entry["truth"] == entry["top"][0]["class"];
        ++all;
    }
    double right = 0, all = 0, mean = 0;
    for (const auto& [name, count] : classes) {
        right += count.first, all += count.second;
        mean += static_cast<double>(count.first) / count.second / static_cast<double>(classes.size());
    }
    return {right / all, mean};
}

TEST_F(CliClassify, AccuracyWhereClassesAreKnown) {
    const std::string path = model();
    // The network's classes are called "class 0" to "class 4", whatever the case.
    for (const char* name : {"set", "set/Class 0", "set/class 2", "set/class 4", "set/other"})
        ::mkdir((folder / name).c_str(), 0777);
    uint64_t seed = 0;
    for (const char* name : {"Class 0", "class 2", "class 4", "other"})
        for (int i = 0; i < (name[6] == '0' ? 9 : 4); ++i, ++seed)
            save_as(fmt::format("set/{}/{}.ply", name, i), random_cloud(static_cast<int64_t>(40 + 11 * seed), seed));
    const LaunchResult folders = classify({"--model", path, folder / "set", "--json"});
    const Json json = json_of(folders);
    ASSERT_EQ(json["files"].size(), 21u) << report(folders);
    EXPECT_EQ(json["files"][0]["truth"], "class 0");
    EXPECT_TRUE(json["files"][20]["truth"].is_null());  // of no class
    const auto [overall, mean] = accuracy_of(json["files"]);
    ASSERT_EQ(json["scores"].size(), 1u);
    EXPECT_DOUBLE_EQ(json["scores"][0]["accuracy"], overall);
    EXPECT_DOUBLE_EQ(json["scores"][0]["mean_class_accuracy"], mean);
    EXPECT_EQ(json["scores"][0]["classes"].size(), 3u);
    EXPECT_EQ(json["scores"][0]["classes"][0]["clouds"], 9);
    const LaunchResult text = classify({"--model", path, folder / "set"});
    EXPECT_TRUE(contains(
        text.out, fmt::format("\naccuracy {:.2f} % of 17 clouds whose class is known, mean of the classes {:.2f} %\n",
                              100 * overall, 100 * mean)))
        << text.out;
    const LaunchResult csv = classify({"--model", path, folder / "set/class 2", "--table", "csv"});
    EXPECT_TRUE(contains(csv.out, ",truth\n")) << csv.out;
    EXPECT_FALSE(contains(csv.out, "accuracy")) << csv.out;
    const LaunchResult unknown = classify({"--model", path, folder / "set/other"});
    EXPECT_FALSE(contains(unknown.out, "truth") || contains(unknown.out, "accuracy")) << unknown.out;

    // A packed set, and one that cannot be read.
    expect_success(stipple({"data", "pack", folder / "set", "-o", folder / "set.stpk", "--points", "40", "-q"}));
    const Json packed = json_of(classify({"--model", path, folder / "set.stpk", "--json"}));
    ASSERT_EQ(packed["files"].size(), 21u);
    EXPECT_DOUBLE_EQ(packed["scores"][0]["accuracy"], accuracy_of(packed["files"]).first);
    file("bad.stpk", read_file(folder / "set.stpk").substr(0, 100));
    const LaunchResult bad = classify({"--model", path, folder / "bad.stpk"});
    EXPECT_EQ(bad.exit_code, 3) << report(bad);
    EXPECT_TRUE(contains(bad.err, "bad.stpk: byte 20: the header")) << report(bad);
}

TEST_F(CliClassify, AccuracyOfLabelsInHdf5) {
    const std::string path = model();
    io::CloudSet set;
    set.points = Array<float, 3>({6, 40, 3});
    const Mesh noise = random_cloud(240);
    std::copy_n(noise.vertices.positions.data(), 720, set.points.data());
    set.labels = {0, 1, 1, 4, 9, -2};
    io::save_hdf5(folder / "set.h5", set, Overwrite::refuse);
    const Json numbers = json_of(classify({"--model", path, folder / "set.h5", "--json"}));
    EXPECT_TRUE(contains(numbers["warnings"].dump(), "set.h5: nothing names its classes")) << numbers;
    EXPECT_EQ(numbers["files"][3]["truth"], "class 4");
    EXPECT_TRUE(numbers["files"][4]["truth"].is_null());
    EXPECT_TRUE(numbers["files"][5]["truth"].is_null());
    EXPECT_DOUBLE_EQ(numbers["scores"][0]["accuracy"], accuracy_of(numbers["files"]).first);
    // Names beside it rule.
    file("shape_names.txt", "class 3\nclass 0\nx\ny\nz\n");
    const Json named = json_of(classify({"--model", path, folder / "set.h5", "--json"}));
    EXPECT_FALSE(contains(named["warnings"].dump(), "nothing names")) << named;
    EXPECT_EQ(named["files"][0]["truth"], "class 3");
    EXPECT_EQ(named["files"][1]["truth"], "class 0");
    EXPECT_TRUE(named["files"][3]["truth"].is_null());
    EXPECT_DOUBLE_EQ(named["scores"][0]["mean_class_accuracy"], accuracy_of(named["files"]).second);
}

TEST_F(CliClassify, BatchesAndThreadsDoNotMatter) {
    const std::string path = model();
    ::mkdir((folder / "scans").c_str(), 0777);
    for (int i = 0; i < 7; ++i)
        save_as("scans/" + std::to_string(i) + ".ply", random_cloud(50 + 40 * i, static_cast<uint64_t>(i)));
    const auto with = [&](std::vector<std::string> more, const std::string& points = "150") {
        more.insert(more.begin(), {"--model", path, folder / "scans", "--table", "csv", "-q", "--points", points});
        const LaunchResult result = classify(more);
        expect_success(result);
        return result.out;
    };
    const std::string all = with({});
    EXPECT_EQ(lines_of(all).size(), 8u);
    EXPECT_EQ(with({"--batch", "1"}), all);
    EXPECT_EQ(with({"--batch", "3", "--threads", "1"}), all);
    EXPECT_EQ(with({"--seed", "0"}), all);
    EXPECT_NE(with({"--sample", "first"}), "");
    EXPECT_NE(with({"--sample", "fps"}), "");
    // All points of each, beyond what was planned for at first.
    EXPECT_EQ(lines_of(with({}, "0")).size(), 8u);
}

TEST_F(CliClassify, PlaceAndSizeDoNotMatterUnlessAskedFor) {
    const std::string path = model();
    Mesh mesh = random_cloud(80);
    save_as("a.npz", mesh);
    for (float& x : mesh.vertices.positions.span()) x = 4 * x;
    mesh.vertices.origin = {1e6, -2e6, 300};
    save_as("b.npz", mesh);
    const auto top = [&](const std::string& name, std::vector<std::string> more) {
        more.insert(more.begin(), {"--model", path, folder / name, "--top", "5", "--json", "-q"});
        return json_of(classify(more))["files"][0]["top"];
    };
    const Json a = top("a.npz", {}), b = top("b.npz", {});
    for (int i = 0; i < 5; ++i) EXPECT_NEAR(a[i]["probability"], b[i]["probability"].get<double>(), 1e-4);
    EXPECT_NE(top("a.npz", {"--no-normalise"}), top("b.npz", {"--no-normalise"}));
}

TEST_F(CliClassify, UnreadableFilesAreReportedAndTheRestIsDone) {
    const std::string path = model(), good = cloud("good.ply", 50), bad = file("bad.ply", "ply\nnonsense"),
                      empty = file("empty.xyz", "nan nan nan\n");
    const LaunchResult result = classify({"--model", path, bad, good, folder / "none.ply", empty, good, "--json"});
    EXPECT_EQ(result.exit_code, 3) << report(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["ok"], false);
    ASSERT_EQ(json["files"].size(), 5u);
    for (const int i : {0, 2, 3}) EXPECT_TRUE(json["files"][i].contains("error")) << json["files"][i];
    for (const int i : {1, 4}) EXPECT_TRUE(json["files"][i].contains("top")) << json["files"][i];
    EXPECT_EQ(json["error"]["message"], "3 of 5 clouds could not be read");
    for (const char* part : {"bad.ply", "none.ply", "empty.xyz: has no finite points"})
        EXPECT_TRUE(contains(result.err, part)) << result.err;
}

TEST_F(CliClassify, NamesOfClasses) {
    const std::string path = model(), input = cloud("a.ply", 50);
    const std::string names = file("names.txt", "chair\ntable\n\nlamp\ncar\nplane\n");
    const LaunchResult result = classify({"--model", path, input, "--names", names, "--top", "5", "-q"});
    expect_success(result);
    for (const char* name : {"chair", "table", "lamp", "car", "plane"}) EXPECT_TRUE(contains(result.out, name));
    expect_error(classify({"--model", path, input, "--names", file("few.txt", "chair\n"), "-q"}), 3,
                 "names 1 classes, the network has 5");
}

TEST_F(CliClassify, RefusesWhatMakesNoSense) {
    const std::string path = model(), input = cloud("a.ply", 50);
    expect_error(classify({"--model", path, input, "--up", "w"}), 2, "--up");
    expect_error(classify({"--model", path, input, "-o", folder / "b.jpg"}), 2, "PNG");
    expect_error(classify({"--model", path}), 2, "INPUT is missing");
    expect_error(classify({"--model", path, input, "--top", "6"}), 2, "--top must be 1 to 5");
    expect_error(classify({"--model", path, input, "--batch", "0"}), 2, "--batch must be 1 to");
    expect_error(classify({"--model", path, input, "--sample", "best"}), 2, "--sample");
    expect_error(classify({"--model", path, input, "--points", "-1"}), 2, "--points");
    expect_error(classify({"--model", path, input, "--precision", "fp7"}), 2, "fp7");
    expect_error(classify({"--model", path, input, "--precision", "int8"}), 2, "calibration");
    expect_error(classify({"--model", input, input}), 3, "a.ply");
    expect_error(classify({"--model", folder / "none.safetensors", input}), 3, "No such file");
    ::mkdir((folder / "none").c_str(), 0777);
    expect_error(classify({"--model", path, folder / "none"}), 2, "a folder without clouds");
    expect_success(stipple({"engine", "new", "pointnet-segmenter", "-o", folder / "s.safetensors"}));
    expect_error(classify({"--model", folder / "s.safetensors", input}), 2, "does not classify clouds");
    const LaunchResult help = stipple({"classify", "--help"});
    expect_success(help);
    EXPECT_TRUE(contains(help.out, "Example:\n  stipple classify"));
}

TEST_F(CliClassify, WeightsByDefaultAreThoseOfTheName) {
    const std::string input = cloud("a.ply", 50);
    ::mkdir((folder / "weights").c_str(), 0777);
    Launch launch;
    launch.environment = {{"STIPPLE_WEIGHTS", folder / "weights"}};
    const std::vector<std::string> arguments = {"classify", "--device", "cpu", input, "--json"};
    // Whether they are shipped or not, those of the variable come first.
    ::rename(model().c_str(), (folder / "weights/pointnet-cls.safetensors").c_str());
    const LaunchResult result = stipple(arguments, launch);
    EXPECT_EQ(result.exit_code, 0) << report(result);
    EXPECT_TRUE(contains(json_of(result)["warnings"].dump(), "pointnet-cls")) << report(result);
}

TEST_F(CliClassify, PosesTurnTheCloud) {
    const std::string path = model();
    Mesh mesh = random_cloud(80);
    save_as("z.ply", mesh);
    for (int64_t i = 0; i < 80; ++i) {  // z becomes y, y becomes -z
        float* p = mesh.vertices.positions.data() + 3 * i;
        std::swap(p[1], p[2]);
        p[2] = -p[2];
    }
    save_as("y.ply", mesh);
    const auto answer = [&](const std::string& name, std::vector<std::string> more) {
        more.insert(more.begin(), {"--model", path, folder / name, "--top", "5", "--json", "-q"});
        const LaunchResult result = classify(more);
        EXPECT_EQ(result.exit_code, 0) << report(result);
        return json_of(result)["files"][0];
    };
    const Json upright = answer("z.ply", {}), turned = answer("y.ply", {"--up", "y"});
    EXPECT_FALSE(upright.contains("up"));
    EXPECT_EQ(turned["up"], "y");
    EXPECT_EQ(turned["rotation"], Json::parse("[[1,0,0],[0,0,-1],[0,1,0]]"));
    for (int i = 0; i < 5; ++i)
        EXPECT_NEAR(upright["top"][i]["probability"], turned["top"][i]["probability"].get<double>(), 1e-4);
    // Of all poses, both clouds have the same.
    const Json a = answer("z.ply", {"--poses"}), b = answer("y.ply", {"--poses"});
    EXPECT_NEAR(a["top"][0]["probability"], b["top"][0]["probability"].get<double>(), 1e-4);
    const LaunchResult text = classify({"--model", path, folder / "z.ply", "--poses", "--up", "-x", "-q"});
    EXPECT_TRUE(contains(text.out, "up -x, turned by ")) << report(text);
}

TEST_F(CliClassify, UnlikeAnythingIsSaidAndDrawn) {
    // One class of flat plates, another of tall ones; the network is random.
    const std::string plain = folder / "m.safetensors";
    network::Weights weights = network::load_weights(model());
    tasks::ConfidenceClouds clouds;
    clouds.points = 80;
    for (int i = 0; i < 200; ++i) {
        clouds.labels.push_back(i % 5);
        for (int c = 0; c < 5; ++c) clouds.logits.push_back(c == i % 5 ? 1.0f : 0.0f);
        tasks::ShapeMeasures measures = {-5, 5, 0, 0, 0, 0};
        for (double& x : measures) x += 0.01 * (i % 7);
        clouds.measures.push_back(measures);
    }
    tasks::set_confidence(weights.metadata, tasks::fit_confidence({{clouds}}, 5));
    weights.metadata["stipple.trained"] = "true";
    weights.metadata["stipple.classes"] = R"(["bed", "car", "cup", "door", "vase"])";
    const std::string path = folder / "sure.safetensors";
    network::save_weights(path, weights, network::WeightStorage::f32, Overwrite::refuse);
    const std::string input = cloud("a.ply", 80);
    const LaunchResult result = classify({"--model", path, input, input, "--json", "-o", folder / "sheet.png", "-q"});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["calibrated"], true);
    EXPECT_EQ(json["unlike"], 2);
    EXPECT_EQ(json["files"][0]["unlike"], true);
    EXPECT_GT(json["files"][0]["distance"], 1);
    EXPECT_EQ(json_of(stipple({"info", folder / "sheet.png", "--json"}))["files"][0]["format"], "PNG");
    const LaunchResult text = classify({"--model", path, input, "-q"});
    EXPECT_TRUE(contains(text.out, "unlike anything it was trained on")) << report(text);
    // A table is nothing but the table.
    const LaunchResult table = classify({"--model", path, input, "--table", "csv", "-o", folder / "one.png", "-q"});
    EXPECT_EQ(lines_of(table.out).size(), 2u) << report(table);
    const Json without = json_of(classify({"--model", plain, input, "--json", "-q"}));
    EXPECT_EQ(without["calibrated"], false);
    EXPECT_TRUE(without["files"][0]["unlike"].is_null());
    // An engine keeps it.
    expect_success(stipple({"engine", "build", path, "-o", folder / "sure.engine", "--device", "cpu"}));
    EXPECT_EQ(json_of(classify({"--model", folder / "sure.engine", input, "--json", "-q"}))["unlike"], 1);
}

TEST_F(CliClassify, ShippedWeightsKnowTheirClasses) {
    const std::string weights = std::string(STIPPLE_SOURCE_DIR) + "/weights/pointnet-cls.safetensors";
    const LaunchResult result = classify({"--model", weights, cloud("a.ply", 300), "--json"});
    expect_success(result);
    const Json json = json_of(result);
    EXPECT_FALSE(contains(json["files"][0]["top"][0]["class"], "class ")) << "names travel with the weights: " << json;
}

}  // namespace
}  // namespace stipple::test
