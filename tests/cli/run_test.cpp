// `stipple run`: steps in one process give what the commands give one after the other.

#include <sys/resource.h>

#include <filesystem>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliRun : public CliTest {
protected:
    /// A flat town with a roof, labels and a few points that fly.
    std::string town(const std::string& name, const std::array<double, 3>& origin = {}) const {
        Mesh mesh = random_cloud(3000, 5);
        PointCloud& cloud = mesh.vertices;
        cloud.origin = origin;
        Attribute label("label", DType::u8, cloud.size(), 1);
        for (int64_t i = 0; i < cloud.size(); ++i) {
            float* at = cloud.positions.data() + 3 * i;
            at[0] = static_cast<float>(i % 60);
            at[1] = static_cast<float>(i / 60);
            const bool is_roof = at[0] > 20 && at[0] < 40 && at[1] > 15 && at[1] < 35;
            at[2] = (is_roof ? 6.0f : 0.0f) + (i % 500 == 7 ? 30.0f : 0.125f * static_cast<float>(i % 2));
            label.as<uint8_t>().data()[i] = static_cast<uint8_t>(i % 4);
        }
        cloud.attributes.push_back(std::move(label));
        return save_as(name, mesh);
    }

    /// The same steps by their commands, through files.
    std::string one_by_one(const std::string& input, const std::vector<std::vector<std::string>>& steps,
                           const std::string& extension) const {
        std::string from = input;
        for (size_t i = 0; i < steps.size(); ++i) {
            const std::string to = folder / fmt::format("single{}{}", i, extension);
            std::vector<std::string> call = {steps[i][0], from, "-o", to, "--overwrite", "-q"};
            call.insert(call.end(), steps[i].begin() + 1, steps[i].end());
            expect_success(stipple(call));
            from = to;
        }
        return read_file(from);
    }

    LaunchResult run_all(const std::string& input, const std::vector<std::vector<std::string>>& steps,
                         const std::string& output) const {
        std::vector<std::string> call = {"run", input};
        for (const std::vector<std::string>& step : steps) {
            call.emplace_back("--then");
            call.insert(call.end(), step.begin(), step.end());
        }
        call.insert(call.end(), {"-o", output, "--overwrite"});
        return stipple(call);
    }
};

TEST_F(CliRun, StepsAreTheCommandsOneAfterTheOther) {
    const std::string input = town("town.ply"), output = folder / "out.ply";
    const std::vector<std::vector<std::vector<std::string>>> lines = {
        {{"crop", "--box", "5", "5", "inf", "55", "45", "inf"}},
        {{"crop", "--box", "5", "5", "inf", "55", "45", "inf"},
         {"filter", "label != 3"},
         {"filter", "x > 7", "--invert"}},
        {{"filter", "label != 3 && z < 20"},
         {"clean"},
         {"sample", "-n", "700"},
         {"normals", "--curvature", "--k", "8"}},
        {{"transform", "--rotate", "z", "30", "--translate", "-1", "2", "3"},
         {"crop", "--sphere", "0", "30", "3", "20"}},
        {{"clean", "--method", "duplicates,radius", "--radius", "3"},
         {"ground", "--window", "30"},
         {"filter", "label == 2"}},
        {{"ground", "--only"}, {"clusters", "--radius", "2", "--min-points", "4"}},
        {{"planes", "--distance", "0.2", "--count", "2", "--seed", "3"},
         {"filter", "plane == 0"},
         {"transform", "--centre"}},
        {{"sample", "--method", "voxel", "--voxel", "2.5"}, {"planes", "--distance", "0.3", "--attribute", "flat"}}};
    for (const auto& steps : lines) {
        SCOPED_TRACE(steps.front()[0] + " to " + steps.back()[0]);
        const LaunchResult result = run_all(input, steps, output);
        expect_success(result);
        EXPECT_TRUE(read_file(output) == one_by_one(input, steps, ".ply"));
        EXPECT_TRUE(contains(result.out, fmt::format("step {}, {}: ", steps.size(), steps.back()[0]))) << result.out;
        EXPECT_TRUE(contains(result.out, "wrote " + output + ": ")) << result.out;
    }
}

