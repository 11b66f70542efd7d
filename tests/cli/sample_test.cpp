// stipple sample: every method through the program, what happens to attributes, and what it refuses.

#include <cmath>
#include <set>

#include "stipple/core/rng.h"
#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliSample : public CliTest {
protected:
    PointCloud load(const std::string& path) const {
        io::Warnings warnings;
        return io::load_cloud(path, {}, warnings);
    }
    /// Runs `sample input -o out.ply` with more arguments and reads the result.
    PointCloud sampled(const std::string& input, std::vector<std::string> arguments,
                       const std::string& out = "out.ply") {
        arguments.insert(arguments.begin(), {"sample", input, "-o", folder / out, "--overwrite"});
        const LaunchResult result = stipple(arguments);
        expect_success(result);
        return result.exit_code == 0 ? load(folder / out) : PointCloud();
    }
};

/// Rows of a cloud that are rows of another, each at most once; positions and intensity must match.
int64_t rows_found(const PointCloud& part, const PointCloud& whole) {
    std::multiset<std::vector<double>> rows;
    const auto row_of = [](const PointCloud& cloud, int64_t i) {
        std::vector<double> row;
        for (int axis = 0; axis < 3; ++axis) row.push_back(cloud.world(i, axis));
        if (const Attribute* intensity = find(cloud.attributes, "intensity")) row.push_back(intensity->value(i));
        return row;
    };
    for (int64_t i = 0; i < whole.size(); ++i) rows.insert(row_of(whole, i));
    int64_t found = 0;
    for (int64_t i = 0; i < part.size(); ++i) {
        const auto at = rows.find(row_of(part, i));
        if (at == rows.end()) continue;
        rows.erase(at);
        ++found;
    }
    return found;
}

TEST_F(CliSample, EveryMethodChoosesPointsWithTheirAttributes) {
    Mesh mesh = random_cloud(500);
    add_attribute(mesh.vertices, "intensity", DType::f32);
    add_attribute(mesh.vertices, "label", DType::i32);
    mesh.vertices.origin = {500000, 5400000, 120};
    const std::string input = save_as("a.ply", mesh);
    const PointCloud whole = load(input);
    const std::vector<std::vector<std::string>> calls = {
        {"-n", "100"},
        {"-n", "100", "--method", "fps", "--start", "7"},
        {"-n", "100", "--method", "random", "--seed", "3"},
        {"--ratio", "0.2", "--method", "poisson"},
        {"-n", "100", "--method", "poisson", "--progressive", "--radius", "0.02"},
        {"-n", "100", "--method", "inverse-density", "--k", "8", "--dimension", "3"}};
    for (const auto& call : calls) {
        const PointCloud part = sampled(input, call);
        ASSERT_EQ(part.size(), 100) << call.back();
        EXPECT_EQ(rows_found(part, whole), 100) << call.back();
        EXPECT_NE(find(part.attributes, "label"), nullptr);
        EXPECT_EQ(part.origin, whole.origin);
    }
    const PointCloud first = sampled(input, {"-n", "1", "--start", "7"});
    for (int axis = 0; axis < 3; ++axis) EXPECT_EQ(first.world(0, axis), whole.world(7, axis));
    const PointCloud nearest = sampled(input, {"--method", "voxel", "--voxel", "0.1", "--keep", "nearest"});
    EXPECT_GT(nearest.size(), 20);
    EXPECT_EQ(rows_found(nearest, whole), nearest.size());
}

TEST_F(CliSample, SameForAnyThreadsAndBySeed) {
    const std::string input = cloud("a.ply", 3000);
    for (const std::string method : {"fps", "random", "poisson", "inverse-density"}) {
        SCOPED_TRACE(method);
        const std::vector<std::string> call = {"sample", input, "-n", "200",      "--method",
                                               method,   "-o",  "-",  "--format", "xyz"};
        const auto with = [&](std::vector<std::string> more) {
            more.insert(more.begin(), call.begin(), call.end());
            return stipple(more).out;
        };
        const std::string one = with({"--threads", "1", "--seed", "5"});
        EXPECT_EQ(lines_of(one).size(), 200u);
        EXPECT_EQ(one, with({"--threads", "3", "--seed", "5"}));
        EXPECT_EQ(one == with({"--seed", "6"}), method == "fps");
    }
}

