#include <sys/stat.h>

#include <map>
#include <set>

#include "stipple/network/weights.h"
#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliSegment : public CliTest {
protected:
    std::string model(const std::string& name, const std::string& architecture, const std::string& classes) const {
        expect_success(stipple({"engine", "new", architecture, "--set", "classes=" + classes, "--set",
                                "feature_transform=false", "-o", folder / name}));
        return folder / name;
    }
    LaunchResult segment(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), {"segment", "--device", "cpu", "-q"});
        return stipple(arguments);
    }
    PointCloud load(const std::string& path) const {
        io::Warnings warnings;
        return io::load_cloud(path, {}, warnings);
    }
};

TEST_F(CliSegment, LabelsEveryPoint) {
    const std::string path = model("s.safetensors", "pointnet-segmenter", "6");
    Mesh mesh = random_cloud(400);
    add_attribute(mesh.vertices, "intensity", DType::f32);
    mesh.vertices.origin = {500000, 5400000, 120};
    const std::string input = save_as("a.npz", mesh);
    const LaunchResult result =
        segment({"--model", path, input, "-o", folder / "b.npz", "--picture", folder / "b.png", "--json"});
    expect_success(result);
    const PointCloud out = load(folder / "b.npz");
    ASSERT_EQ(out.size(), 400);
    EXPECT_EQ(out.origin, mesh.vertices.origin);
    EXPECT_NE(find(out.attributes, "intensity"), nullptr);
    const Attribute* label = find(out.attributes, "label");
    ASSERT_NE(label, nullptr);
    EXPECT_EQ(label->dtype(), DType::i32);
    std::map<int64_t, int64_t> counts;
    for (int64_t i = 0; i < 400; ++i) ++counts[static_cast<int64_t>(label->value(i))];
    const Json json = json_of(result);
    EXPECT_EQ(json["files"][0]["parts"].size(), counts.size());
    for (const Json& part : json["files"][0]["parts"]) {
        EXPECT_EQ(part["points"], counts[part["label"].get<int64_t>()]);
        EXPECT_LT(part["label"], 6);
    }
    EXPECT_EQ(json_of(stipple({"info", folder / "b.png", "--json"}))["files"][0]["format"], "PNG");
    // Fewer points through the network: all of them are labelled still.
    expect_success(segment({"--model", path, input, "-o", folder / "c.npz", "--points", "100"}));
    EXPECT_EQ(find(load(folder / "c.npz").attributes, "label")->rows(), 400);
}

TEST_F(CliSegment, CategoriesRestrictParts) {
    const std::string path = model("p.safetensors", "pointnet-part-segmenter", "50"), input = cloud("a.ply", 300);
    const auto labels = [&](const std::string& category) {
        const std::string out = folder / (category + ".ply");
        expect_success(segment({"--model", path, input, "-o", out, "--category", category}));
        const PointCloud cloud = load(out);
        std::set<int64_t> found;
        for (int64_t i = 0; i < cloud.size(); ++i)
            found.insert(static_cast<int64_t>(find(cloud.attributes, "label")->value(i)));
        return found;
    };
    for (const int64_t label : labels("chair")) EXPECT_TRUE(label >= 12 && label < 16) << label;
    for (const int64_t label : labels("Airplane")) EXPECT_TRUE(label >= 0 && label < 4) << label;
    for (const int64_t label : labels("15")) EXPECT_TRUE(label >= 47 && label < 50) << label;
    const LaunchResult tree = segment({"--model", path, input, "-o", folder / "x.ply", "--category", "tree"});
    expect_error(tree, 2, "no such category");
    EXPECT_TRUE(contains(tree.err, "airplane, bag, cap")) << tree.err;
}

TEST_F(CliSegment, TheCategoryIsGuessedWhenItIsNotNamed) {
    const std::string path = model("p.safetensors", "pointnet-part-segmenter", "50"), input = cloud("a.ply", 100);
    const LaunchResult result =
        stipple({"segment", "--device", "cpu", "--model", path, input, "-o", folder / "x.ply", "--json"});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    const Json json = json_of(result), file_json = json["files"][0];
    EXPECT_EQ(file_json["category_guessed"], true);
    const std::string guessed = file_json["category"];
    EXPECT_TRUE(contains(json["warnings"].dump(), "taken for category " + guessed)) << json;
    expect_success(segment({"--model", path, input, "-o", folder / "y.ply", "--category", guessed}));
    EXPECT_EQ(read_file(folder / "x.ply"), read_file(folder / "y.ply"));
}

