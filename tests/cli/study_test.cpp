#include "stipple/geometry/primitives.h"
#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliStudy : public CliTest {
protected:
    CliStudy() {
        std::filesystem::create_directories(folder / "data/meshes");
        save_as("data/meshes/ring.off", geometry::torus_mesh(1, 0.3, 32, 16));
    }
    std::string model() const {
        if (!std::filesystem::exists(folder / "u.safetensors"))
            expect_success(stipple({"engine", "new", "flow-upsampler", "--set", "layers=1", "--set", "width=16",
                                    "--set", "hidden=16", "-o", folder / "u.safetensors"}));
        return "net=" + (folder / "u.safetensors");
    }
    LaunchResult study(std::string name, std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), {"study", "upsampling-" + name, "--device", "cpu"});
        return stipple(arguments);
    }
    LaunchResult sweep(const std::string& name, std::vector<std::string> more = {}) const {
        more.insert(more.begin(),
                    {"--data", folder / "data", "--model", model(), "--quick", "--size", "64", "-o", folder / name});
        return study(name, more);
    }
    std::string png(const std::string& path) const {
        return json_of(stipple({"info", path, "--json"}))["files"][0]["format"];
    }
};

TEST_F(CliStudy, NoiseWritesTableFiguresAndPage) {
    const LaunchResult result = sweep("noise", {"--json"});
    expect_success(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["command"], "study upsampling-noise");
    ASSERT_EQ(json["rows"].size(), 16u);  // four levels by input, midpoints, net and floor
    EXPECT_EQ(json["rows"][2]["method"], "net");
    EXPECT_EQ(json["rows"][2]["source"], "measured");
    EXPECT_EQ(json["rows"][3]["p2f"].get<double>() < 1e-5, true);  // the floor lies on the surface
    EXPECT_GT(json["rows"][12]["p2f"].get<double>(), json["rows"][4]["p2f"].get<double>());  // noise 1.5 % above 0.5 %
    const std::string out = folder / "noise";
    for (const char* name : {"cd_raw.png", "p2f.png", "errors.png", "surfaces.png", "steps-ring.png"})
        EXPECT_EQ(png(out + "/" + name), "PNG") << name;
    const std::vector<std::string> lines = lines_of(read_file(out + "/table.csv"));
    ASSERT_EQ(lines.size(), 17u);
    for (const std::string& line : lines)
        if (!contains(line, "\"")) {
            EXPECT_EQ(std::count(line.begin(), line.end(), ','), 15) << line;
        }
    EXPECT_TRUE(contains(read_file(out + "/table.tex"), "noise 0.5 \\% & midpoints & measured"));
    const std::string page = read_file(out + "/index.html");
    EXPECT_TRUE(contains(page, "<img src=\"errors.png\""));
    EXPECT_TRUE(contains(page, "stipple study upsampling-noise --data"));
    EXPECT_TRUE(contains(page, "Published values are left out"));
    EXPECT_TRUE(std::filesystem::exists(out + "/inputs/noise-1.5-0/ring.ply"));

    // The scores are those that `stipple metrics` gives to the same files.
    const Json metrics =
        json_of(stipple({"metrics", out + "/outputs/net/noise-0-0/ring.ply", out + "/outputs/truth/noise-0-0/ring.ply",
                         "--mesh", folder / "data/meshes/ring.off", "--json"}));
    for (const Json& score : metrics["scores"])
        EXPECT_DOUBLE_EQ(score["value"], json["rows"][2][score["name"].get<std::string>()]) << score["name"];

    // Again nothing is computed: the time of the kept row stays.
    const Json again = json_of(sweep("noise", {"--json"}));
    EXPECT_EQ(again["rows"], json["rows"]);
}

TEST_F(CliStudy, ComparesFilesOfOthers) {
    expect_success(sweep("nonuniform", {"--inputs-only"}));
    EXPECT_FALSE(std::filesystem::exists(folder / "nonuniform/results.csv"));
    const std::string compare = "theirs=" + (folder / "nonuniform/inputs");
    const LaunchResult result = sweep("nonuniform", {"--compare", compare, "--json"});
    expect_success(result);
    const Json rows = json_of(result)["rows"];
    ASSERT_EQ(rows.size(), 20u);
    EXPECT_EQ(rows[3]["method"], "theirs");
    EXPECT_EQ(rows[3]["cd_raw"], rows[0]["cd_raw"]);
    EXPECT_EQ(png(folder / "nonuniform/truth-ring.png"), "PNG");
    std::filesystem::remove(folder / "nonuniform/inputs/region-0/ring.ply");
    std::filesystem::rename(folder / "nonuniform/inputs", folder / "theirs");
    expect_error(sweep("nonuniform", {"--compare", "theirs=" + (folder / "theirs")}), 3, "theirs has no cloud of ring");
}

TEST_F(CliStudy, AblationTellsWhatIsMissing) {
    const std::string stored = file("s.csv",
                                    "input,method,cd_raw,commit,command\n"
                                    "c,mlp-decoder,0.0002,abc1234,stipple train x\n");
    const LaunchResult result = sweep("ablation", {"--stored", stored, "--json"});
    expect_success(result);
    const Json json = json_of(result);
    ASSERT_EQ(json["rows"].size(), 5u);  // (c*) and (r) need gt_8192
    EXPECT_EQ(json["rows"][4]["source"], "stored");
    EXPECT_EQ(json["rows"][4]["commit"], "abc1234");
    EXPECT_EQ(json["rows"][4]["cd_raw"], 0.0002);
    const std::string notes = json["notes"].dump();
    EXPECT_TRUE(contains(notes, "2 of 3 inputs are left out")) << notes;
    EXPECT_TRUE(contains(notes, "Not measured yet: coupling, no-likelihood, euclidean-interpolation")) << notes;
    EXPECT_EQ(png(folder / "ablation/sources.png"), "PNG");
}

