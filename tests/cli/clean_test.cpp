// stipple clean: every step and their order, nothing lost, and what it refuses.

#include <cmath>
#include <map>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliClean : public CliTest {
protected:
    PointCloud load(const std::string& path) const {
        io::Warnings warnings;
        return io::load_cloud(path, {}, warnings);
    }
    std::vector<double> xs(const std::string& path) const {
        const PointCloud cloud = load(path);
        std::vector<double> values;
        for (int64_t i = 0; i < cloud.size(); ++i) values.push_back(cloud.world(i, 0));
        return values;
    }
    /// What --json says of a run that writes out.ply and rest.ply.
    Json cleaned(const std::string& input, std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"clean", input, "-o", folder / "out.ply", "--removed-to",
                                             folder / "rest.ply", "--overwrite", "--json"});
        const LaunchResult result = stipple(arguments);
        EXPECT_EQ(result.exit_code, 0) << report(result);
        return json_of(result);
    }
    static std::map<std::string, int> removed(const Json& json) {
        std::map<std::string, int> counts;
        for (const Json& step : json["steps"]) counts[step["method"]] = step["removed"];
        return counts;
    }
    /// Points 1 apart on a line; one of them twice, one far away, two not finite.
    std::string messy() const {
        std::string text;
        for (int i = 0; i < 40; ++i) text += std::to_string(i) + " 0 0\n";
        return file("messy.xyz", text + "7 0 0\nnan 0 0\n500 0 0\n1 inf 0\n");
    }
};

TEST_F(CliClean, EachStep) {
    const std::string input = messy();
    using Counts = std::map<std::string, int>;
    EXPECT_EQ(removed(cleaned(input, {"--method", "nonfinite"})), (Counts{{"nonfinite", 2}}));
    EXPECT_EQ(xs(folder / "out.ply").size(), 42u);
    cleaned(file("clean.xyz", "0 0 0\n1 0 0\n"), {"--method", "nonfinite"});  // nothing went: a file of no points
    EXPECT_TRUE(contains(read_file(folder / "rest.ply"), "element vertex 0\n"));
    EXPECT_EQ(removed(cleaned(input, {"--method", "duplicates"})), (Counts{{"duplicates", 1}}));
    EXPECT_EQ(xs(folder / "rest.ply"), std::vector<double>{7});
    EXPECT_EQ(removed(cleaned(input, {"--method", "duplicates", "--distance", "1.5"})), (Counts{{"duplicates", 21}}));
    EXPECT_EQ(removed(cleaned(input, {"--method", "statistical", "--k", "4"})),
              (Counts{{"nonfinite", 2}, {"statistical", 1}}));
    EXPECT_EQ(removed(cleaned(input, {})), (Counts{{"nonfinite", 2}, {"statistical", 1}}));
    // At 1 the ends have one other, except for what the double gives them.
    EXPECT_EQ(removed(cleaned(input, {"--method", "radius", "--radius", "1"})),
              (Counts{{"nonfinite", 2}, {"radius", 3}}));
    EXPECT_EQ(removed(cleaned(input, {"--method", "radius", "--radius", "1", "--neighbours", "1"})),
              (Counts{{"nonfinite", 2}, {"radius", 1}}));
}

TEST_F(CliClean, StepsInOrderAndNothingLost) {
    const Json json = cleaned(messy(), {"--method", "duplicates,statistical", "--method", "radius", "--radius", "1.5"});
    ASSERT_EQ(json["steps"].size(), 4u);
    const char* order[] = {"nonfinite", "duplicates", "statistical", "radius"};
    for (int i = 0; i < 4; ++i) EXPECT_EQ(json["steps"][i]["method"], order[i]);
    EXPECT_EQ(json["points"], 44);
    EXPECT_EQ(json["steps"][2]["k"], 16);
    EXPECT_GT(json["steps"][2]["threshold"], 4);
    EXPECT_EQ(json["removed"], 6);
    const std::vector<double> rest = xs(folder / "rest.ply");
    ASSERT_EQ(rest.size(), 6u);  // in the order of the file: 0, 39, 7 again, nan, 500, 1 inf
    EXPECT_EQ(rest[0], 0);
    EXPECT_EQ(rest[1], 39);
    EXPECT_EQ(rest[2], 7);
    EXPECT_TRUE(std::isnan(rest[3]));
    EXPECT_EQ(rest[4], 500);
    EXPECT_EQ(rest[5], 1);
    EXPECT_EQ(xs(folder / "out.ply").size(), 38u);
    EXPECT_EQ(json["outputs"].size(), 2u);
}