TEST_F(CliRun, LasRecordsPassWherePointsAreOnlyRemoved) {
    const std::string input = town("town.las", {500000, 4000000, 100}), output = folder / "out.las";
    const std::vector<std::vector<std::vector<std::string>>> lines = {
        {{"crop", "--box", "500005", "4000005", "inf", "500055", "4000045", "inf"}, {"filter", "label > 1"}},
        {{"clean"}, {"filter", "label > 1"}, {"sample", "--ratio", "0.2", "--method", "random"}},
        {{"filter", "label > 1"}, {"sample", "--spacing", "3"}, {"crop", "--sphere", "500030", "4000030", "100", "20"}},
        {{"ground"}}};
    for (const auto& steps : lines) {
        SCOPED_TRACE(steps.front()[0] + " to " + steps.back()[0]);
        expect_success(run_all(input, steps, output));
        EXPECT_TRUE(read_file(output) == one_by_one(input, steps, ".las"));
    }
    // A step that adds an attribute after a mask: the same points, whatever the origin.
    expect_success(
        run_all(input, {{"filter", "label > 1"}, {"ground"}, {"transform", "--translate", "1", "0", "0"}}, output));
    io::Warnings warnings;
    const PointCloud made = io::load_cloud(output, {}, warnings);
    EXPECT_EQ(made.size(), 1500);
    EXPECT_TRUE(find(made.attributes, "height_above_ground"));
    EXPECT_EQ(made.world(0, 0), 500003);
    EXPECT_EQ(made.world(0, 1), 4000000);
}

TEST_F(CliRun, StepsMayBeWordsInQuotesOrStandInAConfiguration) {
    const std::string input = town("town.ply");
    const std::vector<std::string> words = {
        "run", input, "-o",  folder / "a.ply", "--then", "filter", "z < 20 && label != 3", "--then", "sample", "--seed",
        "5",   "-n",  "100", "--method",       "random"};
    expect_success(stipple(words));
    expect_success(stipple({"run", input, "--then", "filter 'z < 20 && label != 3'",
                            "--then=sample -n 100 --method random", "-o", folder / "b.ply", "--seed", "5"}));
    EXPECT_TRUE(read_file(folder / "a.ply") == read_file(folder / "b.ply"));
    std::vector<std::string> print = words;
    print.emplace_back("--print-config");
    const LaunchResult config = stipple(print);
    EXPECT_TRUE(contains(config.out, "then = [\"filter 'z < 20 && label != 3'\", \"sample -n 100 --method random\"]"))
        << config.out;
    expect_success(stipple({"run", input, "--config", file("steps.toml", config.out), "-o", folder / "c.ply"}));
    EXPECT_TRUE(read_file(folder / "a.ply") == read_file(folder / "c.ply"));
}

TEST_F(CliRun, CompletionOffersSteps) {
    const LaunchResult script = stipple({"completion", "bash"});
    expect_success(script);
    EXPECT_TRUE(contains(script.out, "crop filter transform clean sample normals ground planes clusters"))
        << script.out;
    EXPECT_TRUE(contains(stipple({"run", "--help"}).out, "Steps: crop, filter, transform,"));
    expect_error(stipple({"pipeline", "a.ply"}), 2, "unknown command pipeline");
}

TEST_F(CliRun, PipesAndTheInputItself) {
    const std::string input = town("town.ply");
    const Launch here{.arguments = {}, .folder = folder.path()};
    expect_success(shell("$S run town.ply --then filter 'label > 1' --then clean -o a.ply -q", here));
    expect_success(
        shell("cat town.ply | $S run - --then filter 'label > 1' --then clean -o - --format ply -q > b.ply", here));
    EXPECT_TRUE(read_file(folder / "a.ply") == read_file(folder / "b.ply"));
    const LaunchResult dry = shell("$S run town.ply --then clean -o c.ply --dry-run", here);
    EXPECT_TRUE(contains(dry.out, "would write c.ply: ")) << report(dry);
    EXPECT_FALSE(std::filesystem::exists(folder / "c.ply"));
    expect_error(shell("$S run town.ply --then clean -o town.ply", here), 4, "exists already");
    expect_success(shell("$S run town.ply --then filter 'label > 1' --then clean -o town.ply --overwrite", here));
    EXPECT_TRUE(read_file(folder / "a.ply") == read_file(input));
}

TEST_F(CliRun, SaysWhatEveryStepDid) {
    const std::string input = town("town.ply");
    const LaunchResult json = stipple({"run", input, "--then", "filter", "label == 2", "--then", "planes", "--distance",
                                       "0.2", "--count", "1", "-o", folder / "a.ply", "--json"});
    expect_success(json);
    const Json steps = json_of(json)["steps"];
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0]["step"], "filter");
    EXPECT_EQ(steps[0]["points"], 3000);
    EXPECT_EQ(steps[0]["left"], 750);
    EXPECT_EQ(steps[0]["expression"], "label == 2");
    EXPECT_EQ(steps[1]["points"], 750);
    EXPECT_EQ(steps[1]["planes"].size(), 1u);
    EXPECT_TRUE(steps[1]["seconds"].is_number());
    EXPECT_EQ(json_of(json)["left"], 750);
    const LaunchResult table =
        stipple({"run", input, "--then", "filter", "label == 2", "-o", folder / "b.ply", "--table", "csv"});
    EXPECT_EQ(table.out.rfind("step,name,points,left,seconds\n1,filter,3000,750,", 0), 0u) << table.out;
    // Faces are left out by the step that does it, and this is told.
    const LaunchResult faces = stipple({"run", save_as("m.ply", random_mesh(30)), "--then", "normals", "--orient",
                                        "none", "--then", "filter", "x == x", "-o", folder / "c.ply"});
    EXPECT_EQ(faces.exit_code, 0) << report(faces);
    EXPECT_TRUE(contains(faces.err, "step 2, filter: the ")) << faces.err;
}