TEST_F(CliSegment, PartsHaveNamesColoursAndConfidences) {
    network::Weights weights = network::load_weights(model("s.safetensors", "pointnet-segmenter", "3"));
    weights.metadata["stipple.parts"] = R"(["leg", "seat", "back"])";
    const std::string path = folder / "named.safetensors";
    network::save_weights(path, weights, network::WeightStorage::f32, Overwrite::refuse);
    const std::string input = cloud("a.ply", 200);
    const LaunchResult result = segment({"--model", path, input, "-o", folder / "b.ply", "--json"});
    expect_success(result);
    int64_t points = 0;
    const Json json = json_of(result);
    for (const Json& part : json["files"][0]["parts"]) {
        EXPECT_TRUE(part["name"] == "leg" || part["name"] == "seat" || part["name"] == "back") << part;
        EXPECT_GE(part["confidence"], 1.0 / 3);
        EXPECT_LE(part["confidence"], 1.0);
        points += part["points"].get<int64_t>();
    }
    EXPECT_EQ(points, 200);
    const PointCloud out = load(folder / "b.ply");
    const Attribute *label = find(out.attributes, "label"), *color = find(out.attributes, "color");
    ASSERT_NE(color, nullptr);
    std::map<int64_t, std::set<std::array<double, 3>>> colors;
    for (int64_t i = 0; i < 200; ++i)
        colors[static_cast<int64_t>(label->value(i))].insert(
            {color->value(i, 0), color->value(i, 1), color->value(i, 2)});
    std::set<std::array<double, 3>> all;
    for (const auto& [part, its] : colors) {
        EXPECT_EQ(its.size(), 1u);
        all.insert(its.begin(), its.end());
    }
    EXPECT_EQ(all.size(), colors.size());
    const LaunchResult text =
        stipple({"segment", "--device", "cpu", "--model", path, input, "-o", folder / "c.ply", "--up", "y"});
    EXPECT_TRUE(contains(text.out, "share (%)")) << report(text);
    EXPECT_TRUE(contains(text.out, "wrote ")) << report(text);
}

TEST_F(CliSegment, FolderToFolder) {
    const std::string path = model("s.safetensors", "pointnet-segmenter", "3");
    ::mkdir((folder / "in").c_str(), 0777);
    ::mkdir((folder / "out").c_str(), 0777);
    cloud("in/a.ply", 40);
    cloud("in/b.xyz", 60);
    file("in/c.ply", "broken");
    const LaunchResult result =
        stipple({"segment", "--device", "cpu", "--model", path, folder / "in", "-o", folder / "out/"});
    EXPECT_EQ(result.exit_code, 3) << report(result);
    EXPECT_TRUE(contains(result.err, "1 of 3 clouds could not be read")) << result.err;
    EXPECT_TRUE(contains(result.err, "c.ply")) << result.err;
    EXPECT_EQ(load(folder / "out/a.ply").size(), 40);
    EXPECT_EQ(load(folder / "out/b.ply").size(), 60);
    // By a built engine, too.
    expect_success(stipple({"engine", "build", path, "-o", folder / "s.engine", "--device", "cpu", "--max-points",
                            "100", "--max-batch", "1"}));
    expect_success(segment({"--model", folder / "s.engine", folder / "in/a.ply", "-o", folder / "e.ply"}));
    EXPECT_EQ(read_file(folder / "e.ply"), read_file(folder / "out/a.ply"));
}

TEST_F(CliSegment, RefusesWhatMakesNoSense) {
    const std::string path = model("s.safetensors", "pointnet-segmenter", "3"), input = cloud("a.ply", 40);
    expect_error(segment({"--model", path, input}), 2, "--output is missing");
    expect_error(segment({"--model", path, input, input, "-o", folder / "b.ply"}), 2, "2 clouds need a folder");
    expect_error(segment({"--model", path, input, "-o", folder / "b.doc"}), 2, "unknown extension .doc");
    expect_error(segment({"--model", path, input, "-o", input}), 4, "exists already");
    expect_error(segment({"--model", path, input, "-o", folder / "b.ply", "--category", "chair"}), 2, "takes none");
    expect_error(segment({"--model", path, file("bad.ply", "x"), "-o", folder / "b.ply"}), 3, "bad.ply");
    expect_error(segment({"--model", path, input, "-o", folder / "b.ply", "--picture", folder / "b.jpg"}), 2, "PNG");
    expect_success(stipple({"engine", "new", "pointnet-classifier", "-o", folder / "c.safetensors"}));
    expect_error(segment({"--model", folder / "c.safetensors", input, "-o", folder / "b.ply"}), 2,
                 "does not segment clouds");
    const LaunchResult help = stipple({"segment", "--help"});
    expect_success(help);
    EXPECT_TRUE(contains(help.out, "Example:\n  stipple segment"));
}

}  // namespace
}  // namespace stipple::test