TEST_F(CliClean, KeepsAttributesAndOrigin) {
    Mesh mesh = random_cloud(400);
    add_attribute(mesh.vertices, "label", DType::i32);
    mesh.vertices.origin = {500000, 5400000, 120};
    for (int axis = 0; axis < 3; ++axis) mesh.vertices.positions.data()[3 * 123 + axis] = 30;
    const std::string input = save_as("a.ply", mesh);
    cleaned(input, {"--ratio", "4"});
    const PointCloud whole = load(input), out = load(folder / "out.ply"), rest = load(folder / "rest.ply");
    ASSERT_EQ(out.size(), 399);
    ASSERT_EQ(rest.size(), 1);
    const Attribute *label = find(whole.attributes, "label"), *kept = find(out.attributes, "label"),
                    *gone = find(rest.attributes, "label");
    ASSERT_TRUE(label && kept && gone);
    EXPECT_EQ(gone->value(0), label->value(123));
    for (int64_t i = 0; i < 399; ++i) {
        const int64_t from = i < 123 ? i : i + 1;
        EXPECT_EQ(kept->value(i), label->value(from));
        for (int axis = 0; axis < 3; ++axis) EXPECT_EQ(out.world(i, axis), whole.world(from, axis));
    }
}

TEST_F(CliClean, FacesAreLeftOutAndNothingMayBeLeft) {
    const LaunchResult mesh = stipple({"clean", save_as("a.ply", random_mesh(30)), "-o", folder / "b.ply"});
    EXPECT_EQ(mesh.exit_code, 0);
    EXPECT_TRUE(contains(mesh.err, "faces are left out"));
    expect_error(stipple({"clean", file("n.xyz", "nan 0 0\n"), "-o", folder / "c.ply"}), 3,
                 "n.xyz: no point is left; removed: nonfinite 1, statistical 0");
    expect_entries({"a.ply", "b.ply", "n.xyz"});
}

TEST_F(CliClean, TextTableDryRunAndPicture) {
    const std::string input = messy();
    const LaunchResult text = stipple({"clean", input, "-o", folder / "b.ply", "--removed-to", folder / "r.ply",
                                       "--picture", folder / "b.png", "--method", "nonfinite,duplicates"});
    expect_success(text);
    EXPECT_EQ(text.out, "wrote " + (folder / "b.ply") +
                            ": 41 of 44 points; removed: nonfinite 2, duplicates 1\nwrote " + (folder / "r.ply") +
                            ": the 3 removed points\nwrote " + (folder / "b.png") + "\n");
    EXPECT_EQ(json_of(stipple({"info", folder / "b.png", "--json"}))["files"][0]["format"], "PNG");
    const LaunchResult dry =
        stipple({"clean", input, "-o", folder / "c.ply", "--removed-to", folder / "d.ply", "--dry-run"});
    expect_success(dry);
    EXPECT_TRUE(contains(dry.out, "would write"));
    expect_entries({"b.png", "b.ply", "messy.xyz", "r.ply"});
    const LaunchResult table =
        stipple({"clean", input, "-o", folder / "c.ply", "--table", "csv", "--method", "nonfinite"});
    EXPECT_EQ(table.out, "step,removed,left\nnonfinite,2,42\n");
}

TEST_F(CliClean, RefusesWhatMakesNoSense) {
    const std::string input = cloud("a.ply", 20), out = folder / "b.ply";
    const auto fails = [&](std::vector<std::string> arguments, const std::string& text, int exit_code = 2) {
        arguments.insert(arguments.begin(), {"clean", input, "-o", out});
        expect_error(stipple(arguments), exit_code, text);
    };
    fails({"--method", "dirt"}, "--method");
    fails({"--method", "nonfinite,nonfinite"}, "--method nonfinite twice");
    fails({"--method", "radius"}, "--method radius needs --radius R");
    fails({"--method", "radius", "--radius", "-2"}, "--radius must be above 0, got -2");
    fails({"--method", "radius", "--radius", "nan"}, "--radius must be above 0, got nan");
    fails({"--method", "radius", "--radius", "1", "--neighbours", "0"}, "--neighbours must be from 1, got 0");
    fails({"--radius", "1"}, "--radius is for --method radius");
    fails({"--neighbours", "3"}, "--neighbours is for --method radius");
    fails({"--k", "1"}, "--k must be 2 to 128, got 1");
    fails({"--k", "129"}, "--k must be 2 to 128, got 129");
    fails({"--method", "nonfinite", "--k", "8"}, "--k is for --method statistical");
    fails({"--ratio", "-1"}, "--ratio must be from 0, got -1");
    fails({"--method", "radius", "--radius", "1", "--ratio", "3"}, "--ratio is for --method statistical");
    fails({"--distance", "1"}, "--distance is for --method duplicates");
    fails({"--method", "duplicates", "--distance", "-1"}, "--distance must be from 0, got -1");
    fails({"--removed-to", out}, "--removed-to and -o are the same file");
    fails({"--removed-to", folder / "r.what"}, "r.what");
    fails({"--picture", folder / "a.jpg"}, "PNG");
    fails({"--what"}, "unknown option --what");
    expect_error(stipple({"clean", input}), 2, "--output is missing");
    expect_error(stipple({"clean", folder / "none.ply", "-o", out}), 3, "none.ply");
    write_file(folder / "r.ply", "mine");
    fails({"--removed-to", folder / "r.ply"}, "r.ply: exists already", 4);
    expect_entries({"a.ply", "r.ply"});
}

}  // namespace
}  // namespace stipple::test
