// stipple study radiance through the program, on a small procedural scene.

#include "tests/cli/cli.h"
#include "tests/radiance/scene_files.h"
#include "tests/support/analytic_scene.h"

namespace stipple::test {
namespace {

class CliRadianceStudy : public CliTest {
protected:
    std::string scene(const std::string& name, int test_views) const {
        std::filesystem::create_directories(folder / name);
        save_blender(folder / name, analytic_scene(24, 6, test_views, 1));
        return folder / name;
    }
    /// A few steps.
    LaunchResult study(std::vector<std::string> more) const {
        std::vector<std::string> arguments = {"study",
                                              "radiance",
                                              "--device",
                                              "cpu",
                                              "-o",
                                              folder / "out",
                                              "--set",
                                              "coarse.N_iters=30",
                                              "coarse.num_voxels=4096",
                                              "coarse.num_voxels_base=4096",
                                              "coarse.lrate_density=0.5",
                                              "coarse.N_rand=128",
                                              "fine.N_iters=20",
                                              "fine.N_rand=128",
                                              "fine.pg_scale=10",
                                              "--voxels",
                                              "20"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return stipple(arguments);
    }
};

TEST_F(CliRadianceStudy, TrainsStoresAndGoesOn) {
    const std::string ball = scene("ball", 2), out = folder / "out";
    const LaunchResult first = study({"--data", ball, "--seeds", "1", "--mode", "small"});
    expect_success(first);
    EXPECT_TRUE(contains(first.out, "On a CPU there is the row final alone")) << first.out;
    EXPECT_TRUE(contains(first.out, "ball   20^3        final")) << first.out;
    for (const char* name : {"results.csv", "parts.csv", "table.csv", "table.md", "table.tex", "index.html"})
        EXPECT_TRUE(std::filesystem::exists(out + "/" + name)) << name;
    EXPECT_EQ(json_of(stipple({"info", out + "/times.png", "--json"}))["files"][0]["format"], "PNG");
    const std::vector<std::string> one = lines_of(read_file(out + "/results.csv"));
    ASSERT_EQ(one.size(), 2u);

    // One more seed: the first is kept, to its last digit of time.
    const LaunchResult second = study({"--data", ball, "--seeds", "2", "--json"});
    expect_success(second);
    const std::vector<std::string> two = lines_of(read_file(out + "/results.csv"));
    ASSERT_EQ(two.size(), 3u);
    EXPECT_EQ(two[1], one[1]);
    const Json row = json_of(second)["rows"][0];
    EXPECT_EQ(row["seeds"], 2);
    EXPECT_EQ(row["num_voxels"], 8000);
    EXPECT_EQ(row["fine_pg_scale"], "10");
    EXPECT_EQ(row["coarse_N_iters"], 30);
    EXPECT_GT(row["psnr"].get<double>(), 5);
    EXPECT_GT(row["seconds"].get<double>(), 0);

    // Nothing is missing: the photographs are not needed any more.
    std::filesystem::remove_all(ball);
    expect_success(study({"--data", ball, "--seeds", "2"}));
    EXPECT_EQ(lines_of(read_file(out + "/results.csv")), two);
    // With other settings it is another field.
    const LaunchResult other = study({"--data", ball, "--seeds", "2", "--set", "fine.stepsize=0.6"});
    EXPECT_EQ(other.exit_code, 3) << other.err;
    const LaunchResult reduced = study({"--data", ball, "--seeds", "2", "--reduce", "2"});
    EXPECT_EQ(reduced.exit_code, 3) << reduced.err;
}

TEST_F(CliRadianceStudy, MistakesAreToldBeforeAnythingIsTrained) {
    const std::string ball = scene("ball", 2);
    const auto refused = [&](const std::vector<std::string>& more, int code, const char* text) {
        const LaunchResult result = study(more);
        EXPECT_EQ(result.exit_code, code) << result.err;
        EXPECT_TRUE(contains(result.err, text)) << result.err;
        EXPECT_FALSE(std::filesystem::exists(folder / "out/results.csv"));
    };
    refused({}, 2, "--data");
    refused({"--data", ball, "--rows", "reference"}, 2, "on a CPU there is the row final alone");
    refused({"--data", ball, "--rows", "quick"}, 2, "there is no row \"quick\"");
    refused({"--data", ball, "--rows", "final,final"}, 2, "twice");
    refused({"--data", ball, "--mode", "parity"}, 2, "--mode small");
    refused({"--data", ball, "--data", ball}, 2, "two folders");
    refused({"--data", ball, "--voxels", "4"}, 2, "--voxels must be 8 to 800");
    refused({"--data", ball, "--set", "path=final"}, 2, "--rows");
    refused({"--data", ball, "--set", "fine.N_iter=3"}, 2, "fine.N_iters");
    refused({"--data", folder / "nothing"}, 3, "nothing");
    refused({"--data", scene("blind", 0)}, 3, "no pictures to test on");
    std::filesystem::create_directories(folder / "out");
    write_file(folder / "out/results.csv", "scene,voxels\n");
    const LaunchResult broken = study({"--data", ball});
    EXPECT_EQ(broken.exit_code, 3) << broken.err;
    EXPECT_TRUE(contains(broken.err, "results.csv")) << broken.err;
}

TEST_F(CliRadianceStudy, DryRunsTellHowManyFields) {
    const LaunchResult result = study({"--data", scene("ball", 2), "--dry-run"});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "would train 3 fields into")) << result.out;
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

}  // namespace
}  // namespace stipple::test