TEST_F(CliRun, ErrorsNameTheStep) {
    const std::string input = town("town.ply"), out = folder / "out.ply";
    const auto fails = [&](std::vector<std::string> words, const std::string& text, int exit_code = 2) {
        words.insert(words.begin(), {"run", input, "-o", out});
        const LaunchResult result = stipple(words);
        EXPECT_EQ(result.exit_code, exit_code) << report(result);
        EXPECT_TRUE(contains(result.err, text)) << report(result);
        EXPECT_FALSE(std::filesystem::exists(out));
    };
    fails({}, "which steps? Give --then STEP");
    fails({"--then"}, "--then: a value is missing");
    fails({"--then", "clean", "--then", "fliter", "z > 1"},
          "step 2: there is no step fliter\n  hint: did you mean filter?");
    fails({"--then", "upsample"}, "step 1: there is no step upsample");
    fails({"--then", "clean", "--then", "filter", "--invrt", "z > 1"},
          "step 2, filter: unknown option --invrt\n  hint: did you mean --invert?");
    fails({"--then", "clean", "--then", "sample", "-n", "many"}, "step 2, sample: ");
    fails({"--then", "clean", "--picture", "x.png"}, "step 1, clean: unknown option --picture");
    fails({"--then", "crop", "other.ply", "--sphere", "0", "0", "0", "1"},
          "step 1, crop: unexpected argument other.ply");
    fails({"--then", "crop"}, "step 1, crop: crop to what?");
    fails({"--then", "clean --k 8 'x"}, "step 1: a quote ' is not closed");
    fails({"--then", "clean", "--then", "filter", "height > 2"},
          "town.ply: step 2, filter: column 1: no attribute \"height\"");
    fails({"--then", "crop", "--polygon", folder / "none.txt"}, "none.txt: step 1, crop: ", 3);
    fails({"--then", "sample", "-n", "4000"}, "town.ply: step 1, sample: ");
    // Nothing is left in the midst, and at the end.
    fails({"--then", "filter", "z > 99", "--then", "clean"}, "step 1, filter: no point is left for step 2, clean");
    fails({"--then", "filter", "z > 20", "--then", "clean", "--method", "radius", "--radius", "0.1"},
          "step 2, clean: no point is left; removed: nonfinite 0, radius 6", 3);
    expect_error(stipple({"run", input, "--then", "normals", "-o", folder / "a.stl"}), 2,
                 "step 1, normals: STL cannot hold");
    expect_error(stipple({"run", folder / "missing.ply", "--then", "clean", "-o", out}), 3, "missing.ply");
    expect_error(stipple({"clean", input, "--then", "crop", "-o", out}), 2, "unknown option --then");
    const LaunchResult empty = stipple({"run", input, "--then", "clean", "--then", "filter", "z > 99", "-o", out});
    EXPECT_EQ(empty.exit_code, 0) << report(empty);
    EXPECT_TRUE(contains(empty.err, "no point is left after step 2, filter")) << report(empty);
    io::Warnings warnings;
    EXPECT_EQ(io::load_cloud(out, {}, warnings).size(), 0);
}

TEST_F(CliRun, NothingIsLeftOfAnOutputThatCannotBeWritten) {
    for (const std::string extension : {".ply", ".las"}) {
        const std::string input = town("town" + extension);
        Launch launch;
        launch.before = [] {
            const rlimit limit{5'000, 5'000};
            ::setrlimit(RLIMIT_FSIZE, &limit);
        };
        for (const std::vector<std::string>& step :
             {std::vector<std::string>{"filter", "label > 0"}, {"clean"}, {"ground"}}) {
            std::vector<std::string> call = {"run", input, "-o", folder / ("out" + extension), "--then"};
            call.insert(call.end(), step.begin(), step.end());
            expect_error(stipple(call, launch), 4, "cannot write: File too large");
            expect_entries({"town" + extension});
        }
        expect_error(stipple({"run", folder / "no.ply", "--then", "clean", "-o", folder / ("no/out" + extension)}), 4,
                     "No such file");
        std::filesystem::remove(input);
    }
}

}  // namespace
}  // namespace stipple::test
