// --profile of the commands that run a network.

#include <map>

#include "tests/cli/cli.h"
#include "tests/support/trace.h"

namespace stipple::test {
namespace {

class CliProfile : public CliTest {
protected:
    std::string new_model(const std::string& architecture, const std::vector<std::string>& settings) const {
        const std::string path = folder / (architecture + ".safetensors");
        std::vector<std::string> call = {"engine", "new", architecture, "-o", path, "--seed", "1", "-q"};
        for (const std::string& setting : settings) call.insert(call.end(), {"--set", setting});
        expect_success(stipple(call));
        return path;
    }
    /// The warning of random weights is no failure.
    static void expect_ran(const LaunchResult& result) { EXPECT_EQ(result.exit_code, 0) << report(result); }
    /// Spans by name.
    static std::map<std::string, int> spans_in(const std::string& path) {
        std::map<std::string, int> found;
        for (const TraceEvent& span : spans_of(read_file(path))) {
            EXPECT_GE(span.duration, 0);
            ++found[span.name];
        }
        return found;
    }
};

TEST_F(CliProfile, ClassifyShowsWhatEachStepTook) {
    const std::string model = new_model("pointnet-classifier", {"classes=5"}), input = cloud("a.ply", 40);
    const std::vector<std::string> call = {"classify", input, "--model", model, "--device", "cpu", "--points", "32"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), call.begin(), call.end());
        return stipple(more);
    };
    const std::string plain = stipple(call).out;
    const LaunchResult result = with({"--profile", folder / "t.json"});
    expect_ran(result);
    EXPECT_EQ(result.out.rfind(plain, 0), 0u) << result.out;  // the result first
    for (const char* part :
         {"CPU total (ms)", "CPU (%)", "memory (MiB)", "\nrun ", "\n  input_transform.conv1 + ", "head.fc1", "wrote "})
        EXPECT_TRUE(contains(result.out, part)) << part << "\n" << result.out;
    const std::map<std::string, int> spans = spans_in(folder / "t.json");
    EXPECT_EQ(spans.at("run"), 1);
    EXPECT_GT(spans.size(), 5u);

    const Json json = json_of(with({"--profile", folder / "j.json", "--json"}));
    ASSERT_TRUE(json["profile"].is_array());
    EXPECT_EQ(json["profile"][0]["name"], "run");
    EXPECT_EQ(json["profile"][0]["calls"], 1);
    EXPECT_EQ(json["profile"][1]["stage"], "run");
    EXPECT_EQ(json["outputs"][0]["format"], "trace");
    double steps = 0, percent = 0;
    for (const Json& row : json["profile"]) {
        if (row["stage"] == "run") steps += row["cpu_total_ms"].get<double>();
        percent += row["cpu_percent"].get<double>();
        EXPECT_TRUE(row["name"] == "run" || row["bytes"] > 0) << row;
    }
    EXPECT_LE(steps, json["profile"][0]["cpu_total_ms"].get<double>() * (1 + 1e-9));
    EXPECT_NEAR(percent, 100, 1e-6);

    // What programs read stays one table; Markdown has room for two.
    EXPECT_EQ(with({"--profile", folder / "c.json", "--table", "csv"}).out, with({"--table", "csv"}).out);
    EXPECT_TRUE(contains(with({"--profile", folder / "m.json", "--table", "md"}).out, "| stage | name "));
    // Nothing is written in a dry run, nothing is replaced unasked.
    expect_ran(with({"--profile", folder / "dry.json", "--dry-run"}));
    EXPECT_EQ(read_file(folder / "dry.json"), "");
    expect_error(with({"--profile", folder / "t.json"}), 4, "exists already");
    expect_ran(with({"--profile", folder / "t.json", "--overwrite"}));
    expect_error(with({"--profile", folder / "t.txt"}), 2, "name it .json");
    expect_error(with({"--profile"}), 2, "--profile");
    expect_error(with({"--profile", folder / "nowhere/t.json"}), 4, "nowhere");
}

TEST_F(CliProfile, SegmentAndEvaluate) {
    const std::string model = new_model("pointnet-segmenter", {"classes=3"}), input = cloud("a.ply", 40);
    expect_ran(stipple({"segment", input, "--model", model, "--device", "cpu", "-o", folder / "parts.ply", "--profile",
                        folder / "s.json"}));
    EXPECT_GE(spans_in(folder / "s.json").at("run"), 1);

    const std::string classifier = new_model("pointnet-classifier", {"classes=2"});
    for (const char* name : {"chair", "table"}) {
        std::filesystem::create_directories(folder / ("set/" + std::string(name)));
        for (int i = 0; i < 3; ++i) cloud(fmt::format("set/{}/{}.ply", name, i), 40);
    }
    const LaunchResult result = stipple({"evaluate", classifier, "--data", folder / "set", "--points", "16", "--draws",
                                         "1", "--device", "cpu", "--profile", folder / "e.json"});
    expect_ran(result);
    EXPECT_TRUE(contains(result.out, "\n  input_transform.conv1")) << result.out;
    EXPECT_GE(spans_in(folder / "e.json").at("run"), 1);
}

TEST_F(CliProfile, EngineRunAndBench) {
    const std::string model = new_model("pointnet-classifier", {"classes=5"}), input = cloud("a.ply", 40);
    expect_ran(stipple({"engine", "build", model, "-o", folder / "m.engine", "--device", "cpu", "--max-points", "64",
                        "--max-batch", "2"}));
    const LaunchResult run = stipple({"engine", "run", folder / "m.engine", input, cloud("b.ply", 40),
                                      cloud("c.ply", 40), "--points", "32", "--profile", folder / "r.json"});
    expect_ran(run);
    EXPECT_EQ(spans_in(folder / "r.json").at("run"), 2);  // two clouds, then one
    const LaunchResult bench =
        stipple({"engine", "bench", model, "--device", "cpu", "--precision", "fp32,bf16", "--batch", "2", "--points",
                 "16", "--seconds", "0", "--warm-up", "0", "--repeat", "3", "--profile", folder / "b.json"});
    expect_ran(bench);
    const std::map<std::string, int> spans = spans_in(folder / "b.json");
    EXPECT_EQ(spans.at("fp32, 2 x 16 points"), 3);
    EXPECT_EQ(spans.at("bf16, 2 x 16 points"), 3);
    EXPECT_TRUE(contains(bench.out, "\nbf16, 2 x 16 points ")) << bench.out;
}

}  // namespace
}  // namespace stipple::test