TEST_F(CliSample, VoxelsAverage) {
    // Two cells of size 10 in the world: four points in one, one in the other.
    const std::string input = file("a.ply",
                                   "ply\nformat ascii 1.0\nelement vertex 5\nproperty float x\nproperty float y\n"
                                   "property float z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\n"
                                   "property float nx\nproperty float ny\nproperty float nz\nproperty int label\n"
                                   "property double time\nend_header\n"
                                   "1 1 1 10 0 255 1 0 0 3 1.5\n"
                                   "3 1 1 11 0 255 0 1 0 4 2.5\n"
                                   "1 3 1 10 0 255 1 0 0 5 3.5\n"
                                   "3 3 1.5 11 1 255 0 1 0 6 4.5\n"
                                   "-1 1 1 7 8 9 0 0 1 9 100\n");
    const PointCloud out = sampled(input, {"--method", "voxel", "--voxel", "10"});
    ASSERT_EQ(out.size(), 2);
    EXPECT_EQ(out.world(0, 0), -1);  // sorted by x last: the cell at -1 comes first
    const double mean[] = {2, 2, 1.125};
    for (int axis = 0; axis < 3; ++axis) EXPECT_EQ(out.world(1, axis), mean[axis]);
    const Attribute *color = find(out.attributes, "color"), *normal = find(out.attributes, "normal"),
                    *label = find(out.attributes, "label"), *time = find(out.attributes, "time");
    ASSERT_TRUE(color && normal && label && time);
    EXPECT_EQ(color->dtype(), DType::u8);
    EXPECT_EQ(color->value(1, 0), 11);  // 10.5 rounded away from 0
    EXPECT_EQ(color->value(1, 1), 0);
    EXPECT_EQ(color->value(1, 2), 255);
    EXPECT_FLOAT_EQ(static_cast<float>(normal->value(1, 0)), std::sqrt(0.5f));
    EXPECT_FLOAT_EQ(static_cast<float>(normal->value(1, 1)), std::sqrt(0.5f));
    EXPECT_EQ(label->value(1), 3);  // of the points at the same distance from (2, 2, 1.125) the first
    EXPECT_EQ(time->value(1), 3);
    EXPECT_EQ(label->value(0), 9);
}

TEST_F(CliSample, VoxelsBeginAtMultiplesInTheWorld) {
    // The reader moves an origin out of such coordinates; cells must not move with it. 0.3 divides no whole number.
    const std::string input = file("a.xyz", "5400000.05 90000.05 7\n5400000.25 90000.25 7\n5400000.35 90000.05 7\n");
    EXPECT_EQ(sampled(input, {"--method", "voxel", "--voxel", "0.3"}).size(), 2);
}