TEST_F(CliStudy, ScansCostsAndDiagrams) {
    const std::string scan = save_as("scan.ply", random_cloud(300));
    const LaunchResult real = study("real", {scan, "--model", model(), "-o", folder / "real", "--json"});
    expect_success(real);
    const Json rows = json_of(real)["rows"];
    ASSERT_EQ(rows.size(), 9u);  // three methods, thinned in three ways; a mean of one scan each
    EXPECT_EQ(rows[2]["points"], 300);
    EXPECT_EQ(rows[3]["thinning"], "random");
    EXPECT_EQ(rows[0]["invented_percent"], 0);
    EXPECT_EQ(rows[0]["stray_mean"], 0);  // the input is a part of the scan
    EXPECT_GT(rows[2]["cover_mean"], 0);
    EXPECT_NE(study("real", {scan, "--thin", "evenly", "-o", folder / "other"}).exit_code, 0);
    EXPECT_EQ(png(folder / "real/scans.png"), "PNG");

    const LaunchResult cost = study("cost", {"--model", model(), "--neighbours", "4,8", "--points", "200", "--runs",
                                             "1", "-o", folder / "cost", "--json"});
    expect_success(cost);
    const Json costs = json_of(cost)["rows"];
    ASSERT_EQ(costs.size(), 10u);  // forward, interpolate, inverse, network and all, twice
    EXPECT_EQ(costs[0]["stage"], "forward");
    EXPECT_EQ(costs[5]["k"], 8);
    EXPECT_EQ(costs[4]["parameters"], costs[3]["parameters"]);
    EXPECT_TRUE(contains(read_file(folder / "cost/table.tex"), "\\toprule"));

    expect_success(study("diagrams", {"--model", folder / "u.safetensors", "-o", folder / "diagrams"}));
    for (const char* name : {"whole", "block", "features", "aggregation", "interpolation"})
        EXPECT_TRUE(contains(read_file(folder / (std::string("diagrams/") + name + ".svg")), "</svg>")) << name;
    EXPECT_TRUE(contains(read_file(folder / "diagrams/index.html"), "block.svg"));
    expect_success(study("diagrams", {"--model", "puflow", "-o", folder / "puflow"}));
    for (const char* name : {"whole", "block", "features", "aggregation", "interpolation"})
        EXPECT_TRUE(contains(read_file(folder / (std::string("puflow/") + name + ".svg")), "</svg>")) << name;
    const LaunchResult other = study("diagrams", {"--model", "pointnet-classifier", "-o", folder / "pointnet"});
    EXPECT_EQ(other.exit_code, 0);
    EXPECT_TRUE(contains(other.err, "only the whole is drawn")) << other.err;
}

TEST_F(CliStudy, WrongUse) {
    const std::string data = folder / "data", out = folder / "out";
    expect_error(study("noise", {"-o", out}), 2, "--data is missing");
    expect_error(study("noise", {"--data", folder / "none", "-o", out}), 3, "no such folder");
    expect_error(study("noise", {"--data", data, "--seeds", "0", "-o", out}), 2, "seeds");
    expect_error(study("noise", {"--data", data, "--compare", "x", "-o", out}), 2, "NAME=FOLDER");
    expect_error(study("noise", {"--data", data, "--model", "a b=x", "-o", out}), 2, "\"a b\"");
    expect_error(study("noise", {"--data", data, "--model", "x=" + (folder / "no.safetensors"), "-o", out}), 3,
                 "no.safetensors");
    std::filesystem::create_directories(folder / "bin");
    std::filesystem::copy_file(STIPPLE_PROGRAM, folder / "bin/stipple");  // alone, without stipple-learn
    Launch alone;
    alone.arguments = {
        folder / "bin/stipple", "study", "upsampling-ablation", "--retrain", "--training", data, "--only", "residual"};
    expect_error(run_launch(alone), 5, "study upsampling-ablation --retrain needs the program stipple-learn");
    expect_error(study("ablation", {"--data", data, "--only", "residual", "-o", out}), 2, "are for --retrain");
    expect_error(study("ablation", {"--data", data, "--stored", folder / "no.csv", "-o", out}), 3, "no.csv");
    expect_error(study("noise", {"--data", data, "-o", data}), 4, "folder of other things");
    expect_error(study("real", {folder / "none.ply", "-o", out}), 3, "none.ply");
    expect_error(study("real", {cloud("a.ply", 50), "--ratio", "0.5", "-o", out}), 2, "1 or more, got 0.5");
    expect_error(study("cost", {"--neighbours", "0", "-o", out}), 2, "1 to 128, got 0");
    expect_error(study("cost", {"--model", "midpoints", "-o", out}), 2, "no network to measure");
    EXPECT_FALSE(std::filesystem::exists(out));  // all of these were told before anything was made
    expect_error(study("nose", {"--data", data}), 2, "upsampling-nose");
    const LaunchResult dry = study("noise", {"--data", data, "-o", out, "--dry-run"});
    expect_success(dry);
    EXPECT_TRUE(contains(dry.out, "would make 80 outputs of 20 inputs")) << dry.out;
}

}  // namespace
}  // namespace stipple::test