TEST_F(CliSample, DropsWhatIsNotFinite) {
    const std::string input = file("a.xyz", "0 0 0\nnan 1 1\n1 0 0\n0 inf 0\n0 1 0\n");
    const LaunchResult result = stipple({"sample", input, "-n", "3", "-o", folder / "b.xyz", "--json"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(contains(result.err, "2 of 5 points not finite, dropped"));
    const Json json = json_of(result);
    EXPECT_EQ(json["command"], "sample");
    EXPECT_EQ(json["points"], 5);
    EXPECT_EQ(json["non_finite"], 2);
    EXPECT_EQ(json["sampled"], 3);
    EXPECT_EQ(json["method"], "fps");
    EXPECT_EQ(json["outputs"][0]["points"], 3);
    EXPECT_EQ(json["outputs"][0]["written"], true);
    expect_error(stipple({"sample", input, "-n", "4", "-o", folder / "c.xyz"}), 2, "a.xyz: asked for 4 of 3 points");
    const std::string none = file("none.xyz", "nan nan nan\n");
    expect_error(stipple({"sample", none, "-n", "1", "-o", folder / "c.xyz"}), 3, "none.xyz: has no finite points");
    expect_entries({"a.xyz", "b.xyz", "none.xyz"});
}

TEST_F(CliSample, FacesAreLeftOut) {
    const std::string input = save_as("a.ply", random_mesh(30));
    const LaunchResult result = stipple({"sample", input, "-n", "5", "-o", folder / "b.ply"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(contains(result.err, "faces are left out"));
    EXPECT_EQ(json_of(stipple({"info", folder / "b.ply", "--json"}))["files"][0]["faces"], 0);
}

TEST_F(CliSample, DrawsInputAndResult) {
    const std::string input = cloud("a.ply", 200);
    const LaunchResult result =
        stipple({"sample", input, "-n", "20", "-o", folder / "b.ply", "--picture", folder / "b.png"});
    expect_success(result);
    EXPECT_EQ(result.out,
              "wrote " + (folder / "b.ply") + ": 20 of 200 points by fps\nwrote " + (folder / "b.png") + "\n");
    EXPECT_EQ(json_of(stipple({"info", folder / "b.png", "--json"}))["files"][0]["format"], "PNG");
    expect_error(stipple({"sample", input, "-n", "5", "-o", folder / "c.ply", "--picture", folder / "b.png"}), 4,
                 "b.png: exists already");
    expect_error(stipple({"sample", input, "-n", "5", "-o", folder / "c.ply", "--picture", folder / "b.jpg"}), 2,
                 "PNG");
    expect_entries({"a.ply", "b.ply", "b.png"});
}

TEST_F(CliSample, DryRunAndTable) {
    const std::string input = cloud("a.ply", 200);
    const LaunchResult dry = stipple({"sample", input, "-n", "20", "-o", folder / "b.ply", "--dry-run"});
    expect_success(dry);
    EXPECT_EQ(dry.out, "would write " + (folder / "b.ply") + ": 20 of 200 points by fps\n");
    expect_entries({"a.ply"});
    const LaunchResult table = stipple({"sample", input, "-n", "20", "-o", folder / "b.ply", "--table", "csv"});
    EXPECT_EQ(lines_of(table.out).size(), 2u);
}

TEST_F(CliSample, RefusesWhatMakesNoSense) {
    const std::string input = cloud("a.ply", 10), out = folder / "b.ply";
    const auto fails = [&](std::vector<std::string> arguments, const std::string& text, int exit_code = 2) {
        arguments.insert(arguments.begin(), {"sample", input, "-o", out});
        const LaunchResult result = stipple(arguments);
        expect_error(result, exit_code, text);
        return result.err;
    };
    EXPECT_TRUE(contains(fails({"-n", "5", "--method", "best"}, "--method must be one of random, fps"),
                         "random, fps, voxel, poisson, inverse-density"));
    fails({}, "how many points?");
    fails({"-n", "5", "--ratio", "0.5"}, "how many points?");
    fails({"-n", "11"}, "asked for 11 of 10 points");
    fails({"-n", "-1"}, "--count");
    fails({"--ratio", "1.5"}, "--ratio must be 0 to 1, got 1.5");
    fails({"--ratio", "-0.5"}, "--ratio must be 0 to 1, got -0.5");
    fails({"-n", "5", "--start", "10"}, "--start 10 of 10 points");
    fails({"-n", "5", "--start", "3", "--method", "random"}, "--start is for --method fps");
    fails({"-n", "5", "--voxel", "3"}, "--voxel is for --method voxel");
    fails({"--method", "voxel"}, "needs --voxel SIZE");
    fails({"--method", "voxel", "--voxel", "-1"}, "--voxel must be from 0, got -1");
    fails({"--method", "voxel", "--voxel", "1", "-n", "5"}, "takes no count");
    fails({"--method", "voxel", "--voxel", "1e-12"}, "268435456");
    fails({"--method", "voxel", "--voxel", "1", "--keep", "all"}, "--keep");
    fails({"-n", "5", "--method", "inverse-density", "--k", "0"}, "--k must be 1 to 127");
    fails({"-n", "5", "--method", "inverse-density", "--dimension", "4"}, "--dimension must be 1 to 3");
    fails({"-n", "5", "--method", "poisson", "--radius", "-1"}, "--radius must be from 0");
    expect_error(stipple({"sample", input, "-n", "5"}), 2, "--output is missing");
    expect_error(stipple({"sample", input, "-n", "5", "-o", "-"}), 2, "-o - needs --format");
    expect_error(stipple({"sample", input, "-n", "5", "-o", folder / "b.doc"}), 2, "unknown extension .doc");
    expect_error(stipple({"sample", input, "-n", "5", "-o", input}), 4, "exists already");
    expect_error(stipple({"sample", folder / "no.ply", "-n", "5", "-o", out}), 3, "No such file");
    expect_entries({"a.ply"});
}

TEST_F(CliSample, ThePrintedConfigurationReadsBack) {
    const std::string input = cloud("a.ply", 50);
    const LaunchResult printed =
        stipple({"sample", input, "-n", "5", "--method", "random", "-o", folder / "b.ply", "--print-config"});
    expect_success(printed);
    const std::string config = file("c.toml", printed.out);
    expect_success(stipple({"sample", input, "--config", config}));
    EXPECT_EQ(load(folder / "b.ply").size(), 5);
}

TEST_F(CliSample, SmallCloudsAndManyCandidates) {
    const std::string one = file("one.xyz", "1 2 3\n");
    for (const std::string method : {"fps", "random", "poisson", "inverse-density"}) {
        const PointCloud out = sampled(one, {"-n", "1", "--method", method});
        ASSERT_EQ(out.size(), 1) << method;
        EXPECT_EQ(out.world(0, 2), 3);
    }
    // More than ten times the points wanted: thinned out first, still exactly as many.
    EXPECT_EQ(sampled(cloud("many.ply", 5000), {"-n", "50", "--method", "poisson"}).size(), 50);
}

/// Weights that nobody trained.
class CliNetworkSample : public CliSample {
protected:
    std::string model(const std::string& name, const std::string& network, std::vector<std::string> settings) {
        settings.insert(settings.begin(), {"engine", "new", network, "-o", folder / name, "--set"});
        expect_success(stipple(settings));
        return folder / name;
    }
};

TEST_F(CliNetworkSample, EveryNetworkChoosesPointsWithTheirAttributes) {
    Mesh mesh = random_cloud(500);
    add_attribute(mesh.vertices, "intensity", DType::f32);
    add_attribute(mesh.vertices, "label", DType::i32);
    mesh.vertices.origin = {500000, 5400000, 120};
    const std::string input = save_as("a.ply", mesh);
    const PointCloud whole = load(input);
    const std::string progressive = model("p.safetensors", "samplenet", {"count=64", "progressive=true"}),
                      registration = model("r.safetensors", "samplenet", {"shape=registration", "count=30"}),
                      snet = model("s.safetensors", "samplenet", {"count=30", "neighbours=0"}),
                      gumbel = model("g.safetensors", "gumbel-subset", {"count=30"});
    const std::vector<std::vector<std::string>> calls = {{"--method", "samplenet-cls", "--model", progressive},
                                                         {"--method", "samplenet-reg", "--model", registration},
                                                         {"--method", "snet", "--model", snet},
                                                         {"--method", "gumbel", "--model", gumbel},
                                                         {"--method", "critical"}};
    for (std::vector<std::string> call : calls) {
        SCOPED_TRACE(call[1]);
        call.insert(call.end(), {"-n", "40"});
        const PointCloud part = sampled(input, call);
        ASSERT_EQ(part.size(), 40);
        EXPECT_EQ(rows_found(part, whole), 40);
        EXPECT_NE(find(part.attributes, "label"), nullptr);
        EXPECT_EQ(part.origin, whole.origin);
    }
    EXPECT_EQ(sampled(input, {"--method", "samplenet-cls", "--model", progressive, "-n", "3"}).size(), 3);
    EXPECT_EQ(sampled(input, {"--method", "critical", "--ratio", "0.1"}).size(), 50);
    expect_error(stipple({"sample", input, "-n", "29", "--method", "snet", "--model", snet, "-o", folder / "b.ply"}), 2,
                 "these weights choose 30 points at once: 29 of them are no sample");
}

TEST_F(CliNetworkSample, TellsWhatIsTheNetworks) {
    const std::string input = cloud("a.ply", 200),
                      weights = model("w.safetensors", "samplenet", {"count=16", "shape=reconstruction"});
    const std::vector<std::string> call = {"sample",        input,     "-n",    "20", "--method",
                                           "samplenet-rec", "--model", weights, "-o", folder / "b.ply"};
    const auto with = [&](const std::string& more) {
        std::vector<std::string> all = call;
        all.push_back(more);
        return stipple(all);
    };
    const Json json = json_of(with("--json"));
    EXPECT_EQ(json["method"], "samplenet-rec");
    EXPECT_EQ(json["sampled"], 20);
    const int64_t proposed = json["proposed"];
    EXPECT_GE(proposed, 1);
    EXPECT_LE(proposed, 16);
    const LaunchResult text = with("--overwrite");
    EXPECT_TRUE(contains(
        text.out, fmt::format("20 of 200 points by samplenet-rec, {} its own, {} by fps", proposed, 20 - proposed)))
        << text.out;
    // An engine that was built of the weights chooses the same.
    const std::string expected = read_file(folder / "b.ply");
    expect_success(stipple({"engine", "build", weights, "-o", folder / "w.engine"}));
    expect_success(stipple({"sample", input, "-n", "20", "--method", "samplenet-rec", "--model", folder / "w.engine",
                            "-o", folder / "c.ply"}));
    EXPECT_EQ(read_file(folder / "c.ply"), expected);
}

TEST_F(CliNetworkSample, SaysWhatIsMissingOrWrong) {
    const std::string input = cloud("a.ply", 50), out = folder / "b.ply",
                      weights = model("w.safetensors", "samplenet", {"count=8"});
    const auto fails = [&](std::vector<std::string> arguments, const std::string& text, int exit_code = 2) {
        arguments.insert(arguments.begin(), {"sample", input, "-n", "8", "-o", out});
        const LaunchResult result = stipple(arguments);
        expect_error(result, exit_code, text);
        return result.err;
    };
    EXPECT_TRUE(contains(fails({"--method", "gumbel"}, "--method gumbel needs --model WEIGHTS"), "$STIPPLE_WEIGHTS"));
    fails({"--method", "snet"}, "--method snet needs --model WEIGHTS");
    EXPECT_TRUE(contains(fails({"--method", "samplenet-reg", "--model", weights},
                               "w.safetensors: these weights are not of --method samplenet-reg"),
                         "--method samplenet-cls"));
    fails({"--method", "fps", "--model", weights}, "--model is for methods with a network");
    fails({"--method", "gumbel", "--model", "upsampler"}, "flow-upsampler chooses no points");
    fails({"--method", "samplenet-cls", "--model", folder / "no.safetensors"}, "no.safetensors", 3);
    fails({"--method", "samplenet-cls", "--model", input}, "a.ply", 3);
    fails({"--method", "samplenet-cls", "--model", weights, "--start", "3"}, "--start is for --method fps");
    // Fewer distinct points than asked for.
    const std::string copies = file("copies.xyz", "0 0 0\n0 0 0\n1 0 0\n1 0 0\n0 1 0\n0 1 0\n0 0 1\n0 0 1\n");
    expect_error(stipple({"sample", copies, "-n", "8", "--method", "samplenet-cls", "--model", weights, "-o", out}), 2,
                 "copies.xyz: asked for 8 points, the cloud has 4 distinct ones");
    expect_entries({"a.ply", "copies.xyz", "w.safetensors"});
}

TEST_F(CliNetworkSample, FoldersAndSeveralFiles) {
    for (const char* name : {"in", "out", "few", "x"}) std::filesystem::create_directory(folder / name);
    cloud("in/a.ply", 60);
    cloud("in/b.xyz", 80);
    file("in/broken.ply", "ply\n");
    const std::string weights = model("w.safetensors", "samplenet", {"count=8"});
    const LaunchResult result = stipple({"sample", folder / "in", "-n", "8", "--method", "samplenet-cls", "--model",
                                         weights, "-o", folder / "out/", "--json"});
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_TRUE(contains(result.err, "broken.ply"));
    EXPECT_EQ(load(folder / "out/a.ply").size(), 8);
    EXPECT_EQ(load(folder / "out/b.ply").size(), 8);
    expect_success(stipple({"sample", folder / "in/a.ply", folder / "in/b.xyz", "-n", "9", "-o", folder / "few/"}));
    EXPECT_EQ(load(folder / "few/b.ply").size(), 9);
    expect_success(stipple({"sample", folder / "in/a.ply", "-n", "7", "-o", folder / "x"}));
    EXPECT_EQ(load(folder / "x/a.ply").size(), 7);
    expect_error(stipple({"sample", folder / "in", "-n", "8", "-o", folder / "x.ply"}), 2, "3 clouds need a folder");
    expect_error(stipple({"sample", folder / "in", "-n", "8", "-o", folder / "x/", "--picture", folder / "p.png"}), 2,
                 "--picture is for one cloud");
}

TEST_F(CliNetworkSample, AStepOfRun) {
    const std::string input = cloud("a.ply", 300), weights = model("w.safetensors", "samplenet", {"count=8"});
    expect_success(
        stipple({"sample", input, "-n", "8", "--method", "samplenet-cls", "--model", weights, "-o", folder / "b.ply"}));
    expect_success(stipple({"run", input, "--then", "sample", "-n", "8", "--method", "samplenet-cls", "--model",
                            weights, "-o", folder / "c.ply"}));
    EXPECT_EQ(read_file(folder / "b.ply"), read_file(folder / "c.ply"));
}

TEST_F(CliSample, HelpFitsAScreen) {
    const LaunchResult result = stipple({"sample", "--help"});
    expect_success(result);
    EXPECT_LE(lines_of(result.out).size(), 40u);
    for (const std::string& line : lines_of(result.out)) EXPECT_LE(line.size(), 100u) << line;
    EXPECT_TRUE(contains(result.out, "Example:\n  stipple sample"));
}

}  // namespace
}  // namespace stipple::test
